"""A user's score in the laboratory: the same decisions as live, to the bit, and plain words for what cannot be."""

import json
from typing import Any

import pytest
import rewritten
from hypothesis import given, settings
from hypothesis import strategies as st
from lab_commands import run
from lab_replay import compare, decides_alike, live
from scores_of_chance import FAMILIES, expressions, scored

import thresher
from thresher.core.policies import custom
from thresher.errors import InvalidInput, ScoreFailed
from thresher.lab import Setup, simulate, trace
from thresher.study import peek_study

SOME = [("lsa", "none"), ("balanced", "random:12")]


@pytest.mark.parametrize(("name", "delay"), SOME)
def test_a_policy_written_again_decides_compiled_as_thresher_s_own_does_live(name: str, delay: str) -> None:
    """All of them: python -m bench scores. A loop takes seconds to compile."""
    decides_alike(name, delay)


def test_live_and_compiled_hold_the_same_bits() -> None:
    policy = custom(rewritten.thirds)
    more: dict[str, Any] = {"delay": "fifo:7", "common": True, "confidence": 0.9, "family": "bernoulli"}
    setup = Setup(policy=policy, arms=7, budget=300, spreads=0.15, **more)
    played = trace(setup, seed=2)
    peek_study(live(setup, played), lambda ledger: compare(ledger, played))


@settings(max_examples=1, derandomize=True)
@given(expressions(), st.sampled_from(FAMILIES), st.integers(0, 99))
def test_any_function_of_exactly_rounded_operations_chooses_the_same_arms(text: str, family: str, seed: int) -> None:
    """More of them: python -m bench scores."""
    score = scored(text)
    policy = custom(score)
    setup = Setup(policy=policy, family=family, arms=5, budget=80, spreads=0.15)
    played = trace(setup, seed=seed)
    peek_study(live(setup, played), lambda ledger: compare(ledger, played))


# -- what cannot be compiled ---------------------------------------------------------------------------------------


def text(gap: float, scatter: float, seen: int, weight: float, exploration: float) -> float:
    return float(f"{gap:.2f}")


def sometimes(gap: float, scatter: float, seen: int, weight: float, exploration: float) -> float:
    if gap > 2:
        return 1.0
    return None  # type: ignore[return-value]


def is_far(gap: float, scatter: float, seen: int, weight: float, exploration: float) -> float:
    return gap > 0.5


@pytest.mark.parametrize(
    ("score", "words"),
    [(text, r"cannot be compiled, line \d+: .*format"), (sometimes, "returns OptionalType"), (is_far, "returns bool")],
)
def test_a_function_that_cannot_be_compiled_is_refused_with_its_name_and_numbas_reason(score: Any, words: str) -> None:
    policy = custom(score)
    with pytest.raises(InvalidInput, match=f"policy 'test_scores_compiled:{score.__name__}': {words}") as raised:
        simulate(Setup(policy=policy, arms=2, budget=8), repetitions=1)
    assert "\n" not in str(raised.value)


def wrong(gap: float, scatter: float, seen: int, weight: float, exploration: float) -> float:
    if gap < 0.15:  # means of 0.8
        return gap / (6.0 - weight)
    return gap - 1e-3 if weight < 6.0 else -gap


@pytest.mark.parametrize(
    ("mean", "words"),
    [
        (0.9, "wrong': returned -0.* for arm [0-2] in repetition 0 with gap=0.*, scatter=.*, weight=6.0, explor"),
        (0.8, "wrong': raised ZeroDivisionError.* for arm [0-2] in repetition [0-2] with gap=0.*, weight=6.0, explor"),
    ],
)
def test_what_is_no_score_stops_the_simulation_with_one_line(mean: float, words: str) -> None:
    setup = Setup(policy=custom(wrong), arms=3, budget=60, means=mean, spreads=0.01)
    for play in (lambda: simulate(setup, repetitions=3), lambda: trace(setup)):
        with pytest.raises(ScoreFailed, match=words):
            play()
    study = thresher.create_study("s", arms=["a", "b"], at_least=0.7, budget=60, policy=setup.policy, confidence=None)
    with pytest.raises(ScoreFailed):
        thresher.run(study, lambda pull: mean)


def at_four(gap: float, scatter: float, seen: int, weight: float, exploration: float) -> float:
    return weight if exploration < 4.0 else -weight


def over_four(gap: float, scatter: float, seen: int, weight: float, exploration: float) -> float:
    return weight / (4.0 - exploration)


@pytest.mark.parametrize(
    ("score", "words"), [(at_four, r"returned -\d"), (over_four, "raised ZeroDivisionError: [a-z ]+")]
)
def test_the_arguments_of_a_refused_score_are_those_it_had_where_pulls_were_lost(score: Any, words: str) -> None:
    """Lost pulls count for the doubling: it is the 12th pull of three arms that makes the exploration 4."""
    policy = custom(score, exploration="doubling", warmup=1)
    setup = Setup(policy=policy, arms=3, budget=60, means=0.8, spreads=0.1, delay="workers:1", lost=(0.6, 0.6))
    with pytest.raises(ScoreFailed, match=f"{words}.* for arm [0-2] in repetition 0 with gap=.*, exploration=4.0;"):
        trace(setup)
    study = thresher.create_study(
        "s", arms=["a", "b", "c"], at_least=0.7, budget=60, policy=policy, confidence=None, max_failures=None
    )
    for number in range(12):
        pull = study.ask()
        assert pull is not None
        if number < 3:
            study.tell(pull, 0.8)
        else:
            study.drop(pull, cause="lost")
    with pytest.raises(ScoreFailed, match=f"{words}.* for arm 'a' with gap=.*, exploration=4.0;"):
        study.ask()


def test_simulate_and_plan_take_a_score_of_one_s_own() -> None:
    words = ("--policy=rewritten:thirds", "--arms=4", "--at-least=0.5", "--means=0.2:0.8")
    simulated = json.loads(run("simulate", *words, "--budget=400", "--repetitions=20", "--format=json"))
    assert simulated["results"][-1]["accuracy"] > 0.8
    planned = json.loads(run("plan", *words, "--format=json"))
    assert any("rewritten:thirds" in row["policy"] for row in planned["needs"])
