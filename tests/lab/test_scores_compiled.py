"""A user's score in the laboratory: the same decisions as live, to the bit, and plain words for what cannot be."""

import json
import linecache
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
import pytest
import rewritten
from hypothesis import given, settings
from hypothesis import strategies as st
from lab_commands import run
from lab_replay import compare, decides_alike, live
from scores_of_chance import FAMILIES, expressions, scored

import thresher
from thresher.core.policies import Policy, custom
from thresher.errors import InvalidInput, ScoreFailed
from thresher.lab import Setup, simulate, trace, user_score
from thresher.lab.simulator import Played, kind
from thresher.study import peek

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
    peek(live(setup, played), lambda ledger: compare_scored(ledger, played))


def compare_scored(ledger: Any, played: Played) -> None:
    """Compare, after scoring what a live study scores only when it is asked."""
    if ledger.stale:
        ledger._score_stale(ledger.stale)
    compare(ledger, played)


@settings(max_examples=1, derandomize=True)
@given(expressions(), st.sampled_from(FAMILIES), st.integers(0, 99))
def test_any_function_of_exactly_rounded_operations_chooses_the_same_arms(text: str, family: str, seed: int) -> None:
    """More of them: python -m bench scores."""
    score = scored(text)
    policy = custom(score)
    setup = Setup(policy=policy, family=family, arms=5, budget=80, spreads=0.15)
    assert policy.is_exact
    played = trace(setup, seed=seed)
    peek(live(setup, played), lambda ledger: compare_scored(ledger, played))


# -- what cannot be compiled ---------------------------------------------------------------------------------------

HEAD = "import math\nimport random\nimport numpy as np\nLIST = [1.0]\n\n\n"
MISTAKES = {
    "x = {'a': gap}\n    return x['a']": "line 8 of mistake.py: it makes a dict",
    "x = f'{gap:.2f}'\n    return float(x)": "line 8 of mistake.py: it makes text",
    "try:\n        return 1 / gap\n    except ValueError:\n        return 0.0": "line 8 of mistake.py: it has a try",
    "x = 1.0\n    return x + LIST[0]": "line 9 of mistake.py: LIST is a list; use numbers, or a tuple of numbers",
    "x = gap\n    return x + unknown": "line 9 of mistake.py: there is no unknown",
    "return sum(v for v in (gap, weight))": "line 8 of mistake.py: it makes a generator; write a loop",
    "print(gap)\n    return gap": "line 8 of mistake.py: it prints",
    "return gap.hex()": "line 8 of mistake.py: it uses gap.hex: a number has no methods here",
    "return random.random()": "line 8 of mistake.py: random.random gives another answer each time",
    "import cmath\n    return gap": "line 8 of mistake.py: it imports; import at the top of the file",
    "global LIST\n    return gap": "line 8 of mistake.py: it changes a global variable",
    "return score(gap, scatter, seen, weight, exploration)": "line 8 of mistake.py: score calls itself; write a loop",
    "return math.sqrt(x=gap)": "line 8 of mistake.py: math.sqrt takes no argument by name",
    "return math.sqroot(gap)": "line 8 of mistake.py: math has no sqroot",
    "y = gap\n    return np.linalg.norm(y, 3)": "line 9 of mistake.py: numba",
    "if gap > 2:\n        return 1.0": "returns nothing in some cases",
    "return gap > 0.5": "returns True or False",
    "return complex(gap, 1.0)": "returns a complex number",
}


@pytest.mark.parametrize("body", MISTAKES)
def test_a_function_that_cannot_be_compiled_is_refused_with_its_line_in_plain_words(
    body: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"{HEAD}def score(gap, scatter, seen, weight, exploration):\n    {body}\n"
    module = ModuleType("mistake")
    monkeypatch.setitem(sys.modules, "mistake", module)
    linecache.cache["mistake.py"] = (len(text), None, text.splitlines(keepends=True), "mistake.py")
    exec(compile(text, "mistake.py", "exec"), vars(module))
    policy = custom(module.score)
    with pytest.raises(InvalidInput, match="policy 'mistake:score': ") as raised:
        user_score.compiled(policy.formula, str(policy.digest))
    assert MISTAKES[body] in str(raised.value)
    assert "\n" not in str(raised.value)


def more(gap: float, scatter: float, seen: int, weight: float, exploration: float, k: float = 2.0) -> float:
    return gap * k


def through(gap: float, scatter: float, seen: int, weight: float, exploration: float) -> float:
    return rewritten.deviation(gap, seen)


@pytest.mark.parametrize(
    ("score", "words"),
    [
        (more, "it must take 5 arguments, no fewer and no more"),
        (through, "rewritten.deviation is called through its module; write from rewritten import deviation"),
    ],
)
def test_what_works_live_only_is_refused_in_plain_words(score: Any, words: str) -> None:
    policy = custom(score)
    assert policy.is_exact
    with pytest.raises(InvalidInput, match=words):
        user_score.compiled(policy.formula, str(policy.digest))


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
    study = thresher.create_study("s", arms=["a", "b"], threshold=0.7, budget=60, policy=setup.policy, confidence=None)
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
        "s", arms=["a", "b", "c"], threshold=0.7, budget=60, policy=policy, confidence=None, max_failures=None
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


def called(score: Any) -> float:
    """What a compiled score returns: it can be called from compiled code alone."""
    return float(numba.njit(lambda gap: score(gap, 0.0, 4, 4.0, 1.0))(0.5))


def test_a_function_of_a_new_source_is_compiled_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def policy(number: int) -> Policy:
        text = f"def score(gap, scatter, seen, weight, exploration):\n    return {number} * gap + weight\n"
        module, file = ModuleType("anew"), f"anew{number}.py"
        monkeypatch.setitem(sys.modules, "anew", module)
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        exec(compile(text, file, "exec"), vars(module))
        return custom(module.score)

    one, two = policy(1), policy(2)
    assert [called(user_score.compiled(each.formula, str(each.digest))) for each in (one, two)] == [4.5, 5.0]
    assert len({kind(Setup(policy=each)).name for each in (one, two)}) == 2  # of the loops


def test_simulate_and_plan_take_a_score_of_one_s_own() -> None:
    words = ("--policy=rewritten:thirds", "--arms=4", "--threshold=0.5", "--means=0.2:0.8")
    found = json.loads(run("simulate", *words, "--budget=400", "--repetitions=20", "--format=json"))
    assert found["results"][-1]["accuracy"] > 0.8
    planned = json.loads(run("plan", *words, "--format=json"))
    assert any("rewritten:thirds" in row["policy"] for row in planned["needs"])
