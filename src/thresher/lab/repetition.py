"""The data of a simulated repetition and its basic steps."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.kernel import Board, Rule, is_above, observe
from ..core.question import Measure
from .families import Reals
from .streams import PULLS, Words, start

Counts = np.ndarray[tuple[int], np.dtype[np.int64]]
Table = np.ndarray[tuple[int, int], np.dtype[np.int64]]
Boards = tuple[Board, Board]  # of the first tournament and of the second
Rules = tuple[Rule, Rule]
Times = np.ndarray[tuple[int, int], np.dtype[np.float64]]


INVALID = -1e300  # what no score is: below those of the warm-up, so the arm is chosen at once


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
    # what counts, see `core/question.py`; of a plain question, the rewards themselves
    bar: float  # the bar
    least: float  # the lowest and the highest that can count
    most: float
    tolerance: float
    measure: Measure
    base: int  # the arm that is the baseline; −1: there is none
    drawn: Reals  # three entries: the rewards of the last pull, the arm's and the baseline's; see `saw`
    order: Counts  # with cases: the seed of a live study that meets them in the same order; then seed and repetition
    common: bool  # whether the n-th pull of an arm draws the same reward whatever was chosen before
    asked: Counts  # if so: how many pulls of each arm were issued, lost ones included


class Measures(NamedTuple):
    """The measurements: a row for each repetition, a column for each checkpoint."""

    checkpoints: Counts  # rising numbers of pulls; the last one is the budget
    wrong: Table  # arms on the wrong side of the bar, or without a reward
    issued: Table  # pulls by checkpoint and arm, summed over repetitions; or no rows
    clock: Times
    busy: Times  # one column: time that workers spent on pulls
    in_flight: Table  # one column: the most pending pulls at a decision, τ
    ratio: Times  # one column: the largest pending / seen of an arm, η
    used: Table  # one column: pulls issued
    # with certificates:
    settled: Table  # settled arms
    mislabelled: Table  # settled arms with a wrong label
    ended: Times  # one column: the time at which the last arm was settled
    listed: Table  # three columns: at the end, the arms settled above, below and close,
    false: Table  # and how many of these labels are wrong


class Trace(NamedTuple):
    """Every event of one repetition: ``pull`` is the pull's id when it is asked, and minus the id when it is told.

    A lost pull is told the reward NaN; a pull that hangs has no second event.
    """

    pull: Counts
    arm: Counts
    reward: Reals
    other: Reals  # of a pair that is asked: the baseline's reward
    length: Counts


def blank_measures(checkpoints: Sequence[int], arms: int, rows: int, *, per_arm: bool = True) -> Measures:
    """Measurements of this many repetitions, all zero."""
    points = np.array(checkpoints, np.int64)
    return Measures(
        checkpoints=points,
        wrong=np.zeros((rows, len(points)), np.int64),
        issued=np.zeros((len(points) if per_arm else 0, arms), np.int64),
        clock=np.zeros((rows, len(points))),
        busy=np.zeros((rows, 1)),
        in_flight=np.zeros((rows, 1), np.int64),
        ratio=np.zeros((rows, 1)),
        used=np.zeros((rows, 1), np.int64),
        settled=np.zeros((rows, len(points)), np.int64),
        mislabelled=np.zeros((rows, len(points)), np.int64),
        ended=np.zeros((rows, 1)),
        listed=np.zeros((rows, 3), np.int64),
        false=np.zeros((rows, 3), np.int64),
    )


def blank_trace(size: int = 0) -> Trace:
    """A trace of at most this many events; with 0, the run is not traced."""
    pull, arm = np.zeros(size, np.int64), np.zeros(size, np.int64)
    return Trace(pull, arm, np.zeros(size), np.zeros(size), np.zeros(1, np.int64))


def zeros(code: str, size: int) -> Any:
    """A column of the laboratory, see `thresher.core.state`. Narrow types keep more of a tournament in the cache."""
    return np.zeros(size, code)


def table(code: str, rows: int, columns: int) -> Any:
    """Rows of the laboratory."""
    return np.zeros((rows, columns), code)


def wipe(board: Board) -> None:
    """Empty the board, except its tournament."""
    for arm in range(len(board.seen)):
        board.seen[arm] = 0
        board.pending[arm] = 0
        board.mean[arm] = 0.0
        board.scatter[arm] = 0.0
        board.total[arm] = 0.0
        board.residue[arm] = 0.0
        board.shut[arm] = 0


def saw(board: Board, arms: Arms, arm: int, reward: float) -> None:
    """Observe what counts, scaled by its bounds.

    From 0 to 1, the division changes nothing and takes a sixth of a pull. If the branch only computed a number, the
    compiler would always divide and then choose. The store to ``drawn`` prevents that.
    """
    scaled = reward
    if arms.least != 0.0 or arms.most != 1.0:
        scaled = (reward - arms.least) / (arms.most - arms.least)
        arms.drawn[2] = scaled
    observe(board, arm, scaled, reward)


def note(trace: Trace, pull: int, arm: int, reward: float, other: float) -> None:
    """Record an event, if this run is traced."""
    if len(trace.pull) == 0:
        return
    index = trace.length[0]
    trace.pull[index] = pull
    trace.arm[index] = arm
    trace.reward[index] = reward
    trace.other[index] = other
    trace.length[0] = index + 1


def is_refused(board: Board, measures: Measures, row: int, arm: int) -> bool:
    """Whether the chosen arm has no valid score; then the repetition ends, and its row says which arm it was."""
    if board.best[1] != INVALID:
        return False
    measures.in_flight[row, 0] = -1 - arm
    return True


def start_pull(arms: Arms, arm: int, state: Words) -> None:
    """Start the stream of the arm's next pull, which depends on nothing but its number within the arm.

    Seen and pending pulls do not give that number: after a lost pull, two pulls would draw the same reward.
    """
    start(state, arms.order[1], arms.order[2], PULLS + (arm << 32) + arms.asked[arm])
    arms.asked[arm] += 1


def misjudged(board: Board, arms: Arms, arm: int) -> bool:
    """Whether the arm's mean is on the wrong side of the bar, or there is no reward yet."""
    seen = board.seen[arm]
    if seen == 0:
        return True
    above = arms.mean[arm] >= arms.bar
    return is_above(board.total[arm] + board.residue[arm], seen, arms.bar) != bool(above)


def measure(board: Board, arms: Arms, measures: Measures, row: int, column: int) -> None:
    """Count the arms on the wrong side of the bar, and the pulls of each arm."""
    wrong = 0
    for arm in range(len(board.seen)):
        wrong += misjudged(board, arms, arm)
    if arms.base >= 0:
        wrong -= misjudged(board, arms, arms.base)
    measures.wrong[row, column] = wrong
    if len(measures.issued) > 0:
        for arm in range(len(board.seen)):
            measures.issued[column, arm] += board.seen[arm] + board.pending[arm]
