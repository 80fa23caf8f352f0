"""Writers of one file queue by a lock on a file beside it: the system wakes them in turn, and frees it if one dies."""

import contextlib
import fcntl
import os
import queue
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from .rows import BUSY_WITHOUT_TURN, TURN

FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
MOMENT = 0.002  # seconds in which a lock is tried for before one queues: a few turns


class FileLock:
    """A queue of processes. One that waited too long goes on without the lock: a stopped holder holds nobody up."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)
        self._spare: list[int] = []  # handles that are open, and in nobody's hands
        self._begin()

    def _begin(self) -> None:
        """What a forked child must not share: its parent's handles have its parent's lock."""
        self.close()
        self._pid = os.getpid()
        self._waiter: _Waiter | None = None
        self._impatient_until = 0.0

    @contextlib.contextmanager
    def turn(self, patience: float = TURN) -> Iterator[bool]:
        """Hold the lock if it is to be had within ``patience`` seconds; says whether it is held."""
        if self._pid != os.getpid():
            self._begin()
        try:  # one for each that asks: two threads with one handle would both have the lock
            handle = self._spare.pop() if self._spare else os.open(self._path, FLAGS, 0o600)
        except OSError:  # a folder that cannot be written: whoever writes will say so better
            yield False
            return
        held = self._acquire(handle, patience)
        try:
            yield held
        finally:
            if held:  # unlock: a process forked meanwhile has the handle too, so closing it would not do
                fcntl.flock(handle, fcntl.LOCK_UN)
                self._spare.append(handle)

    def close(self) -> None:
        """Keep nothing open."""
        while self._spare:
            os.close(self._spare.pop())

    __del__ = close

    def _acquire(self, handle: int, patience: float) -> bool:
        """Whether the lock was had; if not, the handle is closed, or will be."""
        try:
            if _is_had_soon(handle):
                return True
        except BaseException:  # Ctrl-C
            os.close(handle)
            raise
        if patience == TURN and time.monotonic() < self._impatient_until:
            os.close(handle)
            return False
        if self._waiter is None:
            self._waiter = _Waiter()
        waiter, self._waiter = self._waiter, None
        if not waiter.wait(handle, patience):  # it still waits, and cannot be called back
            self._impatient_until = time.monotonic() + BUSY_WITHOUT_TURN
            return False
        self._waiter = waiter
        return True


def _is_had_soon(handle: int) -> bool:
    """Whether the lock is free, or was let go while others got the processor for a moment.

    A turn takes less time than to go to sleep and be woken: whoever queues for it at once makes all wait for that.
    """
    end = 0.0
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            now = time.monotonic()
            end = end or now + MOMENT
            if now >= end:
                return False
            os.sched_yield()
        else:
            return True


class _Waiter:
    """A thread that waits for locks, because waiting itself knows no time limit."""

    def __init__(self) -> None:
        self._inbox: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._had: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._handing_over = threading.Lock()
        self._abandoned = False
        threading.Thread(target=self._serve, name="thresher-turn", daemon=True).start()

    def wait(self, handle: int, patience: float) -> bool:
        """Whether the lock was had in time; if not, or if interrupted, the thread lets go of it when it comes."""
        self._inbox.put(handle)
        try:
            self._had.get(timeout=patience)
        except queue.Empty:
            return not self._abandon()
        except BaseException:
            if not self._abandon():
                _let_go(handle)
            raise
        return True

    def _abandon(self) -> bool:
        """Whether the lock had not come after all."""
        with self._handing_over:
            self._abandoned = self._had.empty()
            return self._abandoned

    def _serve(self) -> None:
        while not self._abandoned:
            handle = self._inbox.get()
            fcntl.flock(handle, fcntl.LOCK_EX)
            with self._handing_over:
                if self._abandoned:
                    _let_go(handle)
                else:
                    self._had.put(handle)


def _let_go(handle: int) -> None:
    """Unlock, and close: a process forked meanwhile has the handle too, so closing alone would not do."""
    fcntl.flock(handle, fcntl.LOCK_UN)
    os.close(handle)
