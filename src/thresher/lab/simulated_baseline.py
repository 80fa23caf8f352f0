"""What a simulated repetition does with a baseline: which arms take pulls, and which case a place is.

In the order of a live study (`core/ledger.py`): without cases, the baseline takes no pulls of its own, since every
pull draws both rewards. With cases, it goes first, through all of them, and the other arms wait.
"""

from ..core.certificate import FREED, PENDING, give_up
from ..core.kernel import SHUT, Board, observe
from ..core.places import KNOWN, case_at, fill, free, key_of, take
from ..core.question import count
from .proofs import Proof, is_over, reconsider
from .repetition import Arms, saw


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
    if asked.paired and asked.sign * mean >= asked.sign * other + arms.threshold:  # on the bar, up to rounding
        return max(value, arms.threshold)
    return value
