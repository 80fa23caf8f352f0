"""Certificates over repetitions: arms settled, labels wrong, pulls until all were settled."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .families import Reals
from .repetition import Measures

LABELS = ("above", "below", "close")


@dataclass(frozen=True)
class Certificates:
    """Certificates at the checkpoints, and at the end of each repetition."""

    arms: int
    measures: Measures
    find: int | None = None  # how many arms above end a repetition
    full_run: int = 0  # with cases: all cases of all arms
    lists: tuple[str, ...] = ()  # where the error rate is bounded: the lists of settled arms, by label

    @property
    def share(self) -> Reals:
        """The share of settled arms, at each checkpoint."""
        share: Reals = (self.measures.settled / self.arms).mean(axis=0)
        return share

    @property
    def any_wrong(self) -> Reals:
        """The share of repetitions with a wrong settled label, at each checkpoint: at most the risk."""
        share: Reals = (self.measures.mislabelled > 0).mean(axis=0)
        return share

    @property
    def finished(self) -> float:
        """The share of repetitions that got to the end: every arm settled, or the search over."""
        above, settled = self.measures.listed[:, 0], self.measures.settled[:, -1]
        if self.find is None:
            return self.all_settled
        return float(((above >= self.find) | (above + self.arms - settled < self.find)).mean())

    @property
    def found(self) -> float:
        """The share of repetitions that found as many arms above as they were to find."""
        return float((self.measures.listed[:, 0] >= (self.find or 0)).mean())

    @property
    def all_settled(self) -> float:
        """The share of repetitions in which every arm was settled."""
        return float((self.measures.settled[:, -1] == self.arms).mean())

    @property
    def false_shares(self) -> dict[str, tuple[float, float | None]]:
        """Of each list at the end, the share of wrong labels, averaged over repetitions, and its standard error.

        An empty list has none.
        """
        shares = self.measures.false / np.maximum(self.measures.listed, 1)
        means, errors = shares.mean(axis=0), standard_error(shares)
        return {name: (float(means[at]), known(errors[at])) for at, name in enumerate(self.lists)}

    @property
    def used(self) -> tuple[float, float | None]:
        """Pulls until the end or until the budget was issued: the mean and its standard error."""
        return float(self.measures.used.mean()), known(standard_error(self.measures.used)[0])

    @property
    def pulls_to_settle(self) -> tuple[float, float | None] | tuple[None, None]:
        """Pulls until the end: the mean and its standard error; None unless every repetition got there."""
        return self.used if self.finished == 1.0 else (None, None)

    def row(self, point: int) -> dict[str, Any]:
        """One checkpoint. What is known of the lists is about the end, so it is in the row of the last one."""
        errors = [standard_error(table) for table in (self.measures.settled / self.arms, self.measures.mislabelled > 0)]
        row = {
            "settled": float(self.share[point]),
            "settled_se": known(errors[0][point]),
            "wrong_settled": float(self.measures.mislabelled[:, point].mean()),
            "any_wrong_settled": float(self.any_wrong[point]),
            "any_wrong_settled_se": known(errors[1][point]),
        }
        if self.full_run:
            pulls = np.minimum(self.measures.used, self.measures.checkpoints[point])
            row["full_run_share"] = float(pulls.mean()) / self.full_run
        is_last = point == len(self.measures.checkpoints) - 1
        for name, (share, error) in self.false_shares.items():
            row |= {f"false_{name}": share if is_last else None, f"false_{name}_se": error if is_last else None}
        return row

    def to_json(self) -> dict[str, Any]:
        """The end of the repetitions."""
        pulls, error = self.pulls_to_settle
        more: dict[str, Any] = {} if self.find is None else {"find": self.find, "found": self.found}
        if self.full_run:
            more |= {"full_run": self.full_run, "full_run_share": self.used[0] / self.full_run}
        for name, (share, share_error) in self.false_shares.items():
            more |= {f"false_{name}": share, f"false_{name}_se": share_error}
        return {
            "all_settled": self.all_settled,
            "pulls_used": self.used[0],
            "pulls_used_se": self.used[1],
            "pulls_to_settle": pulls,
            "pulls_to_settle_se": error,
            **more,
        }


def standard_error(values: np.ndarray[Any, Any]) -> Reals:
    """The standard error of the mean of each column; a single row has none, so NaN."""
    if len(values) < 2:
        return np.full(values.shape[1], np.nan)
    error: Reals = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    return error


def known(value: float) -> float | None:
    """The number, or None for NaN."""
    return None if math.isnan(value) else float(value)
