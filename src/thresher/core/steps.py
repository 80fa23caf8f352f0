"""The steps around a decision: what a live study and the laboratory both do, with one tournament or two.

The rules of this file are those of `kernel.py`.
"""

from .kernel import Board, Formula, Rule, choose, rescore, rescore_all


def doubled(exploration: float, issued: int, arms: int) -> float:
    """A = 2^j while 2^j ≤ max(1, issued/K) < 2^(j+1); ``exploration`` is the value before.

    >>> doubled(1.0, 19, 10), doubled(1.0, 20, 10), doubled(1.0, 80, 10)
    (1.0, 2.0, 8.0)
    """
    while issued >= 2.0 * exploration * arms:
        exploration *= 2.0
    return exploration


def choose_for(board: Board, second: Board, pull: int, alternates: bool) -> int:
    """The arm for the pull with this id, or −1 if every arm is shut: even pulls use the second tournament, if any."""
    if alternates and pull % 2 == 0:
        return choose(second)
    return choose(board)


def rescore_both(
    board: Board,
    second: Board,
    arm: int,
    formula: Formula,
    rule: Rule,
    second_formula: Formula,
    second_rule: Rule,
    alternates: bool,
) -> None:
    """Update one arm's score in each tournament."""
    rescore(board, arm, formula, rule)
    if alternates:
        rescore(second, arm, second_formula, second_rule)


def rescore_asked(
    board: Board,
    second: Board,
    arm: int,
    formula: Formula,
    rule: Rule,
    second_formula: Formula,
    second_rule: Rule,
    alternates: bool,
    doubles: bool,
    issued: int,
) -> Rule:
    """Update the tournaments after pull number ``issued``, a pull of the arm; return the rule of the next decision."""
    if doubles:
        exploration = doubled(rule.exploration, issued, len(board.seen))
        if exploration != rule.exploration:
            rule = Rule(
                rule.threshold,
                exploration,
                rule.pending_weight,
                rule.warmup,
                rule.slack,
                rule.pending_ratio,
                rule.most,
                rule.finds,
            )
            rescore_all(board, formula, rule)
    rescore_both(board, second, arm, formula, rule, second_formula, second_rule, alternates)
    return rule
