"""Ctrl-C and SIGTERM as items of a queue, so that neither can interrupt a write."""

import contextlib
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
    before = {number: signal.signal(number, lambda n, _: inbox.put(signal.Signals(n))) for number in CAUGHT}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
