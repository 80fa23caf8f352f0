"""What the paper proves: how hard a problem is, how likely an error is, how many rounds are enough.

Pure functions of the arms' means and standard deviations, both on the scale where rewards lie in [0, 1].

The constants are the supplement's (Propositions 1 and 2). With ``corrected=True``, the default, they are what its
proofs give once their errors are corrected; docs/paper/errata.md lists them by the numbers used here.
"""

import math
from collections.abc import Callable, Sequence
from typing import Literal, TypedDict, Unpack

from ..errors import InvalidInput

Algorithm = Literal["apt", "evt", "ap-evt", "ap-evt-pf"]
ALGORITHMS = ("apt", "evt", "ap-evt", "ap-evt-pf")


class Pending(TypedDict, total=False):
    """How many pulls are pending, and how they count; nothing is pending by default."""

    pending_weight: float  # δ
    pending_ratio: float  # η: pending over seen, at most
    in_flight: float  # τ: pending in all, at most
    corrected: bool


def hardness(
    means: Sequence[float],
    spreads: Sequence[float],
    bar: float,
    algorithm: Algorithm = "evt",
    *,
    pending_weight: float = 0.0,
    pending_ratio: float = 0.0,
) -> float:
    """H, the number that the required rounds are proportional to; infinite when an arm is on the bar.

    H_ATP = Σ Δ⁻², H_EVT = Σ (σ²Δ⁻² + Δ⁻¹), H_AP-EVT = (1 + δη)² H_EVT, H_AP-EVT_pf = (1 + δη) H_EVT.

    >>> hardness([0.25, 1.0], [0.5, 0.0], 0.5, "apt"), hardness([0.25, 1.0], [0.5, 0.0], 0.5)
    (20.0, 10.0)
    """
    _check(means, spreads, algorithm, pending_weight, pending_ratio)
    stretch = 1.0 + pending_weight * pending_ratio
    if algorithm == "apt":
        return _total(means, spreads, bar, lambda gap, _: gap**-2)
    base = _total(means, spreads, bar, lambda gap, spread: (spread / gap) ** 2 + 1.0 / gap)
    return base * {"evt": 1.0, "ap-evt": stretch**2, "ap-evt-pf": stretch}[algorithm]


def error_bound(
    pulls: float,
    means: Sequence[float],
    spreads: Sequence[float],
    bar: float,
    algorithm: Algorithm = "ap-evt",
    **pending: Unpack[Pending],
) -> float:
    """An upper bound on the probability that some arm is on the wrong side after this many pulls; at most 1.

    ``"evt"`` and ``"ap-evt"``: Proposition 1; ``"ap-evt-pf"``: Proposition 2, of which ``corrected`` prints 64H where
    the paper has 16H (erratum 3). For APT the paper states a bound without its constant.

    >>> error_bound(1e6, [0.25, 1.0], [0.5, 0.0], 0.5) < 1e-50
    True
    """
    rate, spent = _exponent(means, spreads, bar, algorithm, **pending)
    if pulls <= spent or rate == 0.0:
        return 1.0
    return min(1.0, math.exp(min(0.0, math.log(5.0 * pulls * len(means)) - rate * (pulls - spent))))


def rounds(
    risk: float,
    means: Sequence[float],
    spreads: Sequence[float],
    bar: float,
    algorithm: Algorithm = "ap-evt",
    **pending: Unpack[Pending],
) -> float:
    """The number of pulls from which `error_bound` is at most ``risk``: 5nK exp(−…) = risk, solved for n.

    >>> n = rounds(0.05, [0.25, 1.0], [0.5, 0.0], 0.5)
    >>> error_bound(n, [0.25, 1.0], [0.5, 0.0], 0.5) <= 0.05 < error_bound(n - 1, [0.25, 1.0], [0.5, 0.0], 0.5)
    True
    """
    pulls = _crossing(risk, len(means), *_exponent(means, spreads, bar, algorithm, **pending))
    return pulls if math.isinf(pulls) else float(math.ceil(pulls))


def lower_bound(pulls: float, hard: float, arms: int, *, corrected: bool = True) -> float:
    """A lower bound on the error of every algorithm on one of K + 1 problems with H_EVT = ``hard`` (erratum 16).

    Printed: exp(−10n/H − 16 log(5nK)). Corrected: 10.8 and 17 (errata 6 to 8).

    >>> lower_bound(1, 10.8, 1) < lower_bound(1, 10.8, 1, corrected=False)
    True
    """
    slope, power = (10.8, 17.0) if corrected else (10.0, 16.0)
    return math.exp(-slope * pulls / hard - power * math.log(5.0 * pulls * arms))


def best_pending_weight(
    risk: float,
    means: Sequence[float],
    spreads: Sequence[float],
    bar: float,
    algorithm: Algorithm = "ap-evt",
    **pending: Unpack[Pending],
) -> float:
    """The δ from 0 to 1 that needs the fewest rounds by the theorem.

    Counting pending pulls more (δ up) saves the (1 − δ)τ rounds but makes H larger through (1 + δη). The theorem's
    answer, not experience's: by simulation δ = 1 is the better choice (docs/paper).

    >>> best_pending_weight(0.05, [0.2, 0.8], [0.1, 0.1], 0.5, in_flight=0, pending_ratio=3)
    0.0
    >>> best_pending_weight(0.05, [0.2, 0.8], [0.1, 0.1], 0.5, in_flight=100, pending_ratio=0)
    1.0
    """

    def needed(weight: float) -> float:
        counted: Pending = {**pending, "pending_weight": weight}
        return _crossing(risk, len(means), *_exponent(means, spreads, bar, algorithm, **counted))

    low, high = 0.0, 1.0
    for _ in range(80):  # rounds fall, then rise in δ
        left, right = low + (high - low) / 3.0, high - (high - low) / 3.0
        low, high = (low, right) if needed(left) <= needed(right) else (left, high)
    inner = (low + high) / 2.0
    return min((0.0, 1.0, inner), key=needed)


def _crossing(risk: float, arms: int, rate: float, spent: float) -> float:
    """Where the bound falls to the risk, not rounded, so that two δ do not tie by rounding."""
    if not 0.0 < risk < 1.0:
        raise InvalidInput("risk", risk, "must lie between 0 and 1")
    if rate == 0.0:
        return math.inf

    def excess(pulls: float) -> float:
        return math.log(5.0 * pulls * arms / risk) - rate * (pulls - spent)

    low = max(spent, 1.0 / rate, 1.0)  # above 1/rate the exponential always beats n
    high = 2.0 * low
    while excess(high) > 0.0:
        high *= 2.0
    for _ in range(200):
        middle = (low + high) / 2.0
        if middle in (low, high):
            break
        low, high = (middle, high) if excess(middle) > 0.0 else (low, middle)
    return high


def _exponent(
    means: Sequence[float],
    spreads: Sequence[float],
    bar: float,
    algorithm: Algorithm,
    *,
    pending_weight: float = 0.0,
    pending_ratio: float = 0.0,
    in_flight: float = 0.0,
    corrected: bool = True,
) -> tuple[float, float]:
    """The exponent of the error bound is −rate (n − spent): the rate, and spent = K + (1 − δ)τ."""
    _check(means, spreads, algorithm, pending_weight, pending_ratio)
    if algorithm == "apt":
        raise InvalidInput("algorithm", algorithm, "the paper gives no constant for it", "use evt, ap-evt or ap-evt-pf")
    spent = len(means) + (1.0 - pending_weight) * in_flight
    stretch = 1.0 if algorithm == "evt" else 1.0 + pending_weight * pending_ratio
    if algorithm == "ap-evt-pf":
        return 1.0 / (64.0 * (64.0 if corrected else 16.0) * stretch * hardness(means, spreads, bar)), spent
    steep, flat = 32.0 * stretch**2, 8.0 * math.sqrt(2.0) * stretch**1.5 + 48.0 * stretch  # C₁ and C₂
    hard = _total(means, spreads, bar, lambda gap, spread: steep * (spread / gap) ** 2 + flat / gap)
    return 1.0 / (8.0 * hard), spent


def _total(
    means: Sequence[float], spreads: Sequence[float], bar: float, term: Callable[[float, float], float]
) -> float:
    gaps = [abs(mean - bar) for mean in means]
    if any(gap < 1e-150 for gap in gaps):  # its inverse square would overflow
        return math.inf
    return math.fsum(term(gap, spread) for gap, spread in zip(gaps, spreads, strict=True))


def _check(means: Sequence[float], spreads: Sequence[float], algorithm: str, weight: float, ratio: float) -> None:
    if algorithm not in ALGORITHMS:
        raise InvalidInput("algorithm", algorithm, f"must be one of {', '.join(ALGORITHMS)}")
    if not means or len(means) != len(spreads):
        rule = f"there must be one for each of {len(means)} means, and at least one"
        raise InvalidInput("spreads", len(spreads), rule)
    if min(spreads) < 0.0:
        raise InvalidInput("spread", min(spreads), "must not be negative")
    if not 0.0 <= weight <= 1.0:
        raise InvalidInput("pending_weight", weight, "must be a number from 0 to 1")
    if not ratio >= 0.0:
        raise InvalidInput("pending_ratio", ratio, "must not be negative")
