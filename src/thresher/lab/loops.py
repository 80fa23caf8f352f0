"""What a simulated repetition is made of, and the loop in which every reward is seen at once.

What a decision rests on is `kernel.py`, compiled; nothing of it is said here again. The names in capitals below stand
for themselves in plain Python; `engine.py` replaces them when it compiles a loop for a policy and a family, so that
every choice between them is made once, not at every pull.
"""

from typing import NamedTuple

import numpy as np

from .. import kernel
from ..kernel import Board, Formula, Rule, choose, doubled, is_above, observe, rescore, rescore_all
from . import families
from .families import Reals
from .streams import INSTANCE, REWARDS, Words, fraction, start

FORMULA: Formula = kernel.evt
SECOND: Formula = kernel.cheapest
ALTERNATES = False  # even pulls follow the second tournament
DOUBLING = False  # the exploration doubles with the pulls
TRACED = False  # every event is written down
SET, DRAW = families.set_uniform, families.draw_uniform
MOMENTS = families.moments_uniform

Counts = np.ndarray[tuple[int], np.dtype[np.int64]]
Table = np.ndarray[tuple[int, int], np.dtype[np.int64]]
Times = np.ndarray[tuple[int, int], np.dtype[np.float64]]


class Arms(NamedTuple):
    """What the arms are: ranges to draw their means and spreads from, then what was drawn."""

    mean_low: Reals
    mean_high: Reals
    spread_low: Reals
    spread_high: Reals
    samples: Reals
    first: Reals  # the two numbers that a draw needs
    second: Reals
    mean: Reals  # true mean and variance
    variance: Reals
    low: float  # the bounds of the rewards
    high: float
    threshold: float  # in the units of the rewards


class Measures(NamedTuple):
    """What is measured: a row for each repetition, a column for each checkpoint."""

    checkpoints: Counts  # rising numbers of pulls; the last one is the budget
    wrong: Table  # arms on the wrong side, or without a reward
    issued: Table  # of each checkpoint and arm: pulls, summed over repetitions
    clock: Times
    busy: Times  # one column: time that workers spent on pulls
    in_flight: Table  # one column: the most pulls unobserved at a decision, τ
    ratio: Times  # one column: the largest pending / seen of an arm, η


class Trace(NamedTuple):
    """Every event of one repetition: ``pull`` is the id of a pull that was asked, minus the id when it was told."""

    pull: Counts
    arm: Counts
    reward: Reals
    length: Counts


def draw_instance(arms: Arms, seed: int, repetition: int, state: Words) -> None:
    """Draw means, then spreads, of one repetition."""
    start(state, seed, repetition, INSTANCE)
    for arm in range(len(arms.mean)):
        arms.mean[arm] = arms.mean_low[arm] + (arms.mean_high[arm] - arms.mean_low[arm]) * fraction(state)
    for arm in range(len(arms.mean)):
        spread = arms.spread_low[arm] + (arms.spread_high[arm] - arms.spread_low[arm]) * fraction(state)
        arms.first[arm], arms.second[arm] = SET(arms.mean[arm], spread, arms.low, arms.high)
        moments = MOMENTS(arms.first[arm], arms.second[arm], arms.low, arms.high, arms.samples)
        arms.mean[arm], arms.variance[arm] = moments


def wipe(board: Board) -> None:
    """Forget every reward."""
    for arm in range(len(board.seen)):
        board.seen[arm] = 0
        board.pending[arm] = 0
        board.mean[arm] = 0.0
        board.scatter[arm] = 0.0
        board.total[arm] = 0.0
        board.residue[arm] = 0.0


def open_boards(board: Board, other: Board, rule: Rule, other_rule: Rule) -> None:
    """An empty board with its tournaments."""
    wipe(board)
    rescore_all(board, FORMULA, rule)
    if ALTERNATES:
        rescore_all(other, SECOND, other_rule)


def chosen(board: Board, other: Board, pull: int) -> int:
    """The arm of the pull with that id."""
    if ALTERNATES and pull % 2 == 0:
        return choose(other)
    return choose(board)


def rescored(board: Board, other: Board, arm: int, rule: Rule, other_rule: Rule) -> None:
    """Bring one arm up to date in each tournament."""
    rescore(board, arm, FORMULA, rule)
    if ALTERNATES:
        rescore(other, arm, SECOND, other_rule)


def followed(board: Board, other: Board, arm: int, issued: int, rule: Rule, other_rule: Rule) -> Rule:
    """Bring the tournaments up to date after an arm was pulled, and return the rule from here on."""
    if DOUBLING:
        exploration = doubled(rule.exploration, issued, len(board.seen))
        if exploration != rule.exploration:
            rule = Rule(rule.threshold, exploration, rule.pending_weight, rule.warmup, rule.slack)
            rescore_all(board, FORMULA, rule)
    rescored(board, other, arm, rule, other_rule)
    return rule


def saw(board: Board, arms: Arms, arm: int, reward: float) -> None:
    """Observe a reward, scaled by the bounds."""
    if arms.low == 0.0 and arms.high == 1.0:  # spares a division; the result is the same
        observe(board, arm, reward, reward)
    else:
        observe(board, arm, (reward - arms.low) / (arms.high - arms.low), reward)


def note(trace: Trace, pull: int, arm: int, reward: float) -> None:
    """Write an event down."""
    place = trace.length[0]
    trace.pull[place] = pull
    trace.arm[place] = arm
    trace.reward[place] = reward
    trace.length[0] = place + 1


def measure(board: Board, arms: Arms, measures: Measures, row: int, column: int) -> None:
    """Count the arms on the wrong side, and the pulls of each."""
    wrong = 0
    for arm in range(len(board.seen)):
        seen = board.seen[arm]
        measures.issued[column, arm] += seen + board.pending[arm]
        above = arms.mean[arm] >= arms.threshold
        if seen == 0 or is_above(board.total[arm] + board.residue[arm], seen, arms.threshold) != above:
            wrong += 1
    measures.wrong[row, column] = wrong


def run_at_once(
    seed: int,
    begin: int,
    end: int,
    boards: tuple[Board, Board],
    rules: tuple[Rule, Rule],
    arms: Arms,
    measures: Measures,
    trace: Trace,
    state: Words,
) -> None:
    """Play the repetitions from ``begin`` to ``end``, every reward seen before the next decision."""
    board, other = boards
    for row in range(begin, end):
        draw_instance(arms, seed, row, state)
        start(state, seed, row, REWARDS)
        rule, other_rule = rules
        open_boards(board, other, rule, other_rule)
        issued = 0
        for column in range(len(measures.checkpoints)):
            while issued < measures.checkpoints[column]:
                issued += 1
                arm = chosen(board, other, issued)
                reward = DRAW(arms.first[arm], arms.second[arm], arms.low, arms.high, arms.samples, state)
                saw(board, arms, arm, reward)
                rule = followed(board, other, arm, issued, rule, other_rule)
                if TRACED:
                    note(trace, issued, arm, reward)
                    note(trace, -issued, arm, reward)
            measure(board, arms, measures, row, column)
