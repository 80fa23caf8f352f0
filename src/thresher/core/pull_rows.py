"""All pulls of a study as a table."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple, overload

from ..text.phrasing import plural
from . import seeds
from .cases import Cases
from .events import Event, Remarks, other_of, remarks_of, when
from .row_text import frame
from .spec import Spec


class PullRow(NamedTuple):
    """One pull of a study and what became of it."""

    id: int
    arm: str
    number: int
    seed: int
    state: str  # pending, told, dropped, late (dropped first, told afterwards) or outside (the bounds)
    reward: float | None
    agent: str | None  # the one that asked for it
    asked: datetime | None
    ended: datetime | None  # None while it is pending; for a late reward, when that came
    case: str | int | None = None
    baseline: float | None = None  # of a pair: the baseline's reward
    note: str | None = None  # what the evaluator said about the reward
    cost: float | None = None  # what the evaluator said that the pull cost


class Pulls(Sequence[PullRow]):
    """Every pull of a study, in the order in which they were issued.

    >>> import thresher
    >>> study = thresher.create_study("coins", arms=["fair", "loaded"], at_least=0.6, budget=20)
    >>> study.tell(study.ask(), 1)
    >>> [(row.id, row.arm, row.state, row.reward) for row in study.pulls()]
    [(1, 'fair', 'told', 1.0)]
    """

    def __init__(self, rows: Iterable[PullRow]) -> None:
        self._rows = tuple(rows)

    @overload
    def __getitem__(self, at: int) -> PullRow: ...
    @overload
    def __getitem__(self, at: slice) -> "Pulls": ...
    def __getitem__(self, at: int | slice) -> "PullRow | Pulls":
        return Pulls(self._rows[at]) if isinstance(at, slice) else self._rows[at]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[PullRow]:
        return iter(self._rows)

    def __repr__(self) -> str:
        return f"<{plural(len(self), 'pull')}>"

    def to_frame(self) -> Any:
        """The pulls as a pandas DataFrame, a row each; an error if pandas is not installed."""
        return frame(list(self._rows), columns=list(PullRow._fields))


def pulls_in(spec: Spec, events: Iterable[Event]) -> Pulls:
    """Every pull that a log tells of."""
    rows: list[PullRow] = []
    numbers, cases = [0] * len(spec.arms), Cases(spec) if spec.cases is not None else None
    for event in events:
        if event.kind == "asked":
            rows.append(_asked(spec, event, numbers, cases))
        elif event.pull is not None and event.kind != "repeated":
            at = event.pull - 1
            rows[at] = _changed(rows[at], event, spec.pairs, of_baseline=spec.pairs and event.arm == spec.base)
            if cases:
                cases.follow(event)
    return Pulls(rows)


def _asked(spec: Spec, event: Event, numbers: list[int], cases: Cases | None) -> PullRow:
    arm: int = event.arm  # type: ignore[assignment]  # the journal has checked it
    pull: int = event.pull  # type: ignore[assignment]
    numbers[arm] += 1
    case = None
    if cases:
        cases.follow(event)
        case = cases.pull_case[-1]
    seed = seeds.seed_of(arm, numbers[arm], spec, case)
    row = PullRow(pull, spec.arms[arm], numbers[arm], seed, "pending", None, event.agent, when(event.time), None)
    return row if case is None else row._replace(case=spec.case_name(case))


def _changed(row: PullRow, event: Event, pairs: bool, *, of_baseline: bool) -> PullRow:
    if event.kind == "told":
        state = "late" if event.late else "told"
        remarks = remarks_of(event) or Remarks()
        told = row._replace(state=state, reward=event.reward, ended=when(event.time))
        return told._replace(baseline=other_of(event) if pairs else None, note=remarks.note, cost=remarks.cost)
    if event.kind == "dropped":
        return row._replace(state="dropped", ended=when(event.time))
    if row.state in ("pending", "dropped") and of_baseline:
        return row._replace(state="outside", baseline=event.reward, ended=when(event.time))
    if row.state in ("pending", "dropped"):  # retired for its reward; else it keeps the reward that it was told
        return row._replace(state="outside", reward=event.reward, ended=when(event.time))
    return row
