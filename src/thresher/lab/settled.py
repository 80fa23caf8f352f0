"""Certificates over repetitions: arms settled, labels wrong, pulls until all were settled."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .families import Reals
from .parts import Measures


@dataclass(frozen=True)
class Certificates:
    """Certificates at the checkpoints, and at the end of each repetition."""

    arms: int
    measures: Measures

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
        """The share of repetitions in which every arm was settled."""
        return float((self.measures.settled[:, -1] == self.arms).mean())

    @property
    def used(self) -> tuple[float, float | None]:
        """Pulls until every arm was settled or the budget was issued: the mean and its standard error."""
        return float(self.measures.used.mean()), known(standard_error(self.measures.used)[0])

    @property
    def pulls_to_settle(self) -> tuple[float, float | None] | tuple[None, None]:
        """Pulls until every arm was settled: the mean and its error; None unless every repetition got there."""
        return self.used if self.finished == 1.0 else (None, None)

    def row(self, place: int) -> dict[str, Any]:
        """One checkpoint."""
        errors = [standard_error(table) for table in (self.measures.settled / self.arms, self.measures.mislabelled > 0)]
        return {
            "settled": float(self.share[place]),
            "settled_se": known(errors[0][place]),
            "wrong_settled": float(self.measures.mislabelled[:, place].mean()),
            "any_wrong_settled": float(self.any_wrong[place]),
            "any_wrong_settled_se": known(errors[1][place]),
        }

    def to_json(self) -> dict[str, Any]:
        """The end of the repetitions."""
        pulls, error = self.pulls_to_settle
        return {
            "all_settled": self.finished,
            "pulls_used": self.used[0],
            "pulls_used_se": self.used[1],
            "pulls_to_settle": pulls,
            "pulls_to_settle_se": error,
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
