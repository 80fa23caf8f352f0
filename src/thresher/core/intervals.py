"""For display: intervals that hold at all times.

They use logarithms, decide nothing and are not part of the compared state. The intervals are the predictable plug-in
empirical Bernstein sequence of Waudby-Smith and Ramdas (2023, theorem 2) on the rewards that the certificate has
committed, in their order; a charged pull is 0 for the lower end and 1 for the upper.
"""

import math
import random
from typing import NamedTuple

from .events import IMPORTED
from .evidence import ABOVE, CHARGED, OPEN, TOLD
from .state import State


class IntervalSide:
    """One end of an interval, fed one scaled reward at a time; ``sign`` is +1 for the lower end, −1 for the upper.

    >>> side = IntervalSide(risk=0.05, sign=+1)
    >>> for _ in range(100): side.feed(0.9)
    >>> 0.8 < side.end < 0.9
    True
    """

    __slots__ = ("bets", "count", "end", "needed", "scatter", "sign", "total", "variation", "weighted")

    def __init__(self, risk: float, sign: int) -> None:
        self.needed = math.log(2.0 / risk)
        self.sign = sign
        self.count = 0
        self.total = self.scatter = self.bets = self.weighted = self.variation = 0.0
        self.end = 0.0 if sign > 0 else 1.0

    def feed(self, reward: float, scale: float = 1.0, seen: float = 0.0) -> None:
        """Add a reward; the end only moves inwards.

        For a case, ``scale`` is M over the number of cases that were left, and ``seen`` the sum of the others over the
        same number: given these, the reward's mean is scale · mean − seen (Waudby-Smith and Ramdas 2020).
        """
        before = (0.5 + self.total) / (self.count + 1)
        variance = (0.25 + self.scatter) / (self.count + 1)
        self.count += 1
        bet = min(0.5, math.sqrt(2.0 * self.needed / (variance * self.count * math.log(1.0 + self.count))))
        self.bets += bet * scale
        self.weighted += bet * (reward + seen)
        self.variation += (reward - before) ** 2 * (-math.log(1.0 - bet) - bet)  # v ψ_E(λ) with v = 4 (x − μ̂)²
        self.total += reward
        self.scatter += (reward - (0.5 + self.total) / (self.count + 1)) ** 2
        centre, margin = self.weighted / self.bets, (self.needed + self.variation) / self.bets
        self.end = max(self.end, centre - margin) if self.sign > 0 else min(self.end, centre + margin)


class Interval:
    """Both ends of one arm's interval, up to the last committed pull that was fed in."""

    __slots__ = ("fed", "high", "low", "sums")

    def __init__(self, risk: float) -> None:
        self.low, self.high = IntervalSide(risk, +1), IntervalSide(risk, -1)
        self.fed = 0  # the last pull that was fed in
        self.sums = Sums()

    def follow(self, study: State, arm: int) -> tuple[float, float]:
        """The scaled interval, after feeding in what was committed since the last call."""
        for commit in committed_for_interval(study, arm, after=self.fed, sums=self.sums):
            self.feed(commit)
            self.fed = max(self.fed, commit.pull)
        return self.low.end, self.high.end

    def feed(self, commit: "Commit") -> None:
        """Add a committed pull."""
        self.low.feed(commit.low, commit.scale, commit.low_seen)
        self.high.feed(commit.high, commit.scale, commit.high_seen)


class Commit(NamedTuple):
    """A pull that is in its arm's capitals: the reward and the bar for the claim from below, and those from above."""

    pull: int
    low: float
    high: float
    low_bar: float
    high_bar: float
    scale: float = 1.0  # with cases: M over the number of cases that were left
    low_seen: float = 0.0  # ... and the sums of the others' rewards over the same number
    high_seen: float = 0.0


class Sums:
    """Running totals while `committed_for_interval` walks an arm's pulls: the number of cases, the sums of rewards."""

    __slots__ = ("high", "low", "places")

    def __init__(self) -> None:
        self.places, self.low, self.high = 0, 0.0, 0.0


def committed_for_interval(study: State, arm: int, *, after: int = 0, sums: Sums | None = None) -> list[Commit]:
    """The arm's committed pulls after this one, in an order that does not depend on their rewards.

    That is the order in which they were issued. Imported pulls have no order that can be trusted: they come first,
    shuffled by a key that was drawn after the import. With cases, ``sums`` are those up to this pull, and grow.
    """
    docket, stakes, sums = study.docket, study.stakes_of(arm), sums or Sums()
    imported: list[Commit] = []
    rest: list[Commit] = []
    pull = docket.following[after] if after else study.first_pull[arm]
    while pull not in (0, docket.first[arm]):
        outcome, reward = docket.outcome[pull], docket.reward[pull]
        if outcome in (TOLD, CHARGED):
            low, high = (reward, reward) if outcome == TOLD else (0.0, 1.0)
            commit = (
                Commit(pull, low, high, stakes.low_edge, stakes.high_edge)
                if not study.cases
                else _against(study, arm, pull, low, high, sums)
            )
            (imported if study.pull_origin[pull - 1] & IMPORTED else rest).append(commit)
        pull = docket.following[pull]
    if study.shuffle:
        random.Random(study.shuffle).shuffle(imported)  # noqa: S311 - not for secrets
    return imported + rest


def _against(study: State, arm: int, pull: int, low: float, high: float, sums: Sums) -> Commit:
    """A committed case. Its bars are the means that the cases which were left needed to reach."""
    cases, left, stakes = study.sheet.cases, study.sheet.places[arm] - sums.places, study.stakes_of(arm)
    known = study.imported_sum(arm)
    low_seen, high_seen = known + sums.low, known + study.charged_before(arm) + sums.high
    bars = (cases * stakes.low_edge - low_seen) / left, (cases * stakes.high_edge - high_seen) / left
    commit = Commit(pull, low, high, *bars, cases / left, low_seen / left, high_seen / left)
    sums.places, sums.low, sums.high = sums.places + 1, sums.low + low, sums.high + high
    return commit


class Span(NamedTuple):
    """An arm's interval as people see it."""

    low: float
    high: float
    disagrees: bool = False  # it says that the arm's label is wrong


def interval(study: State, arm: int, mean: float | None) -> Span:
    """The interval of what is asked about, in the user's units; ``mean`` is the mean of what counts.

    Until the arm is settled, the interval is stretched to the mean. Then it depends on the guarantee:

    - "all": it is cut by the label, and never contradicts it. All intervals and labels are right together with
      probability 1 − 2 · risk: either may be wrong.
    - "rate": labels may be wrong, so they cut nothing. All intervals are right together with probability 1 − risk,
      whatever the labels are.
    """
    span = _counted_interval(study, arm, mean)
    low, high = sorted(map(study.spec.shown, span[:2]))
    return Span(low, high, span.disagrees)


def _counted_interval(study: State, arm: int, mean: float | None) -> Span:
    """The interval on the scale of what counts."""
    spec, label = study.spec, study.docket.settled[arm]
    sequence = study.intervals.get(arm)
    if sequence is None:
        sequence = study.intervals[arm] = Interval(1.0 / study.stakes_of(arm).level)
    low, high = map(spec.unscale, sequence.follow(study, arm))
    least, most = _by_count(study, arm)
    low, high = max(low, least), min(high, most)
    if low > high or study.is_exact(arm):
        return Span(least, most)
    if label == OPEN:
        low, high = (low, high) if mean is None else (min(low, mean), max(high, mean))
        return Span(max(low, least), min(high, most))
    bottom, top = (spec.low_edge, math.inf) if label == ABOVE else (-math.inf, spec.high_edge)
    if spec.guarantee == "rate":
        return Span(low, high, disagrees=high < bottom or low > top)
    return Span(min(max(low, bottom), top), min(max(high, bottom), top))


def _by_count(study: State, arm: int) -> tuple[float, float]:
    """Where the arm's mean certainly lies: within the bounds, and with cases, whatever the missing rewards are."""
    low, high = study.spec.span
    if not study.cases:
        return low, high
    board, cases = study.board, study.cases.count
    known, missing = board.total[arm] + board.residue[arm], cases - board.seen[arm]
    return (known + missing * low) / cases, (known + missing * high) / cases
