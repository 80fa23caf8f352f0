"""No SQLite connection is open while a process forks.

SQLite notes its locks per process and file. A forked child would inherit these notes, but not the locks. It could write
without a lock, and acknowledged rewards would be lost, or wait forever for one that nobody in the child releases. So a
fork closes all connections first, and holds our locks on them until it is over. None can be opened meanwhile: a fork
also holds the lock of the list. Connections are opened again when they are next needed.
"""

import os
import threading
from pathlib import Path

from ..errors import StoreFailed
from .locks import leave_to_parent
from .sqlite_session import Session


class OpenFile:
    """What a fork needs of an SQLite store: its locks and its session.

    The list holds it until the session is closed, and it does not hold the store. The garbage collector clears weak
    references before it calls ``__del__``, so a fork would not find a store that is just about to be closed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        # held while flushing, and while using the connection; code that needs both takes them in this order
        self.flushing, self.lock = threading.RLock(), threading.RLock()
        self.session: Session | None = None
        self.failed: tuple[str, str] | None = None  # why nothing more is written, and what to do
        with _listing:
            _LIST[id(self)] = self

    def fail(self, rule: str, remedy: str) -> StoreFailed:
        """Stop writing: some of what was written may be lost."""
        self.failed = self.failed or (rule, remedy)
        return StoreFailed("storage", str(self.path), rule, remedy)

    def close(self) -> None:
        with self.flushing, self.lock:
            if self.session is not None:
                session, self.session = self.session, None
                session.close()

    def end(self) -> None:
        """The store is garbage. This may happen anywhere, so it waits for nothing: a fork that has the lock closes."""
        if self.flushing.acquire(blocking=False):
            try:
                self.close()
            finally:
                self.flushing.release()
        _LIST.pop(id(self), None)

    def begin_in_child(self) -> None:
        """In a forked child: the parent's locks and connection are not ours."""
        self.flushing, self.lock = threading.RLock(), threading.RLock()
        leave_to_parent(self.session)
        self.session = None


# By id, in the order in which they came: two threads may fork at once, and must take the locks in the same order.
_LIST: dict[int, OpenFile] = {}
_listing = threading.RLock()  # held while a file is added, and from before a fork until after it
_MINE = threading.local()  # the locks that a thread holds for its own fork


def _before() -> None:
    """Python forks even if this raises, as an interrupt may, so note which locks are held."""
    _MINE.held = []
    _hold(_listing)
    for file in _LIST.copy().values():
        _hold(file.flushing)
        _hold(file.lock)
        file.close()


def _hold(lock: "threading.RLock") -> None:
    lock.acquire()
    _MINE.held.append(lock)


def _after_in_parent() -> None:
    while _MINE.held:
        _MINE.held.pop().release()


def _after_in_child() -> None:
    global _listing
    _listing = threading.RLock()
    for file in _LIST.copy().values():
        file.begin_in_child()


os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
