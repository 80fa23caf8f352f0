"""Writers of one file queue for a lock on a file beside it. The system wakes them in turn, and frees it if one dies."""

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from .forks import renewed
from .lockqueue import LockQueue
from .patience import TURN

MOMENT = 0.002  # seconds to try for a lock before queueing: a few turns


class FileLock:
    """A queue of processes. One that waited too long continues without the lock: a stopped holder blocks no one."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)
        self._spare: list[int] = []  # open handles that are not in use
        self._queue = LockQueue(self._path)
        _LOCKS.add(self)

    def _begin_in_child(self) -> None:
        """In a forked child: its parent's handles hold its parent's lock, and threads are not inherited."""
        self.close()
        self._queue = LockQueue(self._path)

    @contextlib.contextmanager
    def turn(self, patience: float = TURN) -> Iterator[bool]:
        """Hold the lock if it comes within ``patience`` seconds. Yields whether it is held."""
        try:
            handle = self._taken()
        except OSError:  # a folder that cannot be written: the write will give a better message
            yield False
            return
        held = False
        try:
            held = _acquired_soon(handle) or self._queue.wait(handle, patience)
            yield held
        finally:  # unlock: a process forked meanwhile has the handle too, so closing it would not release the lock
            fcntl.flock(handle, fcntl.LOCK_UN)
            if held:
                self._spare.append(handle)
            else:
                os.close(handle)

    def close(self, end: Callable[[int], None] = os.close) -> None:
        try:  # other threads may take some meanwhile
            while self._spare:
                end(self._spare.pop())  # an argument: Python may have cleared this module when it ends
            self._queue.close()
        except IndexError:
            pass

    __del__ = close

    def _taken(self) -> int:
        """A handle for one caller: two threads that share a handle would both have the lock."""
        with contextlib.suppress(IndexError):  # there is none, or another thread took the last
            handle = self._spare.pop()
            if os.fstat(handle).st_nlink:
                return handle
            os.close(handle)  # the file was deleted, and others queue at a new one
        return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


_LOCKS = renewed(FileLock._begin_in_child)


def _acquired_soon(handle: int) -> bool:
    """Whether the lock was free, or was released while other processes ran for a moment.

    A turn takes less time than going to sleep and being woken, so queueing at once would slow all writers down.
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
