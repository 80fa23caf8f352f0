"""Ways in which an outcome could decide whether it counts: none of them certifies what is not so."""

import random
import threading
from typing import Any

import pytest
from chances import most
from engines import FOREVER, Clock

import thresher
from thresher.run import loop
from thresher.study import give_up_in_study


def make(**given: Any) -> thresher.Study:
    plain: dict[str, Any] = {"arms": ["a"], "at_least": 0.5, "budget": 600, "max_failures": None}
    return thresher.create_study("s", **plain | given)


def test_a_pull_that_was_ever_busy_is_told_as_repeatable_and_the_guarantee_says_so() -> None:
    """Busy on half of the bad outcomes: what is certified is the mean of what the evaluator finally returns."""
    rng = random.Random(1)
    lock = threading.Lock()

    def evaluate(pull: thresher.Pull) -> bool:
        with lock:
            good, hides = rng.random() < 0.45, rng.random() < 0.9
        if not good and hides:
            raise thresher.Busy(after=0.0)
        return good

    study = make()
    verdict = thresher.run(study, evaluate, workers=4)
    assert verdict["a"].certified
    assert "Some evaluations were, or may have been, repeated: what is certified is the mean" in verdict.guarantee
    causes = {event.cause for event in study.events() if event.kind == "told"}
    assert causes == {None, "repeatable"}


@pytest.mark.parametrize("seed", range(3))
def test_a_busy_pull_that_is_still_waiting_when_the_run_ends_is_lost_not_cancelled(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed)
    lock = threading.Lock()
    waiting: set[int] = set()

    def evaluate(pull: thresher.Pull) -> bool:
        with lock:
            good = rng.random() < 0.45
            if good or pull.id % 2 == 0:
                return good
            waiting.add(pull.id)
            if len(waiting) >= enough:
                clock.end_the_run()
        raise thresher.Busy(after=FOREVER)

    study = make(budget=None)
    for runs in (1, 2, 3):  # every run leaves some waiting, and the next resumes
        enough, clock = 50 * runs, Clock()
        monkeypatch.setattr(loop, "time", clock)
        verdict = thresher.run(study, evaluate, workers=4, in_flight=60, seconds=FOREVER)
    dropped = {event.pull: event.cause for event in study.events() if event.kind == "dropped"}
    assert len(waiting) >= 150
    assert {dropped[pull] for pull in waiting} == {"lost"}  # one that had not begun is cancelled
    assert not verdict.reached


def test_nobody_but_a_runner_can_drop_a_pull_for_nothing() -> None:
    """An agent that loses half of its bad outcomes; as lost pulls they are charged."""
    for seed in range(10):
        rng, study = random.Random(seed), make(budget=400)
        while pull := study.ask():
            good = rng.random() < 0.45
            if not good and rng.random() < 0.5:
                study.drop(pull, cause="lost")
            else:
                study.tell(pull, good)
        assert not (study.verdict()["a"].certified and study.verdict().reached)
        assert {event.cause for event in study.events() if event.kind == "dropped"} == {"lost"}


@pytest.mark.parametrize("cause", ["tired", "cancelled", "broken-pool", "outage"])
def test_a_cause_that_a_caller_cannot_know_is_refused(cause: Any) -> None:
    study = make()
    with pytest.raises(thresher.InvalidInput, match=f"^cause '{cause}': must be failed or lost"):
        study.drop(study.ask() or 0, cause=cause)


def cancelled_at_the_right_moment(seed: int) -> bool:
    """Whether a study certifies an arm just below the bar as above, though a runner cancels what would hurt.

    Pulls go out in threes. The adversary sees all three outcomes, has the last one told first, and cancels each of the
    others that would be bad, some of them before and some after a later reward is told.
    """
    rng, study = random.Random(seed), make(at_least=0.5, budget=240)
    while True:
        pulls = study.ask_many(3)
        if len(pulls) < 3:
            return study.verdict()["a"].certified and bool(study.verdict().reached)
        good = [rng.random() < 0.499 for _ in pulls]
        if not good[0]:
            give_up_in_study(study, pulls[0], cause="cancelled", reason="never began")
        study.tell(pulls[2], good[2])
        if good[0]:
            study.tell(pulls[0], good[0])
        if good[1]:
            study.tell(pulls[1], good[1])
        else:
            give_up_in_study(study, pulls[1], cause="cancelled", reason="never began")


def test_cancelling_at_the_right_moment_does_not_help() -> None:
    assert sum(cancelled_at_the_right_moment(seed) for seed in range(100)) <= most(100, 0.05)


def seeds_of(policy: str, held: int) -> dict[tuple[str, int], int]:
    """The seeds of a study in which results are held back, and so steer what is chosen next."""
    study = make(arms=["a", "b", "c"], policy=policy, budget=200, confidence=1 - 1e-9, seed=4)
    found: dict[tuple[str, int], int] = {}
    waiting: list[thresher.Pull] = []
    while pull := study.ask():
        found[pull.arm, pull.number] = pull.seed
        waiting.append(pull)
        if len(waiting) > held:
            study.tell(waiting[0], waiting.pop(0).seed < 0.45 * 2**32)
    assert len(set(found.values())) == len(found)
    return found


def test_nobody_can_steer_good_seeds_to_an_arm() -> None:
    """An arm's n-th pull has the same seed whatever was chosen, told and held back before it."""
    first, second = seeds_of("balanced", held=0), seeds_of("uniform", held=9)
    shared = first.keys() & second.keys()
    assert first.keys() != second.keys()
    assert len(shared) > 50
    assert all(first[key] == second[key] for key in shared)
