"""The certificates of a simulated repetition: passes rewards to `evidence.py`, compiled, and counts settled labels."""

from typing import NamedTuple

import numpy as np

from ..core import columns
from ..core.evidence import (
    ABOVE,
    BELOW,
    CLOSE,
    OPEN,
    PENDING,
    Docket,
    Stakes,
    columns_needed,
    enqueue,
    give_up,
    reset,
    tell,
    weigh,
)
from ..core.kernel import Board
from .parts import Arms, Counts, Measures, Times, misjudged, zeros


class Proof(NamedTuple):
    """The data of one repetition's certificates."""

    docket: Docket
    capitals: Times  # a row for each arm
    stakes: Stakes
    open: Counts  # one entry: how many arms are not settled
    lost: int  # the outcome of a lost pull: CHARGED or LEFT_OUT


def blank_proof(arms: int, budget: int, stakes: Stakes, lost: int) -> Proof:
    """Empty columns for this many arms and pulls."""
    capitals = np.zeros((arms, columns_needed(stakes.tolerance)))
    return Proof(columns.docket(arms, budget, zeros), capitals, stakes, np.zeros(1, np.int64), lost)


def open_proof(proof: Proof) -> None:
    """Start a repetition. The columns of pulls are cleared as pulls are issued."""
    docket = proof.docket
    for arm in range(len(docket.first)):
        docket.first[arm] = 0
        docket.last[arm] = 0
        docket.waiting[arm] = 0
        docket.committed[arm] = 0
        docket.charged[arm] = 0
        docket.settled[arm] = OPEN
        reset(proof.capitals[arm], proof.stakes.rule)
    proof.open[0] = len(docket.first)


def issue(proof: Proof, arm: int, pull: int) -> None:
    """A pull was issued."""
    proof.docket.following[pull] = 0
    proof.docket.outcome[pull] = PENDING
    proof.docket.reward[pull] = 0.0
    enqueue(proof.docket, arm, pull)


def learn(board: Board, proof: Proof, arms: Arms, arm: int, pull: int, reward: float, lost: bool) -> None:
    """A reward came back, or its pull was lost. An arm that this settles takes no further pulls."""
    if lost:
        give_up(proof.docket, pull, proof.lost)
    else:
        tell(proof.docket, arm, pull, (reward - arms.low) / (arms.high - arms.low))
    if weigh(proof.docket, arm, board.pending[arm], proof.capitals[arm], proof.stakes):
        board.shut[arm] = 1
        proof.open[0] -= 1


def mislabelled(label: int, mean: float, arms: Arms, stakes: Stakes) -> bool:
    """Whether a settled label is wrong. A mean exactly on the bar is above."""
    if label == ABOVE:
        return mean < arms.threshold
    if label == BELOW:
        return mean >= arms.threshold
    return label == CLOSE and abs(mean - arms.threshold) > stakes.tolerance * (arms.high - arms.low)


def measure_proof(board: Board, proof: Proof, arms: Arms, measures: Measures, row: int, column: int) -> None:
    """Count the settled arms and the wrong labels; an open arm's label is the side of the bar that its mean is on."""
    settled, wrong, others = 0, 0, 0
    for arm in range(len(arms.mean)):
        label = proof.docket.settled[arm]
        settled += label != OPEN
        wrong += mislabelled(label, arms.mean[arm], arms, proof.stakes)
        others += label == OPEN and misjudged(board, arms, arm)
    measures.settled[row, column] = settled
    measures.mislabelled[row, column] = wrong
    measures.wrong[row, column] = wrong + others
