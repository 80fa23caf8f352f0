"""The certificates of a simulated repetition: passes rewards to the core, compiled, and counts settled labels."""

from typing import NamedTuple

import numpy as np

from ..core import state
from ..core.certificate import (
    ABOVE,
    BELOW,
    CLOSE,
    FREED,
    OPEN,
    PENDING,
    Docket,
    Stakes,
    columns_needed,
    enqueue,
    give_up,
    reset,
    settle_by_count,
    tell,
    try_again,
    weigh,
)
from ..core.error_rate import LISTS, Ranking, clear, closed, update
from ..core.kernel import SHUT, Board, observe, set_shut, stays_shut
from ..core.places import FREE, KNOWN, Sheet, case_at, fill, free, is_finished, key_of, take
from ..core.question import count
from .repetition import Arms, Counts, Measures, Times, misjudged, saw, table, zeros


class Proof(NamedTuple):
    """The data of one repetition's certificates."""

    docket: Docket
    capitals: Times  # a row for each arm
    stakes: Stakes
    open: Counts  # one entry: how many arms take pulls
    above: Counts  # one entry: how many arms are settled above
    base: int  # the arm that is the baseline; −1: there is none
    awaited: Counts  # one entry: how many cases the baseline has to go through before other arms take pulls
    find: int  # how many arms above are enough; 0: none are
    lost: int  # the outcome of a lost pull: CHARGED or LEFT_OUT
    sheet: Sheet
    ranking: Ranking
    values: Times  # with cases: the reward of each place, or of each case where it is counted; a row for each arm


def blank_proof(
    arms: int,
    budget: int,
    stakes: Stakes,
    lost: int,
    *,
    base: int = -1,
    cases: int = 0,
    ranks: bool = False,
    find: int = 0,
) -> Proof:
    """Empty columns for this many arms, pulls and cases."""
    width = columns_needed(stakes.tolerance)
    upward, downward = (np.array(bets) for bets in (stakes.upward, stakes.downward))
    return Proof(
        docket=state.docket(arms, budget, zeros),
        capitals=np.zeros((arms, width)),
        stakes=stakes._replace(upward=upward, downward=downward),  # type: ignore[arg-type]
        open=np.zeros(1, np.int64),
        above=np.zeros(1, np.int64),
        base=base,
        awaited=np.zeros(1, np.int64),
        find=find,
        lost=lost,
        sheet=state.sheet(arms, cases, budget, zeros, table),
        ranking=state.ranking(arms, stakes.level if ranks else 0.0, width, zeros),
        values=np.zeros((arms if cases else 0, cases)),
    )


def open_proof(proof: Proof) -> None:
    """Start a repetition. The columns of pulls are cleared as pulls are issued."""
    docket, sheet = proof.docket, proof.sheet
    for arm in range(len(docket.first)):
        docket.first[arm] = 0
        docket.last[arm] = 0
        docket.waiting[arm] = 0
        docket.committed[arm] = 0
        docket.charged[arm] = 0
        docket.settled[arm] = OPEN
        reset(proof.capitals[arm])
    for arm in range(len(sheet.lowest)):
        sheet.lowest[arm] = 0
        sheet.least[arm] = 0.0
        sheet.most[arm] = 0.0
        for place in range(sheet.cases):
            sheet.state[arm][place] = FREE
            sheet.entry[arm][place] = 0
    if proof.ranking.level > 0.0:
        clear(proof.ranking)
    proof.open[0] = len(docket.first)
    proof.above[0] = 0


def is_over(board: Board, proof: Proof) -> bool:
    """Whether no arm takes more pulls, or the arms that are to be found are found, or cannot be."""
    settled = proof.docket.settled
    return is_finished(proof.sheet, settled, board.pending, proof.open[0], proof.above[0], proof.find)


def issue(proof: Proof, arm: int, pull: int) -> None:
    """A pull was issued. With cases, it takes its arm's lowest free place."""
    docket, sheet = proof.docket, proof.sheet
    docket.following[pull] = 0
    docket.outcome[pull] = PENDING
    docket.reward[pull] = 0.0
    if sheet.cases == 0 or take(sheet, arm, pull):
        enqueue(docket, arm, pull)
    else:
        try_again(docket, sheet.entry[arm][sheet.place[pull]])


def reconsider(board: Board, proof: Proof, arm: int) -> None:
    """Note whether the arm still takes pulls."""
    pending, shut = board.pending[arm], SHUT
    if not stays_shut(arm, proof.base, proof.sheet.cases, proof.awaited[0] > 0):
        shut = closed(proof.ranking, proof.docket, proof.sheet, arm, pending, proof.capitals[arm], proof.stakes)
    proof.open[0] += set_shut(board, arm, shut)


def settled(board: Board, proof: Proof, arm: int) -> None:
    """The arm was just settled."""
    proof.above[0] += int(proof.docket.settled[arm] == ABOVE)
    reconsider(board, proof, arm)


def rank(board: Board, proof: Proof, arm: int, counted: bool) -> int:
    """Rank the arm again; return how many arms this settled."""
    found = update(proof.ranking, proof.docket, proof.sheet, arm, proof.capitals[arm], proof.stakes, counted)
    for at in range(found):
        settled(board, proof, proof.ranking.found[at])
    reconsider(board, proof, arm)
    return found


def learn(board: Board, proof: Proof, arms: Arms, arm: int, pull: int, reward: float, lost: bool) -> None:
    """A reward came back, or its pull was lost. An arm that this settles takes no further pulls."""
    docket, sheet, entry, counted = proof.docket, proof.sheet, pull, False
    if sheet.cases > 0:
        entry = sheet.entry[arm][sheet.place[pull]]
    if lost and sheet.cases > 0:
        free(sheet, arm, sheet.place[pull])
        give_up(docket, entry, FREED)
    elif lost:
        give_up(docket, entry, proof.lost)
    else:
        tell(docket, arm, entry, (reward - arms.least) / (arms.most - arms.least))
    if sheet.cases > 0 and not lost:
        fill(sheet, arm, sheet.place[pull], KNOWN)
        before, ends = docket.settled[arm], (arms.least, arms.most, arms.bar, arms.tolerance)
        counted = settle_by_count(docket, board, sheet, arm, *ends)
        if not counted:  # where bets were wrong, the label has changed
            proof.above[0] += int(docket.settled[arm] == ABOVE) - int(before == ABOVE)
    if weigh(docket, sheet, arm, board.pending[arm], proof.capitals[arm], proof.stakes) or counted:
        settled(board, proof, arm)
    if sheet.cases > 0:
        reconsider(board, proof, arm)


def mislabelled(label: int, mean: float, arms: Arms) -> bool:
    """Whether a settled label is wrong. A mean exactly on the bar is above."""
    if label == ABOVE:
        return mean < arms.bar
    if label == BELOW:
        return mean >= arms.bar
    return label == CLOSE and abs(mean - arms.bar) > arms.tolerance


def measure_proof(board: Board, proof: Proof, arms: Arms, measures: Measures, row: int, column: int) -> None:
    """Count the settled arms and the wrong labels; an open arm's label is the side of the bar that its mean is on."""
    labels, wrong, others = 0, 0, 0
    for which in range(LISTS):
        measures.listed[row, which] = 0
        measures.false[row, which] = 0
    for arm in range(len(arms.mean)):
        label = proof.docket.settled[arm]
        if label == OPEN:
            others += arm != arms.base and misjudged(board, arms, arm)
            continue
        false = mislabelled(label, arms.mean[arm], arms)
        measures.listed[row, label - 1] += 1
        measures.false[row, label - 1] += false
        labels += 1
        wrong += false
    measures.settled[row, column] = labels
    measures.mislabelled[row, column] = wrong
    measures.wrong[row, column] = wrong + others


# What a simulated repetition does with a baseline: which arms take pulls, and which case a place is.
#
# In the order of a live study (`core/ledger.py`): without cases, the baseline takes no pulls of its own, since every
# pull draws both rewards. With cases, it goes first, through all of them, and the other arms wait.


def shut_baseline(board: Board, arms: Arms) -> None:
    """Without cases, the baseline is pulled only in pairs."""
    if arms.base >= 0:
        board.shut[arms.base] = SHUT


def await_baseline(board: Board, proof: Proof) -> None:
    """Shut the arms that take no pulls at first."""
    proof.awaited[0] = proof.sheet.cases if proof.base >= 0 else 0
    if proof.base >= 0:
        for arm in range(len(board.shut)):
            reconsider(board, proof, arm)


def is_done(board: Board, proof: Proof) -> bool:
    """Whether the repetition is over: while the baseline goes through the cases, when it has no free one."""
    return bool(proof.open[0] == 0 if proof.awaited[0] > 0 else is_over(board, proof))


def issue_baseline(proof: Proof, arm: int, pull: int) -> None:
    """A pull of the baseline was issued. Nothing is certified about it."""
    proof.docket.following[pull] = 0
    proof.docket.outcome[pull] = PENDING
    proof.docket.reward[pull] = 0.0
    take(proof.sheet, arm, pull)


def learn_baseline(board: Board, proof: Proof, arm: int, pull: int, lost: bool) -> bool:
    """A reward of the baseline came back, or was lost. Returns whether it was the last: the other arms are open."""
    place = proof.sheet.place[pull]
    if lost:
        free(proof.sheet, arm, place)
        give_up(proof.docket, pull, FREED)
    else:
        fill(proof.sheet, arm, place, KNOWN)
        proof.awaited[0] -= 1
    reconsider(board, proof, arm)
    if lost or proof.awaited[0] > 0:
        return False
    for other in range(len(board.shut)):
        reconsider(board, proof, other)
    return True


def saw_counted(board: Board, arms: Arms, arm: int, reward: float) -> None:
    """Observe what counts; of the baseline, its reward."""
    if arm == arms.base:
        observe(board, arm, 0.0, reward)
    else:
        saw(board, arms, arm, reward)


def case_of(arms: Arms, arm: int, place: int, cases: int) -> int:
    """The case at a place of an arm, in the order of a live study with this repetition's seed."""
    seed = arms.order[0]
    return case_at(place, cases, key_of(2 * arm, seed), key_of(2 * arm + 1, seed))


def value_of_case(arms: Arms, proof: Proof, arm: int, case: int) -> float:
    """What the reward of a case counts as; of the baseline, the reward."""
    reward, other = float(proof.values[arm, case]), 0.0
    if arms.base >= 0:
        other = float(proof.values[arms.base, case])
    arms.drawn[0] = reward
    arms.drawn[1] = other
    return reward if arm == arms.base else count(arms.measure, reward, other)


def mean_counted(arms: Arms, mean: float, other: float) -> float:
    """The mean of what counts, where that is no share, from the mean of the arm and that of the baseline."""
    asked = arms.measure
    value = count(asked, mean, other)
    if asked.paired and asked.sign * mean >= asked.sign * other + arms.bar:  # on the bar, up to rounding
        return max(value, arms.bar)
    return value
