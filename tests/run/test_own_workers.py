"""Threads and processes of our own: when they start, how they end, and what is left of them."""

import os
import signal
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from engines import until

from thresher.errors import CannotGoOn
from thresher.run.engines import local
from thresher.run.engines.local import Process, Processes, Threads
from thresher.run.evaluators import Shared
from thresher.run.lost_workers import WorkerLost
from thresher.study import Pull

SECONDS = 20.0


def pull(number: int, arm: str = "a") -> Pull:
    return Pull(number, arm, 1, {}, 7)


# -- threads ---------------------------------------------------------------------------------------------------------


def test_threads_are_started_as_they_are_needed_and_end_with_the_run() -> None:
    go = threading.Event()
    engine = Threads(lambda one: go.wait(SECONDS) and one.id, 2)
    futures = [engine.submit(pull(number)) for number in (1, 2, 3)]
    threads = set(engine._threads)
    assert [(thread.daemon, thread.is_alive()) for thread in threads] == [(True, True)] * 2
    until(lambda: [engine.began(each) for each in futures] == [True, True, False], "the first two")
    go.set()
    assert [each.result(SECONDS) for each in futures] == [1, 2, 3]
    engine.close(wait=True)
    until(lambda: not any(thread.is_alive() for thread in threads), "the end of the threads")
    assert engine._running == {}


def test_a_thread_that_is_given_up_is_replaced_and_ends_when_its_call_returns() -> None:
    go = threading.Event()
    engine = Threads(lambda one: go.wait(SECONDS) if one.id == 1 else 0.5, 1)
    hung = engine.submit(pull(1))
    until(lambda: engine.began(hung) and hung in engine._running, "the call")
    (thread,) = engine._threads
    engine.stop(hung)
    engine.stop(hung)
    assert engine.submit(pull(2)).result(SECONDS) == 0.5
    (other,) = engine._threads
    assert thread.is_alive()
    go.set()
    assert hung.result(SECONDS) is True
    until(lambda: not thread.is_alive(), "its end")
    assert engine.submit(pull(3)).result(SECONDS) == 0.5
    engine.close(wait=True)
    until(lambda: not other.is_alive(), "the end of the other")


def test_a_pull_that_was_taken_back_is_not_evaluated() -> None:
    go, seen = threading.Event(), list[int]()

    def evaluate(one: Pull) -> float:
        seen.append(one.id)
        go.wait(SECONDS)
        return 0.5

    engine = Threads(evaluate, 1)
    futures = [engine.submit(pull(number)) for number in (1, 2, 3)]
    until(lambda: seen == [1], "the first pull")
    assert engine.take_back(futures[:2]) == {futures[1]}
    go.set()
    assert futures[2].result(SECONDS) == 0.5
    assert seen == [1, 3]
    engine.close(wait=True)


# -- processes -------------------------------------------------------------------------------------------------------


def doubled(one: Pull, *more: object) -> object:
    """Its number; or how this process ends."""
    if one.arm == "exits":
        os._exit(5)
    if one.arm == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    return os.getpid() if one.arm == "who" else one.id


def fails() -> None:
    raise LookupError("no such database")


def exits() -> None:
    os._exit(7)


def test_a_process_is_kept_until_it_dies_and_its_end_is_told() -> None:
    process = Process(doubled)
    first = process.evaluate(pull(1, "who"))
    assert first == process.evaluate(pull(2, "who")) == process._process.pid != os.getpid()
    with pytest.raises(WorkerLost, match="its process exited with 5") as caught:
        process.evaluate(pull(3, "exits"))
    assert caught.value.together == (pull(3, "exits"),)
    second = process.evaluate(pull(4, "who"))
    assert second != first
    os.kill(process._process.pid, signal.SIGKILL)
    process._process.join()
    assert process.evaluate(pull(5, "who")) not in (first, second), "the pull had not begun"
    process.close()
    assert (process._process.exitcode, process._pipe.closed) == (0, True)  # type: ignore[union-attr]


@pytest.mark.parametrize(("set_up", "words"), [(fails, "LookupError: no such database"), (exits, "its process ended")])
def test_a_process_that_cannot_be_set_up_says_why(set_up: Any, words: str) -> None:
    process = Process(doubled, Shared(set_up, print, is_pair=True))
    with pytest.raises(CannotGoOn, match=f"shared: its set-up failed: {words}; correct it and run again"):
        process.prepare()
    assert process._pipe is None
    with pytest.raises(CannotGoOn, match="its set-up failed"):
        process.prepare()


def test_a_process_that_is_set_up_before_the_first_pull_is_used_or_closed() -> None:
    shared = Shared(dict, dict.clear, is_pair=True)
    for used in (True, False):
        engine = Processes(doubled, 1, shared)
        engine.evaluate = SimpleNamespace(more=()) if not used else _Sharing()
        engine.prepare()
        (ready,) = engine._ready
        if used:
            assert engine.submit(pull(1, "who")).result(SECONDS) == ready._process.pid
        engine.close(wait=True)
        engine.release()
        assert (engine._ready, ready._process.exitcode) == ([], 0)


class _Sharing:
    more: tuple[object, ...] = ()

    def __call__(self, one: Pull) -> object:
        assert self.more == ({},)
        return doubled(one)


def test_processes_that_are_busy_at_the_end_are_killed() -> None:
    engine = Processes(hang, 1)
    future = engine.submit(pull(1))
    until(lambda: future in engine._running, "the pull")
    process = engine._running[future]
    until(lambda: process._process is not None and process._process.pid is not None, "its process")
    engine.close(wait=False)
    with pytest.raises(WorkerLost, match="its process was ended by SIGKILL"):
        future.result(SECONDS)
    assert not any(thread.is_alive() for thread in engine._threads)
    assert engine._running == {}


def hang(_: Pull) -> None:
    threading.Event().wait(600)


def test_the_parent_handles_ctrl_c_and_sigterm_ends_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    set_to: dict[int, object] = {}
    fake = SimpleNamespace(
        signal=set_to.__setitem__, **{n: getattr(signal, n) for n in ("SIGINT", "SIGTERM", "SIG_IGN", "SIG_DFL")}
    )
    monkeypatch.setattr(local, "signal", fake)
    started: list[Any] = []

    class Thread:
        def __init__(self, **given: Any) -> None:
            self._given = given

        def start(self) -> None:
            started.append(self._given)

    monkeypatch.setattr(local, "threading", SimpleNamespace(Thread=Thread))
    pipe: Any = Scripted([b""])
    local._serve(pipe, doubled, None)
    assert set_to == {signal.SIGINT: signal.SIG_IGN, signal.SIGTERM: signal.SIG_DFL}
    assert started == [{"target": local._follow, "args": (os.getppid(),), "daemon": True}]
    assert pipe.polled == [1.0]


class Scripted:
    """The end of a pipe: what it will receive."""

    def __init__(self, messages: list[bytes]) -> None:
        self._messages = messages
        self.sent: list[bytes] = []
        self.polled: list[float] = []

    def poll(self, seconds: float) -> bool:
        self.polled.append(seconds)
        return bool(self._messages)

    def recv_bytes(self) -> bytes:
        return self._messages.pop(0)

    def send_bytes(self, data: bytes) -> None:
        self.sent.append(data)


def test_a_worker_ends_when_its_parent_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    parents = iter([7, 7, 7, 1])
    monkeypatch.setattr(local, "os", SimpleNamespace(getppid=lambda: next(parents)))
    monkeypatch.setattr(local, "threading", SimpleNamespace(Thread=lambda **_: SimpleNamespace(start=int)))
    monkeypatch.setattr(
        local, "signal", SimpleNamespace(signal=lambda *_: None, SIGINT=2, SIGTERM=15, SIG_IGN=1, SIG_DFL=0)
    )
    pipe: Any = Scripted([])
    local._serve(pipe, doubled, None)
    assert pipe.polled == [1.0, 1.0]
