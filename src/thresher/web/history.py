"""How the answer evolved: counts of labels at so many pulls, never more points than a picture can show."""

from typing import NamedTuple

from .. import kernel
from ..ledger import DROPPED, PENDING, Ledger

MOST = 500  # points that are kept; when there are more, every other one goes


class Point(NamedTuple):
    """The answer after so many pulls."""

    issued: int
    above: int
    below: int
    certified: int


class History:
    """Points in the order of the pulls."""

    def __init__(self, points: list[Point]) -> None:
        self.points = points

    def add(self, point: Point) -> None:
        """One more point; the newest is always there."""
        if self.points and self.points[-1].issued == point.issued:
            self.points[-1] = point
        else:
            self.points.append(point)
        if len(self.points) > MOST:
            self.points = [*self.points[:-1:2], self.points[-1]]


def replayed(ledger: Ledger) -> History:
    """The history of a ledger that was just folded, from its own columns: the log is not read again.

    Rewards count in the order in which their pulls were issued. An arm counts as above or below by the side of its mean
    then, and as certified from the pull on whose reward settled it.
    """
    settled = _settled_at(ledger)
    step = max(1, ledger.issued // (MOST // 2))
    seen, total = [0] * len(ledger.spec.arms), [0.0] * len(ledger.spec.arms)
    side = bytearray(len(ledger.spec.arms))  # 0: no reward, 1: below, 2: above
    counts, certified, history = [0, 0, 0], 0, History([Point(0, 0, 0, 0)])
    bar = ledger.spec.threshold
    for at, (arm, state, reward) in enumerate(
        zip(ledger.pull_arm, ledger.pull_state, ledger.pull_reward, strict=True), start=1
    ):
        if state not in (PENDING, DROPPED):
            seen[arm] += 1
            total[arm] += reward
            now = 2 if kernel.is_above(total[arm], seen[arm], bar) else 1
            if now != side[arm]:
                counts[side[arm]] -= 1
                counts[now] += 1
                side[arm] = now
        certified += at in settled
        if at % step == 0 or at == ledger.issued:
            history.add(Point(at, counts[2], counts[1], certified))
    return history


def _settled_at(ledger: Ledger) -> set[int]:
    """The pulls after whose commit an arm was settled: the last ones that went into its capital."""
    if not ledger.settled:
        return set()
    docket, found = ledger.docket, set()
    for arm, first in enumerate(docket.first):
        if docket.settled[arm]:
            pull = docket.last[arm]
            if first:  # pulls were still waiting: the one before them settled it
                pull = before = ledger.first_pull[arm]
                while before and before != first:
                    pull, before = before, docket.following[before]
            found.add(pull)
    return found
