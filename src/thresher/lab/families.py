"""Families of arms: how rewards are drawn, and what mean and standard deviation an arm truly has.

The functions are compiled once for all families, which are numbers there. `set_family_arm` turns an arm's nominal mean
and spread into the two numbers that `draw_from_family` needs, `family_moments` gives its true mean and variance. Where
the nominal mean is the true mean, the two are equal bit for bit: a mean on the bar stays there. ``low`` and
``high`` are the bounds of rewards; ``samples`` holds recorded rewards, arm after arm. `family_chance_within` is the
chance that a reward is within a limit.
"""

import math
from dataclasses import dataclass

import numpy as np

from ..errors import InvalidInput
from .streams import Words, stream_fraction, stream_gaussian, stream_log_gamma

Reals = np.ndarray[tuple[int], np.dtype[np.float64]]
Pair = tuple[float, float]


@dataclass(frozen=True)
class Family:
    """A kind of arm, by name, and what its spread means.

    >>> family("clipped").spread
    'standard deviation'
    """

    name: str
    spread: str | None  # what --spreads means; None if the family has no spread
    bounded: bool = True  # rewards stay within the bounds when the means do
    recorded: bool = False  # its rewards follow from recorded ones


FAMILIES = {
    family.name: family
    for family in (
        Family("uniform", "half-width", bounded=False),
        Family("bernoulli", None),
        Family("beta", "standard deviation"),
        Family("normal", "standard deviation", bounded=False),
        Family("clipped", "standard deviation"),
        Family("constant", None),
        Family("recorded", None, recorded=True),
        Family("pilot_chances", None, recorded=True),
        Family("pilot_rewards", None, recorded=True),
    )
}


NAMES = tuple(FAMILIES)
UNIFORM, BERNOULLI, BETA, NORMAL, CLIPPED, CONSTANT, RECORDED, PILOT_CHANCES, PILOT_REWARDS = range(len(NAMES))


def set_family_arm(family: int, mean: float, spread: float, low: float, high: float) -> Pair:
    """The two numbers that a draw needs.

    Recorded rewards: where the arm's samples begin, and how many there are, given as mean and spread. Of a pilot, see
    `planning.py`: the index of the pass probability drawn from the posterior, or where the rewards begin.
    """
    if family == UNIFORM:  # the lower end and the width; the spread is the half-width
        return mean - spread, 2.0 * spread
    if family == BERNOULLI:  # the probability of the better bound
        return (mean - low) / (high - low), 0.0
    if family == CONSTANT:
        return mean, 0.0
    if family == BETA:  # the two shapes; the spread is the standard deviation
        centre, deviation = (mean - low) / (high - low), spread / (high - low)
        size = centre * (1.0 - centre) / (deviation * deviation) - 1.0
        return centre * size, (1.0 - centre) * size
    if family == PILOT_CHANCES:
        return float(math.floor(mean)), 0.0
    if family == PILOT_REWARDS:
        return math.floor(mean) * (spread + 1.0), spread
    return mean, spread  # normal and clipped: mean and standard deviation before clipping; recorded: see above


def draw_from_family(
    family: int, first: float, second: float, low: float, high: float, samples: Reals, state: Words
) -> float:
    """A reward. The commonest families are compiled into the loop, the others are called."""
    if family == UNIFORM:  # on [first, first + second)
        return first + second * stream_fraction(state)
    if family == BERNOULLI:  # the upper bound with probability ``first``, else the lower
        return high if stream_fraction(state) < first else low
    if family == NORMAL:  # may leave the bounds
        return first + second * stream_gaussian(state)
    return draw_from_rarer_family(family, first, second, low, high, samples, state)


def draw_from_rarer_family(
    family: int, first: float, second: float, low: float, high: float, samples: Reals, state: Words
) -> float:
    """A reward of another family."""
    if family == CONSTANT:
        return first
    if family == BETA:  # in logarithms: where the spread is wide, the gamma numbers are almost 0
        upper = stream_log_gamma(first, state)
        lower = stream_log_gamma(second, state)
        return low + (high - low) / (1.0 + math.exp(lower - upper))
    if family == PILOT_CHANCES:
        return high if stream_fraction(state) < samples[int(first)] else low
    if family == CLIPPED:  # a reward outside the bounds is set to the nearer bound
        return min(max(first + second * stream_gaussian(state), low), high)
    # recorded, with replacement; in the samples, an arm's rewards come after their mean
    return float(samples[int(first) + 1 + int(second * stream_fraction(state))])


def family_moments(
    family: int, mean: float, first: float, second: float, low: float, high: float, samples: Reals
) -> Pair:
    """The true mean and variance."""
    width = high - low
    if family == UNIFORM:
        return mean, second * second / 12.0
    if family == BERNOULLI:
        return mean, width * width * first * (1.0 - first)
    if family == CONSTANT:
        return first, 0.0
    if family == BETA:
        size = first + second
        return mean, width * width * first * second / (size * size * (size + 1.0))
    if family == NORMAL:
        return first, second * second
    if family == CLIPPED:
        return clipped_family_moments(first, second, low, high)
    if family == PILOT_CHANCES:
        chance = float(samples[int(first)])
        return low + width * chance, width * width * chance * (1.0 - chance)
    centre, scatter = float(samples[int(first)]), 0.0
    for index in range(int(first) + 1, int(first) + 1 + int(second)):
        scatter += (samples[index] - centre) * (samples[index] - centre)
    return centre, scatter / second


def clipped_family_moments(first: float, second: float, low: float, high: float) -> Pair:
    """Mean and variance after clipping. They differ from the nominal ones; the true label follows from them."""
    if second <= 0.0:
        return min(max(first, low), high), 0.0
    start, end = (low - first) / second, (high - first) / second
    below, above = 0.5 * math.erfc(-start / math.sqrt(2.0)), 0.5 * math.erfc(end / math.sqrt(2.0))
    at_start, at_end = math.exp(-0.5 * start * start), math.exp(-0.5 * end * end)
    root = math.sqrt(2.0 * math.pi)
    inside = 1.0 - below - above
    truth = low * below + high * above + first * inside + second * (at_start - at_end) / root
    square = low * low * below + high * high * above + (first * first + second * second) * inside
    square += 2.0 * first * second * (at_start - at_end) / root
    square += second * second * (start * at_start - end * at_end) / root
    return truth, max(0.0, square - truth * truth)


def family(name: str) -> Family:
    """The family with this name, or an error that lists all names."""
    if not isinstance(name, str) or name not in FAMILIES:
        rule = "is not a family that thresher knows"
        known = (family.name for family in FAMILIES.values() if not family.recorded)  # these come with a file
        raise InvalidInput("family", name, rule, f"choose one of {', '.join(known)}")
    return FAMILIES[name]


def check_beta_family(means: tuple[Reals, Reals], spreads: tuple[Reals, Reals], bounds: tuple[float, float]) -> None:
    """Raise unless there is a Beta arm for every mean and spread that may be drawn.

    The widest arm of a given mean returns only the two bounds; its standard deviation is the largest possible.

    >>> half = (np.array([0.5]), np.array([0.9]))
    >>> check_beta_family(half, (np.array([0.1]), np.array([0.4])), (0.0, 1.0))
    Traceback (most recent call last):
    thresher.errors.InvalidInput: spread 0.4: a Beta arm of mean 0.9 has a standard deviation above 0 and below 0.3; \
give a smaller spread, or means further from the bounds
    """
    low, high = bounds
    for mean in means:
        widest = np.sqrt((mean - low) * (high - mean))
        for spread in spreads:
            # beyond these limits, the two shapes would be rounding errors
            wrong = (spread <= 1e-7 * widest) | (spread >= (1.0 - 1e-9) * widest)
            if wrong.any():
                arm = int(wrong.argmax())
                rule = f"a Beta arm of mean {mean[arm]:g} has a standard deviation above 0 and below {widest[arm]:g}"
                remedy = "give a smaller spread, or means further from the bounds"
                if spread[arm] <= 1e-7 * widest[arm]:
                    remedy = "give a larger spread, or the family constant"
                raise InvalidInput("spread", float(spread[arm]), rule, remedy)


# The chance that a reward of an arm is within a limit: the true value where a question asks about a share.


def fits_limit_in_family(sign: float, limit: float, reward: float) -> float:
    """1 if the reward is within the limit, else 0.

    >>> fits_limit_in_family(1.0, 0.5, 0.5), fits_limit_in_family(-1.0, -0.5, 0.6)
    (1.0, 0.0)
    """
    return 1.0 if sign * reward >= limit else 0.0


def family_chance_within(
    family: int,
    first: float,
    second: float,
    low: float,
    high: float,
    samples: Reals,
    sign: float,
    limit: float,
) -> float:
    """The chance that ``sign`` times a reward is at least ``limit``; the rest is as in `draw_from_family`."""
    if family == BETA:  # not known: it is simulated only with cases, where the drawn rewards are counted
        return math.nan
    if family in (BERNOULLI, PILOT_CHANCES):
        chance = first if family == BERNOULLI else float(samples[int(first)])
        return chance * fits_limit_in_family(sign, limit, high) + (1.0 - chance) * fits_limit_in_family(
            sign, limit, low
        )
    if family == CLIPPED:
        worst, best = (low, high) if sign > 0.0 else (high, low)
        if fits_limit_in_family(sign, limit, worst) > 0.0 or fits_limit_in_family(sign, limit, best) == 0.0:
            return fits_limit_in_family(sign, limit, best)
    if family == CONSTANT or second <= 0.0:
        return fits_limit_in_family(sign, limit, first)
    if family == UNIFORM:  # the part of [first, first + second)
        below = min(max((sign * limit - first) / second, 0.0), 1.0)
        return 1.0 - below if sign > 0.0 else below
    if family in (NORMAL, CLIPPED):
        return 0.5 * math.erfc((limit - sign * first) / (second * math.sqrt(2.0)))
    count = 0.0  # of the recorded rewards, or those drawn from a posterior
    for index in range(int(first) + 1, int(first) + 1 + int(second)):
        count += fits_limit_in_family(sign, limit, samples[index])
    return count / second
