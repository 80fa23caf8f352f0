"""Recorded rewards, from a file with one row per pull (see `thresher.core.results`)."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import mean

import numpy as np

from ..core import checks, results
from ..errors import InvalidInput
from ..text.files import read_text
from .families import Reals


@dataclass(frozen=True)
class Recorded:
    """The recorded rewards of each arm.

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
                checks.number(f"arm {name!r}, reward", reward)

    @cached_property
    def samples(self) -> Reals:
        """All rewards, arm after arm, each arm's after their mean.

        The mean is rounded only once: ten times 0.7 has the mean 0.7, which clears a bar of 0.7.
        """
        return np.array([number for arm in self.rewards for number in (mean(arm), *arm)], dtype=np.float64)

    @cached_property
    def counts(self) -> Reals:
        """How many rewards each arm has."""
        return np.array([len(arm) for arm in self.rewards], dtype=np.float64)

    @cached_property
    def begins(self) -> Reals:
        """Where each arm's mean and rewards begin in the samples."""
        begins: Reals = np.cumsum(self.counts + 1.0) - (self.counts + 1.0)
        return begins

    @property
    def ends(self) -> Reals:
        """Equal to `begins`: recorded arms are not drawn."""
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


def read(path: str | Path) -> Recorded:
    """Read recorded rewards. Errors name the line (the header is line 1) and the column."""
    text = read_text(str(path))
    rows = results.read_rows(results.read_json(text, str(path)), text, str(path))
    return gather(rows, str(path))


def gather(rows: Iterable[results.Row], file: str) -> Recorded:
    """The rewards in the rows of a file, by arm. Pulls without a reward are counted.

    Cancelled ones are skipped, and so are second rewards of a case.

    >>> gather([results.Row("line 2", "a", "told", 0.5), results.Row("line 3", "a", "dropped", None)], "f").lost
    1
    """
    found: dict[str, list[float]] = {}
    pulls = lost = 0
    for row in rows:
        location, arm, state, reward = row.location, row.arm, row.state, row.reward
        name = arm.strip() if isinstance(arm, str) else ""
        if not name:
            raise InvalidInput(f"{location}: arm", arm, "is not a name", "name the arm")
        if state in (results.CANCELLED, results.SPARE):
            continue
        pulls, lost = pulls + 1, lost + (state in results.LOST)
        mine = found.setdefault(name, [])
        if reward is not None:
            mine.append(finite_number(reward, f"{location}: reward"))
    seen = {name: tuple(rewards) for name, rewards in found.items() if rewards}
    if not seen:
        raise InvalidInput("file", file, "has no rewards", "record at least one reward of each arm")
    unseen = tuple(name for name in found if name not in seen)
    return Recorded(tuple(seen), tuple(seen.values()), pulls, lost, unseen)


def finite_number(reward: object, where: str) -> float:
    """The reward as a number, or an error that says where it is."""
    value = checks.as_float(reward)
    if value is None or not math.isfinite(value):
        raise InvalidInput(where, reward, "is not a finite number", "write one reward to a row, or leave the row out")
    return value
