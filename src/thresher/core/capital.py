"""Capital, which makes certificates: labels you can rely on, whatever the policy, the delays and the moment you stop.

With a tolerance z, either answer is right for an arm within z of the bar b. For each arm, one capital bets against "the
mean is at most b − z", for above, and one against "the mean is at least b + z", for below. Each is the mean of BETS
products of factors 1 + λ (x − m), one per reward, m the mean that it bets against. While its claim holds, it is a
nonnegative supermartingale, so the chance that it ever reaches K / risk is at most risk / K (Ville). An arm whose
capital reaches K / risk is settled. Only one of the two labels can be wrong, so the two capitals need no half each.

The rules of this file are those of `board.py`, and: products, not logarithms, so that a settled label can be derived
again anywhere. `evidence.py` says which rewards are committed, and in which order.
"""

from collections.abc import MutableSequence, Sequence
from typing import NamedTuple

BETS = 16
ALL_IN = 2.4  # the stake of bet 0, which an arm that never fails wins
STAKE = 13.6 / (7.0 + 0.7 * (1.0 + 0.7 * (1.0 + 0.7 * (1.0 + 0.7 * (1.0 + 0.7 * (1.0 + 0.7 * (1.0 + 0.7 * 1.7)))))))
UNREACHED = 1e308  # a level that nothing reaches
SMALLEST = 1e-300  # a product below this becomes 0, which is the same on every machine
OPEN, ABOVE, BELOW, EITHER = 0, 1, 2, 3  # an arm's settled label; EITHER: the side that its mean is on


class Stakes(NamedTuple):
    """The scalars of the certificates, for rewards scaled to [0, 1]."""

    bar: float  # b
    low_edge: float  # b − z: above is proven against a mean of this
    high_edge: float  # b + z: below is proven against a mean of this
    level: float  # K / risk
    alone: float  # the capital that settles an arm by itself: the level, or UNREACHED with ranks (`error_rate.py`)
    bets: Sequence[float]  # λ of each bet, in the order of an arm's capitals: see `bet_capital`


def capital_bets(edge: float, tolerance: float = 0.0) -> list[float]:
    """λ of the BETS bets on one side, the largest first; ``edge`` is b − z for "above", 1 − b − z for "below".

    With a tolerance z, the best bet on an arm on the bar is about z over its variance, on the other edge twice that.
    Smaller bets would only help arms beyond that edge, which the other capital settles.

    >>> capital_bets(0.5)[:3], capital_bets(0.5, 0.1)[-1]
    ([2.0, 1.6, 0.96], 0.6000000000000001)
    """
    sizes = [1.0 / edge, 0.8 / edge]
    while len(sizes) < BETS:
        sizes.append(sizes[-1] * (0.6 if len(sizes) < 8 else 0.465))
    least = 1.5 * tolerance / (edge * (1.0 - edge)) if tolerance > 0.0 else 0.0
    return [max(size, least) for size in sizes]


def grow_capital(
    capital: MutableSequence[float], start: int, bets: Sequence[float], cap: float, first: float, gain: float
) -> float:
    """Multiply the products from ``start`` on by 1 + λ gain, bet 0's by ``first``; their mean is the new capital.

    λ is at most ``cap``: a bet can lose almost everything, but no more than it has.
    """
    total = capital[start] * first
    if total < SMALLEST:
        total = 0.0
    capital[start] = total
    for at in range(start + 1, start + BETS):
        share = bets[at]
        if share > cap:
            share = cap
        product = capital[at] * (1.0 + share * gain)
        if product < SMALLEST:
            product = 0.0
        capital[at] = product
        total += product
    return total / BETS


def commit_to_capital(capital: MutableSequence[float], stakes: Stakes, low: float, high: float) -> int:
    """Commit one more reward to the capitals of an arm whose rewards have no cases; return what is settled then."""
    return bet_capital(capital, stakes, low, high, stakes.low_edge, stakes.high_edge)


def bet_capital(
    capital: MutableSequence[float], stakes: Stakes, low: float, high: float, low_bar: float, high_bar: float
) -> int:
    """Commit one more reward to the capitals of an arm; return what is settled then.

    ``low`` is the reward that the capital for above sees, ``high`` the one that the capital for below sees. They are
    the same for a told reward, and 0 and 1 for a charged pull. The bars are the means that the two bet against: the
    edges, or with cases what the remaining ones would need (`Docket`). ``capital`` holds BETS products for above, then
    BETS for below.
    """
    bets, room = stakes.bets, 1.0 - high_bar
    gain, loss = low - low_bar, high_bar - high
    all_up, all_down = bets[0], bets[BETS]
    cap_up = cap_down = UNREACHED
    first_up, first_down = 1.0 + all_up * gain, 1.0 + all_down * loss
    if low_bar > 0.0:
        cap_up = 0.98 / low_bar
        if all_up >= 1.0 / low_bar:  # so that the worst possible reward makes it exactly 0
            first_up = low / low_bar
    if room > 0.0:
        cap_down = 0.98 / room
        if all_down >= 1.0 / room:
            first_down = (1.0 - high) / room
    above = grow_capital(capital, 0, bets, cap_up, first_up, gain)
    below = grow_capital(capital, BETS, bets, cap_down, first_down, loss)
    if above < stakes.alone and below < stakes.alone:  # a call less for nearly every reward
        return OPEN
    return capital_label(above, below, stakes.alone)


def capital_label(above: float, below: float, level: float) -> int:
    """The label that two capitals settle."""
    if above >= level:
        return EITHER if below >= level else ABOVE
    return BELOW if below >= level else OPEN


def resolve_capital_label(label: int, mean: float, bar: float) -> int:
    """A label that both capitals settle at the same reward is the side of the bar that the mean is on."""
    if label != EITHER:
        return label
    return ABOVE if mean >= bar else BELOW


def reset_capital(capital: MutableSequence[float]) -> None:
    """Give every bet its stake; the stakes of each capital have the mean 1."""
    stake = 1.0
    for at in range(len(capital)):
        bet = at % BETS
        if bet == 0:
            stake = ALL_IN
        elif bet < 8:
            stake = STAKE
        else:
            stake *= 0.7
        capital[at] = stake


def fresh_capital() -> list[float]:
    """The capitals of an arm without any reward."""
    capital = [0.0] * (2 * BETS)
    reset_capital(capital)
    return capital


def mean_capital(capital: MutableSequence[float], start: int) -> float:
    """One of an arm's capitals: the mean of its BETS products."""
    total = 0.0
    for at in range(start, start + BETS):
        total += capital[at]
    return total / BETS
