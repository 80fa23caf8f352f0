"""The steps around a decision: what a live study and the laboratory both do, with one tournament or two.

The rules of this file are those of `kernel.py`.
"""

from .kernel import Board, Rule, choose, rescore, rescore_all


def doubled(exploration: float, issued: int, arms: int) -> float:
    """The exploration a = 2^j while 2^j ≤ max(1, issued/K) < 2^(j+1); ``exploration`` is the value before.

    >>> doubled(1.0, 19, 10), doubled(1.0, 20, 10), doubled(1.0, 80, 10)
    (1.0, 2.0, 8.0)
    """
    while issued >= 2.0 * exploration * arms:
        exploration *= 2.0
    return exploration


def choose_for(board: Board, second: Board, rule: Rule, pull: int) -> int:
    """The arm for the pull with this id, or −1 if every arm is shut: even pulls use the second tournament, if any."""
    if rule.alternates and pull % 2 == 0:
        return choose(second)
    return choose(board)


def rescore_both(board: Board, second: Board, arm: int, rule: Rule, second_rule: Rule) -> None:
    """Update one arm's score in each tournament."""
    rescore(board, arm, rule)
    if rule.alternates:
        rescore(second, arm, second_rule)


def rescore_everything(board: Board, second: Board, rule: Rule, second_rule: Rule) -> None:
    """Update every score in each tournament."""
    rescore_all(board, rule)
    if rule.alternates:
        rescore_all(second, second_rule)


def rescore_asked(board: Board, second: Board, arm: int, rule: Rule, second_rule: Rule, issued: int) -> Rule:
    """Update the tournaments after pull number ``issued``, a pull of the arm; return the rule of the next decision."""
    if rule.doubles and issued >= 2.0 * rule.exploration * len(board.seen):
        rule = Rule(
            rule.formula,
            rule.threshold,
            doubled(rule.exploration, issued, len(board.seen)),
            rule.pending_weight,
            rule.warmup,
            rule.slack,
            rule.pending_ratio,
            rule.most,
            rule.finds,
            rule.doubles,
            rule.alternates,
        )
        rescore_all(board, rule)
    rescore_both(board, second, arm, rule, second_rule)
    return rule


def stays_shut(arm: int, base: int, cases: int, waits: bool) -> bool:
    """Whether the arm takes no pulls because of the baseline, the arm ``base`` (−1: there is none).

    Without cases, the baseline is pulled only in pairs. With cases, it goes first, and the other arms wait for it. If
    it is retired, they never open, unless all its cases are already known or given up.
    """
    if base < 0:
        return False
    return cases == 0 if arm == base else waits
