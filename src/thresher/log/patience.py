"""Waiting for others: for a limited time, logged once after a while, and ended at once by Ctrl-C."""

import threading
import time
from collections.abc import Callable

SAID_AFTER = 2.0  # seconds until the wait is logged; together with an earlier wait for a turn, less than five
HURRY = 5.0  # seconds after an interrupted wait in which nothing is waited for: the process is about to end
TURN = 2.0  # seconds to wait for a turn: its holder hangs, or was stopped
BUSY_WITHOUT_TURN = 5.0  # seconds without waiting for a turn, after a wait that ended without one
SLICE = 0.1  # seconds to sleep at most before looking for signals
AGAIN = 60.0  # seconds without such a wait after which the same one is logged again

# Called in the main thread while it waits, with the time at which the wait began: raises if a signal has come since.
# For signal handlers that raise nothing themselves.
INTERRUPTS: list[Callable[[float], None]] = []
_hurry_until = 0.0
_waited: dict[str, float] = {}  # what was waited for long enough to log it, and until when


class Patience:
    """One wait. Nothing is half done meanwhile, so an exception may end it."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._began = seconds, time.monotonic()
        self._what = ""  # what is waited for, once that has taken long

    def next_slice(self, what: Callable[[], str], longest: float = SLICE) -> float:
        """How long to wait before trying again; 0.0 when the time is over. ``what`` names what is waited for.

        A caller that is interrupted, here or while it waits, calls `hurry`.
        """
        now = time.monotonic()
        left = self._began + self._seconds - now
        if left <= 0 or in_a_hurry():
            return 0.0
        if now - self._began >= SAID_AFTER:
            self._what = self._what or what()
            _say_once(self._what, now, left)
        if threading.current_thread() is threading.main_thread():
            for check in list(INTERRUPTS):
                check(self._began)
        return min(left, longest)

    def pause(self, seconds: float, what: Callable[[], str]) -> bool:
        """Sleep for ``seconds``, or until the wait is over. False if it was over first."""
        end = time.monotonic() + seconds
        try:
            while wait := self.next_slice(what, min(SLICE, seconds)):
                time.sleep(wait)
                seconds = end - time.monotonic()
                if seconds <= 0:
                    return True
        except BaseException:  # Ctrl-C
            hurry()
            raise
        return False


def in_a_hurry() -> bool:
    """Whether a wait was interrupted a moment ago."""
    return time.monotonic() < _hurry_until


def hurry() -> None:
    """A wait was interrupted: later writes must not wait for the same thing, because the user does not want to."""
    global _hurry_until
    _hurry_until = time.monotonic() + HURRY


def _say_once(what: str, now: float, left: float) -> None:
    """Log a wait, but not again while others, such as the next requests to a server, wait for the same."""
    global _waited
    known = {other: until for other, until in _waited.items() if now - until < AGAIN}
    _waited = {**known, what: now}
    if what not in known:
        from ..text.logs import log  # here: a command that asks or tells hardly ever needs it

        log.warning(f"waiting for {what}, for up to {left:.0f} s more")
