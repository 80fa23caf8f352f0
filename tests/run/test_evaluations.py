"""The pulls of a run: those that wait, those that an engine evaluates, and how they are dropped."""

from concurrent.futures import Future
from typing import Any

import pytest
from engines import causes, make

from thresher.errors import AlreadyTold, CannotGoOn
from thresher.run import loop
from thresher.run.failures import FailureSuspects
from thresher.run.loop import Evaluation, RunLoopEvaluations
from thresher.study import Pull


def pull(number: int, arm: str = "a") -> Pull:
    return Pull(number, arm, 1, {}, 7)


class Taking:
    """Takes every pull, and finishes none."""

    def __init__(self) -> None:
        self.pulls: list[int] = []
        self.taken_back = 0

    def submit(self, pull: Pull) -> "Future[object]":
        if pull.arm == "refused":
            raise CannotGoOn("executor", rule="no more")
        self.pulls.append(pull.id)
        return Future()

    def take_back(self, futures: Any) -> set["Future[object]"]:
        self.taken_back += 1
        return set(list(futures)[1:])


def some(study: Any = None, suspects: FailureSuspects | None = None) -> tuple[RunLoopEvaluations, Taking]:
    engine: Any = Taking()
    return RunLoopEvaluations(study or make(), engine, suspects or FailureSuspects(), lambda _: None), engine


def test_busy_pulls_are_tried_when_they_are_due_the_earliest_first() -> None:
    waiting, engine = some()
    assert (waiting.next_try, waiting.oldest(), len(waiting)) == (None, float("inf"), 0)
    for number, when in [(4, 9.0), (2, 5.0), (3, 5.0), (1, 7.0)]:
        waiting.try_at(when, Evaluation(pull(number)))
    assert (waiting.next_try, waiting.oldest(), len(waiting)) == (5.0, 1, 4)
    waiting.submit_waiting(4.9)
    assert engine.pulls == []
    waiting.submit_waiting(5.0)
    assert engine.pulls == [2, 3]
    assert [evaluation.was_busy for evaluation in waiting.running.values()] == [True] * 2
    waiting.submit_waiting(10.0)
    assert (engine.pulls, len(waiting), waiting.next_try) == ([2, 3, 1, 4], 4, None)


def test_pulls_are_dropped_as_cancelled_only_if_they_never_began() -> None:
    study = make(budget=20)
    pulls = study.ask_many(6)
    waiting, engine = some(study)
    waiting.begin(pulls[:3], 0.0)
    waiting.take_back()
    assert (causes(study), len(waiting)) == (["cancelled"] * 2, 1)
    waiting.try_at(5.0, Evaluation(pulls[3]))
    waiting.hold(Evaluation(pulls[4], was_busy=True))
    waiting.hold(Evaluation(pulls[5]))
    waiting.cancel_waiting()
    assert (causes(study)[2:], len(waiting)) == (["lost", "lost", "cancelled"], 1)
    waiting.drop_all("the end")
    assert (causes(study)[5:], len(waiting)) == (["lost"], 0)
    before = engine.taken_back
    waiting.take_back()
    assert engine.taken_back == before, "nothing runs there"


def test_a_pull_that_an_engine_refuses_is_dropped_at_the_end() -> None:
    waiting, _ = some()
    with pytest.raises(CannotGoOn, match="no more"):
        waiting.begin([pull(1, "refused"), pull(2)], 0.0)
    assert (len(waiting), waiting.oldest()) == (2, 1)


def test_a_pull_that_another_agent_told_needs_no_drop(monkeypatch: pytest.MonkeyPatch) -> None:
    def told(*_: object, **__: object) -> None:
        raise AlreadyTold("pull", 1, "was told")

    monkeypatch.setattr(loop, "give_up_in_study", told)
    some()[0].drop(Evaluation(pull(1), 1), "the end", "lost")


def test_of_suspected_arms_one_pull_is_pending_at_a_time_and_others_do_not_wait() -> None:
    suspects = FailureSuspects({"a", "b"})
    waiting, engine = some(suspects=suspects)
    waiting.begin([pull(1, "a"), pull(2, "b"), pull(3, "c"), pull(4, "a"), pull(5, "c")], 0.0)
    assert engine.pulls == [1, 3, 5]
    assert (len(waiting), waiting.oldest()) == (5, 1)
    suspects.clear("a")
    waiting.submit_waiting(1.0)
    assert engine.pulls == [1, 3, 5, 2, 4]
