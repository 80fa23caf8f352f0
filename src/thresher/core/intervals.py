"""Intervals that hold at any time, for people to look at.

They use logarithms, decide nothing, and are no part of the state that is compared. They are the predictable plug-in
empirical Bernstein sequence of Waudby-Smith and Ramdas (2023, theorem 2) on the rewards that the certificate has
committed, in their order; a charged pull is 0 for the lower end and 1 for the upper.
"""

import math
import random

from .evidence import CHARGED, TOLD, Docket

Imports = tuple[int, str]  # how many pulls were imported, and the key to their order


class Side:
    """One end of an interval, fed one scaled reward at a time; ``sign`` is +1 for the lower end, −1 for the upper.

    >>> side = Side(risk=0.05, sign=+1)
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

    def feed(self, reward: float) -> None:
        """One more reward; the end only ever moves inwards."""
        before = (0.5 + self.total) / (self.count + 1)
        variance = (0.25 + self.scatter) / (self.count + 1)
        self.count += 1
        bet = min(0.5, math.sqrt(2.0 * self.needed / (variance * self.count * math.log(1.0 + self.count))))
        self.bets += bet
        self.weighted += bet * reward
        self.variation += (reward - before) ** 2 * (-math.log(1.0 - bet) - bet)  # v ψ_E(λ) with v = 4 (x − μ̂)²
        self.total += reward
        self.scatter += (reward - (0.5 + self.total) / (self.count + 1)) ** 2
        centre, margin = self.weighted / self.bets, (self.needed + self.variation) / self.bets
        self.end = max(self.end, centre - margin) if self.sign > 0 else min(self.end, centre + margin)


class Interval:
    """Both ends for one arm, and how far the arm's committed pulls have been fed in."""

    __slots__ = ("fed", "high", "low")

    def __init__(self, risk: float) -> None:
        self.low, self.high = Side(risk, +1), Side(risk, -1)
        self.fed = 0  # the last pull that is in

    def follow(self, docket: Docket, arm: int, first: int, imports: Imports) -> tuple[float, float]:
        """The scaled interval after feeding in what was committed since; ``first`` is the arm's very first pull."""
        for pull in in_order(docket, arm, docket.following[self.fed] if self.fed else first, imports):
            outcome, reward = docket.outcome[pull], docket.reward[pull]
            if outcome in (TOLD, CHARGED):
                self.low.feed(reward if outcome == TOLD else 0.0)
                self.high.feed(reward if outcome == TOLD else 1.0)
            self.fed = max(self.fed, pull)
        return self.low.end, self.high.end


def in_order(docket: Docket, arm: int, pull: int, imports: Imports) -> list[int]:
    """The arm's committed pulls from this one on, in an order that nobody could choose by their rewards.

    That is the order of their issue. Imported ones, which have no order that can be trusted, come first, shuffled by a
    key that was drawn after the import.
    """
    imported, key = imports
    known: list[int] = []
    rest: list[int] = []
    while pull not in (0, docket.first[arm]):
        (known if pull <= imported else rest).append(pull)
        pull = docket.following[pull]
    if key:  # logs of version 0.1 have none
        random.Random(key).shuffle(known)  # noqa: S311 - not for secrets
    return known + rest
