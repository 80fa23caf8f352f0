"""Waits and file locks: what an interrupt, a fork or the last moment leaves behind."""

import contextlib
import fcntl
import gc
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from engines import until

from thresher.log import locks
from thresher.log.locks import FileLock


@pytest.fixture(autouse=True)
def _no_leases() -> None:
    """Studies of earlier tests renew no leases: their threads would meet what these tests replace."""
    gc.collect()
    for thread in threading.enumerate():
        if thread.name == "thresher-leases":
            thread.join(10.0)


@pytest.fixture(autouse=True)
def _no_hurry_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "HURRY", 0.0)


def interrupted(*_: Any, **__: Any) -> Any:
    raise KeyboardInterrupt


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - a Path would open more


def is_locked(path: Path) -> bool:
    with path.open("w") as other:
        try:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@contextlib.contextmanager
def sharing(lock: FileLock) -> Iterator[None]:
    """Beside a child that was forked in the middle of a turn: it has the lock's file open, and so perhaps the lock."""
    reader, writer = os.pipe()
    with lock.turn():
        child = os.fork()
        if not child:
            os.close(writer)
            os.read(reader, 1)
            os._exit(0)
    os.close(reader)
    try:
        yield
    finally:
        os.close(writer)
        os.waitpid(child, 0)


def test_a_wait_that_is_interrupted_is_not_begun_again(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() - 10.0, sleep=lambda _: None)  # so it is over afterwards
    monkeypatch.setattr(locks, "time", clock)
    monkeypatch.setattr(locks, "HURRY", 5.0)
    assert locks.LockPatience(5.0).pause(0.001, "a lock")
    clock.sleep = interrupted
    with pytest.raises(KeyboardInterrupt):
        locks.LockPatience(5.0).pause(0.001, "a lock")
    assert locks.are_locks_in_a_hurry()
    assert not locks.LockPatience(5.0).pause(0.001, "a lock"), "at once"


def test_an_interrupted_turn_leaves_no_lock_and_no_open_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock, before, flock = FileLock(tmp_path / "lock"), open_files(), fcntl.flock

    def acquired_and_interrupted(handle: int, how: int) -> None:
        flock(handle, how)
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(fcntl, "flock", acquired_and_interrupted)
    with pytest.raises(KeyboardInterrupt), lock.turn():
        pytest.fail("it was interrupted")
    assert open_files() == before
    assert not is_locked(tmp_path / "lock")


def test_a_closed_lock_keeps_no_file_open(tmp_path: Path) -> None:
    lock, before = FileLock(tmp_path / "lock"), open_files()
    for _ in range(2):
        with lock.turn():
            pass
    lock.close()
    assert open_files() == before


def test_a_lock_that_comes_after_an_interrupt_is_released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = FileLock(tmp_path / "lock")
    with sharing(lock):
        with (tmp_path / "lock").open("w") as holder:
            fcntl.flock(holder, fcntl.LOCK_EX)
            threads = set(threading.enumerate())
            with monkeypatch.context() as context:
                context.setattr(locks.LockPatience, "next_slice", interrupted)
                with pytest.raises(KeyboardInterrupt), lock.turn():
                    pytest.fail("it was interrupted")
            (waiter,) = set(threading.enumerate()) - threads
        waiter.join(10)
        assert not waiter.is_alive()
        assert not is_locked(tmp_path / "lock")


@pytest.mark.parametrize("is_interrupted", [False, True])
def test_a_lock_that_comes_at_the_last_moment_is_held_or_released(
    is_interrupted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread that waits for it has it, but nobody has looked yet when the time is over, or Ctrl-C comes."""
    lock, hurries = FileLock(tmp_path / "lock"), list[bool]()
    monkeypatch.setattr(locks, "hurry_locks", lambda: hurries.append(True))
    with sharing(lock), (tmp_path / "lock").open("w") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)

        def it_comes(*_: object) -> float:
            handles = open_files()
            fcntl.flock(holder, fcntl.LOCK_UN)
            until(lambda: open_files() < handles, "the lock")  # the thread closes its own handle
            if is_interrupted:
                raise KeyboardInterrupt
            return 0.0

        monkeypatch.setattr(locks.LockPatience, "next_slice", it_comes)
        with contextlib.suppress(KeyboardInterrupt), lock.turn() as held:
            assert (held, is_interrupted) == (True, False)
            assert is_locked(tmp_path / "lock")
        assert not is_locked(tmp_path / "lock")
    assert bool(hurries) == is_interrupted, "what cleans up waits for nothing"
    lock.close()


@pytest.mark.parametrize("call", ["os.dup", "threading.Thread.start"])
def test_a_process_without_handles_or_threads_left_goes_on_without_its_turn(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OSError("too many open files") if call == "os.dup" else RuntimeError("can't start new thread")

    lock = FileLock(tmp_path / "lock")
    with (tmp_path / "lock").open("w") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        handles = open_files()
        monkeypatch.setattr(call, fails)
        with lock.turn() as held:
            assert not held
        assert open_files() == handles


def test_a_forked_child_and_its_parent_never_have_the_lock_at_the_same_time(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    with lock.turn() as held:  # the open file is kept for the next turn, and the child inherits it
        assert held
    (has_it, tells), (goes_on, ends) = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        os.close(ends)
        with lock.turn() as held:
            os.write(tells, b"1" if held else b"0")
            os.read(goes_on, 1)
        os._exit(0)
    assert os.read(has_it, 1) == b"1"
    with lock.turn(0.1) as held:
        assert not held
    os.close(ends)
    assert os.waitpid(child, 0)[1] == 0
    with lock.turn() as held:
        assert held
    lock.close()
    for handle in (has_it, tells, goes_on):
        os.close(handle)
