"""The data of a simulated repetition and its steps: rewards, measurements and certificates."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core import columns
from ..core.board import SHUT, Board, Rule, observe_on_board, shut_on_board, stays_shut_on_board
from ..core.error_rate import LISTS, Ranking, clear_error_rate_lists, closed_by_error_rate, update_error_rank
from ..core.evidence import (
    ABOVE,
    BELOW,
    BETS,
    FREED,
    OPEN,
    PENDING,
    Docket,
    Ends,
    Stakes,
    enqueue_evidence,
    give_up_evidence,
    note_evidence_lead,
    reset_capital,
    retry_evidence,
    settle_evidence_by_count,
    tell_evidence,
    weigh_evidence,
)
from ..core.places import (
    FREE,
    KNOWN,
    Sheet,
    are_places_finished,
    case_at_place,
    fill_place,
    free_place,
    place_key,
    take_place,
)
from ..core.question import Measure, is_above, reward_for_question
from .families import Reals
from .streams import PULLS, Words, start_stream

Counts = np.ndarray[tuple[int], np.dtype[np.int64]]
Table = np.ndarray[tuple[int, int], np.dtype[np.int64]]
Boards = tuple[Board, Board]  # of the first tournament and of the second
Rules = tuple[Rule, Rule]
Times = np.ndarray[tuple[int, int], np.dtype[np.float64]]


INVALID = -1e300  # in place of an invalid score: below those of the warm-up, so the arm is chosen at once


class Arms(NamedTuple):
    """The arms: ranges to draw means and spreads from, then what was drawn."""

    mean_low: Reals
    mean_high: Reals
    spread_low: Reals
    spread_high: Reals
    family: int  # its number, see `families.py`
    samples: Reals
    first: Reals  # the two numbers that a draw needs
    second: Reals
    mean: Reals  # true mean and variance
    variance: Reals
    low: float  # the bounds of the rewards
    high: float
    # about what counts (see `core/question.py`), which is the reward itself unless the question says otherwise
    bar: float
    least: float  # the lowest value that can count, and the highest
    most: float
    low_edge: float  # the bar less `Setup.within`, and plus it
    high_edge: float
    measure: Measure
    base: int  # the arm that is the baseline; −1: there is none
    drawn: Reals  # the last pull's rewards: the arm's, the baseline's, one for `see_in_repetition`
    order: Counts  # with cases: the seed of a live study that meets them in the same order; then seed and repetition
    common: bool  # whether the n-th pull of an arm draws the same reward whatever was chosen before
    asked: Counts  # if so: pulls issued by arm, lost ones included


class Measures(NamedTuple):
    """The measurements: rows are repetitions, columns are checkpoints."""

    checkpoints: Counts  # rising numbers of pulls; the last one is the budget
    wrong: Table  # arms with a wrong answer, or without a reward; open arms are judged by their means
    beyond: Table  # ... and of these, arms that are wrong by more than `Setup.within`
    issued: Table  # pulls by checkpoint and arm, summed over repetitions; or no rows
    clock: Times
    busy: Times  # a single column: time that workers spent on pulls
    in_flight: Table  # a single column: the most pending pulls at a decision, τ
    ratio: Times  # a single column: the largest pending / seen of an arm, η
    used: Table  # a single column: pulls issued
    # with certificates:
    settled: Table  # settled arms
    mislabelled: Table  # settled arms with a wrong label
    ended: Times  # a single column: the time at which the last arm was settled
    listed: Table  # two columns: at the end, the arms settled above and below,
    false: Table  # and how many of these labels are wrong


class Trace(NamedTuple):
    """Every event of a repetition: ``pull`` is the pull's id when it is asked, and minus the id when it is told.

    A lost pull has the reward NaN; a pull that hangs has no second event.
    """

    pull: Counts
    arm: Counts
    reward: Reals
    other: Reals  # of a pair that is asked: the baseline's reward
    length: Counts


def blank_repetition_measures(checkpoints: Sequence[int], arms: int, rows: int, *, per_arm: bool = True) -> Measures:
    """Measurements of this many repetitions, all zero."""
    points = np.array(checkpoints, np.int64)
    return Measures(
        checkpoints=points,
        wrong=np.zeros((rows, len(points)), np.int64),
        beyond=np.zeros((rows, len(points)), np.int64),
        issued=np.zeros((len(points) if per_arm else 0, arms), np.int64),
        clock=np.zeros((rows, len(points))),
        busy=np.zeros((rows, 1)),
        in_flight=np.zeros((rows, 1), np.int64),
        ratio=np.zeros((rows, 1)),
        used=np.zeros((rows, 1), np.int64),
        settled=np.zeros((rows, len(points)), np.int64),
        mislabelled=np.zeros((rows, len(points)), np.int64),
        ended=np.zeros((rows, 1)),
        listed=np.zeros((rows, 2), np.int64),
        false=np.zeros((rows, 2), np.int64),
    )


def blank_repetition_trace(size: int = 0) -> Trace:
    """A trace of at most this many events; with 0, the run is not traced."""
    pull, arm = np.zeros(size, np.int64), np.zeros(size, np.int64)
    return Trace(pull, arm, np.zeros(size), np.zeros(size), np.zeros(1, np.int64))


def repetition_zeros(code: str, size: int) -> Any:
    """A column of the laboratory, see `thresher.core.state`. Narrow types keep more of a tournament in the cache."""
    return np.zeros(size, code)


def table_of_repetition(code: str, rows: int, columns: int) -> Any:
    """Rows of the laboratory."""
    return np.zeros((rows, columns), code)


def wipe_repetition(board: Board) -> None:
    """Empty the board, except its tournament."""
    for arm in range(len(board.seen)):
        board.seen[arm] = 0
        board.pending[arm] = 0
        board.mean[arm] = 0.0
        board.scatter[arm] = 0.0
        board.total[arm] = 0.0
        board.residue[arm] = 0.0
        board.shut[arm] = 0
        board.lead[arm] = 1.0


def see_in_repetition(board: Board, arms: Arms, arm: int, reward: float) -> None:
    """Observe a reward, scaled by its bounds.

    With bounds of 0 and 1, the division changes nothing and takes a sixth of a pull's time. If the branch only computed
    a number, the compiler would always divide and then choose. The store to ``drawn`` prevents that.
    """
    scaled = reward
    if arms.least != 0.0 or arms.most != 1.0:
        scaled = (reward - arms.least) / (arms.most - arms.least)
        arms.drawn[2] = scaled
    observe_on_board(board, arm, scaled, reward)


def note_in_repetition(trace: Trace, pull: int, arm: int, reward: float, other: float) -> None:
    """Record an event, if this run is traced."""
    if len(trace.pull) == 0:
        return
    index = trace.length[0]
    trace.pull[index] = pull
    trace.arm[index] = arm
    trace.reward[index] = reward
    trace.other[index] = other
    trace.length[0] = index + 1


def is_repetition_refused(board: Board, measures: Measures, row: int, arm: int) -> bool:
    """Whether the chosen arm has no valid score; then the repetition ends, and its row says which arm it was."""
    if board.best[1] != INVALID:
        return False
    measures.in_flight[row, 0] = -1 - arm
    return True


def start_pull_of_repetition(arms: Arms, arm: int, state: Words) -> None:
    """Start the stream of the arm's next pull, which depends on nothing but its number within the arm.

    Seen and pending pulls do not give that number: after a lost pull, two pulls would draw the same reward.
    """
    start_stream(state, arms.order[1], arms.order[2], PULLS + (arm << 32) + arms.asked[arm])
    arms.asked[arm] += 1


def is_false_in_repetition(label: int, mean: float, low_edge: float, high_edge: float) -> bool:
    """Whether a label is wrong, given the true mean. A mean exactly on an edge reaches it."""
    return mean < low_edge if label == ABOVE else mean >= high_edge


def leaning_in_repetition(board: Board, arms: Arms, arm: int) -> int:
    """The label that the arm's mean so far suggests; OPEN without a reward."""
    seen = board.seen[arm]
    if seen == 0:
        return OPEN
    return ABOVE if is_above(board.total[arm] + board.residue[arm], seen, arms.bar) else BELOW


def judge_repetition(arms: Arms, arm: int, label: int, measures: Measures, row: int, column: int) -> None:
    """Count the arm if its answer is wrong, or wrong by more than is tolerated."""
    mean = arms.mean[arm]
    measures.wrong[row, column] += label == OPEN or is_false_in_repetition(label, mean, arms.bar, arms.bar)
    measures.beyond[row, column] += label == OPEN or is_false_in_repetition(label, mean, arms.low_edge, arms.high_edge)


def measure_repetition(board: Board, arms: Arms, measures: Measures, row: int, column: int) -> None:
    """Count the wrong answers, by the means, and the pulls by arm."""
    for arm in range(len(board.seen)):
        if arm != arms.base:
            judge_repetition(arms, arm, leaning_in_repetition(board, arms, arm), measures, row, column)
    if len(measures.issued) > 0:
        for arm in range(len(board.seen)):
            measures.issued[column, arm] += board.seen[arm] + board.pending[arm]


# The certificates of a repetition: rewards are passed to the core, and settled labels are counted.
#
# As in a live study (`core/ledger.py`), a baseline without cases takes no pulls of its own, since every pull draws both
# rewards. With cases, it goes first, through all of them, and the other arms wait.


class Proof(NamedTuple):
    """The data of a repetition's certificates."""

    docket: Docket
    capitals: Times  # a row for each arm
    stakes: Stakes
    open: Counts  # a single entry: how many arms take pulls
    above: Counts  # a single entry: how many arms are settled above
    base: int  # the arm that is the baseline; −1: there is none
    awaited: Counts  # a single entry: cases that the baseline has to go through before other arms take pulls
    find: int  # how many arms above are enough; 0: none are
    lost: int  # the outcome of a lost pull: CHARGED or LEFT_OUT
    sheet: Sheet
    ranking: Ranking
    values: Times  # with cases: rewards by arm and place, or by arm and case where something else counts


def blank_repetition_proof(
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
    return Proof(
        docket=columns.blank_docket_columns(arms, budget, repetition_zeros),
        capitals=np.zeros((arms, 2 * BETS)),
        stakes=stakes._replace(bets=np.array(stakes.bets)),  # type: ignore[arg-type]
        open=np.zeros(1, np.int64),
        above=np.zeros(1, np.int64),
        base=base,
        awaited=np.zeros(1, np.int64),
        find=find,
        lost=lost,
        sheet=columns.blank_sheet_columns(arms, cases, budget, repetition_zeros, table_of_repetition),
        ranking=columns.blank_ranking_columns(arms, stakes.level if ranks else 0.0, repetition_zeros),
        values=np.zeros((arms if cases else 0, cases)),
    )


def open_repetition_proof(board: Board, proof: Proof) -> None:
    """Start a repetition. The columns of pulls are cleared as pulls are issued."""
    docket, sheet = proof.docket, proof.sheet
    for arm in range(len(docket.first)):
        docket.first[arm] = 0
        docket.last[arm] = 0
        docket.waiting[arm] = 0
        docket.committed[arm] = 0
        docket.charged[arm] = 0
        docket.settled[arm] = OPEN
        reset_capital(proof.capitals[arm])
    for arm in range(len(sheet.lowest)):
        sheet.lowest[arm] = 0
        sheet.least[arm] = 0.0
        sheet.most[arm] = 0.0
        for place in range(sheet.cases):
            sheet.state[arm][place] = FREE
            sheet.entry[arm][place] = 0
    if proof.ranking.level > 0.0:
        clear_error_rate_lists(proof.ranking)
    proof.open[0] = len(docket.first)
    proof.above[0] = 0
    if proof.base >= 0:
        proof.awaited[0] = sheet.cases
        for arm in range(len(board.shut)):
            reconsider_in_repetition(board, proof, arm)


def is_repetition_over(board: Board, proof: Proof) -> bool:
    """Whether no arm takes more pulls, or the arms that are to be found are found, or cannot be."""
    if proof.awaited[0] > 0:  # the baseline goes through its cases
        return bool(proof.open[0] == 0)
    settled = proof.docket.settled
    return are_places_finished(proof.sheet, settled, board.pending, proof.open[0], proof.above[0], proof.find)


def issue_in_repetition(proof: Proof, arm: int, pull: int) -> None:
    """A pull was issued. With cases, it takes its arm's lowest free place. Nothing is certified about the baseline."""
    docket, sheet = proof.docket, proof.sheet
    docket.following[pull] = 0
    docket.outcome[pull] = PENDING
    docket.reward[pull] = 0.0
    is_new = sheet.cases == 0 or take_place(sheet, arm, pull)
    if arm == proof.base:
        return
    if is_new:
        enqueue_evidence(docket, arm, pull)
    else:
        retry_evidence(docket, sheet.entry[arm][sheet.place[pull]])


def reconsider_in_repetition(board: Board, proof: Proof, arm: int) -> None:
    """Note whether the arm still takes pulls."""
    pending, shut = board.pending[arm], SHUT
    if not stays_shut_on_board(arm, proof.base, proof.sheet.cases, proof.awaited[0] > 0):
        shut = closed_by_error_rate(proof.ranking, proof.docket, proof.sheet, arm, pending, proof.capitals[arm])
    proof.open[0] += shut_on_board(board, arm, shut)


def settled_in_repetition(board: Board, proof: Proof, arm: int) -> None:
    """The arm was just settled."""
    proof.above[0] += int(proof.docket.settled[arm] == ABOVE)
    reconsider_in_repetition(board, proof, arm)


def rank_in_repetition(board: Board, proof: Proof, arm: int, counted: bool) -> int:
    """Rank the arm again; return how many arms this settled. Nothing is ranked unless the error rate is bounded."""
    if proof.ranking.level <= 0.0:
        return 0
    count = update_error_rank(
        proof.ranking, proof.docket, board, proof.sheet, arm, proof.capitals[arm], proof.stakes, counted
    )
    for index in range(count):
        settled_in_repetition(board, proof, proof.ranking.newly_settled[index])
    reconsider_in_repetition(board, proof, arm)
    return count


def learn_in_repetition(board: Board, proof: Proof, arms: Arms, arm: int, pull: int, reward: float, lost: bool) -> None:
    """A reward came back, or its pull was lost. An arm that this settles takes no further pulls."""
    docket, sheet, entry, counted = proof.docket, proof.sheet, pull, False
    if sheet.cases > 0:
        entry = sheet.entry[arm][sheet.place[pull]]
    if lost and sheet.cases > 0:
        free_place(sheet, arm, sheet.place[pull])
        give_up_evidence(docket, entry, FREED)
    elif lost:
        give_up_evidence(docket, entry, proof.lost)
    else:
        tell_evidence(docket, arm, entry, (reward - arms.least) / (arms.most - arms.least))
    if sheet.cases > 0 and not lost:
        fill_place(sheet, arm, sheet.place[pull], KNOWN)
        before = docket.settled[arm]
        ends = Ends(arms.least, arms.most, arms.bar, arms.low_edge, arms.high_edge)
        counted = settle_evidence_by_count(docket, board, sheet, arm, ends)
        if not counted:  # where bets were wrong, the label has changed
            proof.above[0] += int(docket.settled[arm] == ABOVE) - int(before == ABOVE)
    if weigh_evidence(docket, board, sheet, arm, proof.capitals[arm], proof.stakes) or counted:
        settled_in_repetition(board, proof, arm)
    if proof.find > 0:
        note_evidence_lead(board, arm, proof.capitals[arm])
    if sheet.cases > 0:
        reconsider_in_repetition(board, proof, arm)


def measure_repetition_proof(board: Board, proof: Proof, arms: Arms, measures: Measures, row: int, column: int) -> None:
    """Count the settled arms and the wrong labels; settled arms are judged by these, no longer by their means."""
    labels, wrong = 0, 0
    measures.wrong[row, column] = 0
    measures.beyond[row, column] = 0
    for which in range(LISTS):
        measures.listed[row, which] = 0
        measures.false[row, which] = 0
    for arm in range(len(arms.mean)):
        label = proof.docket.settled[arm]
        if arm != arms.base:
            judge_repetition(
                arms, arm, leaning_in_repetition(board, arms, arm) if label == OPEN else label, measures, row, column
            )
        if label == OPEN:
            continue
        false = is_false_in_repetition(label, arms.mean[arm], arms.low_edge, arms.high_edge)
        measures.listed[row, label - 1] += 1
        measures.false[row, label - 1] += false
        labels += 1
        wrong += false
    measures.settled[row, column] = labels
    measures.mislabelled[row, column] = wrong


# The baseline's rewards, and values that count in place of rewards.


def learn_baseline_in_repetition(board: Board, proof: Proof, arm: int, pull: int, lost: bool) -> bool:
    """A reward of the baseline came back, or was lost. Returns whether it was the last, which opens the other arms."""
    place = proof.sheet.place[pull]
    if lost:
        free_place(proof.sheet, arm, place)
        give_up_evidence(proof.docket, pull, FREED)
    else:
        fill_place(proof.sheet, arm, place, KNOWN)
        proof.awaited[0] -= 1
    reconsider_in_repetition(board, proof, arm)
    if lost or proof.awaited[0] > 0:
        return False
    for other in range(len(board.shut)):
        reconsider_in_repetition(board, proof, other)
    return True


def case_of_repetition(arms: Arms, arm: int, place: int, cases: int) -> int:
    """The case at a place of an arm, in the order of a live study with this repetition's seed."""
    seed = arms.order[0]
    return case_at_place(place, cases, place_key(2 * arm, seed), place_key(2 * arm + 1, seed))


def case_value_of_repetition(arms: Arms, proof: Proof, arm: int, case: int) -> float:
    """The value that counts of an arm's reward of a case; the baseline's reward counts as it is."""
    reward, other = float(proof.values[arm, case]), 0.0
    if arms.base >= 0:
        other = float(proof.values[arms.base, case])
    arms.drawn[0] = reward
    arms.drawn[1] = other
    return reward if arm == arms.base else reward_for_question(arms.measure, reward, other)


def mean_counted_in_repetition(arms: Arms, mean: float, other: float) -> float:
    """The true mean of what counts, unless that is a share, from the means of the arm and of the baseline."""
    measure = arms.measure
    value = reward_for_question(measure, mean, other)
    if measure.paired and measure.sign * mean >= measure.sign * other + arms.bar:  # on the bar, up to rounding
        return max(value, arms.bar)
    return value
