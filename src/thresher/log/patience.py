"""Waiting for others: for a limited time, logged once after a while, and ended at once by Ctrl-C."""

import threading
import time
from collections.abc import Callable

SAID_AFTER = 2.0  # seconds until the wait is logged; together with an earlier wait for a turn, less than five
HURRY = 5.0  # seconds after an interrupted wait in which nothing is waited for: the process is about to end
SLICE = 0.1  # seconds to sleep at most before looking for signals

# Called in the main thread while it waits, with the time at which the wait began: raises if a signal has come since.
# For signal handlers that raise nothing themselves.
INTERRUPTS: list[Callable[[float], None]] = []
_hurry_until = 0.0


class Patience:
    """One wait. Nothing is half done meanwhile, so an exception may end it."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._began, self._said = seconds, time.monotonic(), False

    def next_slice(self, what: Callable[[], str], longest: float = SLICE) -> float:
        """How long to wait before trying again; 0.0 when the time is over. ``what`` names what is waited for."""
        now = time.monotonic()
        left = self._began + self._seconds - now
        if left <= 0 or in_a_hurry():
            return 0.0
        if now - self._began >= SAID_AFTER and not self._said:
            self._said = True
            _say(f"waiting for {what()}, for up to {left:.0f} s more")
        if threading.current_thread() is threading.main_thread():
            for check in list(INTERRUPTS):
                try:
                    check(self._began)
                except BaseException:
                    hurry()
                    raise
        return min(left, longest)

    def pause(self, seconds: float, what: Callable[[], str]) -> bool:
        """Sleep for ``seconds``, or until the wait is over. False if it was over first."""
        end = time.monotonic() + seconds
        while wait := self.next_slice(what, min(SLICE, seconds)):
            try:
                time.sleep(wait)
            except BaseException:  # Ctrl-C
                hurry()
                raise
            seconds = end - time.monotonic()
            if seconds <= 0:
                return True
        return False


def in_a_hurry() -> bool:
    """Whether a wait was interrupted a moment ago."""
    return time.monotonic() < _hurry_until


def hurry() -> None:
    """A wait was interrupted: later writes must not wait for the same thing, because the user does not want to."""
    global _hurry_until
    _hurry_until = time.monotonic() + HURRY


def _say(text: str) -> None:
    from ..text.logs import log  # here: a command that asks or tells hardly ever needs it

    log.warning(text)
