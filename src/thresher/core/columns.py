"""Empty columns, for a live study and for the laboratory."""

from array import array
from collections.abc import Callable
from typing import Any

from . import error_rate, places
from .board import Board
from .evidence import BETS, Docket

FEW = 10_000  # up to so many arms, columns are lists

# Makes a column of this many zeros. The typecode is "d" for real numbers and "q", "i" or "b" for whole ones.
Zeros = Callable[[str, int], Any]

Table = Callable[[str, int, int], Any]  # the same with a row for each arm, of this many columns


def table_of_columns(code: str, rows: int, columns: int) -> Any:
    """Rows of a live study, which grow when they are needed."""
    return [array("b" if code == "b" else "q") for _ in range(rows)]


def column_of_zeros(code: str, size: int) -> Any:
    """A column of a live study.

    A list for few arms: it is faster. An array for many, which the garbage collector need not walk, and for pulls,
    whose columns begin with one entry and grow.
    """
    if 1 < size <= FEW:
        return [0.0 if code == "d" else 0] * size
    return array("d" if code == "d" else "q", [0]) * size


def tree_columns_size(leaves: int) -> int:
    """The size of a tournament, an implicit tree whose leaves are filled up to a power of two.

    >>> [tree_columns_size(leaves) for leaves in (1, 2, 3, 4, 5)]
    [2, 4, 8, 8, 16]
    """
    return 2 << (leaves - 1).bit_length()


def blank_board_columns(arms: int, zeros: Zeros = column_of_zeros) -> Board:
    """A board without any reward."""
    nodes = tree_columns_size(arms)
    return Board(
        seen=zeros("q", arms),
        pending=zeros("q", arms),
        mean=zeros("d", arms),
        scatter=zeros("d", arms),
        total=zeros("d", arms),
        residue=zeros("d", arms),
        shut=zeros("b", arms),
        best=zeros("d", nodes),
        winner=zeros("i", nodes),
        lead=column_of_ones(arms, zeros),
    )


def column_of_ones(arms: int, zeros: Zeros) -> Any:
    """A column of ones."""
    column = zeros("d", arms)
    for arm in range(arms):
        column[arm] = 1.0
    return column


def second_board_columns(board: Board, zeros: Zeros = column_of_zeros) -> Board:
    """A second tournament over the same arms."""
    nodes = len(board.best)
    return board._replace(best=zeros("d", nodes), winner=zeros("i", nodes))


def blank_docket_columns(arms: int, pulls: int = 0, zeros: Zeros = column_of_zeros) -> Docket:
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


def blank_sheet_columns(
    arms: int, cases: int, pulls: int = 0, zeros: Zeros = column_of_zeros, table: Table = table_of_columns
) -> places.Sheet:
    """A sheet on which every place is free. Without cases it is empty."""
    some = arms if cases else 0
    empty = places.Sheet(
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
        empty.places[arm] = cases
    return empty


def blank_ranking_columns(arms: int, level: float, zeros: Zeros = column_of_zeros) -> error_rate.Ranking:
    """Empty lists; a level of 0 means that arms are not ranked."""
    some, nodes, lists = (arms, tree_columns_size(arms), error_rate.LISTS) if level else (0, 0, 0)
    empty = error_rate.Ranking(
        level=level,
        arms=arms,
        rank=zeros("q", lists * some),
        reached=zeros("q", lists),
        head=zeros("q", lists * some),
        after=zeros("q", lists * some),
        before=zeros("q", lists * some),
        peak=zeros("q", lists * nodes),
        added=zeros("q", lists * nodes),
        newly_settled=zeros("q", some),
        scratch=zeros("d", 2 * BETS if level else 0),
    )
    if level:
        error_rate.clear_error_rate_lists(empty)
    return empty
