"""One arm of a verdict: whether it reaches the bar, whether that is certified, and its numbers."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

from . import forecast, intervals, question
from .board import NEVER, SHUT, evt_formula
from .evidence import ABOVE, OPEN
from .state import State

MOST = 1e300  # stands for an infinite ratio, because JSON has no infinity
Standing = Literal["baseline", "reaches", "misses", "open", "retired"]
ORDER: tuple[Standing, ...] = ("baseline", "reaches", "misses", "open", "retired")  # as people read them


@dataclass(frozen=True, slots=True)
class Row:
    """One arm of a verdict; the names of the columns in JSON and CSV are the names here."""

    arm: str
    reached: bool | None  # the settled answer, or the side of the bar that the mean is on; None: no reward, baseline
    certified: bool  # whether that is settled
    mean: float | None  # None: no reward yet
    low: float | None  # an interval of what is asked about, that holds at any time; None without certificates
    high: float | None
    seen: int
    pending: int
    charged: int
    failures: int
    left: int | None  # about how many pulls will settle it, an estimate; None: there is no telling
    reason: str | None  # why the arm was retired, or why a pull of it last failed
    retired: bool = False  # it takes no more pulls, by hand or after failures
    cases: int | None = None  # how many cases have a reward; None: the study has none
    exact: bool = False  # every case is known: the mean is exact
    missing: int = 0  # cases that failed too often to be tried again
    share: float | None = None  # of the pulls that are within the limit, where the study asks about that
    difference: float | None = None  # the mean of the arm's rewards less the baseline's, where it asks about that
    baseline: float | None = None  # the mean of the baseline's rewards in the same pulls or cases
    median: float | None = None  # with a share: of the rewards; with a ratio, of the arm's over the baseline's
    quantile: float | None = None  # the one asked about: within the limit if the share is reached
    interval_disagrees: bool = False  # the answer is certified, but the interval lies beyond the other edge
    standing: Standing = "open"  # where the arm stands; reaches and misses are certified, or means where nothing is

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


def ranked_rows(rows: Iterable[Row], *, lower_is_better: bool = False) -> list[Row]:
    """Rows as people read them: the baseline, what reaches the bar, misses it and is open; the best of each first."""
    sign = 1.0 if lower_is_better else -1.0

    def key(row: Row) -> tuple[int, float]:
        return ORDER.index(row.standing), -row.share if row.share is not None else sign * (row.estimate or 0.0)

    return sorted(rows, key=key)


def row_reaches(ledger: State, arm: int) -> bool | None:
    """Whether an arm reaches the bar: as settled, or else by the side that its mean is on."""
    if arm == ledger.base:
        return None
    if ledger.certifies and ledger.docket.settled[arm] != OPEN:
        return ledger.docket.settled[arm] == ABOVE
    board, seen = ledger.board, ledger.board.seen[arm]
    return question.is_above(board.total[arm] + board.residue[arm], seen, ledger.spec.reach) if seen else None


def standing_in_row(ledger: State, arm: int) -> Standing:
    """Where an arm stands."""
    if arm == ledger.base:
        return "baseline"
    reached = row_reaches(ledger, arm)
    if reached is not None and (ledger.is_certified(arm) or not (ledger.certifies or arm in ledger.retired)):
        return "reaches" if reached else "misses"
    return "retired" if arm in ledger.retired else "open"


def row_of(ledger: State, arm: int) -> Row:
    """The row of one arm."""
    board, spec = ledger.board, ledger.spec
    seen = len(_base_rewards(ledger)) if arm == ledger.base else board.seen[arm]
    counted = (board.total[arm] + board.residue[arm]) / seen if seen else None
    reached = row_reaches(ledger, arm)
    is_weighed = ledger.certifies and arm != ledger.base and not ledger.is_outside(arm)
    low, high, disagrees = intervals.interval(ledger, arm, counted) if is_weighed else (None, None, False)
    row = Row(
        arm=spec.arms[arm],
        reached=reached,
        certified=arm != ledger.base and ledger.is_certified(arm),
        mean=None if counted is None else spec.shown(counted),
        low=low,
        high=high,
        seen=seen,
        pending=board.pending[arm],
        charged=ledger.docket.charged[arm] if ledger.certifies else 0,
        failures=ledger.failures[arm],
        left=forecast.forecast_arm_left(ledger, arm) if is_weighed and arm not in ledger.retired else None,
        reason=ledger.retired.get(arm, ledger.complaint.get(arm)),
        retired=arm in ledger.retired,
        cases=seen if ledger.cases else None,
        exact=ledger.is_exact(arm),
        missing=ledger.cases.missing[arm] if ledger.cases else 0,
        interval_disagrees=disagrees,
        standing=standing_in_row(ledger, arm),
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
        numbers["quantile"] = row_quantile(values, spec.share, lower_is_better=spec.lower_is_better)
    return {**numbers, "share": counted}


def _compared(rewards: Iterable[float], others: Iterable[float], ratio: float | None) -> list[float]:
    """Each reward divided by the baseline's, or minus it. If both are 0, the ratio asked about is just reached."""
    pairs = zip(rewards, others, strict=True)
    if ratio is None:
        return [reward - other for reward, other in pairs]
    return [min(reward / other, MOST) if other else MOST if reward else ratio for reward, other in pairs]


def row_quantile(values: list[float], share: float, *, lower_is_better: bool) -> float:
    """The quantile of sorted values: within the limit exactly if at least the share of them is.

    >>> row_quantile([1.0, 2.0, 3.0, 4.0], 0.75, lower_is_better=True)
    3.0
    >>> row_quantile([1.0, 2.0, 3.0], 0.5, lower_is_better=False)
    2.0
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


def row_openness(ledger: State, arm: int) -> float:
    """How open an arm is, for display: smaller is more open; 0 without a reward; arms that are not open come last."""
    board, seen = ledger.board, ledger.board.seen[arm]
    if board.shut[arm] == SHUT:
        return NEVER
    if not seen:
        return 0.0
    gap = abs(board.mean[arm] - ledger.rule.bar)
    return evt_formula(gap, board.scatter[arm], seen, seen, 1.0)
