"""One arm of a verdict: its label, its numbers, and whether the label is certified."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from . import intervals, kernel
from .certificate import ABOVE, CLOSE, OPEN
from .state import State

Label = Literal["above", "below", "close", "undecided", "retired", "baseline"]
MOST = 1e300  # stands for an infinite ratio, because JSON has no infinity
LABELS: tuple[Label, ...] = get_args(Label)
Side = Literal["above", "below"]


@dataclass(frozen=True, slots=True)
class Row:
    """One arm of a verdict; the names of the columns in JSON and CSV are the names here."""

    arm: str
    label: Label
    certified: bool
    mean: float | None  # None: no reward yet
    low: float | None  # an interval of what is asked about, that holds at any time; None without certificates
    high: float | None
    seen: int
    pending: int
    charged: int
    failures: int
    progress: float | None  # the evidence as a share of what settles the arm
    reason: str | None  # why the arm was retired, or why a pull of it last failed
    cases: int | None = None  # how many cases have a reward; None: the study has none
    exact: bool = False  # every case is known: the mean is exact
    missing: int = 0  # cases that failed too often to be tried again
    reached: bool | None = None  # whether the arm reaches the bar: the answer; None: close, undecided or retired
    share: float | None = None  # of the pulls that are within the limit, where the study asks about that
    difference: float | None = None  # the mean of the arm's rewards less the baseline's, where it asks about that
    baseline: float | None = None  # the mean of the baseline's rewards in the same pulls or cases
    median: float | None = None  # with a share: of the rewards; with a ratio, of the arm's over the baseline's
    quantile: float | None = None  # the one asked about: within the limit if the share is reached
    interval_disagrees: bool = False  # the label is certified, but the interval lies on the other side of the bar

    @property
    def estimate(self) -> float | None:
        """What is compared with the bar: the share or the difference, where the study asks about it, or the mean."""
        if self.share is not None:
            return self.share
        return self.mean if self.difference is None else self.difference

    @property
    def qualifier(self) -> str:
        """The words after "certified", if there are any."""
        return "exact" if self.exact else "interval disagrees" if self.interval_disagrees else ""


def sides(lower_is_better: bool) -> tuple[Side, Side]:
    """The label of the arms that reach the bar, and the label of those that do not.

    >>> sides(lower_is_better=True)
    ('below', 'above')
    """
    return ("below", "above") if lower_is_better else ("above", "below")


def ranked(rows: Iterable[Row], *, lower_is_better: bool = False) -> list[Row]:
    """Rows as people read them: the baseline, then by label, what reaches the bar and the best of it first."""
    order = ["baseline", *sides(lower_is_better), *LABELS[2:]]
    sign = 1.0 if lower_is_better else -1.0

    def key(row: Row) -> tuple[int, float]:
        if row.share is not None:
            return order.index(row.label), -row.share
        return order.index(row.label), sign * (row.estimate or 0.0)

    return sorted(rows, key=key)


def label_of(ledger: State, arm: int) -> tuple[Label, bool]:
    """An arm's label, and whether it is certified."""
    if arm == ledger.base:
        return "baseline", False
    if ledger.certifies and ledger.docket.settled[arm] != OPEN:
        return settled_label(ledger, arm), ledger.is_certified(arm)
    if arm in ledger.retired:
        return "retired", False
    board, seen = ledger.board, ledger.board.seen[arm]
    if not seen:
        return "undecided", False
    reaches = kernel.is_above(board.total[arm] + board.residue[arm], seen, ledger.spec.reach)
    return sides(ledger.spec.lower_is_better)[0 if reaches else 1], False


def settled_label(ledger: State, arm: int) -> Label:
    """The label of an arm that is settled."""
    label = ledger.docket.settled[arm]
    return "close" if label == CLOSE else sides(ledger.spec.lower_is_better)[0 if label == ABOVE else 1]


def row_of(ledger: State, arm: int) -> Row:
    """The row of one arm."""
    board, spec = ledger.board, ledger.spec
    seen = len(_base_rewards(ledger)) if arm == ledger.base else board.seen[arm]
    counted = (board.total[arm] + board.residue[arm]) / seen if seen else None
    label, certified = label_of(ledger, arm)
    is_weighed = ledger.certifies and arm != ledger.base and not ledger.is_outside(arm)
    low, high, disagrees = intervals.interval(ledger, arm, counted) if is_weighed else (None, None, False)
    row = Row(
        arm=spec.arms[arm],
        label=label,
        certified=certified,
        mean=None if counted is None else spec.shown(counted),
        low=low,
        high=high,
        seen=seen,
        pending=board.pending[arm],
        charged=ledger.docket.charged[arm] if ledger.certifies else 0,
        failures=ledger.failures[arm],
        progress=intervals.progress(ledger, arm) if is_weighed else None,
        reason=ledger.retired.get(arm, ledger.complaint.get(arm)),
        cases=seen if ledger.cases else None,
        exact=ledger.is_exact(arm),
        missing=ledger.cases.missing[arm] if ledger.cases else 0,
        reached=label == sides(spec.lower_is_better)[0] if label in ("above", "below") else None,
        interval_disagrees=disagrees,
    )
    return replace(row, **_values(ledger, arm, counted)) if ledger.values and seen else row


def _values(ledger: State, arm: int, counted: float | None) -> dict[str, Any]:
    """The row's further numbers where the question is about a share or a baseline."""
    spec = ledger.spec
    if arm == ledger.base:
        return {"mean": _mean(_base_rewards(ledger))}
    rewards, others = ledger.values[arm], ledger.others[arm] if ledger.others else ()
    numbers = {"mean": _mean(rewards), **({"baseline": _mean(others)} if others else {})}
    if spec.share is None:
        return {**numbers, "difference": None if counted is None else spec.shown(counted)}
    values = sorted(_compared(rewards, others, spec.ratio)) if others else sorted(rewards)
    if values:
        numbers["median"] = (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2.0
        numbers["quantile"] = middle(values, spec.share, lower_is_better=spec.lower_is_better)
    return {**numbers, "share": counted}


def _compared(rewards: Iterable[float], others: Iterable[float], ratio: float | None) -> list[float]:
    """Each reward divided by the baseline's, or minus it. If both are 0, the ratio asked about is just reached."""
    pairs = zip(rewards, others, strict=True)
    if ratio is None:
        return [reward - other for reward, other in pairs]
    return [min(reward / other, MOST) if other else MOST if reward else ratio for reward, other in pairs]


def middle(values: list[float], share: float, *, lower_is_better: bool) -> float:
    """The quantile of sorted values: within the limit exactly if at least the share of them is.

    >>> middle([1.0, 2.0, 3.0, 4.0], 0.75, lower_is_better=True), middle([1.0, 2.0, 3.0], 0.5, lower_is_better=False)
    (3.0, 2.0)
    """
    rank = max(1, math.ceil(share * len(values) * (1 - 1e-15)))
    return values[rank - 1] if lower_is_better else values[-rank]


def _base_rewards(ledger: State) -> list[float]:
    """Every reward of the baseline."""
    if ledger.cases:
        return [ledger.spec.clipped(reward) for reward in ledger.table.values()]
    return [other for column in ledger.others for other in column]


def _mean(values: Iterable[float]) -> float | None:
    numbers = list(values)
    return math.fsum(numbers) / len(numbers) if numbers else None


def openness(ledger: State, arm: int) -> float:
    """How open an arm is, for display: smaller is more open; 0 without a reward; arms that are not open come last."""
    board, seen = ledger.board, ledger.board.seen[arm]
    if board.shut[arm] == kernel.SHUT:
        return kernel.NEVER
    if not seen:
        return 0.0
    gap = abs(board.mean[arm] - ledger.rule.bar)
    return kernel.evt(gap, board.scatter[arm], seen, seen, 1.0)
