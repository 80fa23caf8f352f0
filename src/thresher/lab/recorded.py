"""Recorded rewards: a file with one row per pull (see `thresher.core.results`), or the matrix of an eval set."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import numpy as np

from ..core import checks, results
from ..errors import InvalidInput
from ..text.escapes import unescaped_csv_cell
from ..text.files import read_csv, read_text
from .families import Reals


@dataclass(frozen=True)
class Recorded:
    """The recorded rewards of every arm.

    >>> data = Recorded(("a", "b"), ((0.1, 0.3), (0.8,)))
    >>> data.samples.tolist(), data.begins.tolist(), data.counts.tolist()
    ([0.2, 0.1, 0.3, 0.8, 0.8], [0.0, 3.0], [2.0, 1.0])
    """

    names: tuple[str, ...]
    rewards: tuple[tuple[float, ...], ...]
    pulls: int = 0  # in the file, without cancelled ones
    lost: int = 0  # pulls without a reward, or with a late one
    unseen: tuple[str, ...] = ()  # arms in the file without any reward; they are not among the names

    def __post_init__(self) -> None:
        if not self.names or len(self.names) != len(self.rewards):
            raise InvalidInput("recorded arms", self.names, "there must be rewards for each", "name arms and rewards")
        for name, rewards in zip(self.names, self.rewards, strict=True):
            if not rewards:
                raise InvalidInput("recorded arm", name, "has no reward", "record at least one reward of each arm")
            for reward in rewards:
                checks.checked_number(f"arm {name!r}, reward", reward)

    @cached_property
    def samples(self) -> Reals:
        """All rewards, arm after arm; the rewards of an arm come after their mean.

        The mean is rounded only once: ten times 0.7 has the mean 0.7, which clears a bar of 0.7.
        """
        return np.array([number for arm in self.rewards for number in (mean(arm), *arm)], dtype=np.float64)

    @cached_property
    def counts(self) -> Reals:
        """How many rewards there are, by arm."""
        return np.array([len(arm) for arm in self.rewards], dtype=np.float64)

    @cached_property
    def begins(self) -> Reals:
        """Where the mean and the rewards begin in the samples, by arm."""
        begins: Reals = np.cumsum(self.counts + 1.0) - (self.counts + 1.0)
        return begins

    @property
    def ends(self) -> Reals:
        """Same as `begins`, because recorded arms have fixed means."""
        return self.begins

    @property
    def family(self) -> str:
        """How the laboratory draws from it."""
        return "recorded"

    @property
    def pass_or_fail(self) -> bool:
        """Whether every reward is 0 or 1."""
        return all(reward in (0.0, 1.0) for arm in self.rewards for reward in arm)

    def check_bounds(self, low: float, high: float) -> None:
        """Raise unless every reward lies within the bounds."""
        for name, rewards in zip(self.names, self.rewards, strict=True):
            for reward in rewards:
                if not low <= reward <= high:
                    rule = f"a recorded reward must lie within the bounds ({low:g}, {high:g})"
                    raise InvalidInput(f"arm {name!r}, reward", reward, rule, "give the bounds that rewards have")


def read_recorded(path: str | Path) -> Recorded:
    """Read recorded rewards. Errors name the line (the header is line 1) and the column."""
    text = read_text(str(path))
    rows = results.read_results(results.read_json_results(text, str(path)), text, str(path))
    return gather_recorded(rows, str(path))


def gather_recorded(rows: Iterable[results.Row], file: str) -> Recorded:
    """The rewards in the rows of a file, by arm. Pulls without a reward are counted.

    Cancelled ones are skipped, and so are second rewards of a case.

    >>> rows = [results.Row("line 2", "a", "told", 0.5), results.Row("line 3", "a", "dropped", None)]
    >>> gather_recorded(rows, "file").lost
    1
    """
    by_arm: dict[str, list[float]] = {}
    pulls = lost = 0
    for row in rows:
        location, arm, state, reward = row.location, row.arm, row.state, row.reward
        name = arm.strip() if isinstance(arm, str) else ""
        if not name:
            raise InvalidInput(f"{location}: arm", arm, "is not a name", "name the arm")
        if state in (results.CANCELLED, results.SPARE):
            continue
        pulls, lost = pulls + 1, lost + (state in results.LOST)
        rewards = by_arm.setdefault(name, [])
        if reward is not None:
            rewards.append(number_in_recorded(reward, f"{location}: reward"))
    seen = {name: tuple(rewards) for name, rewards in by_arm.items() if rewards}
    if not seen:
        raise InvalidInput("file", file, "has no rewards", "record at least one reward of each arm")
    unseen = tuple(name for name in by_arm if name not in seen)
    return Recorded(tuple(seen), tuple(seen.values()), pulls, lost, unseen)


def number_in_recorded(reward: object, where: str) -> float:
    """The reward as a number, or an error that says where it is."""
    value = checks.as_float(reward)
    if value is None or not math.isfinite(value):
        raise InvalidInput(where, reward, "is not a finite number", "write one reward to a row, or leave the row out")
    return value


# Recorded results of an eval set: a reward for every arm and case, so that a study of them can be replayed.
#
# A wide CSV has a row per arm and a column per case; its first column has the names of the arms. A long CSV or a JSON
# list has a row per result, with arm, case and reward, as `thresher export` writes a study with cases.

SHAPES = "give a row per arm and a column per case, or columns arm, case and reward"


class Cell(NamedTuple):
    """The result of an arm on a case."""

    location: str  # such as: line 3 of results.csv
    arm: str
    case: str
    reward: Any  # as written
    late: bool = False  # its case may have been tried again, and then that reward counts


def read_recorded_matrix(path: str | Path) -> Recorded:
    """Read a matrix of rewards. Errors name the line (the header is line 1) and the column."""
    text = read_text(str(path))
    return gather_recorded_matrix(
        recorded_cells_in(results.read_json_results(text, str(path)), text, str(path)), str(path)
    )


def recorded_cells_in(data: object, text: str, file: str) -> Iterator[Cell]:
    r"""The results in a JSON list, if ``data`` is one, otherwise in CSV text.

    >>> [cell[1:4] for cell in recorded_cells_in(None, "model,q1,q2\na,1,pass\n", "f")]
    [('a', 'q1', 1.0), ('a', 'q2', True)]
    """
    if isinstance(data, list):
        return _long((f"row {count} of {file}", row) for count, row in enumerate(data, start=1))
    if isinstance(data, dict):
        raise InvalidInput("file", file, results.NO_EVENTS, SHAPES)
    columns, rows = read_csv(text, file)
    lower = [column.lower() for column in columns]
    if "reward" in lower:
        results.check_result_columns(lower, ("arm", "case", "reward"), file, SHAPES)
        return _long((location, dict(zip(lower, cells, strict=True))) for location, cells in rows)
    return _wide([unescaped_csv_cell(column) for column in columns], rows, file)


def recorded_cells_of(rows: Iterable[results.Row]) -> Iterator[Cell]:
    """The results that count of a study with cases: one for every case of an arm."""
    for row in rows:
        if row.reward is not None and row.state != results.SPARE:
            yield Cell(row.location, row.arm, str(row.case), row.reward, row.state == "late")


def gather_recorded_matrix(cells: Iterable[Cell], file: str) -> Recorded:
    """The rewards of every arm, in the order of the cases; every arm must have a reward for every case.

    >>> gather_recorded_matrix([Cell("line 2", "a", "q1", 1.0), Cell("line 2", "a", "q2", 0.5)], "f").rewards
    ((1.0, 0.5),)
    """
    by_arm: dict[str, dict[str, float]] = {}
    late: dict[str, dict[str, float]] = {}
    cases: dict[str, None] = {}
    for cell in cells:
        in_time, too_late = by_arm.setdefault(cell.arm, {}), late.setdefault(cell.arm, {})
        reward = number_in_recorded(cell.reward, f"{cell.location}: reward")
        cases[cell.case] = None
        if cell.case in in_time and not cell.late:
            rule = f"the result on case {cell.case!r} occurs twice"
            raise InvalidInput(f"{cell.location}: arm", cell.arm, rule, "a case has one reward: leave one row out")
        (too_late if cell.late else in_time)[cell.case] = reward
    if not by_arm:
        raise InvalidInput("file", file, "has no results", SHAPES)
    for arm, in_time in by_arm.items():
        rewards = by_arm[arm] = late[arm] | in_time
        missing = [case for case in cases if case not in rewards]
        if missing:
            rule = f"{len(missing):,} of {len(cases):,} cases have no reward in {file}, {missing[0]!r} first"
            raise InvalidInput("arm", arm, rule, "record every case of every arm, or leave out what is incomplete")
    return Recorded(tuple(by_arm), tuple(tuple(rewards[case] for case in cases) for rewards in by_arm.values()))


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
    return unescaped_csv_cell(value).strip() if isinstance(value, str) else "" if value is None else str(value)


def _reward(value: object) -> object:
    return results.number_in_result(value.strip() if isinstance(value, str) else value)
