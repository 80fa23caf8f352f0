"""The result of a simulation: means over repetitions, with their standard errors."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ..core.sentences import question
from .crossing import Rows
from .families import Reals
from .questions import look_of
from .repetition import Measures
from .settled import LABELS, Certificates, known, standard_error
from .setup import Setup

Measure = Literal["accuracy", "success", "settled"]


@dataclass(frozen=True)
class Result:
    """Measurements, a number for each checkpoint.

    At a checkpoint, only rewards that have come back count; at the budget, the simulation waits for every reward. An
    arm without a reward counts as wrong.
    """

    setup: Setup
    repetitions: int
    seed: int
    threads: int
    measures: Measures
    seconds: float  # inside the compiled runs

    def each(self, measure: Measure) -> Rows:
        """The share of arms right, whether all are, or the share of arms settled, a row for each repetition."""
        if measure == "success":
            return np.asarray(self.measures.wrong == 0, np.float64)
        if measure == "settled":
            return self.measures.settled / self.setup.contenders
        return 1.0 - self.measures.wrong / self.setup.contenders

    @property
    def shares(self) -> Rows:
        """The share of arms right, a row for each repetition."""
        return self.each("accuracy")

    @property
    def accuracy(self) -> Reals:
        """The share of arms right."""
        mean: Reals = 1.0 - self.measures.wrong.sum(axis=0) / (self.repetitions * self.setup.contenders)
        return mean

    @property
    def accuracy_se(self) -> Reals:
        """Its standard error over repetitions."""
        return standard_error(self.shares)

    @property
    def success(self) -> Reals:
        """The share of repetitions with all arms right."""
        mean: Reals = (self.measures.wrong == 0).sum(axis=0) / self.repetitions
        return mean

    @property
    def success_se(self) -> Reals:
        """Its standard error over repetitions."""
        return standard_error(self.each("success"))

    @property
    def pulls_per_arm(self) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
        """Pulls issued of each arm, a row for each checkpoint, averaged over repetitions."""
        return self.measures.issued / self.repetitions

    @property
    def clock(self) -> Reals | None:
        """Time on the simulated clock, if the delay model has one."""
        return self.measures.clock.mean(axis=0) if self.setup.timing.timed else None

    @property
    def idle(self) -> float | None:
        """The share of time in which workers were idle."""
        if not self.setup.timing.timed:
            return None
        whole = self.setup.timing.capacity * self.measures.clock[:, -1].sum()
        return float(1.0 - self.measures.busy.sum() / whole)

    @property
    def pulls_per_second(self) -> float:
        """Simulated pulls per second over all threads, counting only time in compiled code."""
        return float(self.measures.used.sum()) / self.seconds

    @property
    def certificates(self) -> Certificates | None:
        """What was settled, if the setup has a confidence."""
        setup = self.setup
        if not setup.certifies:
            return None
        lower = setup.asked.lower_is_better
        names = ("below", "above", "close") if lower else LABELS  # those that reach the bar first
        lists = names[: 3 if setup.tolerance > 0.0 else 2] if setup.ranks else ()
        return Certificates(setup.contenders, self.measures, setup.find, setup.arms * setup.cases, lists)

    def rows(self) -> list[dict[str, Any]]:
        """A row for each checkpoint, ready for a table, CSV or JSON; the error of a single repetition is None."""
        clock = self.clock
        rows = []
        for index, pulls in enumerate(self.setup.checkpoints):
            row: dict[str, Any] = {"pulls": pulls}
            for name in ("accuracy", "accuracy_se", "success", "success_se"):
                row[name] = known(getattr(self, name)[index])
            if self.certificates is not None:
                row |= self.certificates.row(index)
            rows.append(row if clock is None else {**row, "seconds": float(clock[index])})
        return rows

    def to_json(self) -> dict[str, Any]:
        """Everything, as JSON-ready data."""
        ratio, setup, certificates = self.measures.ratio, self.setup, self.certificates
        asked = {"tolerance": setup.tolerance, "guarantee": setup.guarantee, "cases": setup.cases or None}
        return {
            "format": 1,
            "policy": str(setup.rules),
            "family": setup.family,
            "arms": setup.arms,
            "question": question(look_of(setup), setup.contenders),
            "bar": setup.asked.threshold,
            "lower_is_better": setup.asked.lower_is_better,
            "share": setup.asked.share,
            "baseline": setup.baseline,
            "ratio": setup.ratio,
            "bounds": list(setup.bounds),
            "delay": str(setup.timing),
            "budget": setup.budget,
            "repetitions": self.repetitions,
            "seed": self.seed,
            "threads": self.threads,
            "confidence": setup.confidence,
            **({} if certificates is None else {**asked, **certificates.to_json()}),
            "results": self.rows(),
            "in_flight": int(self.measures.in_flight.max()),
            "pending_ratio": {"mean": float(ratio.mean()), "max": float(ratio.max())},
            "idle": self.idle,
            "pulls_per_arm": self.pulls_per_arm[-1].tolist(),
            "seconds": self.seconds,
            "pulls_per_second": self.pulls_per_second,
        }
