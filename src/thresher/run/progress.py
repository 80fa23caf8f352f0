"""The progress and the speed of a run."""

import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from ..core.ledger import Ledger
from ..study import Study, peek

TICK = 0.1  # seconds between two reports


class Progress(NamedTuple):
    """What `run` passes to ``on_progress``."""

    issued: int
    told: int
    pending: int
    settled: int
    rate: float  # rewards a second, recently
    seconds_left: float | None  # None: unknown
    paused: bool = False  # everything fails, and one pull is tried from time to time


class Meter:
    """Calls ``tell`` at most ten times a second; the rate is measured over the last hundred calls."""

    def __init__(
        self,
        study: Study,
        tell: Callable[[Progress], object] | None,
        end: float | None,
        paused: Callable[[], bool] = lambda: False,
    ) -> None:
        self._study, self.tell, self._paused = study, tell, paused
        self._end = end  # when `run` stops issuing pulls
        self._told_at = 0.0
        self._recent: deque[tuple[float, int]] = deque(maxlen=100)

    def report(self, *, last: bool = False) -> None:
        if self.tell is None:
            return
        now = time.monotonic()
        if last or now - self._told_at >= TICK:
            self._told_at = now
            self.tell(peek(self._study, lambda ledger: self._read(ledger, now)))

    def _read(self, ledger: Ledger, now: float) -> Progress:
        self._recent.append((now, ledger.told))
        then, told = self._recent[0]
        rate = (ledger.told - told) / (now - then) if now > then else 0.0
        waits = [] if self._end is None else [max(0.0, self._end - now)]
        if ledger.left is not None and rate > 0:
            waits.append(ledger.left / rate)
        left, counts = min(waits, default=None), (ledger.issued, ledger.told, ledger.pending, ledger.certified)
        return Progress(*counts, rate, left, self._paused())
