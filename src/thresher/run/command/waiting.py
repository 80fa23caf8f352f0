"""A thread that waits for the answer of a persistent evaluator."""

import contextlib
import threading
import time

from ...study import Pull
from .lines import Answer, reward_in


class Gone(Exception):
    """The process is gone, and not a byte of the pull was written to it: the pull has not begun."""


class Waiter:
    """A pull that is pending in the process, and the thread that waits for it."""

    __slots__ = ("asleep", "end", "outcome", "pull", "timeout")

    def __init__(self, pull: Pull, timeout: float | None) -> None:
        self.pull, self.timeout = pull, timeout
        self.end: float | None = None  # when it times out
        self.asleep = threading.Lock()  # held until it is woken
        self.asleep.acquire()
        self.outcome: Answer | BaseException | None = None

    def begin(self) -> None:
        """It becomes pending: its time runs from now on, and not while it waits for the process's first line."""
        if self.timeout is not None:
            self.end = time.monotonic() + self.timeout

    def wake(self) -> None:
        with contextlib.suppress(RuntimeError):  # it is awake
            self.asleep.release()

    def result(self) -> float:
        assert self.outcome is not None
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return reward_in(self.outcome)
