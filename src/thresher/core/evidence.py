"""Certificates: labels you can rely on, whatever the policy, the delays and the moment you stop.

For each arm, two capitals bet against "the mean is at most the bar" and "the mean is at least the bar". Each is the
mean of BETS products of factors 1 + λ (x − b), one per reward. While its claim holds, it is a nonnegative
supermartingale, so the chance that it ever reaches K / risk is at most risk / K (Ville). An arm whose capital reaches
K / risk is settled.

The rules of this file are those of `kernel.py`, and: products, not logarithms, so that a settled label can be derived
again anywhere. `docket.py` says which rewards are committed, and in which order.
"""

from collections.abc import MutableSequence, Sequence
from typing import NamedTuple

BETS = 16
ALL_IN = 2.4  # the stake of bet 0, which an arm that never fails wins
STAKE = 13.6 / (7.0 + 0.7 * (1.0 + 0.7 * (1.0 + 0.7 * (1.0 + 0.7 * (1.0 + 0.7 * (1.0 + 0.7 * (1.0 + 0.7 * 1.7)))))))
UNREACHED = 1e308  # a level that nothing reaches
SMALLEST = 1e-300  # a product below this becomes 0, which is the same on every machine

# What the certificate knows about a pull; of a place: FREED if its pull was dropped and it may be tried again.
PENDING, TOLD, CHARGED, LEFT_OUT, CANCELLED, FREED = 0, 1, 2, 3, 4, 5
OPEN, ABOVE, BELOW, CLOSE = 0, 1, 2, 3  # an arm's settled label


class Stakes(NamedTuple):
    """The scalars of the certificates, for rewards scaled to [0, 1]."""

    threshold: float  # b
    tolerance: float  # scaled; 0: no arm is ever close
    level: float  # K / risk
    alone: float  # the capital that settles an arm by itself: the level, or UNREACHED with ranks (`error_rate.py`)
    upward: Sequence[float]  # λ of each bet on "above", by `bets`
    downward: Sequence[float]  # λ of each bet on "below"


def bets(edge: float) -> list[float]:
    """λ of the BETS bets on one side, the largest first; ``edge`` is b for "above", 1 − b for "below".

    >>> bets(0.5)[:3]
    [2.0, 1.6, 0.96]
    """
    sizes = [1.0 / edge, 0.8 / edge]
    while len(sizes) < BETS:
        sizes.append(sizes[-1] * (0.6 if len(sizes) < 8 else 0.465))
    return sizes


def grow(
    capital: MutableSequence[float], start: int, bets: Sequence[float], cap: float, first: float, gain: float
) -> float:
    """Multiply the products from ``start`` on by 1 + λ gain, bet 0's by ``first``; their mean is the new capital.

    λ is at most ``cap``: a bet can lose almost everything, but no more than it has.
    """
    total = 0.0
    for bet in range(BETS):
        share = bets[bet]
        if share > cap:
            share = cap
        product = capital[start + bet] * (first if bet == 0 else 1.0 + share * gain)
        if product < SMALLEST:
            product = 0.0
        capital[start + bet] = product
        total += product
    return total / BETS


def commit(capital: MutableSequence[float], stakes: Stakes, low: float, high: float) -> int:
    """Commit one more reward to the capitals of an arm whose rewards have no cases; return what is settled then."""
    return bet(capital, stakes, low, high, stakes.threshold, stakes.threshold, stakes.tolerance)


def bet(
    capital: MutableSequence[float],
    stakes: Stakes,
    low: float,
    high: float,
    low_bar: float,
    high_bar: float,
    tolerance: float,
) -> int:
    """Commit one more reward to the capitals of an arm; return what is settled then.

    ``low`` is the reward that the capital for above sees, ``high`` the one that the capital for below sees. They are
    the same for a told reward, and 0 and 1 for a charged pull. The bars are the means that the two bet against: the
    threshold, or with cases what the remaining ones would need (`docket.py`). ``capital`` holds BETS products for
    above and BETS for below. With a tolerance, it also holds BETS each for "not far below" and "not far above", and
    then two flags: whether these two ever reached the level.
    """
    up, down, room = stakes.upward, stakes.downward, 1.0 - high_bar
    gain, loss = low - low_bar, high_bar - high
    most_up, most_down = (1.0 / low_bar if low_bar > 0.0 else UNREACHED), (1.0 / room if room > 0.0 else UNREACHED)
    cap_up, cap_down = (0.98 / low_bar if low_bar > 0.0 else UNREACHED), (0.98 / room if room > 0.0 else UNREACHED)
    all_up, all_down = min(up[0], most_up), min(down[0], most_down)
    first_up, first_down = 1.0 + all_up * gain, 1.0 + all_down * loss
    if all_up == most_up:  # so that the worst possible reward makes it exactly 0
        first_up = low / low_bar
    if all_down == most_down:
        first_down = (1.0 - high) / room
    above = grow(capital, 0, up, cap_up, first_up, gain)
    below = grow(capital, BETS, down, cap_down, first_down, loss)
    if above >= stakes.alone:
        return ABOVE
    if below >= stakes.alone:
        return BELOW
    if stakes.tolerance <= 0.0:
        return OPEN
    gain, loss = low - low_bar + tolerance, high_bar + tolerance - high
    near, far = stakes.threshold - stakes.tolerance, stakes.threshold + stakes.tolerance
    if near <= 0.0 or grow(capital, 2 * BETS, up, cap_up, 1.0 + all_up * gain, gain) >= stakes.alone:
        capital[4 * BETS] = 1.0
    if far >= 1.0 or grow(capital, 3 * BETS, down, cap_down, 1.0 + all_down * loss, loss) >= stakes.alone:
        capital[4 * BETS + 1] = 1.0
    return CLOSE if capital[4 * BETS] > 0.0 and capital[4 * BETS + 1] > 0.0 else OPEN


def columns_needed(tolerance: float) -> int:
    """How many numbers hold the capitals of one arm."""
    return 4 * BETS + 2 if tolerance > 0.0 else 2 * BETS


def reset(capital: MutableSequence[float]) -> None:
    """Give every bet its stake; the stakes of each capital have the mean 1."""
    stake = 1.0
    for at in range(len(capital)):
        bet = at % BETS
        if at >= 4 * BETS:
            stake = 0.0
        elif bet == 0:
            stake = ALL_IN
        elif bet < 8:
            stake = STAKE
        else:
            stake *= 0.7
        capital[at] = stake


def fresh(stakes: Stakes) -> list[float]:
    """The capitals of an arm without any reward, for replaying its rewards."""
    capital = [0.0] * columns_needed(stakes.tolerance)
    reset(capital)
    return capital


def label_now(capital: MutableSequence[float], stakes: Stakes) -> int:
    """The label that the capitals of an arm settle as they are now."""
    if mean_of(capital, 0) >= stakes.alone:
        return ABOVE
    if mean_of(capital, BETS) >= stakes.alone:
        return BELOW
    if stakes.tolerance <= 0.0:
        return OPEN
    for side in range(2):
        if mean_of(capital, (2 + side) * BETS) >= stakes.alone:
            capital[4 * BETS + side] = 1.0
    return CLOSE if capital[4 * BETS] > 0.0 and capital[4 * BETS + 1] > 0.0 else OPEN


def mean_of(capital: MutableSequence[float], start: int) -> float:
    """One of an arm's capitals: the mean of its BETS products."""
    total = 0.0
    for at in range(start, start + BETS):
        total += capital[at]
    return total / BETS
