"""Waiting for others: said once after a while, for a limited time, and ended at once by Ctrl-C."""

import threading
import time
from collections.abc import Callable

SAID_AFTER = 2.0  # seconds until it is said; with the turn that was waited for before, less than five
HURRY = 5.0  # seconds after an interrupted wait in which nothing is waited for: the process is about to end
SLICE = 0.1  # seconds to sleep at most before looking for signals

# Called in the main thread while it waits, with the time at which it began to: raises if a signal has come since.
# For handlers of signals that raise nothing themselves.
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
        """Sleep so long, or until the time is over; False if it was over before."""
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
    """A wait was interrupted: what the process still has to write may wait for the same, and the user does not."""
    global _hurry_until
    _hurry_until = time.monotonic() + HURRY


def _say(text: str) -> None:
    from ..text.logs import log  # here: a command that asks or tells hardly ever needs it

    log.warning(text)
