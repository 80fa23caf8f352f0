"""Studies with a baseline and without cases: every pull evaluates both sides."""

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import pytest
from engines import causes

import thresher
from thresher.errors import EvaluationFailed
from thresher.run.evaluator_errors import traceback_text
from thresher.run.evaluators import WrappedCoroutine, WrappedEvaluator

ARMS = ("old", "a", "b", "c")
PULL = thresher.Pull(1, "a", 1, {}, 7, baseline="old")


def make(*arms: str, budget: int = 24, **options: Any) -> thresher.Study:
    settings: dict[str, Any] = {"baseline": "old", "confidence": None, "policy": "uniform", "budget": budget}
    return thresher.create_study("s", arms=arms or ARMS, **settings | options)


def half(pull: thresher.Pull) -> float:
    return 0.25 if pull.arm == "old" else 0.5


class Broken:
    """Raises for one arm, on each of its pulls or on some."""

    def __init__(self, arm: str, error: type[BaseException] = ValueError, every: int = 1) -> None:
        self.arm, self.error, self.every = arm, error, every

    def __call__(self, pull: thresher.Pull) -> float:
        if pull.arm == self.arm and pull.id % self.every == 0:
            raise self.error("broken")
        return half(pull)


def test_both_rewards_are_told_the_arms_first() -> None:
    study = make()
    thresher.run(study, half, workers=2)
    assert {(row.reward, row.baseline) for row in study.pulls()} == {(0.5, 0.25)}
    assert thresher.run(make(lower_is_better=True), half).reached == []


def test_a_coroutine_function_may_evaluate_pairs() -> None:
    seen: list[tuple[int, str]] = []

    async def evaluate(pull: thresher.Pull) -> float:
        seen.append((pull.id, pull.arm))
        await asyncio.sleep(0)
        return half(pull)

    study = make()
    thresher.run(study, evaluate, workers=3)
    assert {(row.reward, row.baseline) for row in study.pulls()} == {(0.5, 0.25)}
    assert len(seen) == 48


def test_parameters_reach_the_side_that_they_belong_to() -> None:
    study = thresher.create_study("s", arms={"old": {"x": 0.25}, "a": {"x": 0.75}}, baseline="old", budget=9)
    thresher.run(study, lambda pull: pull.params["x"])
    assert {(row.reward, row.baseline) for row in study.pulls()} == {(0.75, 0.25)}


def test_the_failure_of_a_side_is_a_failure_of_the_pull_and_the_reason_says_which() -> None:
    study = make(budget=60)
    verdict = thresher.run(study, Broken("b"), workers=1)
    assert verdict.retired == ["b"]
    assert verdict["b"].reason == "3 failures in a row, the last: ValueError: broken"
    study = make()
    thresher.run(study, Broken("old", every=5), workers=1)
    reasons = [event.reason for event in study.events() if event.kind == "dropped"]
    assert reasons == ["the baseline failed: ValueError: broken"] * 4
    assert [row.failures for row in study.verdict().rows].count(0) <= 3


@pytest.mark.parametrize("error", [StopIteration, GeneratorExit])
def test_what_ends_generators_is_a_failure_of_its_side_like_any_other(error: type[BaseException]) -> None:
    def evaluate(pull: thresher.Pull) -> float:
        if pull.arm == "new" and pull.id == 5:
            raise error("not today")
        return half(pull)

    study = make("old", "new")
    thresher.run(study, evaluate, workers=1)
    (dropped,) = [event for event in study.events() if event.kind == "dropped"]
    assert (dropped.pull, dropped.cause, dropped.reason) == (5, "failed", f"{error.__name__}: not today")


@pytest.mark.parametrize("executor", ["threads", "processes"])
@pytest.mark.parametrize(("arms", "who"), [(ARMS, "3 arms"), (("old", "a", "b"), "both arms"), (("old", "a"), "only")])
def test_a_baseline_that_always_fails_ends_the_run_and_retires_no_arm(
    arms: tuple[str, ...], who: str, executor: str
) -> None:
    study = make(*arms)
    with pytest.raises(thresher.CannotGoOn, match=f"{who}.*the baseline failed: ValueError: broken") as caught:
        thresher.run(study, Broken("old"), workers=2, executor=executor)
    assert "take out" not in str(caught.value)
    assert study.verdict().retired == []
    assert "failed" not in causes(study)
    if executor == "threads":
        assert isinstance(caught.value.__cause__.__cause__, ValueError)  # type: ignore[union-attr]


def _dies(pull: thresher.Pull) -> float:
    if pull.arm == "old":
        os._exit(3)
    return 0.5


def test_a_baseline_that_kills_its_worker_ends_the_run_and_retires_no_arm() -> None:
    study = make()
    with pytest.raises(thresher.CannotGoOn, match="3 arms failed with the same error"):
        thresher.run(study, _dies, workers=2, executor="processes")
    assert study.verdict().retired == []


def test_a_baseline_that_fails_after_a_good_start_is_an_outage() -> None:
    calls: list[int] = []

    def evaluate(pull: thresher.Pull) -> float:
        calls.append(pull.id)
        if len(calls) > 20 and pull.arm == "old":
            raise ValueError("the disk is full")
        return half(pull)

    study = make(budget=200)
    with pytest.raises(thresher.CannotGoOn, match="the baseline failed: ValueError: the disk is full"):
        thresher.run(study, evaluate, workers=1, give_up=0.01)
    assert study.verdict().retired == []


def test_an_outage_while_the_baseline_goes_first_costs_no_case_and_not_the_baseline() -> None:
    calls: list[int] = []

    def evaluate(pull: thresher.Pull) -> float:
        calls.append(pull.id)
        if 20 < len(calls) <= 29:
            raise ConnectionRefusedError
        return half(pull)

    study = thresher.create_study("s", arms=ARMS, baseline="old", cases=40, seed=4)
    verdict = thresher.run(study, evaluate, workers=2)
    assert (verdict.retired, verdict["old"].seen, verdict["old"].failures) == ([], 40, 0)
    assert verdict.reached == ["a", "b", "c"]
    assert set(causes(study)) == {"lost"}


@pytest.mark.parametrize("bad", [float("nan"), "0.5", None])
def test_a_reward_that_is_no_number_names_its_side(bad: object) -> None:
    study = make()
    with pytest.raises(thresher.CannotGoOn, match="the baseline's reward"):
        thresher.run(study, lambda pull: bad if pull.arm == "old" else 0.5)
    study = make()
    verdict = thresher.run(study, lambda pull: bad if pull.arm == "b" else 0.5, workers=1)
    assert verdict.retired == ["b"]
    assert "baseline" not in (verdict["b"].reason or "")


def test_a_busy_side_repeats_both_and_the_verdict_says_so() -> None:
    seen: list[str] = []

    def evaluate(pull: thresher.Pull) -> float:
        seen.append(pull.arm)
        if seen.count("old") == 1 and pull.arm == "old":
            raise thresher.Busy(after=0.01)
        return half(pull)

    study = make("old", "a", budget=6, confidence=0.95)
    verdict = thresher.run(study, evaluate, workers=1)
    assert causes(study) == []
    assert (verdict.told, seen.count("old")) == (6, 7)
    assert [event.cause for event in study.events() if event.kind == "told"].count("repeatable") == 1


def test_a_pair_has_one_timeout_and_a_late_pair_still_counts() -> None:
    """It covers both sides. The late reward is accepted as one, and the pull stays charged."""

    def evaluate(pull: thresher.Pull) -> float:
        time.sleep(0.6 if pull.id == 1 and pull.arm == "old" else 0.04)
        return half(pull)

    study = make("old", "a", budget=14, confidence=0.95, max_failures=None)
    thresher.run(study, evaluate, workers=1, timeout=0.3)
    first = study.pulls()[0]
    assert (first.state, first.reward, first.baseline) == ("late", 0.5, 0.25)
    assert study.verdict()["a"].charged >= 1


def test_the_second_side_is_not_evaluated_after_a_failure() -> None:
    seen: list[str] = []

    def evaluate(pull: thresher.Pull) -> float:
        seen.append(pull.arm)
        raise KeyError(pull.arm)

    with pytest.raises(KeyError, match="a"):
        WrappedEvaluator(evaluate)(PULL)
    with pytest.raises(EvaluationFailed, match="the baseline failed: KeyError: 'old'"):
        WrappedEvaluator(evaluate)(PULL._replace(baseline_first=True))
    assert seen == ["a", "old"]


def test_the_traceback_of_a_baseline_that_fails_has_hardly_a_frame_of_ours() -> None:
    async def evaluate_later(pull: thresher.Pull) -> float:
        return Broken("old")(pull)

    for evaluate in (Broken("old"), evaluate_later):
        study = make(max_failures=None)
        with pytest.raises(thresher.CannotGoOn) as caught:
            thresher.run(study, evaluate, workers=1)
        text = traceback_text(caught.value.__cause__ or caught.value)
        files = [line.split('"')[1] for line in text.splitlines() if line.strip().startswith("File ")]
        assert "ValueError: broken" in text
        ours = [name for name in (Path(file).name for file in files) if name != "test_pairs.py"]
        assert ours == ["evaluators.py", "pairs.py"], "where the evaluator is called, and where the error is named"


@pytest.mark.parametrize("error", [thresher.Busy, KeyboardInterrupt, asyncio.CancelledError])
def test_what_is_not_about_the_evaluation_passes_through(error: type[BaseException]) -> None:
    def evaluate(pull: thresher.Pull) -> float:
        raise error()

    async def evaluate_later(pull: thresher.Pull) -> float:
        raise error()

    for first in (False, True):
        with pytest.raises(error):
            WrappedEvaluator(evaluate)(PULL._replace(baseline_first=first))
        if error is not KeyboardInterrupt:
            with pytest.raises(error):
                asyncio.run(WrappedCoroutine(evaluate_later)(PULL._replace(baseline_first=first)))


def test_bounds_that_the_baseline_proves_wrong_end_the_study() -> None:
    study = make(confidence=0.95, budget=50)
    verdict = thresher.run(study, lambda pull: 1.5 if pull.arm == "old" else 0.5, workers=1)
    assert "outside the bounds" in (verdict["old"].reason or "")
    assert (verdict.done, verdict.told) == (True, 0)
    assert not any(row.certified for row in verdict.rows)
