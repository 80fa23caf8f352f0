"""No SQLite connection is open while a process forks.

SQLite keeps its locks per process and file: a child that inherits an open connection, or one in the middle of a
transaction, would wait for itself forever. So a fork closes all connections first, and holds their locks until it is
over.
"""

import os
import threading
import weakref
from typing import Protocol


class Closable(Protocol):
    """A connection that a fork closes; its next use opens it again."""

    @property
    def locks(self) -> "tuple[threading.RLock, ...]": ...
    def close(self) -> None: ...
    def begin_in_child(self) -> None: ...


# By their ids, not as a WeakSet: that cannot be listed while another thread opens a store, and has no order. All forks
# take the locks in the same order, because two threads may fork at once.
CONNECTIONS: "weakref.WeakValueDictionary[int, Closable]" = weakref.WeakValueDictionary()
_MINE = threading.local()  # the locks that a thread holds for its own fork


def _all() -> list[Closable]:
    return [found for reference in CONNECTIONS.valuerefs() if (found := reference()) is not None]


def _before() -> None:
    """Python forks even if this raises, as an interrupt may, so note which locks are held."""
    _MINE.held = []
    for connection in _all():
        for lock in connection.locks:
            lock.acquire()
            _MINE.held.append(lock)
        connection.close()


def _after_in_parent() -> None:
    while _MINE.held:
        _MINE.held.pop().release()


def _after_in_child() -> None:
    for connection in _all():
        connection.begin_in_child()


os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
