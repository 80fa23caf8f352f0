"""Waiting for a file lock that another process holds: for a limited time, although flock itself has no timeout."""

import fcntl
import os
import threading
import time
from collections.abc import Callable

from .holders import holders, named
from .patience import BUSY_WITHOUT_TURN, TURN, Patience, hurry


class LockQueue:
    """The waits of one process for the lock on one file."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._given_up: _Wait | None = None
        self._impatient_until = 0.0

    def wait(self, handle: int, patience: float) -> bool:
        """Whether the lock came within ``patience`` seconds. A turn is not waited for right after a wait in vain."""
        in_vain = self._given_up is not None and self._given_up.is_alive()
        if patience == TURN and (in_vain or time.monotonic() < self._impatient_until):
            return False
        try:
            wait = _Wait(handle)
        except (OSError, RuntimeError):  # no more handles or threads
            return False
        if wait.succeeds(patience, self._holder):
            return True
        self._given_up, self._impatient_until = wait, time.monotonic() + BUSY_WITHOUT_TURN
        return False

    def _holder(self) -> str:
        return f"another process to release {self._path}{named(holders(self._path))}"


class _Wait(threading.Thread):
    """A thread that waits for a lock on its own copy of a handle: a lock belongs to both."""

    def __init__(self, handle: int) -> None:
        super().__init__(name="thresher-turn", daemon=True)
        self._came = threading.Event()
        self._outcome = threading.Lock()  # taken once: by the thread if the lock came, by the caller if it gave up
        self._file = os.dup(handle)
        try:
            self.start()
        except BaseException:
            os.close(self._file)
            raise

    def run(self) -> None:
        fcntl.flock(self._file, fcntl.LOCK_EX)
        if self._outcome.acquire(blocking=False):
            self._came.set()
        else:
            fcntl.flock(self._file, fcntl.LOCK_UN)
        os.close(self._file)

    def succeeds(self, patience: float, what: Callable[[], str]) -> bool:
        """Whether the lock came in time. If not, or if interrupted, the thread releases it when it comes."""
        waiting = Patience(patience)
        try:
            while slice_ := waiting.next_slice(what):  # in slices, to notice signals
                if self._came.wait(slice_):
                    return True
        except BaseException:
            hurry()
            self._outcome.acquire(blocking=False)
            raise
        return not self._outcome.acquire(blocking=False)  # it may have come at the last moment
