"""The columns of a live study, empty."""

from array import array

from . import evidence, kernel
from .spec import Spec


def stakes(specification: Spec) -> evidence.Stakes:
    """What certificates are measured against."""
    low, high = specification.bounds or (0.0, 1.0)
    level = len(specification.arms) / (1.0 - (specification.confidence or 0.0))
    return stakes_of(specification.scaled_threshold, specification.tolerance / (high - low), level, specification.rule)


def stakes_of(bar: float, tolerance: float, level: float, rule: int = evidence.RULE) -> evidence.Stakes:
    """The stakes for a scaled bar and tolerance. Without certificates a bar may lie anywhere, and nothing is bet."""
    upward, downward = (array("d", evidence.bets(rule, edge if edge > 0 else 1.0)) for edge in (bar, 1.0 - bar))
    return evidence.Stakes(bar, tolerance, level, rule, upward, downward)


def docket(arms: int) -> evidence.Docket:
    """A docket of so many arms and no pull yet."""
    whole = array("q", [0])
    return evidence.Docket(
        first=whole * arms,
        last=whole * arms,
        waiting=whole * arms,
        committed=whole * arms,
        charged=whole * arms,
        settled=whole * arms,
        following=array("q", [0]),  # of pull 0, which is none
        outcome=array("q", [0]),
        reward=array("d", [0.0]),
    )


def board(arms: int) -> kernel.Board:
    """A board of so many arms without any reward."""
    leaves = 1
    while leaves < arms:
        leaves *= 2
    # arrays, not lists: a tenth slower at K = 100, but at K = 1,000,000 the garbage collector need not walk them
    whole, real = array("q", [0]), array("d", [0.0])
    return kernel.Board(
        seen=whole * arms,
        pending=whole * arms,
        mean=real * arms,
        scatter=real * arms,
        total=real * arms,
        residue=real * arms,
        shut=whole * arms,
        best=real * (2 * leaves),
        winner=whole * (2 * leaves),
    )
