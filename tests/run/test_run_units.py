"""Units of a run, one at a time: who is blamed, which pulls wait, and what has begun."""

import functools
import os
import queue
import signal
import time
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from engines import causes, evaluator, make, until

from thresher.errors import CannotGoOn, InvalidInput
from thresher.run import signals
from thresher.run.engines import Engine, local, open_engine
from thresher.run.engines.futures import Adapter, _broke, _same
from thresher.run.engines.local import Process, Processes
from thresher.run.failures import WINDOW, Failure, Start
from thresher.run.loop import Evaluations, Runner
from thresher.run.lost_workers import Suspects, WorkerLost
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


# -- executors -------------------------------------------------------------------------------------------------------


class Two(Executor):
    """Says that everything runs, but has room for two."""

    _max_workers = 2

    def submit(self, function: Any, /, *args: Any, **given: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        return future


def test_no_more_pulls_have_begun_than_an_executor_has_workers() -> None:
    engine = Adapter(evaluator("threads"), Two(), None, 8)
    first, second, third = (engine.submit(pull(number)) for number in (1, 2, 3))
    assert [engine.began(each) for each in (first, second, third)] == [True, True, False]
    first.set_result(None)
    assert [engine.began(each) for each in (first, second, third)] == [False, True, True]
    waiting: Future[object] = Future()
    engine._here = {waiting: pull(4)}
    assert not engine.began(waiting)


def test_a_thread_that_hangs_counts_again_when_it_returns() -> None:
    engine = Adapter(evaluator("threads"), Two(), None, 8)
    first, second = engine.submit(pull(1)), engine.submit(pull(2))
    engine.stop(first)
    assert engine.workers == 1
    first.set_result(None)
    assert engine.workers == 2
    engine.stop(first)
    assert engine.workers == 2, "it has ended"
    engine.workers = 1
    with pytest.raises(CannotGoOn, match="each of its workers hangs"):
        engine.stop(second)


def test_the_pulls_that_were_lost_with_a_pool_are_those_without_an_outcome() -> None:
    cancelled: Future[object] = Future()
    cancelled.cancel()
    lost = [Future[object](), done(error=BrokenExecutor()), done(0.5), done(error=ValueError()), cancelled]
    assert [_broke(each) for each in lost] == [True, True, False, False, False]


def test_a_broken_executor_that_cannot_be_made_again_ends_the_run() -> None:
    engine = Adapter(evaluator("threads"), Two(), None, 8)
    future = engine.submit(pull(1))
    future.set_exception(BrokenExecutor("gone"))
    with pytest.raises(CannotGoOn, match="broke, and thresher cannot make another; pass a function that makes one"):
        engine.result(future)
    with pytest.raises(InvalidInput, match=r"made 5, which is not a concurrent\.futures\.Executor"):
        Adapter(evaluator("threads"), lambda: 5, None, 8)  # type: ignore[arg-type, return-value]


def test_a_coroutine_function_runs_on_no_executor() -> None:
    async def evaluate(_: Pull) -> float:
        return 0.5

    with pytest.raises(InvalidInput, match="a coroutine function runs on an event loop; leave executor out"):
        open_engine(evaluate, workers=None, executor="threads")


def test_a_broken_pool_of_loky_is_replaced_by_one_with_its_settings() -> None:
    loky = pytest.importorskip("loky")
    pool = loky.ProcessPoolExecutor(3, timeout=7, env={"THRESHER_TEST": "1"}, initializer=print, initargs=("x",))
    other: Any = _same(pool)
    assert (other._max_workers, other._timeout, other._env) == (3, 7, pool._env)
    assert (other._initializer, other._initargs, other._context) == (print, ("x",), pool._context)


def test_a_process_that_hangs_is_killed_when_it_is_stopped() -> None:
    engine = Processes(evaluator("processes"), 1)
    future = engine.submit(pull(1, "hangs"))
    until(lambda: engine.began(future) and engine._running[future]._process is not None, "the evaluation")
    engine.stop(done())  # it has ended already
    engine.stop(future)
    with pytest.raises(WorkerLost, match="its process was ended by SIGKILL"):
        future.result(10)
    assert isinstance(engine.submit(pull(2)).result(10), float), "another process takes its place"
    engine.close(wait=True)


def test_the_pipe_of_a_process_that_died_is_closed() -> None:
    process = Process(evaluator("processes"))
    assert isinstance(process.evaluate(pull(1)), float)
    pipe = process._pipe
    assert pipe is not None
    with pytest.raises(WorkerLost, match="SIGKILL"):
        process.evaluate(pull(2, "dies"))
    assert (pipe.closed, process._pipe) == (True, None)
    process.close()


def _ends_itself(number: int, _: Pull) -> float:
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    time.sleep(600)
    return 0.5


def test_a_process_that_was_ended_by_a_signal_without_a_name_is_lost() -> None:
    process = Process(functools.partial(_ends_itself, signal.SIGRTMIN + 5))
    with pytest.raises(WorkerLost, match=f"its process was ended by signal {signal.SIGRTMIN + 5}"):
        process.evaluate(pull(1))
    process.close()


def _dies_before_its_child(note: Path, _: Pull) -> float:
    """The child keeps the pipe of the worker open."""
    child = os.fork()
    if child:
        note.write_text(str(child))
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(600)
    os._exit(0)


def test_the_death_of_a_process_is_noticed_though_its_child_lives(tmp_path: Path) -> None:
    note = tmp_path / "child"
    process = Process(functools.partial(_dies_before_its_child, note))
    with ThreadPoolExecutor(1) as pool:
        lost = pool.submit(process.evaluate, pull(1))
        try:
            assert "its process was ended by SIGKILL" in str(lost.exception(20))
        finally:
            os.kill(int(note.read_text()), signal.SIGKILL)


def test_a_worker_looks_every_second_whether_its_parent_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    parents, done = iter([7, 7, 1]), list[object]()
    monkeypatch.setattr(local, "os", SimpleNamespace(getppid=lambda: next(parents), _exit=done.append))
    monkeypatch.setattr(local, "time", SimpleNamespace(sleep=lambda seconds: done.append(f"{seconds:g} s")))
    local._follow(7)
    assert done == ["1 s", "1 s", 1]


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
