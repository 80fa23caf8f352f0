"""Ctrl-C and SIGTERM as items of a queue, so that neither can interrupt a write."""

import contextlib
import os
import queue
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

from ..log.patience import INTERRUPTS

CAUGHT = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def into(inbox: "queue.SimpleQueue[Any]") -> Iterator[None]:
    """While this lasts, signals only put their number into the queue; other threads than the main one get none.

    Except in a store that waits for another process: there nothing is half done, and a signal has its usual effect.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    owner, before = os.getpid(), {number: signal.getsignal(number) for number in CAUGHT}
    last: list[tuple[float, int]] = []

    def restore() -> None:
        for number, handler in before.items():
            if handler is not None:  # what was not set from Python cannot be set again
                signal.signal(number, handler)

    def caught(number: int, _: object) -> None:
        if os.getpid() == owner:
            last[:] = [(time.monotonic(), number)]
            inbox.put(signal.Signals(number))
        elif number != signal.SIGINT:  # a forked child leaves Ctrl-C, which a terminal sends to all, to its parent
            restore()
            signal.raise_signal(number)

    def interrupt(waiting_since: float) -> None:
        for when, number in last:
            if when >= waiting_since:
                restore()
                signal.raise_signal(number)

    for number in CAUGHT:
        signal.signal(number, caught)
    INTERRUPTS.append(interrupt)
    try:
        yield
    finally:
        INTERRUPTS.remove(interrupt)
        restore()


@contextlib.contextmanager
def later() -> Iterator[None]:
    """Signals that come while this lasts have their effect when it is over."""
    meanwhile: queue.SimpleQueue[signal.Signals] = queue.SimpleQueue()
    with into(meanwhile):
        yield
    while not meanwhile.empty():
        signal.raise_signal(meanwhile.get())
