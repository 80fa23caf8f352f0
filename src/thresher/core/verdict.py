"""What a ledger says: a label for every arm, and how sure it is."""

import json
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from typing import Any

from ..text.escapes import cell, csv_line, markdown
from . import kernel, sentences
from .ledger import Ledger

LABELS = ("above", "below", "close", "undecided", "retired")
SIDES = ("above", "below")  # what an arm is called before it is certain


@dataclass(frozen=True, slots=True)
class Row:
    """One arm of a verdict; the names of the columns in JSON and CSV are the names here."""

    name: str
    label: str  # one of LABELS
    certified: bool
    mean: float | None  # None: no reward yet
    low: float | None  # an interval that holds at any time; None without certificates
    high: float | None
    seen: int
    pending: int
    charged: int
    failures: int
    progress: float | None  # the evidence as a share of the way to certainty
    reason: str | None


@dataclass(frozen=True)
class Verdict:
    """The answer so far. ``above``, ``below``, ``close``, ``undecided`` and ``retired`` part the arms."""

    study: str
    threshold: float
    bounds: tuple[float, float] | None
    policy: str
    confidence: float | None
    budget: int | None
    issued: int
    told: int
    pending: int
    done: bool
    guarantee: str
    hints: tuple[str, ...]
    rows: tuple[Row, ...]
    open: list[str]  # the arms that still take pulls: neither settled nor retired
    outside: tuple[str, ...] = ()  # arms that returned a reward outside the bounds: not certified, whatever their label
    earlier: int = field(default=0, compare=False)  # rewards that were there when this process opened the study
    since: str | None = field(default=None, compare=False)  # when that study was created, as 2026-11-17T02:41:12Z
    others: int = field(default=0, compare=False)  # rewards that other agents told since
    events: int = field(default=0, compare=False)  # of the log that this is the answer of
    head: str | None = field(default=None, compare=False)  # the digest of its last event, and so of all of them

    @cached_property
    def _by_label(self) -> dict[str, list[str]]:
        parts: dict[str, list[str]] = {label: [] for label in LABELS}
        for row in self.rows:
            parts[row.label].append(row.name)
        return parts

    @property
    def above(self) -> list[str]:
        """The arms whose mean reaches the bar."""
        return self._by_label["above"]

    @property
    def below(self) -> list[str]:
        """The arms whose mean lies below the bar."""
        return self._by_label["below"]

    @property
    def close(self) -> list[str]:
        """The arms that are provably within the tolerance of the bar."""
        return self._by_label["close"]

    @property
    def undecided(self) -> list[str]:
        """The arms without any reward yet."""
        return self._by_label["undecided"]

    @property
    def retired(self) -> list[str]:
        """The arms that were given up; `Row.reason` says why."""
        return self._by_label["retired"]

    def __getitem__(self, name: str) -> Row:
        """The row of the arm of that name."""
        return self._rows[name]

    @cached_property
    def _rows(self) -> dict[str, Row]:
        return {row.name: row for row in self.rows}

    def to_json(self) -> dict[str, Any]:
        """The verdict as JSON-ready data; ``"format"`` says which shape it has."""
        head = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "rows"}
        parts = {label: self._by_label[label] for label in LABELS}
        return {"format": 1, **head, **parts, "rows": [asdict(row) for row in self.rows]}

    def json(self) -> str:
        """The verdict as JSON text."""
        return json.dumps(self.to_json(), indent=2, ensure_ascii=False)

    def csv(self) -> str:
        """The rows as CSV text, with a line of names first. Spreadsheets take no name or reason for a formula."""
        names = [field.name for field in fields(Row)]
        rows = ({**asdict(row), "name": cell(row.name), "reason": cell(row.reason or "")} for row in self.rows)
        return "".join([csv_line(names), *(csv_line(row.values()) for row in rows)])

    def markdown(self) -> str:
        """The answer as a Markdown table, in which names are text and nothing else."""
        head = ["arm", "label", "certified", "mean", "low", "high", "pulls", "failures"]
        lines = [
            f"**{self.question}** {self.answer}",
            "",
            _markdown_row(head),
            "|---|---|---|---:|---:|---:|---:|---:|",
        ]
        for row in self.rows:
            numbers = ["" if value is None else f"{value:.4g}" for value in (row.mean, row.low, row.high)]
            certain = "yes" if row.certified else "no"
            counts = [str(row.seen), str(row.failures)]
            lines.append(_markdown_row([markdown(row.name), row.label, certain, *numbers, *counts]))
        return "\n".join([*lines, "", *map(markdown, self.remarks)]) + "\n"

    @property
    def question(self) -> str:
        """What the study asks."""
        return f"Which of {len(self.rows):,} arms reach {self.threshold:g}?"

    @property
    def answer(self) -> str:
        """How many arms have which label, and how many of these labels are certain, in a sentence."""
        counts = []
        for label in LABELS:
            names = self._by_label[label]
            if names or label in SIDES:
                certain = sum(self[name].certified for name in names)
                sure = f" ({certain:,} certified)" if self.confidence is not None and label in SIDES else ""
                counts.append(f"{len(names):,} {label}{sure}")
        limit = "" if self.budget is None else f" of {self.budget:,}"
        under_way = f", {self.pending:,} still under way" if self.pending else ""
        return f"{', '.join(counts)}, after {self.issued:,}{limit} pulls{under_way}."

    @property
    def origin(self) -> str | None:
        """How many of the rewards were there before this process came, in a sentence; None: all are new."""
        return origin(self.earlier, self.told, self.since, self.others)

    @property
    def remarks(self) -> list[str]:
        """What a reader of the answer must know besides, a sentence or two each."""
        return [*([self.origin] if self.origin else []), self.guarantee, *self.hints]

    def __str__(self) -> str:
        return "\n".join([f"{self.question} {self.answer}", *self.remarks])


def origin(earlier: int, told: int, since: str | None, others: int = 0) -> str | None:
    """Which rewards are from before, and which are other agents', in a sentence each; None: all are new and ours.

    >>> origin(50, 70, "2026-11-17T02:41:12Z")
    '50 of these 70 rewards are from earlier runs, since 2026-11-17 02:41:12 UTC.'
    """
    theirs = f"{others:,} of these {told:,} rewards are from other agents." if others else ""
    if not earlier:
        return theirs or None
    many = f"{earlier:,} of these {told:,} rewards are" if earlier < told else "All rewards are"
    return f"{many} from earlier runs, since {plain_time(since)}. {theirs}".rstrip()


def plain_time(moment: str | None) -> str:
    """A time for people.

    >>> plain_time("2026-11-17T02:41:12Z")
    '2026-11-17 02:41:12 UTC'
    """
    return "an unknown time" if moment is None else f"{moment.replace('T', ' ').removesuffix('Z')} UTC"


def _markdown_row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def read(study: str, ledger: Ledger) -> Verdict:
    """The verdict of a ledger."""
    spec = ledger.spec
    return Verdict(
        study=study,
        threshold=spec.threshold,
        bounds=spec.bounds,
        policy=str(spec.policy),
        confidence=spec.confidence,
        budget=ledger.budget,
        issued=ledger.issued,
        told=ledger.told,
        pending=ledger.pending,
        done=ledger.done,
        guarantee=sentences.guarantee(ledger),
        hints=sentences.hints(ledger),
        rows=tuple(row_of(ledger, arm) for arm in range(len(spec.arms))),
        open=[name for arm, name in enumerate(spec.arms) if not ledger.board.shut[arm]],
        outside=tuple(spec.arms[arm] for arm in sorted(ledger.outside)),
        events=ledger.seq,
        head=ledger.head,
    )


def label_of(ledger: Ledger, arm: int) -> tuple[str, bool]:
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
    """What is known of one arm."""
    board, seen = ledger.board, ledger.board.seen[arm]
    mean = (board.total[arm] + board.residue[arm]) / seen if seen else None
    label, certified = label_of(ledger, arm)
    low, high = sentences.interval(ledger, arm, mean) or (None, None)
    return Row(
        name=ledger.spec.arms[arm],
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
    )


def openness(ledger: Ledger, arm: int) -> float:
    """How far an arm is from being decided, for display: the smaller the more open, none yet is 0, shut ones last."""
    board, seen = ledger.board, ledger.board.seen[arm]
    if board.shut[arm]:
        return kernel.NEVER
    if not seen:
        return 0.0
    gap = abs(board.mean[arm] - ledger.rule.threshold)
    return kernel.evt(gap, board.scatter[arm], seen, seen, 1.0)
