"""One arm of a verdict: its label, its numbers, and whether the label is certified."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from . import kernel, sentences
from .ledger import Ledger

Label = Literal["above", "below", "close", "undecided", "retired"]
LABELS: tuple[Label, ...] = get_args(Label)


@dataclass(frozen=True, slots=True)
class Row:
    """One arm of a verdict; the names of the columns in JSON and CSV are the names here."""

    arm: str
    label: Label
    certified: bool
    mean: float | None  # None: no reward yet
    low: float | None  # an interval that holds at any time; None without certificates
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


def ranked(rows: Iterable[Row]) -> list[Row]:
    """Rows as people read them: by label, the highest mean first."""
    return sorted(rows, key=lambda row: (LABELS.index(row.label), -(row.mean or 0.0)))


def label_of(ledger: Ledger, arm: int) -> tuple[Label, bool]:
    """An arm's label, and whether it is certified."""
    settled = sentences.settled_label(ledger, arm)
    if settled is not None:
        return settled, ledger.is_certified(arm)
    if arm in ledger.retired:
        return "retired", False
    board, seen = ledger.board, ledger.board.seen[arm]
    if not seen:
        return "undecided", False
    total = board.total[arm] + board.residue[arm]
    return "above" if kernel.is_above(total, seen, ledger.spec.threshold) else "below", False


def row_of(ledger: Ledger, arm: int) -> Row:
    """What is known about one arm."""
    board, seen = ledger.board, ledger.board.seen[arm]
    mean = (board.total[arm] + board.residue[arm]) / seen if seen else None
    label, certified = label_of(ledger, arm)
    low, high = sentences.interval(ledger, arm, mean) or (None, None)
    return Row(
        arm=ledger.spec.arms[arm],
        label=label,
        certified=certified,
        mean=mean,
        low=low,
        high=high,
        seen=seen,
        pending=board.pending[arm],
        charged=ledger.docket.charged[arm] if ledger.certifies else 0,
        failures=ledger.failures[arm],
        progress=sentences.progress(ledger, arm),
        reason=ledger.retired.get(arm, ledger.complaint.get(arm)),
        cases=seen if ledger.cases else None,
        exact=ledger.is_exact(arm),
        missing=ledger.cases.missing[arm] if ledger.cases else 0,
    )


def openness(ledger: Ledger, arm: int) -> float:
    """How open an arm is, for display: smaller is more open; 0 without a reward; arms that are not open come last."""
    board, seen = ledger.board, ledger.board.seen[arm]
    if board.shut[arm] == kernel.SHUT:
        return kernel.NEVER
    if not seen:
        return 0.0
    gap = abs(board.mean[arm] - ledger.rule.threshold)
    return kernel.evt(gap, board.scatter[arm], seen, seen, 1.0)
