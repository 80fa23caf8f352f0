"""The board: what is known about every arm, the tournament of their scores, and the steps that a decision is made of.

The rules of this file:

1. Decisions use only ``+ - * / sqrt abs`` and comparisons. These round the same way on every machine, so a decision
   can be derived again anywhere. (Only ``lsa`` needs a logarithm; its decisions repeat on the same machine.)
2. A score reads only its own arm, so a decision costs O(log K).
3. Plain functions on columns. A live study calls them as they are; the laboratory compiles these same functions, all
   but `apply_formula`, for arrays. So: no exceptions, closures or dicts, and no imports except ``math``, ``typing`` and
   ``collections.abc``.
4. Formulas guard their own divisions by zero.

Rewards and bar are scaled to [0, 1]. The smallest score is pulled next; of equal computed scores, the
lowest arm's.
"""

import math
from collections.abc import Callable, MutableSequence
from typing import NamedTuple

NEVER = math.inf  # the score of an arm that takes no further pulls
WAITING = 1e290  # times the pending pulls: the score of an arm that must see rewards before it takes more pulls
LEAST = 1e-280  # with `find`: a smaller capital counts as this
LAST = 1e298  # times the pending pulls: the score of an arm that is pulled only where no other arm can be
SHUT, SKIPPED = 1, 2  # an arm takes no further pulls, or only where no other arm can be pulled
FAR = 1e280  # a cost above every budget, below the score of an arm that must wait
UNBOUNDED = 1e300  # the pending ratio that allows any number of pending pulls, once there is a reward

Formula = Callable[[float, float, int, float, float], float]


class Rule(NamedTuple):
    """What a score depends on, besides its arm: a formula, and scalars."""

    formula: Formula
    bar: float  # b, scaled
    exploration: float  # a; for `cheapest` its constant c
    pending_weight: float  # δ
    warmup: int
    slack: float  # added to the gap
    pending_ratio: float = UNBOUNDED  # η: an arm with more pending pulls than this per reward seen waits
    most: float = UNBOUNDED  # for `cheapest`: what settles an arm for certain, all cases
    finds: bool = False  # the arm with the most evidence that it reaches the bar comes first
    doubles: bool = False  # the exploration doubles whenever the number of pulls has
    alternates: bool = False  # even pulls follow a second rule, in a tournament of its own


def uniform_formula(gap: float, scatter: float, seen: int, weight: float, exploration: float) -> float:
    """Pulls every arm equally often."""
    return weight


def apt_formula(gap: float, scatter: float, seen: int, weight: float, exploration: float) -> float:
    """√e · Δ̂: Locatelli et al. 2016, called ATP in the paper.

    >>> apt_formula(0.5, 0.0, 4, 4.0, 1.0)
    1.0
    """
    return math.sqrt(weight) * gap


def evt_formula(gap: float, scatter: float, seen: int, weight: float, exploration: float) -> float:
    """Δ̂ / (a/e + √(a/e) σ̂): eq:S_k; with pending pulls in the weight it is AP-EVT, eq:S_k-2; σ̂ in its 1/T form, eq:var.

    >>> evt_formula(0.5, 1.0, 4, 4.0, 4.0)
    0.3333333333333333
    """
    ratio = exploration / weight
    return gap / (ratio + math.sqrt(ratio) * math.sqrt(scatter / seen))


def evt_supplement_formula(gap: float, scatter: float, seen: int, weight: float, exploration: float) -> float:
    """Δ̂ / (3a/e + √(2σ̂² a/e)): B_i(t) of the supplement.

    >>> evt_supplement_formula(0.5, 2.0, 4, 4.0, 4.0)
    0.125
    """
    ratio = exploration / weight
    return gap / (3.0 * ratio + math.sqrt(2.0 * (scatter / seen) * ratio))


def evt_pf_formula(gap: float, scatter: float, seen: int, weight: float, exploration: float) -> float:
    """√e (√(σ̂² + Δ̂) − σ̂), the parameter-free B_k(t), in the form that keeps its digits at small gaps.

    >>> evt_pf_formula(0.5625, 1.0, 1, 4.0, 1.0)
    0.5
    """
    if gap <= 0.0:
        return 0.0
    variance = scatter / seen
    return math.sqrt(weight) * gap / (math.sqrt(variance + gap) + math.sqrt(variance))


def lsa_formula(gap: float, scatter: float, seen: int, weight: float, exploration: float) -> float:
    """α e Δ̂² + ½ ln e with α = 1.35: Tao et al. 2019.

    >>> lsa_formula(0.5, 0.0, 1, 1.0, 1.0)
    0.3375
    """
    return 1.35 * weight * gap * gap + 0.5 * math.log(weight)


def cheapest_formula(gap: float, scatter: float, seen: int, weight: float, exploration: float) -> float:
    """About how many pulls settle the arm, ``c (s²/gap² + 1/gap)``, but no fewer than it has had.

    s² = (scatter + 1/4) / (seen + 1) keeps two equal rewards from looking like no noise; c is ``exploration``.

    >>> cheapest_formula(0.5, 0.25, 1, 1.0, 2.0)
    6.0
    """
    if gap < 1e-100:
        return FAR
    cost = exploration * ((scatter + 0.25) / (seen + 1) / (gap * gap) + 1.0 / gap)
    if cost > FAR:
        return FAR
    return max(weight, cost)


def apply_formula(rule: Rule, gap: float, scatter: float, seen: int, weight: float) -> float:
    """The value of the rule's formula. Compiled code has another one of that name: see `lab/compiled_scores.py`."""
    return rule.formula(gap, scatter, seen, weight, rule.exploration)


def doubled_formula_exploration(exploration: float, issued: int, arms: int) -> float:
    """The exploration a = 2^j while 2^j ≤ max(1, issued/K) < 2^(j+1); ``exploration`` is the value before.

    >>> [doubled_formula_exploration(1.0, issued, 10) for issued in (19, 20, 80)]
    [1.0, 2.0, 8.0]
    """
    while issued >= 2.0 * exploration * arms:
        exploration *= 2.0
    return exploration


FORMULAS: dict[str, Formula] = {  # by the names that policies give them
    "uniform": uniform_formula,
    "apt": apt_formula,
    "evt": evt_formula,
    "evt_pf": evt_pf_formula,
    "lsa": lsa_formula,
    "cheapest": cheapest_formula,
}


class Board(NamedTuple):
    """Columns with what is known about every arm, and the tournament that finds the smallest score.

    ``best`` and ``winner`` are an implicit binary tree padded to a power of two: node 1 is the root, the children
    of node i are 2i and 2i + 1, and the leaf of arm k is node len(best) / 2 + k.
    """

    seen: MutableSequence[int]  # T: rewards observed
    pending: MutableSequence[int]  # τ: pulls issued whose rewards are not back yet
    mean: MutableSequence[float]  # Welford's, of scaled rewards: only for scores
    scatter: MutableSequence[float]  # Σ(x − mean)², of scaled rewards
    total: MutableSequence[float]  # the sum of raw rewards ...
    residue: MutableSequence[float]  # ... and what its rounding lost: these two are for labels and printed means
    shut: MutableSequence[int]  # SHUT or SKIPPED; 0: the arm is open
    best: MutableSequence[float]
    winner: MutableSequence[int]
    lead: MutableSequence[float]  # the capital for above, 1 before the first reward: for `find`


def score_on_board(board: Board, arm: int, rule: Rule) -> float:
    """The arm's score: negative in the warm-up, then the formula, then arms that wait, then shut ones."""
    seen = board.seen[arm]
    pending = board.pending[arm]
    shut = board.shut[arm]
    if shut != 0:
        return NEVER if shut == SHUT else LAST * (1 + pending)
    if seen + pending < rule.warmup:
        return float(seen + pending - rule.warmup)
    if pending > rule.pending_ratio * seen:  # always true before the first reward
        return WAITING * pending
    if rule.finds:
        return math.sqrt(1.0 + pending) / max(board.lead[arm], LEAST)
    gap = abs(board.mean[arm] - rule.bar) + rule.slack
    weight = seen + rule.pending_weight * pending
    return min(apply_formula(rule, gap, board.scatter[arm], seen, weight), rule.most)


def play_board_match(best: MutableSequence[float], winner: MutableSequence[int], node: int) -> None:
    """Move the better child of a node up; on a tie the left one, which holds the lower arms."""
    child = 2 * node
    if best[child + 1] < best[child]:
        child += 1
    best[node] = best[child]
    winner[node] = winner[child]


def climb_board(best: MutableSequence[float], winner: MutableSequence[int], leaf: int, score: float) -> None:
    """Give a leaf its score and play every match on its way to the root.

    The matches are those of `play_board_match`. The winner is kept in local variables: reading back what was just
    written would cost more than the match. No score is NaN, and the tree is consistent: once the leaf neither was nor
    becomes the winner of a node, nothing above that node changes.
    """
    node = len(best) // 2 + leaf
    if best[node] == score:
        return
    champion = winner[node]
    best[node] = score
    while node > 1:
        rival = node ^ 1
        other = best[rival]
        challenger = winner[rival]  # read it even if it loses: compiled, a match is then no branch, and a third faster
        if other < score or (other == score and challenger < champion):
            score = other
            champion = challenger
        node >>= 1
        if winner[node] != leaf and champion != leaf:  # in this order: compiled, it then costs next to nothing
            return
        best[node] = score
        winner[node] = champion


def rescore_board(board: Board, rule: Rule) -> None:
    """Update every score and the whole tournament."""
    leaves = len(board.best) // 2
    for leaf in range(leaves):
        board.winner[leaves + leaf] = leaf
        board.best[leaves + leaf] = score_on_board(board, leaf, rule) if leaf < len(board.seen) else NEVER
    for node in range(leaves - 1, 0, -1):
        play_board_match(board.best, board.winner, node)


def add_exactly_on_board(total: float, residue: float, value: float) -> tuple[float, float]:
    """A sum and what its rounding lost, with one more value: Neumaier's.

    >>> add_exactly_on_board(1.0, 0.0, 2.0**-53)
    (1.0, 1.1102230246251565e-16)
    """
    grown = total + value
    residue += (total - grown) + value if abs(total) >= abs(value) else (value - grown) + total
    return grown, residue


def observe_on_board(board: Board, arm: int, scaled: float, raw: float) -> None:
    """Count a reward of the arm: Welford's update of mean and scatter, and the raw total."""
    seen = board.seen[arm] + 1
    mean = board.mean[arm]
    ahead = scaled - mean
    mean += ahead / seen
    board.seen[arm] = seen
    board.mean[arm] = mean
    board.scatter[arm] += ahead * (scaled - mean)
    board.total[arm], board.residue[arm] = add_exactly_on_board(board.total[arm], board.residue[arm], raw)


def board_total_with_missing(total: float, residue: float, missing: int, reward: float) -> float:
    """The sum of raw rewards after ``missing`` more that are all the same, rounded as if they had been observed.

    Rounded otherwise, a label that follows from the missing rewards could differ from the one after the last of them.

    >>> board_total_with_missing(0.75, 0.0, 3, 0.25), 3 * 0.1, board_total_with_missing(0.0, 0.0, 3, 0.1)
    (1.5, 0.30000000000000004, 0.30000000000000004)
    >>> 0.4 + 3 * 0.7, board_total_with_missing(0.4, 0.0, 3, 0.7)
    (2.4999999999999996, 2.5)
    """
    product = missing * reward
    upper = 134217729.0 * reward  # Dekker's product: half of the digits at a time are multiplied without rounding
    upper -= upper - reward
    error = (missing * upper - product) + missing * (reward - upper)
    grown, error = add_exactly_on_board(total, error, product)
    return grown + (residue + error)


# The steps around a decision: what a live study and the laboratory both do, with one tournament or two.


def choose_from_boards(board: Board, second: Board, rule: Rule, pull: int) -> int:
    """The arm for the pull with this id, or −1 if every arm is shut: even pulls use the second tournament, if any."""
    if rule.alternates and pull % 2 == 0:
        board = second
    return board.winner[1] if board.best[1] < NEVER else -1


def rescore_arm_on_boards(board: Board, second: Board, arm: int, rule: Rule, second_rule: Rule) -> None:
    """Update one arm's score in each tournament."""
    climb_board(board.best, board.winner, arm, score_on_board(board, arm, rule))
    if rule.alternates:
        climb_board(second.best, second.winner, arm, score_on_board(second, arm, second_rule))


def rescore_boards(board: Board, second: Board, rule: Rule, second_rule: Rule) -> None:
    """Update every score in each tournament."""
    rescore_board(board, rule)
    if rule.alternates:
        rescore_board(second, second_rule)


def rescore_boards_after_ask(board: Board, second: Board, arm: int, rule: Rule, second_rule: Rule, issued: int) -> Rule:
    """Update the tournaments after pull number ``issued``, a pull of the arm; return the rule of the next decision."""
    if rule.doubles and issued >= 2.0 * rule.exploration * len(board.seen):
        rule = Rule(
            rule.formula,
            rule.bar,
            doubled_formula_exploration(rule.exploration, issued, len(board.seen)),
            rule.pending_weight,
            rule.warmup,
            rule.slack,
            rule.pending_ratio,
            rule.most,
            rule.finds,
            rule.doubles,
            rule.alternates,
        )
        rescore_board(board, rule)
    climb_board(board.best, board.winner, arm, score_on_board(board, arm, rule))
    if rule.alternates:
        climb_board(second.best, second.winner, arm, score_on_board(second, arm, second_rule))
    return rule


def shut_on_board(board: Board, arm: int, shut: int) -> int:
    """Say whether the arm takes pulls; return by how many this changes the number of arms that do."""
    change = int(board.shut[arm] == SHUT) - int(shut == SHUT)
    board.shut[arm] = shut
    return change


def stays_shut_on_board(arm: int, base: int, cases: int, waits: bool) -> bool:
    """Whether the arm takes no pulls because of the baseline, the arm ``base`` (−1: there is none).

    Without cases, the baseline is pulled only in pairs. With cases, it goes first, and the other arms wait for it. If
    it is retired, they never open, unless all its cases are already known or given up.
    """
    if base < 0:
        return False
    return cases == 0 if arm == base else waits
