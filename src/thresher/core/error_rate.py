"""The error rate: on average, at most a share `risk` of the arms certified above is wrong; the same for other labels.

The rule is e-BH (Wang and Ramdas 2022), for each list by itself. With an arm's capitals for a label as e-values, an arm
has the *rank* k if k is the smallest number with e ≥ K / (risk · k). The list holds every arm whose rank is at most k*,
the largest k that at least k arms reach. One list for all labels would be cheaper, but then the list that people read
could be entirely wrong.

1. For e, an arm's pending pulls count as charged. What is left is below the true capital over all issued pulls, whose
   number is a stopping time. The committed capital as it stands would let a slow bad reward choose the moment.
2. A settled arm keeps its rank in its list and leaves the others; one that counting has settled has rank 1. So k* falls
   only if a reward outside the bounds disproves an arm (`leave_error_rate_lists`): what was settled on its strength is
   open again.

The rules of this file are those of `board.py`. A reward costs O(log K): the tree of each list holds, for every k, how
many arms have a rank of at most k, less k.
"""

from collections.abc import MutableSequence
from typing import NamedTuple

from .board import SHUT, SKIPPED, Board
from .evidence import BETS, LEFT_OUT, OPEN, TOLD, Docket, Stakes, commit_next_evidence, mean_capital
from .places import Sheet, are_places_used_up

LISTS = 2  # above and below: the labels 1 and 2 of `evidence.py`
CERTAIN = 1e308  # the e-value of an arm whose label is certain
FULL = -(1 << 60)  # in the tree: no rank


class Ranking(NamedTuple):
    """The two lists. Columns of arms hold one part for each list, as do the columns of ranks and of the trees."""

    level: float  # K / risk; 0: the guarantee is another one, and the columns are empty
    arms: int
    rank: MutableSequence[int]  # of a list and an arm; 0: none
    reached: MutableSequence[int]  # of a list: k*
    head: MutableSequence[int]  # of a list and a rank: an arm of that rank, counted from 1; 0: none
    after: MutableSequence[int]  # of a list and an arm: the next arm of its rank
    before: MutableSequence[int]  # ... and the previous one
    peak: MutableSequence[int]  # of a list: a tree with the largest sums below each node
    added: MutableSequence[int]  # of a list: what was added to everything below a node
    newly_settled: MutableSequence[int]  # arms that the last update settled
    scratch: MutableSequence[float]  # a copy of one arm's capitals


def clear_error_rate_lists(ranking: Ranking) -> None:
    """Empty the lists."""
    nodes = len(ranking.peak) // LISTS
    for at in range(len(ranking.rank)):
        ranking.rank[at] = ranking.head[at] = 0
    for which in range(LISTS):
        ranking.reached[which] = 0
        root = which * nodes
        for node in range(nodes - 1, 0, -1):
            ranking.added[root + node] = 0
            if node < nodes // 2:
                ranking.peak[root + node] = max(ranking.peak[root + 2 * node], ranking.peak[root + 2 * node + 1])
            else:
                rank = node - nodes // 2 + 1
                ranking.peak[root + node] = -rank if rank <= ranking.arms else FULL


def count_error_ranks_from(ranking: Ranking, which: int, rank: int, change: int) -> None:
    """Change how many arms have this rank: the sums of this rank and all larger ones."""
    nodes = len(ranking.peak) // LISTS
    root, node = which * nodes, nodes // 2 + rank - 1
    ranking.peak[root + node] += change
    while node > 1:
        if node % 2 == 0:
            ranking.peak[root + node + 1] += change
            ranking.added[root + node + 1] += change
        node //= 2
        most = max(ranking.peak[root + 2 * node], ranking.peak[root + 2 * node + 1])
        ranking.peak[root + node] = most + ranking.added[root + node]


def largest_error_rank(ranking: Ranking, which: int) -> int:
    """The largest k that at least k arms reach; 0: none."""
    nodes = len(ranking.peak) // LISTS
    root, node, above = which * nodes, 1, 0
    if ranking.peak[root + 1] < 0:
        return 0
    while node < nodes // 2:
        above += ranking.added[root + node]
        node = 2 * node + 1
        if ranking.peak[root + node] + above < 0:
            node -= 1
    return node - nodes // 2 + 1


def error_rank_of(ranking: Ranking, capital: float) -> int:
    """The smallest k with capital ≥ K / (risk · k); 0 if no k is small enough."""
    if capital * ranking.arms < ranking.level:
        return 0
    rank = max(1, int(ranking.level / capital))
    while rank > 1 and capital * (rank - 1) >= ranking.level:
        rank -= 1
    while capital * rank < ranking.level:
        rank += 1
    return rank


def enter_error_rate_list(ranking: Ranking, which: int, arm: int, rank: int) -> bool:
    """Give an arm its rank in a list; 0 takes it out. Returns whether it rose: otherwise k* stays what it is."""
    at, heads = which * ranking.arms + arm, which * ranking.arms - 1
    old = ranking.rank[at]
    if old == rank:
        return False
    if old > 0:
        after, before = ranking.after[at], ranking.before[at]
        if before > 0:
            ranking.after[which * ranking.arms + before - 1] = after
        else:
            ranking.head[heads + old] = after
        if after > 0:
            ranking.before[which * ranking.arms + after - 1] = before
        count_error_ranks_from(ranking, which, old, -1)
    if rank > 0:
        first = ranking.head[heads + rank]
        ranking.after[at] = first
        ranking.before[at] = 0
        if first > 0:
            ranking.before[which * ranking.arms + first - 1] = arm + 1
        ranking.head[heads + rank] = arm + 1
        count_error_ranks_from(ranking, which, rank, 1)
    ranking.rank[at] = rank
    return rank > 0 and (old == 0 or rank < old)


def has_error_rank(ranking: Ranking, arm: int) -> bool:
    """Whether the arm has a rank in any list."""
    return any(ranking.rank[which * ranking.arms + arm] > 0 for which in range(LISTS))


def leave_error_rate_lists(ranking: Ranking, arm: int) -> None:
    """Take an arm out of all lists: its rewards prove the bounds wrong, so its capitals are evidence of nothing."""
    for which in range(LISTS):
        enter_error_rate_list(ranking, which, arm, 0)


def settle_by_error_rate(ranking: Ranking, docket: Docket, which: int, arm: int, count: int) -> int:
    """Settle an arm that its list has reached. It keeps its rank there and leaves the other lists."""
    if docket.settled[arm] != OPEN:
        return count
    docket.settled[arm] = which + 1
    ranking.newly_settled[count] = arm
    for other in range(LISTS):
        if other != which:
            enter_error_rate_list(ranking, other, arm, 0)
    return count + 1


def settle_all_by_error_rate(ranking: Ranking, docket: Docket, arm: int, risen: int, first: int) -> int:
    """After the arm rose in lists: settle every arm that they have reached; return how many are in ``newly_settled``.

    Bit k of ``risen`` says that it rose in list k. Arms that a list reached before are settled already. Within the
    tolerance, both lists may reach the arm at once: then it belongs to the ``first``, on whose side its mean is.
    """
    count = 0
    for which in (first, 1 - first):
        if (risen >> which) & 1 == 0:
            continue
        offset, reached, before = which * ranking.arms, largest_error_rank(ranking, which), ranking.reached[which]
        if 0 < ranking.rank[offset + arm] <= max(reached, before):
            count = settle_by_error_rate(ranking, docket, which, arm, count)
        for rank in range(before + 1, reached + 1):  # arms of smaller ranks were settled before
            other = ranking.head[offset + rank - 1]
            while other > 0:
                count = settle_by_error_rate(ranking, docket, which, other - 1, count)
                other = ranking.after[offset + other - 1]
        ranking.reached[which] = max(reached, before)
    return count


def update_error_rank(
    ranking: Ranking,
    docket: Docket,
    board: Board,
    sheet: Sheet,
    arm: int,
    capital: MutableSequence[float],
    stakes: Stakes,
    counted: bool,
) -> int:
    """The arm's pulls or rewards changed: rank it again; return how many arms are in ``newly_settled``.

    ``counted`` says that counting has just settled the arm, so that its label is certain.
    """
    if docket.settled[arm] != OPEN and not counted:
        return 0
    risen, scratch = 0, ranking.scratch
    weight = ranking.level / stakes.level  # below 1 if the arm was once among more
    if not counted:
        for at in range(len(scratch)):
            scratch[at] = capital[at]
        if docket.first[arm] != 0:
            charge_for_error_rate(docket, sheet, arm, scratch, stakes)
    for which in range(LISTS):
        rank = 1 if which + 1 == docket.settled[arm] else 0
        if not counted:
            rank = error_rank_of(ranking, mean_capital(scratch, which * BETS) * weight)
        risen |= int(enter_error_rate_list(ranking, which, arm, rank)) << which
    return settle_all_by_error_rate(ranking, docket, arm, risen, 0 if board.mean[arm] >= stakes.bar else 1)


def charge_for_error_rate(
    docket: Docket, sheet: Sheet, arm: int, capital: MutableSequence[float], stakes: Stakes
) -> None:
    """Commit all pulls of the arm to a copy of its capitals as if those that are not told were lost."""
    charged, least, most = docket.charged[arm], 0.0, 0.0
    if sheet.cases > 0:
        least, most = sheet.least[arm], sheet.most[arm]
    pull = docket.first[arm]
    while pull != 0:
        if docket.outcome[pull] != LEFT_OUT:
            low, high = 0.0, 1.0
            if docket.outcome[pull] == TOLD:
                low = high = docket.reward[pull]
            commit_next_evidence(docket, sheet, arm, capital, stakes, low, high)
            docket.charged[arm] += 1
        pull = docket.following[pull]
    docket.charged[arm] = charged
    if sheet.cases > 0:
        sheet.least[arm] = least
        sheet.most[arm] = most


def closed_by_error_rate(
    ranking: Ranking,
    docket: Docket,
    sheet: Sheet,
    arm: int,
    pending: int,
    capital: MutableSequence[float],
) -> int:
    """SHUT if the arm is settled or has no free case, SKIPPED if it waits for its pending pulls, otherwise 0."""
    if docket.settled[arm] != OPEN or are_places_used_up(sheet, arm):
        return SHUT
    if ranking.level > 0.0 and pending > 0 and is_ripe_for_error_rate(ranking, capital):
        return SKIPPED
    return 0


def is_ripe_for_error_rate(ranking: Ranking, capital: MutableSequence[float]) -> bool:
    """Whether the arm's committed capital would settle it: only its pending pulls are in the way."""
    for which in range(LISTS):
        rank = error_rank_of(ranking, mean_capital(capital, which * BETS))
        if 0 < rank <= ranking.reached[which] + 1:
            return True
    return False
