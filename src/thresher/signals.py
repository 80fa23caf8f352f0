"""Ctrl-C and SIGTERM as items of a queue, so that neither can interrupt a write."""

import contextlib
import os
import queue
import signal
import threading
from collections.abc import Iterator
from typing import Any

CAUGHT = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def into(inbox: "queue.SimpleQueue[Any]") -> Iterator[None]:
    """While this lasts, signals only put their number into the queue; other threads than the main one get none."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    owner, before = os.getpid(), {number: signal.getsignal(number) for number in CAUGHT}

    def restore() -> None:
        for number, handler in before.items():
            if handler is not None:  # what was not set from Python cannot be set again
                signal.signal(number, handler)

    def caught(number: int, _: object) -> None:
        if os.getpid() == owner:
            inbox.put(signal.Signals(number))
        elif number != signal.SIGINT:  # a forked child leaves Ctrl-C, which a terminal sends to all, to its parent
            restore()
            signal.raise_signal(number)

    for number in CAUGHT:
        signal.signal(number, caught)
    try:
        yield
    finally:
        restore()


@contextlib.contextmanager
def later() -> Iterator[None]:
    """Signals that come while this lasts have their effect when it is over."""
    meanwhile: queue.SimpleQueue[signal.Signals] = queue.SimpleQueue()
    with into(meanwhile):
        yield
    while not meanwhile.empty():
        signal.raise_signal(meanwhile.get())
