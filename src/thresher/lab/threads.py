"""Work shared out among threads."""

import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import TypeVar

Item = TypeVar("Item")


def available_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def share_out(work: Callable[[Item], None], items: Sequence[Item], threads: int) -> None:
    """Do the work for every item, so many at once; the first error is raised.

    Ctrl-C is heeded at once: a thread inside machine code cannot be stopped, so nobody waits for it, here or at the end
    of the program. That is why even a single item is not done by the thread that calls.

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
                except IndexError:  # another thread was quicker
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
            failure = ended.get()
            if failure is not None:
                raise failure
    finally:
        left.clear()


def aside(work: Callable[[], None]) -> None:
    """Do some work while the thread that calls only waits, and can be interrupted.

    Compilers call back into Python, where what a signal raises would be printed and forgotten.
    """
    share_out(lambda _: work(), [None], threads=1)
