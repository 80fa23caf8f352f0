"""Which rewards an arm's capitals see, and in which order.

The rules of this file are those of `kernel.py`, and:

1. Rewards are committed in the order in which the arm's pulls were *issued*. In the order of arrival, delays that
   depend on the reward would break the guarantee.
2. A dropped pull is charged the worst reward, in its place: 0 for the capital for above, 1 for the one for below.
   So is a pending pull when too many rewards wait behind it. A charged capital is below the true one on every path.
3. A cancelled pull never began. It is charged all the same once a later pull of the arm is told. Otherwise an agent
   could cancel depending on what the later pulls returned, or on what this pull's seed would return.
4. The order of imported rewards cannot be trusted: see `imported.py`.

Eval sets (`places.py`) are sampled without replacement. Each bet is then placed against the mean that the *remaining*
cases would need if the set's mean were on the bar, and counting settles an arm when the missing rewards no longer
matter. Imported results are known values there, not samples: the certificate's population is what is left.
"""

from collections.abc import MutableSequence
from typing import NamedTuple

from .evidence import (
    ABOVE,
    BELOW,
    CANCELLED,
    CHARGED,
    CLOSE,
    FREED,
    LEFT_OUT,
    OPEN,
    PENDING,
    TOLD,
    Stakes,
    bet,
)
from .kernel import Board, is_above, total_with
from .places import Sheet


class Docket(NamedTuple):
    """Each arm's pulls in the order in which they were issued, as a linked list through the columns of pulls.

    Pulls are numbered from 1; 0 means none.
    """

    first: MutableSequence[int]  # of an arm: the first pull that is not committed yet
    last: MutableSequence[int]  # of an arm: the last pull issued
    waiting: MutableSequence[int]  # of an arm: rewards that wait for an earlier pull
    committed: MutableSequence[int]  # of an arm: rewards that are in its capitals
    charged: MutableSequence[int]  # of an arm: pulls charged in its capitals
    settled: MutableSequence[int]  # of an arm: OPEN, ABOVE, BELOW or CLOSE
    following: MutableSequence[int]  # of a pull: the arm's next one
    outcome: MutableSequence[int]  # of a pull: PENDING, TOLD, CHARGED, LEFT_OUT, CANCELLED or FREED
    reward: MutableSequence[float]  # of a pull that was told: its scaled reward


def enqueue(docket: Docket, arm: int, pull: int) -> None:
    """A pull of the arm was issued."""
    if docket.last[arm] != 0:
        docket.following[docket.last[arm]] = pull
    if docket.first[arm] == 0:
        docket.first[arm] = pull
    docket.last[arm] = pull


def tell(docket: Docket, arm: int, pull: int, scaled: float) -> None:
    """The reward of a pull came back. It counts unless the pull was charged or left out before."""
    if docket.outcome[pull] == PENDING or docket.outcome[pull] == FREED:
        docket.outcome[pull] = TOLD
        docket.reward[pull] = scaled
        docket.waiting[arm] += 1


def give_up(docket: Docket, pull: int, outcome: int) -> None:
    """A pull was dropped: it is CHARGED, LEFT_OUT, CANCELLED or FREED."""
    if docket.outcome[pull] == PENDING:
        docket.outcome[pull] = outcome


def try_again(docket: Docket, pull: int) -> None:
    """The place of this pull is tried again."""
    if docket.outcome[pull] == FREED:
        docket.outcome[pull] = PENDING


def ready(docket: Docket, arm: int, pending: int) -> bool:
    """Whether the arm's first pull can be committed. If too many rewards wait behind a pending one, it is charged."""
    pull = docket.first[arm]
    if pull == 0 or docket.settled[arm] != OPEN or docket.outcome[pull] == FREED:
        return False
    if docket.outcome[pull] == CANCELLED:
        if docket.waiting[arm] == 0:
            return False
        docket.outcome[pull] = CHARGED
    if docket.outcome[pull] == PENDING:
        # more than 16 + 4 · pending + committed / 4 rewards wait behind it
        if 4 * docket.waiting[arm] <= 64 + 16 * pending + docket.committed[arm]:
            return False
        docket.outcome[pull] = CHARGED
    return True


def commit_to(
    docket: Docket, sheet: Sheet, arm: int, capital: MutableSequence[float], stakes: Stakes, low: float, high: float
) -> int:
    """Commit the arm's next reward; with cases, against what the remaining ones would need."""
    low_bar = high_bar = stakes.threshold
    tolerance = stakes.tolerance
    if sheet.cases > 0:
        left = sheet.places[arm] - docket.committed[arm] - docket.charged[arm]
        needed = sheet.cases * stakes.threshold
        low_bar, high_bar = (needed - sheet.least[arm]) / left, (needed - sheet.most[arm]) / left
        tolerance = sheet.cases * stakes.tolerance / left
        sheet.least[arm] += low
        sheet.most[arm] += high
    return bet(capital, stakes, low, high, low_bar, high_bar, tolerance)


def advance(docket: Docket, sheet: Sheet, arm: int, capital: MutableSequence[float], stakes: Stakes) -> None:
    """Commit the arm's first pull; only after `ready` returned True."""
    pull = docket.first[arm]
    outcome = docket.outcome[pull]
    docket.first[arm] = docket.following[pull]  # 0 if it is the last
    if outcome == LEFT_OUT:
        return
    low, high = 0.0, 1.0
    if outcome == TOLD:
        low = high = docket.reward[pull]
    docket.settled[arm] = commit_to(docket, sheet, arm, capital, stakes, low, high)
    if outcome == TOLD:
        docket.waiting[arm] -= 1
        docket.committed[arm] += 1
    else:
        docket.charged[arm] += 1


def weigh(
    docket: Docket, sheet: Sheet, arm: int, pending: int, capital: MutableSequence[float], stakes: Stakes
) -> bool:
    """Commit every pull of the arm that can be committed; return whether this settled the arm."""
    was_open = docket.settled[arm] == OPEN
    while ready(docket, arm, pending):
        advance(docket, sheet, arm, capital, stakes)
    return was_open and docket.settled[arm] != OPEN


def settle_by_count(
    docket: Docket, board: Board, sheet: Sheet, arm: int, low: float, high: float, bar: float, tolerance: float
) -> bool:
    """Settle the arm if its missing rewards no longer matter, whatever they are; return whether this settled it.

    This needs no probability. It uses raw units, and so a mean that is exactly on the bar is above. In the rare study
    where bets had settled the arm wrongly, the label becomes the right one.
    """
    total, residue, missing = board.total[arm], board.residue[arm], sheet.cases - board.seen[arm]
    if docket.settled[arm] == CLOSE:  # it stays unless the mean is surely farther away
        least, most = total_with(total, residue, missing, low), total_with(total, residue, missing, high)
        if least / sheet.cases > bar + tolerance:
            docket.settled[arm] = ABOVE
        if most / sheet.cases < bar - tolerance:
            docket.settled[arm] = BELOW
        return False
    if is_above(total_with(total, residue, missing, low), sheet.cases, bar):
        label = ABOVE
    elif is_above(total_with(total, residue, missing, high), sheet.cases, bar):
        return False
    else:
        label = BELOW
    was_open = docket.settled[arm] == OPEN
    docket.settled[arm] = label
    return was_open
