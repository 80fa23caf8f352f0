"""Units of a run, one at a time: who is blamed, which pulls wait, and what has begun."""

import queue
import signal
from concurrent.futures import CancelledError, Future

import pytest
from engines import causes, make

from thresher.run import signals
from thresher.run.engines import Engine
from thresher.run.failures import WINDOW, Failure, Start
from thresher.run.loop import Evaluations, Runner
from thresher.run.lost_workers import Suspects
from thresher.run.runner import Limits, run_on
from thresher.study import Pull


def pull(number: int, arm: str = "a") -> Pull:
    return Pull(number, arm, 1, {}, 7)


def done(result: object = None, error: BaseException | None = None) -> "Future[object]":
    future: Future[object] = Future()
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
    return future


# -- the start -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("oldest", "ends"), [(1.0, False), (3.0, False), (5.0, False), (6.0, True)])
def test_the_start_waits_for_all_pulls_that_were_issued_before_the_last_failure(oldest: float, ends: bool) -> None:
    start = Start(make("a", "b", "c", "d"), lambda: oldest)
    for number, arm in [(2, "a"), (4, "b"), (5, "c")]:
        assert start.end() is None
        start.failure(Failure(pull(number, arm), "broke", kind="broken"))
    assert (start.end() is not None) == ends


@pytest.mark.parametrize(("arms", "needed"), [("a", WINDOW), ("abc", None)])
def test_only_an_only_arm_that_fails_often_ends_the_run_while_an_earlier_pull_is_pending(
    arms: str, needed: int | None
) -> None:
    start = Start(make(*arms), lambda: 1.0)
    for count in range(1, 2 * WINDOW):
        start.failure(Failure(pull(1 + count, arms[count % len(arms)]), "broke", kind="broken"))
        assert (start.end() is not None) == (needed is not None and count >= needed)


# -- pulls that wait -------------------------------------------------------------------------------------------------


class Open(Engine):
    """Takes every pull, and finishes none."""

    def submit(self, pull: Pull) -> "Future[object]":
        return Future()

    def stop(self, future: "Future[object]") -> None: ...

    def close(self, *, wait: bool) -> None: ...


def test_of_suspected_arms_one_pull_is_pending_at_a_time_and_others_do_not_wait() -> None:
    suspects = Suspects({"a", "b"})
    evaluations = Evaluations(make("a", "b", "c"), Open(9), suspects, lambda _: None)
    evaluations.begin([pull(1, "a"), pull(2, "b"), pull(3, "c"), pull(4, "a"), pull(5, "c")], 0.0)
    assert [each.pull.id for each in evaluations.running.values()] == [1, 3, 5]
    assert [each.pull.id for each in evaluations._held] == [2, 4]
    assert (len(evaluations), evaluations.oldest()) == (5, 1)
    suspects.arms.discard("a")
    evaluations.submit_waiting(1.0)
    assert [each.pull.id for each in evaluations.running.values()] == [1, 3, 5, 2, 4]


def test_an_evaluation_times_out_when_its_time_is_over() -> None:
    evaluations = Evaluations(make("a"), Open(9), Suspects(), lambda _: None)
    evaluations.begin([pull(1)], 0.0)
    (future,) = evaluations.running
    assert list(evaluations.timed_out(5.0, 9.0)) == [], "it has not begun"
    future.set_running_or_notify_cancel()
    for now in (10.0, 14.9):
        assert list(evaluations.timed_out(5.0, now)) == []
    assert [each.pull.id for _, each in evaluations.timed_out(5.0, 15.0)] == [1]
    assert (evaluations.running, list(evaluations.overdue)) == ({}, [future])


def test_a_pull_that_its_engine_cancelled_is_dropped() -> None:
    class Cancelling(Open):
        def submit(self, pull: Pull) -> "Future[object]":
            return done(0.5) if pull.id > 1 else done(error=CancelledError())

    study = make("a", budget=3)
    run_on(Cancelling(1), study, Limits(), None)
    assert (causes(study), study.verdict().told) == (["cancelled"], 2)


# -- signals ---------------------------------------------------------------------------------------------------------


def test_a_forked_child_ends_at_sigterm_as_before_all_runs() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with signals.into(queue.SimpleQueue()):
        ours = signal.getsignal(signal.SIGTERM)
        with signals.into(queue.SimpleQueue()):
            signals._in_forked_child()
            assert signal.getsignal(signal.SIGTERM) == before
        assert signal.getsignal(signal.SIGTERM) == ours
    signals._in_forked_child()
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_forked_child_keeps_a_handler_that_was_not_set_from_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "_HANDLED_BEFORE", [None, signal.SIG_IGN])
    before = signal.getsignal(signal.SIGTERM)
    signals._in_forked_child()
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_signal_that_comes_late_is_kept() -> None:
    runner = Runner(make(), Open(1), Limits(), None)
    runner._inbox.put(signal.SIGTERM)
    runner._inbox.put(signal.SIGINT)
    runner._note_late_signals()
    assert runner.signal == signal.SIGTERM
