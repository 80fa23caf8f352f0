"""Waiting and taking turns: limited waits, the queue of a file's writers, leases, and what a fork must not copy."""

import contextlib
import fcntl
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, TypeVar

from ..text.phrasing import plural

if TYPE_CHECKING:
    from .store import Store

Thing = TypeVar("Thing")
BEATS = 3  # renewals in the time of one lease: two may fail, or come late
SAID_AFTER = 2.0  # seconds until the wait is logged; together with an earlier wait for a turn, less than five
HURRY = 5.0  # seconds after an interrupted wait in which nothing is waited for: the process is about to end
TURN = 2.0  # seconds to wait for a turn: its holder hangs, or was stopped
BUSY_WITHOUT_TURN = 5.0  # seconds without waiting for a turn, after a wait that ended without one
SLICE = 0.1  # seconds to sleep at most before looking for signals
AGAIN = 60.0  # seconds without such a wait after which the same one is logged again
MOMENT = 0.002  # seconds to try for a lock before queueing: a few turns

# Called in the main thread while it waits, with the time at which the wait began: raises if a signal has come since.
# For signal handlers that raise nothing themselves.
INTERRUPTS: list[Callable[[float], None]] = []
_hurry_until = 0.0
_waited: dict[str, float] = {}  # what was waited for long enough to log it, and until when
_PARENTS: list[object] = []


def locks_renewed_after_fork(renew: Callable[[Thing], object]) -> "weakref.WeakSet[Thing]":
    """A set of objects, empty at first: a forked child calls ``renew`` with each object that is still in use."""
    things: weakref.WeakSet[Thing] = weakref.WeakSet()

    def in_child() -> None:
        for thing in list(things):
            renew(thing)

    os.register_at_fork(after_in_child=in_child)
    return things


def leave_locks_to_parent(connection: object) -> None:
    """In a forked child: never close this connection, not even as garbage; that would end the parent's session."""
    _PARENTS.append(connection)


class LockPatience:
    """One wait. Nothing is half done meanwhile, so an exception may end it."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._began = seconds, time.monotonic()
        self._waited_for = ""  # as it was logged: it may change, such as the words of a server that starts

    def next_slice(self, waited_for: str, longest: float = SLICE) -> float:
        """How long to wait before trying again; 0.0 when the time is over.

        A caller that is interrupted, here or while it waits, calls `hurry_locks`.
        """
        now = time.monotonic()
        left = self._began + self._seconds - now
        if left <= 0 or are_locks_in_a_hurry():
            return 0.0
        if now - self._began >= SAID_AFTER:
            self._waited_for = self._waited_for or waited_for
            _say_once(self._waited_for, now, left)
        if threading.current_thread() is threading.main_thread():
            for check in list(INTERRUPTS):
                check(self._began)
        return min(left, longest)

    def pause(self, seconds: float, waited_for: str) -> bool:
        """Sleep for ``seconds``, or until the wait is over. False if it was over first."""
        end = time.monotonic() + seconds
        try:
            while wait := self.next_slice(waited_for, min(SLICE, seconds)):
                time.sleep(wait)
                seconds = end - time.monotonic()
                if seconds <= 0:
                    return True
        except BaseException:  # Ctrl-C
            hurry_locks()
            raise
        return False


def are_locks_in_a_hurry() -> bool:
    """Whether a wait was interrupted a moment ago."""
    return time.monotonic() < _hurry_until


def hurry_locks() -> None:
    """A wait was interrupted: later writes must not wait for the same thing, because the user does not want to."""
    global _hurry_until
    _hurry_until = time.monotonic() + HURRY


def _say_once(waited_for: str, now: float, left: float) -> None:
    """Log a wait, but not again while others, such as the next requests to a server, wait for the same."""
    global _waited
    known = {other: until for other, until in _waited.items() if now - until < AGAIN}
    _waited = {**known, waited_for: now}
    if waited_for not in known:
        from ..text.logs import log  # here: a command that asks or tells hardly ever needs it

        log.warning(f"waiting for {waited_for}, for up to {left:.0f} s more")


class FileLock:
    """A queue of the writers of one file, for a lock on a file beside it. The system frees it if its holder dies.

    One that waited too long continues without the lock: a stopped holder blocks no one.
    """

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
    def turn(self, patience: float | None = None) -> Iterator[bool]:
        """Hold the lock if it comes within ``patience`` seconds, `TURN` if None. Yields whether it is held."""
        try:
            handle = self._taken()
        except OSError:  # a folder that cannot be written: the write will give a better message
            yield False
            return
        held = False
        try:
            held = _acquired_soon(handle) or self._queue.wait(handle, TURN if patience is None else patience)
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


_LOCKS = locks_renewed_after_fork(FileLock._begin_in_child)


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


class LockQueue:
    """The waits of one process for the lock on one file, for a limited time, although flock itself has no timeout.

    Threads are kept for later: starting one takes long.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._idle: list[_LockWaiter] = []
        self._given_up: _LockWaiter | None = None
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
                held = waiter.wait(handle, patience, f"another process to release {self._path}")
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

    def _waiter(self) -> "_LockWaiter":
        with contextlib.suppress(IndexError):  # there is none, or another thread took the last
            return self._idle.pop()
        return _LockWaiter()


class _LockWaiter(threading.Thread):
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

    def wait(self, handle: int, patience: float, waited_for: str) -> bool:
        """Whether the lock came in time. If not, or if interrupted, the thread releases it when it comes."""
        waiting, came = LockPatience(patience), threading.Event()
        outcome = threading.Lock()  # taken once: by the thread if the lock came, by the caller if it gave up
        self._inbox.put((os.dup(handle), came, outcome))
        try:
            while slice_ := waiting.next_slice(waited_for):  # in slices, to notice signals
                if came.wait(slice_):
                    return True
        except BaseException:
            hurry_locks()
            outcome.acquire(blocking=False)
            raise
        return not outcome.acquire(blocking=False)  # it may have come at the last moment


# -- Leases: this process renews those of the pulls that it handed out, as long as it lives ----------------------------


class LeaseKeeper:
    """Renews leases from one daemon thread, which exists only while this process has pending pulls.

    The thread holds its keeper by a weak reference: when a study is garbage-collected, its leases run out.
    A forked child renews none of its parent's pulls; the parent does.
    """

    def __init__(self, store: "Store", study: str, seconds: float) -> None:
        self.store, self.study, self.seconds = store, study, seconds
        self._forgotten = threading.Event()
        weakref.finalize(self, self._forgotten.set).atexit = False
        self._begin()
        _KEEPERS.add(self)

    def _begin(self) -> None:
        self._pulls: set[int] = set()
        self._lock = threading.Lock()
        self._beating = False  # whether there is a thread

    def hold(self, pulls: Iterable[int]) -> None:
        """Renew these pulls from now on."""
        with self._lock:
            self._pulls.update(pulls)
            if self._pulls and not self._beating:
                self._beating = True
                beat = (weakref.ref(self), self._forgotten, self.seconds / BEATS)
                threading.Thread(target=_beat, args=beat, name="thresher-leases", daemon=True).start()

    def let_go(self, pull: int) -> None:
        with self._lock:
            self._pulls.discard(pull)

    def let_go_of_all(self) -> None:
        """Stop renewing all pulls; their leases run out."""
        with self._lock:
            self._pulls.clear()

    @property
    def held(self) -> list[int]:
        with self._lock:
            return list(self._pulls)

    def holds(self, pull: int) -> bool:
        return pull in self._pulls

    def beat(self) -> bool:
        """Renew. Returns whether anything is left to renew."""
        with self._lock:
            pulls = sorted(self._pulls)
            if not pulls:
                self._beating = False  # the thread ends; the next pull starts another
                return False
        try:
            self.store.renew(self.study, pulls, self.seconds)
        except Exception as error:  # the next renewal may succeed
            from ..text.logs import log  # here: a command that asks or tells rarely needs it

            log.warning(f"the leases of {plural(len(pulls), 'pull')} could not be renewed: {error}")
        return True


_KEEPERS = locks_renewed_after_fork(LeaseKeeper._begin)


def _beat(keeper: "weakref.ref[LeaseKeeper]", forgotten: threading.Event, pause: float) -> None:
    while not forgotten.wait(pause):
        alive = keeper()
        if alive is None or not alive.beat():
            return
        del alive
