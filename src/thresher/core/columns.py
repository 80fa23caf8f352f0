"""Empty columns, for a live study and for the laboratory."""

import math
from array import array
from collections.abc import Callable
from typing import Any

from . import error_rate, evidence, kernel, places
from .docket import Docket
from .spec import Spec

# Makes a column of this many zeros. The typecode is "d" for real numbers and "q", "i" or "b" for whole ones.
Zeros = Callable[[str, int], Any]

Table = Callable[[str, int, int], Any]  # the same with a row for each arm, of this many columns


def table(code: str, rows: int, columns: int) -> Any:
    """Rows of a live study, which grow when they are needed."""
    return [array("b" if code == "b" else "q") for _ in range(rows)]


def zeros(code: str, size: int) -> Any:
    """A column of a live study.

    Arrays, not lists: they are a tenth slower at K = 100, but the garbage collector need not walk a million arms.
    """
    return array("d" if code == "d" else "q", [0]) * size


def tree_size(leaves: int) -> int:
    """The size of a tournament, an implicit tree whose leaves are filled up to a power of two.

    >>> [tree_size(leaves) for leaves in (1, 2, 3, 4, 5)]
    [2, 4, 8, 8, 16]
    """
    return 2 << (leaves - 1).bit_length()


def board(arms: int, zeros: Zeros = zeros) -> kernel.Board:
    """A board without any reward."""
    nodes = tree_size(arms)
    return kernel.Board(
        seen=zeros("q", arms),
        pending=zeros("q", arms),
        mean=zeros("d", arms),
        scatter=zeros("d", arms),
        total=zeros("d", arms),
        residue=zeros("d", arms),
        shut=zeros("b", arms),
        best=zeros("d", nodes),
        winner=zeros("i", nodes),
    )


def second(board: kernel.Board, zeros: Zeros = zeros) -> kernel.Board:
    """A second tournament over the same arms."""
    nodes = len(board.best)
    return board._replace(best=zeros("d", nodes), winner=zeros("i", nodes))


def docket(arms: int, pulls: int = 0, zeros: Zeros = zeros) -> Docket:
    """A docket without any pull, with room for this many; pull 0 means none."""
    return Docket(
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
    arms, confidence = specification.contenders, specification.confidence
    return stakes(bar, tolerance, arms, confidence, ranks=specification.guarantee == "rate")


def stakes(
    bar: float,
    tolerance: float,
    arms: int,
    confidence: float | None,
    *,
    ranks: bool = False,
) -> evidence.Stakes:
    """The stakes for a scaled bar and tolerance. Without certificates nothing is bet: the bar may lie anywhere."""
    level = math.inf if confidence is None else arms / (1.0 - confidence)
    upward, downward = (array("d", evidence.bets(edge if edge > 0 else 1.0)) for edge in (bar, 1.0 - bar))
    return evidence.Stakes(bar, tolerance, level, evidence.UNREACHED if ranks else level, upward, downward)


def sheet(arms: int, cases: int, pulls: int = 0, zeros: Zeros = zeros, table: Table = table) -> places.Sheet:
    """A sheet on which every place is free. Without cases it is empty."""
    some = arms if cases else 0
    found = places.Sheet(
        cases=cases,
        places=zeros("q", some),
        lowest=zeros("q", some),
        least=zeros("d", some),
        most=zeros("d", some),
        state=table("b", some, cases),
        entry=table("q", some, cases),
        place=zeros("q", pulls + 1 if cases else 0),
    )
    for arm in range(some):
        found.places[arm] = cases
    return found


def ranking(arms: int, level: float, width: int, zeros: Zeros = zeros) -> error_rate.Ranking:
    """Empty lists; a level of 0 means that arms are not ranked."""
    some, nodes, lists = (arms, tree_size(arms), error_rate.LISTS) if level else (0, 0, 0)
    found = error_rate.Ranking(
        level=level,
        arms=arms,
        rank=zeros("q", lists * some),
        reached=zeros("q", lists),
        head=zeros("q", lists * some),
        after=zeros("q", lists * some),
        before=zeros("q", lists * some),
        peak=zeros("q", lists * nodes),
        added=zeros("q", lists * nodes),
        found=zeros("q", some),
        scratch=zeros("d", width if level else 0),
    )
    if level:
        error_rate.clear(found)
    return found
