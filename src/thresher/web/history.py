"""How the answer evolved: counts of labels at so many pulls, never more points than a picture can show.

The points follow from the log alone: the counts as they were when pull ``step``, ``2 step``, … was issued. Whoever
reads the log, now or years later, watching or not, gets the same ones.
"""

from typing import NamedTuple

from ..core.ledger import Ledger
from ..core.row import LABELS, label_of

MOST = 500  # points that are kept; when there are more, every other one goes
CODES = {label: code for code, label in enumerate(LABELS)}


class Point(NamedTuple):
    """The answer when so many pulls were issued."""

    issued: int
    above: int
    below: int
    certified: int


class Tally:
    """How many arms have which label, kept up to date one arm at a time."""

    def __init__(self, arms: int) -> None:
        self._label = bytearray([CODES["undecided"]]) * arms
        self._sure = bytearray(arms)
        self.counts = [0] * len(LABELS)
        self.counts[CODES["undecided"]] = arms
        self.sure = [0] * len(LABELS)  # certified ones among them

    def update(self, ledger: Ledger, arm: int) -> None:
        """An event of the arm was folded in."""
        label, sure = label_of(ledger, arm)
        code, before = CODES[label], self._label[arm]
        if code == before and sure == self._sure[arm]:
            return
        self.counts[before] -= 1
        self.counts[code] += 1
        self.sure[before] -= self._sure[arm]
        self.sure[code] += sure
        self._label[arm], self._sure[arm] = code, sure

    def point(self, issued: int) -> Point:
        """The answer now."""
        return Point(issued, self.counts[CODES["above"]], self.counts[CODES["below"]], sum(self.sure))


class History:
    """Points in the order of the pulls."""

    def __init__(self) -> None:
        self.step = 1
        self.points = [Point(0, 0, 0, 0)]

    def issued(self, count: int, tally: Tally) -> None:
        """Pull number ``count`` was issued just now."""
        if count % self.step:
            return
        self.points.append(tally.point(count))
        if len(self.points) > MOST:
            self.step *= 2
            self.points = self.points[::2]

    def after(self, issued: int) -> list[Point]:
        """The points after so many pulls."""
        return self.points[issued // self.step + 1 :]
