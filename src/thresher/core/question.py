"""What a study asks of an arm, and what a reward counts as.

The fold knows one question: is the mean of what counts at least the bar? All others are turned into it. With x the
arm's reward and y the baseline's:

    mean at least b                       x                        b
    mean at most b                        −x                       −b
    within the limit in a share s         1 if within, else 0      s
    better than the baseline by m         x − y, or y − x          m
    at most r times the baseline          1 if x ≤ r y, else 0     s, one half unless given

The rules of this file are those of `board.py`.
"""

import math
from typing import NamedTuple

HALF = 0.5  # of the pairs: the share that a ratio asks about
# What rounding can take from a mean or a difference, as a share of the largest number in it: 0.3 − 0.2 is less than 0.1
# in binary, and the mean of 0.6, 0.7 and 0.8 is more than 0.7.
ROUNDING = 2.0**-51


class Measure(NamedTuple):
    """What a reward counts as."""

    sign: float = 1.0  # −1 where lower is better
    low: float = -math.inf  # rewards below this count as this
    high: float = math.inf  # rewards above this count as this
    paired: bool = False  # the baseline's reward counts too
    ratio: float = 0.0  # of the baseline's reward; 0: the difference counts
    within: bool = False  # what counts is whether the limit is reached
    limit: float = 0.0  # on the scale of what counts: times the sign


PLAIN = Measure()


def reward_for_question(measure: Measure, reward: float, other: float) -> float:
    """What a reward counts as; ``other`` is the baseline's, where there is one.

    >>> reward_for_question(Measure(sign=-1.0, within=True, limit=-0.2), 0.2, 0.0)
    1.0
    >>> reward_for_question(Measure(paired=True), 0.75, 0.5)
    0.25
    """
    reward = min(max(reward, measure.low), measure.high)
    value, limit = measure.sign * reward, measure.limit
    if measure.paired:
        other = min(max(other, measure.low), measure.high)
        if measure.ratio > 0.0:
            limit = measure.sign * (measure.ratio * other)
        else:
            value = measure.sign * (reward - other)
        limit -= ROUNDING * (abs(other) + abs(limit))
    if measure.within:
        return 1.0 if value >= limit else 0.0
    return value + 0.0  # no negative zero


def is_above(total: float, seen: int, bar: float) -> bool:
    """Whether the mean of ``seen`` raw rewards reaches the bar: exact for pass/fail and for constant rewards.

    >>> is_above(9.0, 10, 0.9), is_above(0.1 + 0.1 + 0.1, 3, 0.1)
    (True, True)
    """
    return total / seen >= bar or total >= bar * seen
