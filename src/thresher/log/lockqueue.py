"""Waiting for a file lock that another process holds: for a limited time, although flock itself has no timeout."""

import contextlib
import fcntl
import os
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue

from .holders import holders, named
from .patience import BUSY_WITHOUT_TURN, TURN, Patience, hurry


class LockQueue:
    """The waits of one process for the lock on one file. Threads are kept for later: starting one takes long."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._idle: list[_Waiter] = []
        self._given_up: _Waiter | None = None
        self._impatient_until = 0.0

    def wait(self, handle: int, patience: float) -> bool:
        """Whether the lock came within ``patience`` seconds. After a wait that failed, the next is skipped."""
        in_vain = self._given_up is not None and self._given_up.is_alive()
        if patience == TURN and (in_vain or time.monotonic() < self._impatient_until):
            return False
        held = False
        with contextlib.suppress(OSError, RuntimeError):  # no more handles or threads
            waiter = self._waiter()
            try:
                held = waiter.wait(handle, patience, self._holder)
            finally:
                if held:
                    self._idle.append(waiter)
                else:
                    waiter.end()
                    self._given_up, self._impatient_until = waiter, time.monotonic() + BUSY_WITHOUT_TURN
        return held

    def close(self) -> None:
        """End the threads that wait for nothing."""
        while self._idle:
            self._idle.pop().end()

    def _waiter(self) -> "_Waiter":
        with contextlib.suppress(IndexError):  # there is none, or another thread took the last
            return self._idle.pop()
        return _Waiter()

    def _holder(self) -> str:
        return f"another process to release {self._path}{named(holders(self._path))}"


class _Waiter(threading.Thread):
    """A thread that waits for one lock after the other, on its own copies of handles: a lock belongs to both."""

    def __init__(self) -> None:
        super().__init__(name="thresher-turn", daemon=True)
        self._inbox: SimpleQueue[tuple[int, threading.Event, threading.Lock] | None] = SimpleQueue()
        self.start()

    def run(self) -> None:
        while (wait := self._inbox.get()) is not None:
            handle, came, outcome = wait
            fcntl.flock(handle, fcntl.LOCK_EX)
            if outcome.acquire(blocking=False):
                came.set()
            else:
                fcntl.flock(handle, fcntl.LOCK_UN)
            os.close(handle)

    def end(self) -> None:
        self._inbox.put(None)

    def wait(self, handle: int, patience: float, what: Callable[[], str]) -> bool:
        """Whether the lock came in time. If not, or if interrupted, the thread releases it when it comes."""
        waiting, came = Patience(patience), threading.Event()
        outcome = threading.Lock()  # taken once: by the thread if the lock came, by the caller if it gave up
        self._inbox.put((os.dup(handle), came, outcome))
        try:
            while slice_ := waiting.next_slice(what):  # in slices, to notice signals
                if came.wait(slice_):
                    return True
        except BaseException:
            hurry()
            outcome.acquire(blocking=False)
            raise
        return not outcome.acquire(blocking=False)  # it may have come at the last moment
