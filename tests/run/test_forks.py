"""Processes that are forked while other threads start and end programs."""

import contextlib
import io
import os
import signal
import subprocess
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import stayer
from engines import make, until

import thresher
from thresher import Pull
from thresher.run import forks
from thresher.run.command import persistent

PATIENCE = 20.0
PULL = Pull(1, "a", 1, {}, 2**31)


def status_of_fork(job: Callable[[], int] = lambda: 0) -> int:
    """Fork a child that does this job. Returns its exit status; fails if the child hangs."""
    child = os.fork()
    if child == 0:
        os._exit(job())
    ended: list[int] = []

    def is_over() -> bool:
        pid, status = os.waitpid(child, os.WNOHANG)
        ended.extend([status] if pid else [])
        return bool(pid)

    try:
        until(is_over, "the end of the child", PATIENCE)
    except AssertionError:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise
    return os.waitstatus_to_exitcode(ended[0])


def popen(monkeypatch: pytest.MonkeyPatch, change: Callable[[Any], object]) -> None:
    """Let this change each program of a persistent evaluator just after its start."""

    class Changed(subprocess.Popen[bytes]):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            change(self)

    monkeypatch.setattr(persistent, "subprocess", SimpleNamespace(Popen=Changed, PIPE=subprocess.PIPE))


def test_a_fork_while_a_thread_closes_the_input_of_a_program_does_not_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    closing, go_on, parent = threading.Event(), threading.Event(), os.getpid()

    class SlowToClose(io.FileIO):
        def close(self) -> None:
            super().close()
            if os.getpid() == parent:
                closing.set()
                go_on.wait(PATIENCE)

    def slow(program: Any) -> None:
        file = SlowToClose(os.dup(program.stdin.fileno()), "wb")
        has_buffer = isinstance(program.stdin, io.BufferedWriter)
        program.stdin.close()
        program.stdin = io.BufferedWriter(file) if has_buffer else file

    popen(monkeypatch, slow)
    evaluate = stayer.evaluator()
    assert evaluate(PULL) == 0.5
    stopping = threading.Thread(target=evaluate.stop)
    stopping.start()
    try:
        assert closing.wait(PATIENCE)
        assert status_of_fork() == 0
    finally:
        go_on.set()
        stopping.join(PATIENCE)


def open_files() -> set[int]:
    """The inodes of this process's open files."""
    inodes = set[int]()
    for file in range(4096):
        with contextlib.suppress(OSError):
            inodes.add(os.fstat(file).st_ino)
    return inodes


class Noted:
    """The lock of forks and starts. Says when another thread wants it."""

    def __init__(self) -> None:
        self.wanted = threading.Event()
        self._lock, self._holder = threading.RLock(), 0

    def acquire(self) -> None:
        if self._holder not in (0, threading.get_ident()):
            self.wanted.set()
        self._lock.acquire()
        self._holder = threading.get_ident()

    def release(self) -> None:
        self._holder = 0
        self._lock.release()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


def test_a_forked_child_has_no_pipe_of_a_program_that_was_being_started(monkeypatch: pytest.MonkeyPatch) -> None:
    started, pipes, turn = threading.Event(), set[int](), Noted()

    def wait_for_fork(program: Any) -> None:
        pipes.update(os.fstat(file.fileno()).st_ino for file in (program.stdin, program.stdout, program.stderr))
        started.set()
        turn.wanted.wait(PATIENCE)

    popen(monkeypatch, wait_for_fork)
    monkeypatch.setattr(forks, "TURN", turn)
    evaluate = stayer.evaluator()
    starting = threading.Thread(target=evaluate, args=(PULL,))
    starting.start()
    assert started.wait(PATIENCE)
    assert status_of_fork(lambda: len(open_files() & pipes)) == 0
    starting.join(PATIENCE)
    evaluate.stop()


def inner(pull: Pull) -> float:
    return 0.5


def outer(pull: Pull) -> float:
    return float(thresher.run(make(budget=4), inner, workers=1, executor="processes").told == 4)


def test_an_evaluator_in_a_process_may_itself_run_a_study_in_processes() -> None:
    study = make(budget=4)
    thresher.run(study, outer, workers=2, executor="processes", timeout=PATIENCE)
    assert [row.reward for row in study.pulls()] == [1.0] * 4
