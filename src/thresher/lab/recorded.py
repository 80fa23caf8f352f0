"""Rewards recorded in a CSV file: one row a reward, with the columns ``arm`` and ``reward``."""

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import mean

import numpy as np

from thresher.errors import InvalidInput

from . import checks
from .families import Reals

WORDS = {"true": 1.0, "pass": 1.0, "false": 0.0, "fail": 0.0}


@dataclass(frozen=True)
class Recorded:
    """The recorded rewards of each arm.

    >>> data = Recorded(("a", "b"), ((0.1, 0.3), (0.8,)))
    >>> data.samples.tolist(), data.begins.tolist(), data.counts.tolist()
    ([0.2, 0.1, 0.3, 0.8, 0.8], [0.0, 3.0], [2.0, 1.0])
    """

    names: tuple[str, ...]
    rewards: tuple[tuple[float, ...], ...]

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
        """All rewards, arm after arm, each arm's behind their mean.

        The mean is exact but for one rounding: ten times 0.7 has the mean 0.7, which a bar of 0.7 does not shut out.
        """
        return np.array([number for arm in self.rewards for number in (mean(arm), *arm)], dtype=np.float64)

    @cached_property
    def counts(self) -> Reals:
        """How many rewards each arm has."""
        return np.array([len(arm) for arm in self.rewards], dtype=np.float64)

    @cached_property
    def begins(self) -> Reals:
        """Where each arm's mean and rewards begin among the samples."""
        begins: Reals = np.cumsum(self.counts + 1.0) - (self.counts + 1.0)
        return begins

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


def read(path: str | Path, *, expected: Sequence[str] = ()) -> Recorded:
    """Read recorded rewards; errors name the row (the header is row 1) and the column."""
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            rows = list(csv.reader(file))
    except OSError as error:
        raise InvalidInput("file", str(path), f"cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidInput("file", str(path), f"is not a CSV file: {error}") from error
    header = [cell.strip().lower() for cell in rows[0]] if rows else []
    for column in ("arm", "reward"):
        if column not in header:
            rule = f"its first row names no column {column!r}"
            raise InvalidInput("file", str(path), rule, "write the columns arm,reward")
    arm_at, reward_at = header.index("arm"), header.index("reward")
    found: dict[str, list[float]] = {}
    for number, row in enumerate(rows[1:], start=2):
        if not any(cell.strip() for cell in row):
            continue
        name = row[arm_at].strip() if arm_at < len(row) else ""
        if not name:
            raise InvalidInput(f"{path}, row {number}, column arm", "", "is empty", "name the arm")
        text = row[reward_at].strip() if reward_at < len(row) else ""
        found.setdefault(name, []).append(_number(text, f"{path}, row {number}, column reward"))
    missing = [name for name in expected if name not in found]
    if missing or not found:
        rule = f"has no reward of {len(missing)} arms, {missing[0]!r} first" if missing else "has no rewards"
        raise InvalidInput("file", str(path), rule, "record at least one reward of each arm")
    return Recorded(tuple(found), tuple(tuple(rewards) for rewards in found.values()))


def _number(text: str, where: str) -> float:
    value = WORDS.get(text.lower())
    if value is None:
        try:
            value = float(text)
        except ValueError:
            raise InvalidInput(where, text, "is not a number", "write one reward to a row") from None
    if not math.isfinite(value):
        raise InvalidInput(where, text, "is not a finite number", "leave the row out, or write a reward")
    return value
