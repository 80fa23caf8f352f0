"""How far a run is, and how fast."""

from collections import deque
from typing import NamedTuple

from .ledger import Ledger


class Progress(NamedTuple):
    """What `run` tells its ``on_progress``."""

    issued: int
    told: int
    pending: int
    settled: int
    rate: float  # rewards a second, lately
    seconds_left: float | None  # None: nobody can tell


class Meter:
    """Measures the rate over the last hundred readings."""

    def __init__(self, end: float | None) -> None:
        self._end = end  # when the handing out stops
        self._recent: deque[tuple[float, int]] = deque(maxlen=100)

    def read(self, ledger: Ledger, now: float) -> Progress:
        """The progress at this moment."""
        self._recent.append((now, ledger.told))
        then, told = self._recent[0]
        rate = (ledger.told - told) / (now - then) if now > then else 0.0
        waits = [] if self._end is None else [max(0.0, self._end - now)]
        if ledger.budget is not None and rate > 0:
            waits.append((ledger.budget - ledger.issued + ledger.pending) / rate)
        return Progress(ledger.issued, ledger.told, ledger.pending, ledger.settled, rate, min(waits, default=None))
