"""Signals as endings: what was found so far can still be printed after them."""

import signal
from collections.abc import Callable


class Terminated(BaseException):
    """SIGTERM came."""


def until_stopped(job: Callable[[], object]) -> int:
    """Do a job; 0, or the status that tells by which signal it was stopped."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        signal.signal(signal.SIGTERM, _terminate)
        if before[signal.SIGHUP] is not signal.SIG_IGN:  # nohup says that hanging up shall not matter
            signal.signal(signal.SIGHUP, _hang_up)
        job()
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except Terminated:
        return 128 + signal.SIGTERM
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return 0


def _terminate(number: int, frame: object) -> None:
    raise Terminated


def _hang_up(number: int, frame: object) -> None:
    """The terminal is gone, but did not take commands along, in sessions of their own: they are not waited for."""
    signal.raise_signal(signal.SIGTERM)
    signal.raise_signal(signal.SIGTERM)
