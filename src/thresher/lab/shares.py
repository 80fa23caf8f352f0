"""The chance that a reward of an arm is within a limit: the truth where a question asks about a share."""

import math

from .families import BERNOULLI, BETA, CLIPPED, CONSTANT, NORMAL, PILOT_CHANCES, UNIFORM, Reals


def fits(sign: float, limit: float, reward: float) -> float:
    """1 if the reward is within the limit, else 0.

    >>> fits(1.0, 0.5, 0.5), fits(-1.0, -0.5, 0.6)
    (1.0, 0.0)
    """
    return 1.0 if sign * reward >= limit else 0.0


def within(
    family: int,
    first: float,
    second: float,
    low: float,
    high: float,
    samples: Reals,
    sign: float,
    limit: float,
) -> float:
    """The chance that ``sign`` times a reward is at least ``limit``; the other arguments are those of `draw`.

    So with a sign of −1, the chance that a reward stays within minus the limit.
    """
    if family == BETA:  # not known: simulated only with cases, where the drawn rewards are counted
        return math.nan
    if family in (BERNOULLI, PILOT_CHANCES):
        chance = first if family == BERNOULLI else float(samples[int(first)])
        return chance * fits(sign, limit, high) + (1.0 - chance) * fits(sign, limit, low)
    if family == CLIPPED:  # what lies outside the bounds is set to the nearer one
        worst, best = (low, high) if sign > 0.0 else (high, low)
        if fits(sign, limit, worst) > 0.0 or fits(sign, limit, best) == 0.0:
            return fits(sign, limit, best)
    if family == CONSTANT or second <= 0.0:
        return fits(sign, limit, first)
    if family == UNIFORM:  # the part of [first, first + second)
        below = min(max((sign * limit - first) / second, 0.0), 1.0)
        return 1.0 - below if sign > 0.0 else below
    if family in (NORMAL, CLIPPED):
        return 0.5 * math.erfc((limit - sign * first) / (second * math.sqrt(2.0)))
    count = 0.0  # of the recorded rewards, or those drawn from a posterior
    for index in range(int(first) + 1, int(first) + 1 + int(second)):
        count += fits(sign, limit, samples[index])
    return count / second
