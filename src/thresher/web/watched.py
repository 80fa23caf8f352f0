"""A study as the server watches it: read once, then followed. Every viewer shares this one watch.

Each arm remembers its last event, so the changes since any event are known at any time. Reading and sending cost in
proportion to what has changed.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from ..core import sentences
from ..core import verdict as verdicts
from ..core.events import Event
from ..core.ledger import Ledger
from ..core.rows import LABELS, row_of
from ..core.verdict import Verdict
from ..log.reader import section
from ..log.store import Store
from ..text.quantities import duration, speed
from .follow import Follower
from .shapes import COLUMNS, asked_json, cases_json, columns_of, encoded, line_json, short, ticks_of, troubles

LAST = 30  # events that a page shows
SHORT = 12  # hexadecimal digits of the log's head that a page shows
SHARE = 20.0  # counting cases takes at most 1/20 of the time
WINDOW = 60.0  # seconds over which the rate is measured
Answer = TypeVar("Answer")


class Live(Follower):
    """One study: its rows as they go over the wire, and its history. Thread-safe."""

    def __init__(self, name: str, store: Store) -> None:
        super().__init__(name, store)
        self._lock = threading.RLock()
        self._told: deque[float] = deque(maxlen=5000)  # when rewards came
        self.arms = self.ledger.spec.arms
        self._look = sentences.look_of(self.ledger.spec)
        self.last: deque[dict[str, Any]] = deque(maxlen=LAST)
        self._rows: list[tuple[Any, ...]] = [()] * len(self.arms)
        self._rows_at = 0  # the event up to which the rows are known
        self._failures_at = self._guarantee_at = self.seq  # the last events that changed them
        self._guarantee = sentences.guarantee(self.ledger)
        self.earlier = self.ledger.own_told
        self._table: tuple[int, bytes] = (0, b"")
        self._cases: dict[int, tuple[float, bytes]] = {}  # by limit: until when it is fresh, and the cases
        self._remember(section(store, name, max(1, self.seq - 2000), 2000))
        self._renew()

    def catch_up(self) -> int:
        """Read what is new; returns the number of the last event."""
        with self._lock:
            for page in self.pages():
                self._remember(page)
            return self.seq

    def read(self, reader: Callable[[Ledger], Answer]) -> Answer:
        """What ``reader`` returns for the newest state, which it must not change."""
        with self._lock:
            self.catch_up()
            return reader(self.ledger)

    def _remember(self, events: Sequence[Event]) -> None:
        self._told.extend(event.time for event in events if event.kind == "told" and event.time is not None)
        self.last.extend(line_json(event, self.arms, self._look) for event in events[-LAST:])
        failures = [each.seq for each in events if each.cause == "failed" or each.kind in ("retired", "restored")]
        self._failures_at = max([self._failures_at, *failures])
        guarantee = sentences.guarantee(self.ledger)
        if self._guarantee != guarantee:
            self._guarantee, self._guarantee_at = guarantee, self.seq

    def verdict(self) -> Verdict:
        """The verdict; earlier rewards are those that were there when the server first read the study."""
        found = self.read(lambda ledger: verdicts.read(self.name, ledger))
        return replace(found, earlier=self.earlier, since=self.created) if self.earlier else found

    # -- what is shown ------------------------------------------------------------------------------------------

    def head(self) -> dict[str, Any]:
        """The question, the answer and the progress; its size does not grow with the study."""
        with self._lock:
            spec = self.ledger.spec
            return {
                "format": 1,
                "study": self.name,
                "question": sentences.question_of(spec),
                "arms": len(spec.arms),
                **asked_json(self._look),
                "bounds": spec.bounds,
                "policy": str(spec.policy),
                "confidence": spec.confidence,
                "tolerance": spec.tolerance,
                "cases": spec.case_count or None,
                **self._counts(),
                "guarantee": self._guarantee,
                "troubles": troubles(self.ledger),
            }

    def _counts(self) -> dict[str, Any]:
        """What changes with every pull."""
        ledger, rate = self.ledger, self._rate()
        over = ledger.done and not ledger.pending
        left = None if ledger.left is None or rate <= 0 or over else ledger.left / rate
        counts, certified = (dict(zip(LABELS, each, strict=True)) for each in (self.tally.counts, self.tally.sure))
        answer = sentences.answer(
            counts,
            certified if ledger.certifies else None,
            lower_is_better=ledger.spec.lower_is_better,
            issued=ledger.issued,
            budget=ledger.budget,
            pending=ledger.pending,
        )
        if ledger.spec.find is not None:
            answer += sentences.found([self.arms[arm] for arm in self.tally.found()], done=ledger.done)
        return {
            "seq": ledger.seq,
            "answer": answer,
            **{name: getattr(ledger, name) for name in ("budget", "issued", "told", "pending", "open", "done")},
            "settled": ledger.certified,
            "labels": counts,
            "certified": certified,
            "rate": short(rate),
            "seconds_left": short(left),
            "pace": [speed(rate) if rate else "–", "done" if over else duration(left)],
            "origin": f"Rewards since {sentences.plain_time(self.created)}." if ledger.told else None,
            "head": ledger.head and ledger.head[:SHORT],
            "last_reward": self._told[-1] if self._told else None,
        }

    def _rate(self) -> float:
        """Rewards per second over the last minute, or over the part of it that is known."""
        now = time.time()
        recent = [when for when in self._told if when >= now - WINDOW]
        if len(recent) < 2:
            return 0.0
        return len(recent) / max(now - recent[0], 0.001)

    def table(self) -> bytes:
        """What a page starts with, as JSON: all arms, one list per column, the history and the last events."""
        with self._lock:
            self.catch_up()
            if self._table[0] != self.seq:
                self._renew()
                columns = dict(zip(COLUMNS, map(list, zip(*self._rows, strict=True)), strict=True))
                history = {"step": self.history.step, "points": self.points}
                head = {"format": 1, "seq": self.seq, "labels": LABELS, "columns": COLUMNS, "names": self.arms}
                head["ticks"] = ticks_of(self.arms)
                self._table = self.seq, encoded({**head, **columns, "history": history, "events": list(self.last)})
            return self._table[1]

    def cases(self, limit: int) -> bytes:
        """The hardest cases, as JSON. To count them takes time, so they may be a little old."""
        with self._lock:
            known = self._cases.get(limit)
            if known is None or time.monotonic() >= known[0]:
                began = time.monotonic()
                text = encoded(self.read(lambda ledger: cases_json(ledger, limit)))
                now = time.monotonic()
                known = self._cases[limit] = (now + SHARE * (now - began), text)
            return known[1]

    def since(self, after: int) -> dict[str, Any]:
        """What is new since an event, for the pages that know the study up to it."""
        with self._lock:
            self._renew()
            head = self._counts()
            if self._failures_at > after:
                head["troubles"] = troubles(self.ledger)
            if self._guarantee_at > after:
                head["guarantee"] = self._guarantee
            return {
                "seq": self.seq,
                "rows": [(arm, *self._rows[arm]) for arm in self.arms_since(after)],
                "events": [event for event in self.last if event["seq"] > after],
                "history": {"step": self.history.step, "points": self.points_since(after)},
                "head": head,
            }

    def _renew(self) -> None:
        """Update the rows of arms that had events."""
        for arm in self.arms_since(self._rows_at):
            self._rows[arm] = columns_of(row_of(self.ledger, arm), self._look, outside=self.ledger.is_outside(arm))
        self._rows_at = self.seq
