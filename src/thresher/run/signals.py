"""Signals: a run queues them, so that none interrupts a write; a command turns them into its exit status."""

import contextlib
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from ..log.locks import INTERRUPTS

CAUGHT = (signal.SIGINT, signal.SIGTERM)

_HUNG_UP: list[int] = []  # not empty if the terminal was closed during `until_stop_signal`
_HANDLED_BEFORE: list[Any] = []  # how SIGTERM was handled outside each block of `queue_signals`, outermost first


def _in_forked_child() -> None:
    """Let SIGTERM end a forked child at once. A handler in Python would wait for a system call that never returns."""
    if _HANDLED_BEFORE and _HANDLED_BEFORE[0] is not None:
        signal.signal(signal.SIGTERM, _HANDLED_BEFORE[0])


os.register_at_fork(after_in_child=_in_forked_child)


@contextlib.contextmanager
def queue_signals(inbox: "queue.SimpleQueue[Any]") -> Iterator[None]:
    """Inside the block, a signal only puts its number into the queue. Only the main thread gets signals.

    While a store waits for another process, nothing is half done, so there a signal has its usual effect. SIGHUP is
    queued only in a command: in a user's program, it has its usual effect.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (*CAUGHT, signal.SIGHUP) if signal.getsignal(signal.SIGHUP) is _hang_up else CAUGHT
    owner, before = os.getpid(), {number: signal.getsignal(number) for number in numbers}
    last: list[tuple[float, int]] = []

    def restore() -> None:
        for number, handler in before.items():
            if handler is not None:  # a handler that was not set from Python cannot be set again
                signal.signal(number, handler)

    def caught(number: int, _: object) -> None:
        if os.getpid() == owner:  # a forked child leaves Ctrl-C, which a terminal sends to all, to its parent
            last[:] = [(time.monotonic(), number)]
            inbox.put(signal.Signals(number))

    def interrupt(waiting_since: float) -> None:
        for when, number in last:
            if when >= waiting_since:
                restore()
                signal.raise_signal(number)

    for number in numbers:
        signal.signal(number, caught)
    INTERRUPTS.append(interrupt)
    _HANDLED_BEFORE.append(before[signal.SIGTERM])
    try:
        yield
    finally:
        _HANDLED_BEFORE.pop()
        INTERRUPTS.remove(interrupt)
        restore()


@contextlib.contextmanager
def delay_signals() -> Iterator[None]:
    """Delay signals until the end of the block."""
    meanwhile: queue.SimpleQueue[signal.Signals] = queue.SimpleQueue()
    with queue_signals(meanwhile):
        yield
    while not meanwhile.empty():
        signal.raise_signal(meanwhile.get())


class Terminated(BaseException):
    """SIGTERM came, or SIGHUP."""


def until_stop_signal(job: Callable[[], object]) -> int:
    """Do a job. Returns 0, or the exit status for the signal that stopped it: the caller can still print results."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    _HUNG_UP.clear()
    try:
        signal.signal(signal.SIGTERM, _terminate)
        if before[signal.SIGHUP] is not signal.SIG_IGN:  # nohup asks to ignore it
            signal.signal(signal.SIGHUP, _hang_up)
        job()
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except Terminated:
        return 128 + (signal.SIGHUP if _HUNG_UP else signal.SIGTERM)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return 0


def _terminate(number: int, frame: object) -> None:
    raise Terminated


def _hang_up(number: int, frame: object) -> None:
    """The terminal is gone. Do not wait for commands: they run in sessions of their own, so they are still running."""
    _HUNG_UP.append(number)
    signal.raise_signal(signal.SIGTERM)
    signal.raise_signal(signal.SIGTERM)
