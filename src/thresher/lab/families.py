"""Families of arms: how rewards are drawn, and what mean and standard deviation an arm truly has.

Each family is three functions that numba compiles into the simulator: ``set_*`` turns an arm's nominal mean and spread
into the two numbers that ``draw_*`` needs, ``moments_*`` gives its true mean and variance. If the nominal mean is the
true one, it is so bit for bit: a mean on the bar stays there. ``low`` and ``high`` are the bounds of the rewards;
``samples`` holds recorded rewards, arm after arm. `shares.py` has the chance that a reward is within a limit.
"""

import math
from dataclasses import dataclass

import numpy as np

from ..errors import InvalidInput
from .streams import Words, fraction, gaussian, log_gamma

Reals = np.ndarray[tuple[int], np.dtype[np.float64]]
Pair = tuple[float, float]


def set_uniform(mean: float, spread: float, low: float, high: float) -> Pair:
    """The lower end and the width; the spread is the half-width."""
    return mean - spread, 2.0 * spread


def draw_uniform(first: float, second: float, low: float, high: float, samples: Reals, state: Words) -> float:
    """Uniform on [first, first + second)."""
    return first + second * fraction(state)


def moments_uniform(mean: float, first: float, second: float, low: float, high: float, samples: Reals) -> Pair:
    """Mean and variance."""
    return mean, second * second / 12.0


def set_bernoulli(mean: float, spread: float, low: float, high: float) -> Pair:
    """The probability of the better bound."""
    return (mean - low) / (high - low), 0.0


def draw_bernoulli(first: float, second: float, low: float, high: float, samples: Reals, state: Words) -> float:
    """The upper bound with probability ``first``, else the lower."""
    return high if fraction(state) < first else low


def moments_bernoulli(mean: float, first: float, second: float, low: float, high: float, samples: Reals) -> Pair:
    """Mean and variance."""
    width = high - low
    return mean, width * width * first * (1.0 - first)


def set_constant(mean: float, spread: float, low: float, high: float) -> Pair:
    """The mean itself."""
    return mean, 0.0


def draw_constant(first: float, second: float, low: float, high: float, samples: Reals, state: Words) -> float:
    """The same each time."""
    return first


def moments_constant(mean: float, first: float, second: float, low: float, high: float, samples: Reals) -> Pair:
    """Mean and variance."""
    return first, 0.0


def set_beta(mean: float, spread: float, low: float, high: float) -> Pair:
    """The two shapes; the spread is the standard deviation."""
    centre, deviation = (mean - low) / (high - low), spread / (high - low)
    size = centre * (1.0 - centre) / (deviation * deviation) - 1.0
    return centre * size, (1.0 - centre) * size


def draw_beta(first: float, second: float, low: float, high: float, samples: Reals, state: Words) -> float:
    """Beta, stretched from [0, 1] to the bounds. Uses logarithms: the gamma numbers of a wide one are almost 0."""
    one = log_gamma(first, state)
    other = log_gamma(second, state)
    return low + (high - low) / (1.0 + math.exp(other - one))


def moments_beta(mean: float, first: float, second: float, low: float, high: float, samples: Reals) -> Pair:
    """Mean and variance."""
    width, size = high - low, first + second
    return mean, width * width * first * second / (size * size * (size + 1.0))


def set_normal(mean: float, spread: float, low: float, high: float) -> Pair:
    """Mean and standard deviation."""
    return mean, spread


def draw_normal(first: float, second: float, low: float, high: float, samples: Reals, state: Words) -> float:
    """Normal; rewards may leave the bounds."""
    return first + second * gaussian(state)


def moments_normal(mean: float, first: float, second: float, low: float, high: float, samples: Reals) -> Pair:
    """Mean and variance."""
    return first, second * second


def set_clipped(mean: float, spread: float, low: float, high: float) -> Pair:
    """Mean and standard deviation before clipping."""
    return mean, spread


def draw_clipped(first: float, second: float, low: float, high: float, samples: Reals, state: Words) -> float:
    """Normal; rewards outside the bounds are set to the nearer bound."""
    return min(max(first + second * gaussian(state), low), high)


def moments_clipped(mean: float, first: float, second: float, low: float, high: float, samples: Reals) -> Pair:
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


def set_recorded(mean: float, spread: float, low: float, high: float) -> Pair:
    """Where the arm's samples begin, and how many rewards there are: given as mean and spread."""
    return mean, spread


def draw_recorded(first: float, second: float, low: float, high: float, samples: Reals, state: Words) -> float:
    """One of the arm's recorded rewards, with replacement. In the samples they come after their mean."""
    return float(samples[int(first) + 1 + int(second * fraction(state))])


def moments_recorded(mean: float, first: float, second: float, low: float, high: float, samples: Reals) -> Pair:
    """Mean and variance of the arm's recorded rewards, which are the true ones here."""
    centre, scatter = samples[int(first)], 0.0
    for place in range(int(first) + 1, int(first) + 1 + int(second)):
        scatter += (samples[place] - centre) * (samples[place] - centre)
    return centre, scatter / second


def set_pilot_chances(mean: float, spread: float, low: float, high: float) -> Pair:
    """Where the chance of a pass is in the samples: see `pilot.py`."""
    return math.floor(mean), 0.0


def draw_pilot_chances(first: float, second: float, low: float, high: float, samples: Reals, state: Words) -> float:
    """The upper bound with the chance that was drawn from the posterior."""
    return high if fraction(state) < samples[int(first)] else low


def moments_pilot_chances(mean: float, first: float, second: float, low: float, high: float, samples: Reals) -> Pair:
    """Mean and variance."""
    width, chance = high - low, samples[int(first)]
    return low + width * chance, width * width * chance * (1.0 - chance)


def set_pilot_rewards(mean: float, spread: float, low: float, high: float) -> Pair:
    """Where the rewards that were drawn from the posterior begin, after their mean, and how many there are."""
    return math.floor(mean) * (spread + 1.0), spread


def draw_pilot_rewards(first: float, second: float, low: float, high: float, samples: Reals, state: Words) -> float:
    """One of these rewards."""
    return draw_recorded(first, second, low, high, samples, state)


def moments_pilot_rewards(mean: float, first: float, second: float, low: float, high: float, samples: Reals) -> Pair:
    """Mean and variance."""
    return moments_recorded(mean, first, second, low, high, samples)


@dataclass(frozen=True)
class Family:
    """A kind of arm, by name, and what its spread means.

    >>> family("clipped").spread
    'standard deviation'
    """

    name: str
    spread: str | None  # what --spread means; None if the family has no spread
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


def family(name: str) -> Family:
    """The family of that name, or an error that lists them."""
    if not isinstance(name, str) or name not in FAMILIES:
        rule = "is not a family that thresher knows"
        known = (name for name in FAMILIES if not name.startswith("pilot"))  # those come from a pilot's file
        raise InvalidInput("family", name, rule, f"choose one of {', '.join(known)}")
    return FAMILIES[name]


def check_beta(means: tuple[Reals, Reals], spreads: tuple[Reals, Reals], bounds: tuple[float, float]) -> None:
    """Raise unless there is a Beta arm for every mean and spread that may be drawn.

    The widest arm of a given mean returns only the two bounds; its standard deviation is the largest possible.

    >>> half = (np.array([0.5]), np.array([0.9]))
    >>> check_beta(half, (np.array([0.1]), np.array([0.4])), (0.0, 1.0))
    Traceback (most recent call last):
    thresher.errors.InvalidInput: spread 0.4: a Beta arm of mean 0.9 has a standard deviation above 0 and below 0.3; \
give a smaller spread, or means further from the bounds
    """
    low, high = bounds
    for mean in means:
        widest = np.sqrt((mean - low) * (high - mean))
        for spread in spreads:
            # shapes beyond these would be rounding errors
            wrong = (spread <= 1e-7 * widest) | (spread >= (1.0 - 1e-9) * widest)
            if wrong.any():
                arm = int(wrong.argmax())
                rule = f"a Beta arm of mean {mean[arm]:g} has a standard deviation above 0 and below {widest[arm]:g}"
                remedy = "give a smaller spread, or means further from the bounds"
                if spread[arm] <= 1e-7 * widest[arm]:
                    remedy = "give a larger spread, or the family constant"
                raise InvalidInput("spread", float(spread[arm]), rule, remedy)
