"""Writers of one file queue for a lock on a file beside it. The system wakes them in turn, and frees it if one dies."""

import contextlib
import fcntl
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from .holders import holders, named
from .patience import Patience, hurry
from .rows import BUSY_WITHOUT_TURN, TURN

MOMENT = 0.002  # seconds to try for a lock before queueing: a few turns


class FileLock:
    """A queue of processes. One that waited too long continues without the lock: a stopped holder blocks no one."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)
        self._spare: list[int] = []  # open handles that are not in use
        self._idle: list[_Waiter] = []
        self._begin()

    def _begin(self) -> None:
        """Set what a forked child must not share: its parent's handles hold its parent's lock."""
        self.close()
        self._pid = os.getpid()
        self._stuck: _Waiter | None = None  # one whose lock did not come in time
        self._impatient_until = 0.0

    @contextlib.contextmanager
    def turn(self, patience: float = TURN) -> Iterator[bool]:
        """Hold the lock if it comes within ``patience`` seconds. Yields whether it is held."""
        if self._pid != os.getpid():
            self._begin()
        try:
            handle = self._taken()
        except OSError:  # a folder that cannot be written: the write will give a better message
            yield False
            return
        held = self._acquire(handle, patience)
        try:
            yield held
        finally:
            if held:  # unlock: a process forked meanwhile has the handle too, so closing it would not do
                fcntl.flock(handle, fcntl.LOCK_UN)
                self._spare.append(handle)

    def close(self, end: Callable[[int], None] = os.close) -> None:
        try:  # other threads may take some meanwhile
            while self._spare:
                end(self._spare.pop())  # an argument: Python may have cleared this module when it ends
            while self._idle:
                self._idle.pop().end()
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

    def _acquire(self, handle: int, patience: float) -> bool:
        """Whether the lock was acquired; if not, the handle is closed, or will be."""
        try:
            if _acquired_soon(handle):
                return True
            waiter = self._waiter(patience)
        except BaseException:  # Ctrl-C
            os.close(handle)
            raise
        if waiter is None:
            os.close(handle)
            return False
        if not waiter.wait(handle, patience, self._holder):
            self._stuck, self._impatient_until = waiter, time.monotonic() + BUSY_WITHOUT_TURN
            return False
        self._idle.append(waiter)
        return True

    def _holder(self) -> str:
        return f"another process to release {self._path}{named(holders(self._path))}"

    def _waiter(self, patience: float) -> "_Waiter | None":
        """A thread to wait with; None if waiting is pointless: an abandoned one still waits, or did so recently."""
        if patience == TURN and (time.monotonic() < self._impatient_until or (self._stuck and self._stuck.waits)):
            return None
        with contextlib.suppress(IndexError):  # there is none, or another thread took the last
            return self._idle.pop()
        with contextlib.suppress(RuntimeError):  # no more threads
            return _Waiter()
        return None


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


class _Waiter:
    """A thread that waits for locks, because flock has no timeout."""

    def __init__(self) -> None:
        self._inbox: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self._acquired: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._handing_over = threading.Lock()
        self._abandoned = False
        self._thread = threading.Thread(target=self._serve, name="thresher-turn", daemon=True)
        self._thread.start()

    @property
    def waits(self) -> bool:
        """Whether a thread that was given up still waits."""
        return self._thread.is_alive()

    def wait(self, handle: int, patience: float, what: Callable[[], str] = str) -> bool:
        """Whether the lock came in time; if not, or if interrupted, the thread frees it when it comes, and ends."""
        waiting = Patience(patience)
        self._inbox.put(handle)
        try:
            while slice_ := waiting.next_slice(what):  # in slices, to notice signals
                with contextlib.suppress(queue.Empty):
                    self._acquired.get(timeout=slice_)
                    return True
            if self._abandon():
                return False
            self._acquired.get()  # it came at the last moment
        except BaseException:
            hurry()
            if not self._abandon():
                _let_go(handle)
                self.end()
            raise
        return True

    def end(self) -> None:
        self._inbox.put(None)

    def _abandon(self) -> bool:
        """Whether the lock had not come after all."""
        with self._handing_over:
            self._abandoned = self._acquired.empty()
            return self._abandoned

    def _serve(self) -> None:
        while not self._abandoned and (handle := self._inbox.get()) is not None:
            fcntl.flock(handle, fcntl.LOCK_EX)
            with self._handing_over:
                if self._abandoned:
                    _let_go(handle)
                else:
                    self._acquired.put(handle)


def _let_go(handle: int) -> None:
    fcntl.flock(handle, fcntl.LOCK_UN)
    os.close(handle)
