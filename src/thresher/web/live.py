"""A study as the server watches it: read once, then followed. Every viewer shares this one watch.

A look at the store costs what has changed: the events since the last look say which arms to read again.
"""

import threading
import time
from collections import Counter, deque
from typing import Any, NamedTuple

from .. import certainty
from ..events import Event
from ..ledger import Ledger
from ..store import Store
from ..study import Study
from ..verdict import LABELS, row_of
from .history import History, Point, replayed
from .shapes import CODES, COLUMNS, columns_of, event_json, short, troubles

PAGE = 10_000  # events that are read at once
LAST = 30  # events that a page shows
WINDOW = 60.0  # seconds that the rate looks back
LABEL, CERTIFIED = COLUMNS.index("label"), COLUMNS.index("certified")


class Change(NamedTuple):
    """What one look found."""

    seq: int
    arms: list[int]
    events: list[dict[str, Any]]


class Live:
    """One study, its rows as they go over the wire, and how it got there."""

    def __init__(self, name: str, store: Store) -> None:
        self.name, self.store = name, store
        self.study = Study(name, store)
        self._lock = threading.RLock()
        self.seq = 0  # the last event that is in
        self.rows: list[tuple[Any, ...]] = []
        self.counts: Counter[int] = Counter()  # arms of each label
        self.sure: Counter[int] = Counter()  # certified ones among them
        self.history = History([])
        self.last: deque[dict[str, Any]] = deque(maxlen=LAST)
        self._told: deque[float] = deque(maxlen=5000)  # when rewards came
        self.study.look(self._begin)

    def _begin(self, ledger: Ledger) -> None:
        self.arms = ledger.spec.arms
        self.seq = ledger.seq
        for arm in range(len(self.arms)):
            self.rows.append(columns_of(row_of(ledger, arm)))
            self._count(self.rows[arm], +1)
        self.history = replayed(ledger)
        self._note(self.store.read(self.name, max(0, ledger.seq - 2000), 2000), ledger.seq)

    def look(self) -> Change:
        """Read what is new."""
        with self._lock:
            events: list[Event] = []
            while page := self.store.read(self.name, self.seq + len(events), PAGE):
                events += page
                if len(page) < PAGE:
                    break
            if not events:
                return Change(self.seq, [], [])
            self.seq = events[-1].seq
            arms = sorted({event.arm for event in events if event.arm is not None})
            self.study.look(lambda ledger: self._follow(ledger, arms))
            return Change(self.seq, arms, self._note(events, self.seq))

    def _follow(self, ledger: Ledger, arms: list[int]) -> None:
        for arm in arms:
            row = columns_of(row_of(ledger, arm))
            self._count(self.rows[arm], -1)
            self._count(row, +1)
            self.rows[arm] = row
        above, below = self.counts[CODES["above"]], self.counts[CODES["below"]]
        self.history.add(Point(ledger.issued, above, below, sum(self.sure.values())))

    def _count(self, row: tuple[Any, ...], by: int) -> None:
        self.counts[row[LABEL]] += by
        if row[CERTIFIED]:
            self.sure[row[LABEL]] += by

    def _note(self, events: Any, upto: int) -> list[dict[str, Any]]:
        events = [event for event in events if event.seq <= upto]
        self._told.extend(event.time for event in events if event.kind == "told" and event.time is not None)
        shown = [event_json(event, self.arms) for event in events[-LAST:] if event.kind != "created"]
        self.last.extend(shown)
        return shown

    # -- what is shown ------------------------------------------------------------------------------------------

    def head(self) -> dict[str, Any]:
        """The question, the answer, and how far it is; its size does not grow with the study."""
        with self._lock:
            return self.study.look(self._head)

    def _head(self, ledger: Ledger) -> dict[str, Any]:
        spec, rate = ledger.spec, self._rate()
        left = None
        if ledger.budget is not None and rate > 0 and not (ledger.done and not ledger.pending):
            left = (ledger.budget - ledger.issued + ledger.pending) / rate
        return {
            "format": 1,
            "study": self.name,
            "question": f"Which of {len(spec.arms):,} arms reach {spec.threshold:g}?",
            "seq": self.seq,
            "arms": len(spec.arms),
            "threshold": spec.threshold,
            "bounds": spec.bounds,
            "policy": str(spec.policy),
            "confidence": spec.confidence,
            "tolerance": spec.tolerance,
            "budget": ledger.budget,
            "issued": ledger.issued,
            "told": ledger.told,
            "pending": ledger.pending,
            "settled": ledger.settled,
            "open": sum(self.counts[CODES[label]] - self.sure[CODES[label]] for label in LABELS[:4]),
            "done": ledger.done,
            "labels": {label: self.counts[CODES[label]] for label in LABELS},
            "certified": {label: self.sure[CODES[label]] for label in LABELS},
            "rate": short(rate),
            "seconds_left": short(left),
            "last_reward": self._told[-1] if self._told else None,
            "guarantee": certainty.guarantee(ledger),
            "troubles": troubles(ledger),
        }

    def _rate(self) -> float:
        """Rewards a second over the last minute, or over as much of it as is known."""
        now = time.time()
        recent = [when for when in self._told if when >= now - WINDOW]
        if len(recent) < 2:
            return 0.0
        return len(recent) / max(now - recent[0], 0.001)

    def table(self) -> dict[str, Any]:
        """All arms, a list a column, with the history and the last events: what a page begins with."""
        with self._lock:
            columns = dict(zip(COLUMNS, map(list, zip(*self.rows, strict=True)), strict=True))
            return {
                "format": 1,
                "seq": self.seq,
                "labels": LABELS,
                "names": self.arms,
                **columns,
                "history": self.history.points,
                "events": list(self.last),
            }

    def change_json(self, change: Change) -> dict[str, Any]:
        """What a page is sent after a look."""
        with self._lock:
            return {
                "seq": change.seq,
                "rows": [(arm, *self.rows[arm]) for arm in change.arms],
                "events": change.events,
                "point": self.history.points[-1],
                "head": self.head(),
            }
