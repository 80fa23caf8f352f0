"""The loop of a run, one step at a time: what becomes of a pull."""

from concurrent.futures import CancelledError, Future
from typing import Any

import pytest
from engines import make
from steps import Still, Told, a_run, reasons

from thresher.errors import Busy, CannotGoOn, StoreFailed
from thresher.run import loop
from thresher.run.failures import WINDOW, Failure
from thresher.run.loop import Runner
from thresher.run.lost_workers import WorkerLost
from thresher.run.runner import Limits


@pytest.fixture(autouse=True)
def still(monkeypatch: pytest.MonkeyPatch) -> Still:
    found = Still()
    monkeypatch.setattr(loop, "time", found)
    return found


# -- what becomes of a pull ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (CancelledError(), ("cancelled", "cancelled before it began")),
        (KeyboardInterrupt(), ("broken-pool", "its worker was interrupted")),
        (CannotGoOn("executor", rule="it is gone"), ("lost", "its engine failed")),
    ],
)
def test_a_pull_that_was_not_evaluated_is_dropped_with_the_reason(error: Any, expected: tuple[str, str]) -> None:
    study = make(budget=20)
    runner, engine = a_run(study, workers=1)
    runner._hand_out()
    engine.raises(error, 1)
    if isinstance(error, CannotGoOn):
        with pytest.raises(CannotGoOn, match="it is gone"):
            runner._take_in()
    else:
        runner._take_in()
    assert reasons(study) == [expected]
    assert runner._evaluations.running == {}


@pytest.mark.parametrize(("after", "due"), [(3.0, 103.0), (-1.0, 100.0)])
def test_a_busy_evaluator_is_tried_again_when_it_said(after: float, due: float, still: Still) -> None:
    study = make("a", budget=2)
    runner, engine = a_run(study, workers=1)
    runner._hand_out()
    engine.raises(Busy(after=after), 1)
    runner._take_in()
    assert (runner._evaluations.next_try, len(runner._evaluations)) == (due, 1)
    still.now, first = due, engine.pulls[1]
    runner._hand_out()
    assert engine.pulls[1] is not first
    engine.returns(0.5, 1)
    runner._take_in()
    assert [event.cause for event in study.events() if event.kind == "told"] == ["repeatable"]


def test_pulls_that_died_together_are_nobodys_failure_and_one_that_died_alone_is() -> None:
    study = make("a", "b", budget=20)
    runner, engine = a_run(study, workers=2)
    runner._hand_out()
    together = [each.pull for each in runner._evaluations.running.values()]
    engine.raises(WorkerLost("the pool broke", together), 1, 2)
    runner._take_in()
    assert [(held.cause, held.reason, held.kind) for held in runner._watch.held] == [
        ("broken-pool", "the pool broke", None)
    ] * 2
    runner._suspects.arms.clear()
    runner._hand_out()
    engine.raises(WorkerLost("it died", [next(iter(runner._evaluations.running.values())).pull]), 3)
    runner._take_in()
    assert (runner._watch.held[2].cause, runner._watch.held[2].kind) == ("failed", "its worker was lost")


def test_an_error_has_a_kind_unless_it_is_temporary() -> None:
    runner, engine = a_run(workers=2)
    runner._hand_out()
    engine.raises(TimeoutError("slow"), 1)
    engine.raises(KeyError("depth"), 2)
    runner._take_in()
    assert [(held.reason, bool(held.kind)) for held in runner._watch.held] == [
        ("TimeoutError: slow", False),
        ("KeyError: 'depth'", True),
    ]


def test_a_failing_evaluation_is_tried_as_often_as_asked_for_but_not_once_the_run_is_stopped() -> None:
    runner, engine = a_run(workers=1, attempts=3)
    for attempt in (1, 2):
        runner._hand_out()
        (evaluation,) = runner._evaluations.running.values()
        assert evaluation.attempt == attempt
        engine.raises(ValueError("no"), 1)
        runner._take_in()
        assert runner._watch.held == []
    runner._hand_out()
    runner._signals = 1
    engine.raises(ValueError("no"), 1)
    runner._take_in()
    assert [held.reason for held in runner._watch.held] == ["ValueError: no"]


def test_an_evaluation_that_takes_too_long_is_stopped_and_fails(still: Still) -> None:
    runner, engine = a_run(workers=2, timeout=5.0)
    runner._hand_out()
    engine.begin(1)
    runner._end_overdue()
    still.now += 5.0
    runner._end_overdue()
    assert engine.stopped == [engine.pulls[1]]
    assert [(held.pull.id, held.reason, held.kind) for held in runner._watch.held] == [(1, "timed out after 5 s", None)]
    engine.returns(0.5, 1)
    runner._take_in()
    assert [event.late for event in runner.study.events() if event.kind == "told"] == [True]


def test_an_engine_that_cannot_stop_an_evaluation_does_not_hide_its_failure(still: Still) -> None:
    class Stuck(Told):
        def stop(self, future: "Future[object]") -> None:
            raise CannotGoOn("executor", rule="all hang")

    runner: Any = Runner(make(), engine := Stuck(1), Limits(timeout=5.0), None)
    runner._hand_out()
    engine.begin(1)
    runner._end_overdue()
    still.now += 5.0
    with pytest.raises(CannotGoOn, match="all hang"):
        runner._end_overdue()
    assert len(runner._watch.held) == 1


@pytest.mark.parametrize("value", [0.5, "nonsense"])
def test_only_a_valid_reward_clears_its_arm_of_suspicion(value: Any) -> None:
    runner, engine = a_run(workers=1)
    runner._suspects.arms |= {"a", "b"}
    runner._hand_out()
    engine.returns(value, 1)
    runner._take_in()
    assert runner._suspects.arms == ({"b"} if value == 0.5 else {"a", "b"})
    assert [held.kind for held in runner._watch.held] == ([] if value == 0.5 else ["no valid reward"])


def test_of_a_pair_both_sides_are_cleared_of_suspicion() -> None:
    runner, engine = a_run(make("old", "a", at_least=None, baseline="old", budget=20), workers=1)
    runner._suspects.arms |= {"a", "old"}
    runner._hand_out()
    engine.returns((0.5, 0.25), 1)
    runner._take_in()
    assert runner._suspects.arms == set()


def test_a_reward_outside_the_bounds_retires_its_arm_and_is_no_success() -> None:
    study = make(budget=20)
    runner, engine = a_run(study, workers=1)
    runner._hand_out()
    engine.returns(7.0, 1)
    runner._take_in()
    assert study.verdict().retired == ["a"]
    assert not runner._watch.start.over


def test_rewards_are_told_before_a_failure_is_dropped() -> None:
    """Failures in a row count, so the order matters."""
    study = make("a", budget=20)
    runner, engine = a_run(study, workers=3)
    runner._hand_out()
    engine.returns(0.5, 1)
    engine.raises(KeyboardInterrupt(), 2)
    engine.returns(0.5, 3)
    runner._take_in()
    assert [(event.kind, event.pull) for event in study.events()[-3:]] == [("told", 1), ("dropped", 2), ("told", 3)]


def test_rewards_are_told_before_failures_that_were_held_are_dropped() -> None:
    study = make("a", "b", "c", budget=200, max_failures=None)
    study.tell(study.ask(arm="c") or 0, 1)  # it has worked, so a pull of it decides who is to blame
    runner, engine = a_run(study, workers=2)
    runner._hand_out()
    other, control = engine.pulls
    runner._watch.start.close()
    failed = [study.ask(arm=arm) or pytest.fail("no pull") for arm in "ab" * (WINDOW // 2)]
    for pull in failed:
        runner._watch.failure(Failure(pull, "down"), 100.0)
    runner._watch._control = control
    engine.returns(0.5, other, control)
    runner._take_in()
    expected = [("told", other), *(("dropped", pull.id) for pull in failed), ("told", control)]
    assert [(event.kind, event.pull) for event in study.events()[-len(expected) :]] == expected


def test_rewards_are_told_before_an_answer_that_is_no_reward_is_dropped() -> None:
    study = make("a", budget=20, max_failures=None)
    runner, engine = a_run(study, workers=2)
    runner._hand_out()
    engine.returns(0.5, 1)
    engine.returns("nonsense", 2)
    runner._take_in()
    assert [(event.kind, event.pull) for event in study.events()[-2:]] == [("told", 1), ("dropped", 2)]


def test_failures_that_waited_for_an_earlier_pull_end_the_run_when_it_brings_no_reward() -> None:
    runner, engine = a_run(make(*"abcd", budget=20))
    runner._hand_out()
    engine.raises(KeyError("depth"), 2, 3, 4)
    runner._take_in()
    engine.raises(CancelledError(), 1)
    with pytest.raises(CannotGoOn, match="3 arms failed with the same error before anything succeeded: KeyError: 'dep"):
        runner._take_in()


def test_the_first_traceback_of_an_error_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    runner, engine = a_run(make("a", "b", "c"), workers=2)
    runner._hand_out()
    engine.raises(KeyError("depth"), 1, 2)
    runner._take_in()
    assert caplog.text.count("an evaluation of arm 'a' failed; the first traceback of this error") == 1


def test_rewards_are_told_before_a_pull_whose_reward_is_late_is_dropped(still: Still) -> None:
    study = make("a", "b", "c", budget=20)
    runner, engine = a_run(study, workers=2, timeout=5.0)
    runner._hand_out()
    engine.begin(1)
    runner._end_overdue()
    still.now += 5.0
    runner._end_overdue()
    runner._watch.start.close()
    runner._watch.success = lambda *_, **__: None  # so that it holds the failure
    engine.returns(0.5, 2)
    engine.returns(0.5, 1)
    runner._take_in()
    assert [(event.kind, event.pull) for event in study.events()[-3:]] == [("told", 2), ("dropped", 1), ("told", 1)]


def test_a_store_that_fails_while_a_late_reward_is_taken_in_ends_the_run(
    still: Still, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner, engine = a_run(workers=1, timeout=5.0)
    runner._hand_out()
    engine.begin(1)
    runner._end_overdue()
    still.now += 5.0
    runner._end_overdue()

    def append(*_: object, **__: object) -> None:
        raise StoreFailed("storage", rule="the disk is full")

    monkeypatch.setattr(runner.study.store, "append", append)
    engine.returns(0.5, 1)
    with pytest.raises(StoreFailed, match="the disk is full"):
        runner._take_in()


@pytest.mark.parametrize(("value", "is_kept"), [(0.5, True), ("nonsense", False), (7.0, True)])
def test_a_late_answer_counts_if_it_is_a_reward(value: Any, is_kept: bool, still: Still) -> None:
    study = make(budget=20)
    runner, engine = a_run(study, workers=1, timeout=5.0)
    runner._hand_out()
    engine.begin(1)
    runner._end_overdue()
    still.now += 5.0
    runner._end_overdue()
    assert (runner._evaluations.running, len(runner._watch.held)) == ({}, 1)
    engine.returns(value, 1)
    runner._take_in()
    assert (runner._watch.held == []) == runner._watch.start.over == is_kept
    assert study.verdict().retired == (["a"] if value == 7.0 else [])
    assert runner._evaluations.overdue == {}
    runner._late(Future())  # one that nobody knows
