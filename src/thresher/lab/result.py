"""The result of a simulation: means over repetitions, with their standard errors."""

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ..core.sentences import question_sentence_of, sentence_wording
from ..text.escapes import escaped_csv_line
from .families import Reals
from .repetition import Measures
from .setup import Setup

# CSV text and a progress bar.


def csv_text(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> str:
    r"""Rows as CSV; a missing number is written as ``nan``.

    >>> csv_text([{"n": 5, "share": 0.25}, {"n": 10, "share": None}])
    'n,share\n5,0.25\n10,nan\n'
    """
    names = list(columns or rows[0])
    lines = (["nan" if row[name] is None else _short(row[name]) for name in names] for row in rows)
    return "".join(map(escaped_csv_line, [names, *lines]))


def _short(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else value


@contextmanager
def progress_bar(title: str, total: int) -> Iterator[Callable[[int], None] | None]:
    """A bar on standard error that counts pulls, or steps; None unless standard error is a terminal."""
    if total == 0 or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:3.0f} %"))
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda done: bar.advance(task, done)


# The first checkpoint at which a mean over repetitions reaches a level, and resampling for its error.

Rows = np.ndarray[tuple[int, int], np.dtype[np.float64]]
BOOTSTRAPS = 200
RANGE = (0.05, 0.95)  # quantiles: nine of ten repetitions


def first_reached(rows: Rows, level: float) -> int | None:
    """The first column whose mean reaches the level.

    >>> first_reached(np.array([[0.0, 0.9, 1.0], [0.0, 1.0, 1.0]]), 0.95)
    1
    """
    index = first_columns(rows.mean(axis=0, keepdims=True), level)[0]
    return int(index) if np.isfinite(index) else None


def first_columns(means: Rows, level: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The first column that reaches the level (up to rounding), by row; infinite if none does."""
    reached = means >= level - 1e-12
    return np.where(reached.any(axis=1), reached.argmax(axis=1), np.inf)


def resampled(rows: Rows, seed: int) -> Rows:
    """Means over resampled repetitions, with replacement; the same seed draws the same repetitions."""
    count = len(rows)
    weights = np.random.default_rng(seed).multinomial(count, np.full(count, 1.0 / count), size=BOOTSTRAPS)
    means: Rows = weights @ rows / count
    return means


# Certificates over repetitions: arms settled, labels wrong, pulls until all were settled.

LISTS = ("reached", "missed")  # arms that are certified to reach the bar, and to miss it


@dataclass(frozen=True)
class ResultCertificates:
    """Certificates at the checkpoints, and at the ends of the repetitions."""

    arms: int
    measures: Measures
    find: int | None = None  # how many arms that reach the bar end a repetition
    full_run: int = 0  # with cases: all cases of all arms
    lists: tuple[str, ...] = ()  # where the error rate is bounded: LISTS

    @property
    def share(self) -> Reals:
        """The share of settled arms, by checkpoint."""
        share: Reals = (self.measures.settled / self.arms).mean(axis=0)
        return share

    @property
    def any_wrong(self) -> Reals:
        """The share of repetitions with a wrong settled label, by checkpoint: at most the risk."""
        share: Reals = (self.measures.mislabelled > 0).mean(axis=0)
        return share

    @property
    def finished(self) -> float:
        """The share of repetitions that got to the end: every arm settled, or the search over."""
        reached, settled = self.measures.listed[:, 0], self.measures.settled[:, -1]
        if self.find is None:
            return self.all_settled
        return float(((reached >= self.find) | (reached + self.arms - settled < self.find)).mean())

    @property
    def found(self) -> float:
        """The share of repetitions that found as many arms as they were to find."""
        return float((self.measures.listed[:, 0] >= (self.find or 0)).mean())

    @property
    def all_settled(self) -> float:
        """The share of repetitions in which every arm was settled."""
        return float((self.measures.settled[:, -1] == self.arms).mean())

    @property
    def false_shares(self) -> dict[str, tuple[float, float | None]]:
        """By list: the share of wrong labels at the end, averaged over repetitions, and its standard error."""
        shares = self.measures.false / np.maximum(self.measures.listed, 1)
        means, errors = shares.mean(axis=0), standard_error_of_result(shares)
        return {name: (float(means[at]), number_in_result(errors[at])) for at, name in enumerate(self.lists)}

    @property
    def used(self) -> tuple[float, float | None]:
        """Pulls until the end or until the budget was issued: the mean and its standard error."""
        return float(self.measures.used.mean()), number_in_result(standard_error_of_result(self.measures.used)[0])

    @property
    def pulls_to_settle(self) -> tuple[float, float | None] | tuple[None, None]:
        """Pulls until the end: the mean and its standard error; None unless every repetition got there."""
        return self.used if self.finished == 1.0 else (None, None)

    def row(self, point: int) -> dict[str, Any]:
        """The figures of a checkpoint. Lists are known only at the end, so they are in the row of the last one."""
        errors = [
            standard_error_of_result(table)
            for table in (self.measures.settled / self.arms, self.measures.mislabelled > 0)
        ]
        row = {
            "settled": float(self.share[point]),
            "settled_se": number_in_result(errors[0][point]),
            "wrong_settled": float(self.measures.mislabelled[:, point].mean()),
            "any_wrong_settled": float(self.any_wrong[point]),
            "any_wrong_settled_se": number_in_result(errors[1][point]),
        }
        if self.full_run:
            pulls = np.minimum(self.measures.used, self.measures.checkpoints[point])
            row["full_run_share"] = float(pulls.mean()) / self.full_run
        is_last = point == len(self.measures.checkpoints) - 1
        for name, (share, error) in self.false_shares.items():
            row |= {f"false_{name}": share if is_last else None, f"false_{name}_se": error if is_last else None}
        return row

    def to_json(self) -> dict[str, Any]:
        """The figures at the ends of the repetitions."""
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


def standard_error_of_result(values: np.ndarray[Any, Any]) -> Reals:
    """The standard errors of the columns' means; NaN for a single row."""
    if len(values) < 2:
        return np.full(values.shape[1], np.nan)
    error: Reals = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    return error


def number_in_result(value: float) -> float | None:
    """The number, or None for NaN."""
    return None if math.isnan(value) else float(value)


Measure = Literal["accuracy", "success", "accuracy_within", "success_within", "settled"]


@dataclass(frozen=True)
class Result:
    """Measurements by checkpoint.

    An arm is right if its answer is: what is certified, otherwise the side of the bar that its mean is on. ``_within``:
    or if it is not wrong by more than `Setup.within`. At a checkpoint, only rewards that have come back count; at the
    budget, the simulation waits for every reward. An arm without a reward counts as wrong.
    """

    setup: Setup
    repetitions: int
    seed: int
    threads: int
    measures: Measures
    seconds: float  # inside the compiled runs

    def by_repetition(self, measure: Measure) -> Rows:
        """The share of arms right, whether all are, or the share of arms settled; a row per repetition."""
        if measure == "settled":
            return self.measures.settled / self.setup.contenders
        wrong = self.measures.beyond if measure.endswith("_within") else self.measures.wrong
        if measure.startswith("success"):
            return np.asarray(wrong == 0, np.float64)
        return 1.0 - wrong / self.setup.contenders

    @property
    def shares(self) -> Rows:
        """The share of arms right, a row per repetition."""
        return self.by_repetition("accuracy")

    @property
    def accuracy(self) -> Reals:
        """The share of arms right."""
        mean: Reals = 1.0 - self.measures.wrong.sum(axis=0) / (self.repetitions * self.setup.contenders)
        return mean

    @property
    def accuracy_se(self) -> Reals:
        """Its standard error over repetitions."""
        return standard_error_of_result(self.shares)

    @property
    def success(self) -> Reals:
        """The share of repetitions with all arms right."""
        mean: Reals = (self.measures.wrong == 0).sum(axis=0) / self.repetitions
        return mean

    @property
    def success_se(self) -> Reals:
        """Its standard error over repetitions."""
        return standard_error_of_result(self.by_repetition("success"))

    @property
    def accuracy_within(self) -> Reals:
        """The share of arms that are right, or not wrong by more than `Setup.within`."""
        mean: Reals = 1.0 - self.measures.beyond.sum(axis=0) / (self.repetitions * self.setup.contenders)
        return mean

    @property
    def success_within(self) -> Reals:
        """The share of repetitions in which no arm is wrong by more than `Setup.within`."""
        mean: Reals = (self.measures.beyond == 0).sum(axis=0) / self.repetitions
        return mean

    @property
    def pulls_per_arm(self) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
        """Pulls issued, averaged over repetitions: a row per checkpoint, a column per arm."""
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
    def certificates(self) -> ResultCertificates | None:
        """The figures about settled arms, if the setup has a confidence."""
        setup = self.setup
        if not setup.certifies:
            return None
        lists = LISTS if setup.ranks else ()
        return ResultCertificates(setup.contenders, self.measures, setup.find, setup.arms * setup.cases, lists)

    def rows(self) -> list[dict[str, Any]]:
        """A row per checkpoint, for a table, CSV or JSON; the error of a single repetition is None."""
        clock, rows = self.clock, []
        names: list[Measure] = ["accuracy", "success"]
        names += ["accuracy_within", "success_within"] if self.setup.within else []
        errors = {name: standard_error_of_result(self.by_repetition(name)) for name in names}
        for index, pulls in enumerate(self.setup.checkpoints):
            row: dict[str, Any] = {"pulls": pulls}
            for name in names:
                row |= {
                    name: number_in_result(getattr(self, name)[index]),
                    f"{name}_se": number_in_result(errors[name][index]),
                }
            if self.certificates is not None:
                row |= self.certificates.row(index)
            rows.append(row if clock is None else {**row, "seconds": float(clock[index])})
        return rows

    def to_json(self) -> dict[str, Any]:
        """All figures, ready for JSON."""
        ratio, setup, certificates = self.measures.ratio, self.setup, self.certificates
        asked = {"guarantee": setup.guarantee, "cases": setup.cases or None}
        return {
            "format": 1,
            "policy": str(setup.rules),
            "family": setup.family,
            "arms": setup.arms,
            "question": question_sentence_of(setup.spec),
            **{name: value for name, value in sentence_wording(setup.spec).asked.items() if name != "unit"},
            "baseline": setup.baseline,
            "bounds": list(setup.bounds),
            "delay": str(setup.timing),
            "budget": setup.budget,
            "repetitions": self.repetitions,
            "seed": self.seed,
            "threads": self.threads,
            "confidence": setup.confidence,
            "within": setup.within,
            **({} if certificates is None else {**asked, **certificates.to_json()}),
            "results": self.rows(),
            "in_flight": int(self.measures.in_flight.max()),
            "pending_ratio": {"mean": float(ratio.mean()), "max": float(ratio.max())},
            "idle": self.idle,
            "pulls_per_arm": self.pulls_per_arm[-1].tolist(),
            "seconds": self.seconds,
            "pulls_per_second": self.pulls_per_second,
        }
