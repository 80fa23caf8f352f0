"""Empty columns, for a live study and for the laboratory."""

import math
from array import array
from collections.abc import Callable
from typing import Any

from . import evidence, kernel
from .spec import Spec

# Makes a column of this many zeros. The typecode is "d" for real numbers and "q", "i" or "b" for whole ones.
Zeros = Callable[[str, int], Any]


def zeros(code: str, size: int) -> Any:
    """A column of a live study.

    Arrays, not lists: they are a tenth slower at K = 100, but the garbage collector need not walk a million arms.
    """
    return array("d" if code == "d" else "q", [0]) * size


def board(arms: int, zeros: Zeros = zeros) -> kernel.Board:
    """A board without any reward."""
    leaves = 1
    while leaves < arms:
        leaves *= 2
    return kernel.Board(
        seen=zeros("q", arms),
        pending=zeros("q", arms),
        mean=zeros("d", arms),
        scatter=zeros("d", arms),
        total=zeros("d", arms),
        residue=zeros("d", arms),
        shut=zeros("b", arms),
        best=zeros("d", 2 * leaves),
        winner=zeros("i", 2 * leaves),
    )


def second(board: kernel.Board, zeros: Zeros = zeros) -> kernel.Board:
    """A second tournament over the same arms."""
    nodes = len(board.best)
    return board._replace(best=zeros("d", nodes), winner=zeros("i", nodes))


def docket(arms: int, pulls: int = 0, zeros: Zeros = zeros) -> evidence.Docket:
    """A docket without any pull, with room for this many; pull 0 means none."""
    return evidence.Docket(
        first=zeros("q", arms),
        last=zeros("q", arms),
        waiting=zeros("q", arms),
        committed=zeros("q", arms),
        charged=zeros("q", arms),
        settled=zeros("q", arms),
        following=zeros("q", pulls + 1),
        outcome=zeros("b", pulls + 1),
        reward=zeros("d", pulls + 1),
    )


def stakes_of(specification: Spec) -> evidence.Stakes:
    """The stakes of a study."""
    low, high = specification.span
    bar, tolerance = specification.scaled_threshold, specification.tolerance / (high - low)
    return stakes(bar, tolerance, len(specification.arms), specification.confidence, specification.rule)


def stakes(
    bar: float, tolerance: float, arms: int, confidence: float | None, rule: int = evidence.RULE
) -> evidence.Stakes:
    """The stakes for a scaled bar and tolerance. Without certificates nothing is bet: the bar may lie anywhere."""
    level = math.inf if confidence is None else arms / (1.0 - confidence)
    upward, downward = (array("d", evidence.bets(rule, edge if edge > 0 else 1.0)) for edge in (bar, 1.0 - bar))
    return evidence.Stakes(bar, tolerance, level, rule, upward, downward)
