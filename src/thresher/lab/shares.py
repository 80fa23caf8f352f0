"""The chance that a reward of an arm is within a limit: the truth where a question asks about a share.

``within_*`` is the chance that ``sign`` times a reward is at least ``limit``: that it reaches the limit, or with a sign
of −1 that it stays within it. The other arguments are those of `families.py`.
"""

import math

from .families import Reals


def fits(sign: float, limit: float, reward: float) -> float:
    """1 if the reward is within the limit, else 0.

    >>> fits(1.0, 0.5, 0.5), fits(-1.0, -0.5, 0.6)
    (1.0, 0.0)
    """
    return 1.0 if sign * reward >= limit else 0.0


def within_uniform(
    first: float, second: float, low: float, high: float, samples: Reals, sign: float, limit: float
) -> float:
    """The part of [first, first + second) that is within the limit."""
    if second <= 0.0:
        return fits(sign, limit, first)
    below = min(max((sign * limit - first) / second, 0.0), 1.0)
    return 1.0 - below if sign > 0.0 else below


def within_bernoulli(
    first: float, second: float, low: float, high: float, samples: Reals, sign: float, limit: float
) -> float:
    """Two rewards."""
    return first * fits(sign, limit, high) + (1.0 - first) * fits(sign, limit, low)


def within_constant(
    first: float, second: float, low: float, high: float, samples: Reals, sign: float, limit: float
) -> float:
    """One reward."""
    return fits(sign, limit, first)


def within_beta(
    first: float, second: float, low: float, high: float, samples: Reals, sign: float, limit: float
) -> float:
    """Not known: simulated only with cases, where the drawn rewards are counted."""
    return math.nan


def within_normal(
    first: float, second: float, low: float, high: float, samples: Reals, sign: float, limit: float
) -> float:
    """The normal distribution's tail."""
    if second <= 0.0:
        return fits(sign, limit, first)
    return 0.5 * math.erfc((limit - sign * first) / (second * math.sqrt(2.0)))


def within_clipped(
    first: float, second: float, low: float, high: float, samples: Reals, sign: float, limit: float
) -> float:
    """The same between the bounds, where what lies outside is set to the nearer one."""
    worst, best = (low, high) if sign > 0.0 else (high, low)
    if fits(sign, limit, worst) > 0.0 or fits(sign, limit, best) == 0.0:
        return fits(sign, limit, best)
    return within_normal(first, second, low, high, samples, sign, limit)


def within_recorded(
    first: float, second: float, low: float, high: float, samples: Reals, sign: float, limit: float
) -> float:
    """The share of the recorded rewards."""
    count = 0.0
    for place in range(int(first) + 1, int(first) + 1 + int(second)):
        count += fits(sign, limit, samples[place])
    return count / second


def within_pilot_chances(
    first: float, second: float, low: float, high: float, samples: Reals, sign: float, limit: float
) -> float:
    """The chance of a pass that was drawn."""
    return within_bernoulli(samples[int(first)], second, low, high, samples, sign, limit)


def within_pilot_rewards(
    first: float, second: float, low: float, high: float, samples: Reals, sign: float, limit: float
) -> float:
    """The share of the rewards that were drawn."""
    return within_recorded(first, second, low, high, samples, sign, limit)
