"""Certificates: labels that may be relied on, whatever the policy, the delays and the moment of stopping.

For each arm two capitals bet against "the mean is at most the bar" and "the mean is at least the bar". Each is the mean
of BETS products of factors 1 + λ (x − b), one per reward; while its claim holds it is a nonnegative supermartingale, so
the chance that it ever reaches K / risk is at most risk / K (Ville). An arm whose capital gets there is settled.

The rules of this file are those of `kernel.py`; besides:

1. Rewards are committed in the order in which the arm's pulls were *issued*. In the order of arrival, delays that
   depend on the reward would break the guarantee.
2. A pull that is given up is charged its worst, in its place: 0 to the capital for above, 1 to the one for below.
   So is a pending pull that too many rewards wait behind. A charged capital lies below the true one on every path.
3. Products, not logarithms: a settled label can be derived again anywhere.
"""

from collections.abc import MutableSequence
from typing import NamedTuple

BETS = 16
SMALLEST = 1e-300  # a product below this is as good as nothing, and 0 is the same on every machine

PENDING, TOLD, CHARGED, LEFT_OUT = 0, 1, 2, 3  # what the certificate knows of a pull
OPEN, ABOVE, BELOW, CLOSE = 0, 1, 2, 3  # what is settled of an arm


class Docket(NamedTuple):
    """Whose turn it is: each arm's pulls in the order of their issue, as a list that runs through the pulls' columns.

    Pulls count from 1; 0 is none.
    """

    first: MutableSequence[int]  # of an arm: the first pull that is not committed yet
    last: MutableSequence[int]  # of an arm: the last pull issued
    waiting: MutableSequence[int]  # of an arm: rewards that wait for an earlier pull
    committed: MutableSequence[int]  # of an arm: rewards that are in its capitals
    charged: MutableSequence[int]  # of an arm: pulls charged in its capitals
    settled: MutableSequence[int]  # of an arm: OPEN, ABOVE, BELOW or CLOSE
    following: MutableSequence[int]  # of a pull: the arm's next one
    outcome: MutableSequence[int]  # of a pull: PENDING, TOLD, CHARGED or LEFT_OUT
    reward: MutableSequence[float]  # of a pull that was told: its scaled reward


class Stakes(NamedTuple):
    """The scalars of the certificates; rewards scaled to [0, 1]."""

    threshold: float  # b
    tolerance: float  # scaled; 0: no arm is ever close
    level: float  # K / risk


def largest_bet(edge: float) -> float:
    """λ_0 = 0.98 / edge; the others follow by multiplication with 0.6.

    >>> largest_bet(0.5)
    1.96
    """
    return 0.98 / edge


def grow(capital: MutableSequence[float], start: int, largest: float, gain: float) -> float:
    """Multiply the products ``start … start + BETS`` by 1 + λ gain; the new capital, which is their mean."""
    bet = largest
    total = 0.0
    for at in range(start, start + BETS):
        product = capital[at] * (1.0 + bet * gain)
        if product < SMALLEST:
            product = 0.0
        capital[at] = product
        total += product
        bet *= 0.6
    return total / BETS


def commit(capital: MutableSequence[float], stakes: Stakes, low: float, high: float) -> int:
    """One more reward into the capitals of an arm, and what is then settled.

    ``low`` is the reward as the claims from above see it, ``high`` as those from below do: the same for a reward that
    came, 0 and 1 for a charged pull. ``capital`` holds BETS products each for above and below and, with a tolerance,
    for "not far below" and "not far above" besides, and behind them whether these two were ever reached.
    """
    b = stakes.threshold
    upward = largest_bet(b)
    downward = largest_bet(1.0 - b)
    above = grow(capital, 0, upward, low - b)
    below = grow(capital, BETS, downward, b - high)
    if above >= stakes.level:
        return ABOVE
    if below >= stakes.level:
        return BELOW
    if stakes.tolerance <= 0.0:
        return OPEN
    tolerance = stakes.tolerance
    if b - tolerance <= 0.0 or grow(capital, 2 * BETS, upward, low - b + tolerance) >= stakes.level:
        capital[4 * BETS] = 1.0
    if b + tolerance >= 1.0 or grow(capital, 3 * BETS, downward, b + tolerance - high) >= stakes.level:
        capital[4 * BETS + 1] = 1.0
    return CLOSE if capital[4 * BETS] > 0.0 and capital[4 * BETS + 1] > 0.0 else OPEN


def columns_needed(tolerance: float) -> int:
    """How many numbers the capitals of one arm take."""
    return 4 * BETS + 2 if tolerance > 0.0 else 2 * BETS


def reset(capital: MutableSequence[float]) -> None:
    """Every bet begins with a stake of 1."""
    for at in range(len(capital)):
        capital[at] = 1.0 if at < 4 * BETS else 0.0


def enqueue(docket: Docket, arm: int, pull: int) -> None:
    """A pull of the arm was issued."""
    if docket.last[arm] != 0:
        docket.following[docket.last[arm]] = pull
    if docket.first[arm] == 0:
        docket.first[arm] = pull
    docket.last[arm] = pull


def tell(docket: Docket, arm: int, pull: int, scaled: float) -> None:
    """The reward of a pull came. It counts unless the pull was charged or left out before."""
    if docket.outcome[pull] == PENDING:
        docket.outcome[pull] = TOLD
        docket.reward[pull] = scaled
        docket.waiting[arm] += 1


def give_up(docket: Docket, pull: int, outcome: int) -> None:
    """A pull was dropped: it is CHARGED, or LEFT_OUT."""
    if docket.outcome[pull] == PENDING:
        docket.outcome[pull] = outcome


def ready(docket: Docket, arm: int, pending: int) -> bool:
    """Whether the arm's first pull can be committed. A pending one that is overtaken by too many is charged for it."""
    pull = docket.first[arm]
    if pull == 0 or docket.settled[arm] != OPEN:
        return False
    if docket.outcome[pull] == PENDING:
        # more than 16 + 4 · pending + committed / 4 rewards wait behind it
        if 4 * docket.waiting[arm] <= 64 + 16 * pending + docket.committed[arm]:
            return False
        docket.outcome[pull] = CHARGED
    return True


def advance(docket: Docket, arm: int, capital: MutableSequence[float], stakes: Stakes) -> None:
    """Commit the arm's first pull; `ready` must have said yes."""
    pull = docket.first[arm]
    outcome = docket.outcome[pull]
    docket.first[arm] = docket.following[pull]  # 0 if it is the last
    if outcome == TOLD:
        docket.waiting[arm] -= 1
        docket.committed[arm] += 1
        docket.settled[arm] = commit(capital, stakes, docket.reward[pull], docket.reward[pull])
    elif outcome == CHARGED:
        docket.charged[arm] += 1
        docket.settled[arm] = commit(capital, stakes, 0.0, 1.0)
