"""Recorded results of an eval set: a reward for every arm and case, so that a study of them can be replayed.

A wide CSV has a row for each arm and a column for each case; its first column has the names of the arms. A long CSV or
a JSON list has a row for each result, with arm, case and reward, as `thresher export` writes a study with cases.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..core import results
from ..errors import InvalidInput
from ..text.escapes import text_of
from ..text.files import read_csv, read_text
from .recorded import Recorded, finite_number

SHAPES = "give a row per arm and a column per case, or columns arm, case and reward"


class Cell(NamedTuple):
    """One result."""

    location: str  # such as: line 3 of results.csv
    arm: str
    case: str
    reward: Any  # as written
    late: bool = False  # its case may have been tried again, and then that reward counts


def read(path: str | Path) -> Recorded:
    """Read a matrix of rewards. Errors name the line (the header is line 1) and the column."""
    text = read_text(str(path))
    return gather(cells_in(results.read_json(text, str(path)), text, str(path)), str(path))


def cells_in(data: object, text: str, file: str) -> Iterator[Cell]:
    r"""The results in a JSON list, if ``data`` is one, otherwise in CSV text.

    >>> [cell[1:4] for cell in cells_in(None, "model,q1,q2\na,1,pass\n", "f")]
    [('a', 'q1', 1.0), ('a', 'q2', True)]
    """
    if isinstance(data, list):
        return _long((f"row {count} of {file}", row) for count, row in enumerate(data, start=1))
    if isinstance(data, dict):
        raise InvalidInput("file", file, results.NO_EVENTS, SHAPES)
    columns, rows = read_csv(text, file)
    lower = [column.lower() for column in columns]
    if "reward" in lower:
        results.check_columns(lower, ("arm", "case", "reward"), file, SHAPES)
        return _long((location, dict(zip(lower, cells, strict=True))) for location, cells in rows)
    return _wide([text_of(column) for column in columns], rows, file)


def cells_of(rows: Iterable[results.Row]) -> Iterator[Cell]:
    """The results of a study with cases: each case of an arm has one that counts."""
    for row in rows:
        if row.reward is not None and row.state != results.SPARE:
            yield Cell(row.location, row.arm, str(row.case), row.reward, row.state == "late")


def gather(cells: Iterable[Cell], file: str) -> Recorded:
    """The rewards of every arm, in the order of the cases; each arm must have one for every case.

    >>> gather([Cell("line 2", "a", "q1", 1.0), Cell("line 2", "a", "q2", 0.5)], "f").rewards
    ((1.0, 0.5),)
    """
    found: dict[str, dict[str, float]] = {}
    spare: dict[str, dict[str, float]] = {}  # late rewards
    cases: dict[str, None] = {}
    for cell in cells:
        mine, others = found.setdefault(cell.arm, {}), spare.setdefault(cell.arm, {})
        reward = finite_number(cell.reward, f"{cell.location}: reward")
        cases[cell.case] = None
        if cell.case in mine and not cell.late:
            rule = f"the result on case {cell.case!r} occurs twice"
            raise InvalidInput(f"{cell.location}: arm", cell.arm, rule, "a case has one reward: leave one row out")
        (others if cell.late else mine)[cell.case] = reward
    if not found:
        raise InvalidInput("file", file, "has no results", SHAPES)
    for arm, mine in found.items():
        mine.update({case: reward for case, reward in spare[arm].items() if case not in mine})
        missing = [case for case in cases if case not in mine]
        if missing:
            rule = f"{len(missing):,} of {len(cases):,} cases have no reward in {file}, {missing[0]!r} first"
            raise InvalidInput("arm", arm, rule, "record every case of every arm, or leave out what is incomplete")
    return Recorded(tuple(found), tuple(tuple(mine[case] for case in cases) for mine in found.values()))


def _long(rows: Iterable[tuple[str, Any]]) -> Iterator[Cell]:
    for location, row in rows:
        if not isinstance(row, dict) or any(row.get(name) is None for name in ("arm", "case")):
            raise InvalidInput(location, row, "must have an arm, a case and a reward", SHAPES)
        arm, case, state = (_text(row.get(name)) for name in ("arm", "case", "state"))
        reward = row.get("reward")
        empty = reward is None or str(reward).strip() == ""
        if not arm or not case:
            raise InvalidInput(f"{location}: {'case' if arm else 'arm'}", "", "is empty", SHAPES)
        if empty and not state:
            raise InvalidInput(f"{location}: reward", "", "is empty", results.NO_REWARD)
        if not empty and state != results.SPARE:
            yield Cell(location, arm, case, _reward(reward), state == "late")


def _wide(columns: Sequence[str], rows: Iterable[tuple[str, list[str]]], file: str) -> Iterator[Cell]:
    cases, known = columns[1:], set[str]()
    if not cases:
        raise InvalidInput("file", file, "has no column of a case", SHAPES)
    for case in cases:
        if not case or case in known:
            raise InvalidInput(f"line 1 of {file}: case", case, "is given twice" if case else "has no name", SHAPES)
        known.add(case)
    arms = set[str]()
    for location, (name, *rewards) in rows:
        arm = _text(name)
        if not arm or arm in arms:
            rule = "is given twice" if arm else "is empty"
            raise InvalidInput(f"{location}: arm", arm, rule, "write one row for each arm, with its name first")
        arms.add(arm)
        for case, reward in zip(cases, rewards, strict=True):
            if not reward.strip():
                raise InvalidInput(f"{location}: case", case, "has no reward", "record every case of every arm")
            yield Cell(location, arm, case, _reward(reward))


def _text(value: object) -> str:
    return text_of(value).strip() if isinstance(value, str) else "" if value is None else str(value)


def _reward(value: object) -> object:
    return results.number(value.strip() if isinstance(value, str) else value)
