"""Evaluators whose outcome decides whether a reward arrives: everything is counted or charged, nothing left out.

Each wants an arm certified that misses the bar. Of its pulls, a third or more are misses that never arrive as such.
"""

import os
import random
from collections.abc import Callable
from typing import Any

import pytest
from engines import causes

import thresher
from thresher.run.command.process import Command

RATIO: dict[str, Any] = {"baseline": "old", "ratio": 1.0, "lower_is_better": True}


def slow(pull: thresher.Pull, share: float = 0.6) -> bool:
    """Whether the arm's run is slow, in most pulls: the arm misses the bar of one half."""
    return random.Random(pull.seed).random() < share


def accounted(study: thresher.Study, arm: str) -> bool:
    """Whether each pull of the arm that was not told in time is charged; one at the end may be as cancelled."""
    row = study.verdict()[arm]
    lost = [row for row in study.pulls() if row.arm == arm and row.state not in ("told", "pending")]
    return row.charged == len(lost) > 0


def study_of(*arms: str, **options: Any) -> thresher.Study:
    settings: dict[str, Any] = {"budget": 120, "max_failures": None, "seed": 3}
    return thresher.create_study("s", arms=arms, **settings | options)


def test_a_command_that_is_killed_exactly_when_slow_is_charged() -> None:
    """Its timeout is below the limit, so nothing is known of the slow runs. The fast half alone would be within."""
    study = study_of("a", at_most=0.5, share=0.5, budget=40)
    script = "test $(($THRESHER_SEED % 5)) -lt 2 || sleep 9"
    thresher.run(study, Command(("sh", "-c", script), "seconds", 0.3).for_study(study.spec), workers=4)
    assert causes(study)
    assert accounted(study, "a")
    assert not study.verdict()["a"].certified
    assert study.verdict()["a"].seen >= 8


def test_a_command_that_is_killed_at_the_limit_counts_as_a_miss() -> None:
    study = study_of("a", at_most=0.1, share=0.5, budget=60)
    script = "test $(($THRESHER_SEED % 8)) -lt 1 || sleep 9"
    thresher.run(study, Command(("sh", "-c", script), "seconds", 0.1).for_study(study.spec), workers=4)
    row = study.verdict()["a"]
    assert (causes(study), row.charged, row.reached, row.certified) == ([], 0, False, True)


class Chooses:
    """Where the arm is slower than the baseline, the baseline's side keeps the pair from arriving."""

    def __init__(self, how: Callable[[], float]) -> None:
        self._how = how

    def __call__(self, pull: thresher.Pull) -> float:
        if pull.arm != "old":
            return 2.0 if slow(pull) else 0.5
        return self._how() if slow(pull) else 1.0


def _raises() -> float:
    raise ValueError("the arm has lost")


def _exits() -> float:
    os._exit(3)


def _returns_nothing() -> Any:
    return None


@pytest.mark.parametrize(
    ("how", "executor"), [(_raises, "threads"), (_returns_nothing, "threads"), (_exits, "processes")]
)
def test_a_baseline_that_fails_when_the_arm_has_lost_is_charged(
    how: Callable[[], float], executor: str, request: pytest.FixtureRequest
) -> None:
    if how is not _raises:  # failures in a row are an outage, which waits for seconds: once is enough
        request.getfixturevalue("no_outage")
    study = study_of("old", "a", "b", **RATIO)
    thresher.run(study, Chooses(how), workers=2, executor=executor)
    for arm in ("a", "b"):
        row = study.verdict()[arm]
        assert accounted(study, arm)
        assert not row.certified
        assert row.seen > 10


def test_a_pair_that_is_busy_until_the_arm_wins_is_a_second_draw_and_the_verdict_says_so() -> None:
    draws = random.Random(5)

    def evaluate(pull: thresher.Pull) -> float:
        if pull.arm == "old":
            return 1.0
        if draws.random() < 0.6:
            raise thresher.Busy(after=0.001)
        return 0.5

    study = study_of("old", "a", **RATIO)
    verdict = thresher.run(study, evaluate, workers=1)
    assert "repeatable" in {event.cause for event in study.events() if event.kind == "told"}
    assert "finally returns" in verdict.guarantee


def test_a_late_pair_is_kept_and_the_pull_stays_charged() -> None:
    """Pairs that the arm loses are dropped first, and told when they can no longer hurt."""
    study = study_of("old", "a", **RATIO)
    held = []
    while pull := study.ask():
        if slow(pull):
            study.drop(pull, cause="lost")
            held.append(pull)
        else:
            study.tell(pull, (0.5, 1.0))
    for pull in held:
        study.tell(pull, (0.5, 1.0))  # it even claims that the arm has won
    row = study.verdict()["a"]
    assert (row.certified, row.charged, row.seen) == (False, len(held), 120)
    assert [row.baseline for row in study.pulls() if row.state == "late"] == [1.0] * len(held)


def test_a_pull_keeps_its_first_pair() -> None:
    study = study_of("old", "a", **RATIO)
    pull = study.ask() or pytest.fail("no pull")
    study.tell(pull, (2.0, 1.0))
    study.tell(pull, (2.0, 1.0))
    for again in ((2.0, 3.0), (0.5, 1.0), (0.5, 3.0)):
        with pytest.raises(thresher.AlreadyTold):
            study.tell(pull, again)
    with pytest.raises(thresher.AlreadyTold):
        study.drop(pull, cause="lost")
    assert [(row.reward, row.baseline) for row in study.pulls()] == [(2.0, 1.0)]
    row = study.verdict()["a"]
    assert (row.seen, row.charged) == (1, 0)
