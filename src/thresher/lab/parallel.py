"""Work divided among threads."""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import TypeVar

from ..text.machine import available_cores

__all__ = ["aside", "available_cores", "share_out"]

Item = TypeVar("Item")


def share_out(work: Callable[[Item], None], items: Sequence[Item], threads: int) -> None:
    """Do the work for every item in this many threads; raise the first error.

    Ctrl-C works at once: a thread inside machine code cannot be stopped, so nothing waits for it, here or at the end of
    the program. That is why even a single item runs in another thread.

    >>> found = []
    >>> share_out(found.append, [1, 2, 3], threads=2)
    >>> sorted(found)
    [1, 2, 3]
    """
    left = deque(items)
    ended: SimpleQueue[BaseException | None] = SimpleQueue()

    def do() -> None:
        failure: BaseException | None = None
        try:
            while left:
                try:
                    item = left.popleft()
                except IndexError:  # another thread took the last one
                    break
                work(item)
        except BaseException as error:
            failure = error
        ended.put(failure)

    crew = [threading.Thread(target=do, daemon=True) for _ in range(min(threads, len(items)))]
    try:
        for thread in crew:
            thread.start()
        for _ in crew:
            failure = _taken(ended)
            if failure is not None:
                raise failure
    finally:
        left.clear()


def _taken(ended: "SimpleQueue[BaseException | None]") -> BaseException | None:
    """The next item. Python notices a signal that comes just before a wait only when the wait ends: no wait is long."""
    while True:
        try:
            return ended.get(timeout=0.5)
        except Empty:
            continue


def aside(work: Callable[[], None]) -> None:
    """Do some work in another thread, while the calling thread waits and can be interrupted.

    A compiler calls back into Python, where an exception raised by a signal would only be printed.
    """
    share_out(lambda _: work(), [None], threads=1)
