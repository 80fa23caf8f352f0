"""A study as the server watches it: read once, then followed. Every viewer shares this one watch.

Each arm remembers its last event, so the changes since any event are known at any time. Reading and sending cost in
proportion to what has changed.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from ..core import certificate, sentences
from ..core import verdict as verdicts
from ..core.certificate import BETS, Stakes
from ..core.events import BLAMED, DROPPED, LATE, OUTSIDE, PENDING, STATES, Event
from ..core.intervals import Commit, Interval, committed, way
from ..core.row_text import details, head_of
from ..core.rows import LABELS, MOST, Row, row_of
from ..core.sentences import Look
from ..core.spec import Spec
from ..core.state import State
from ..core.verdict import Verdict
from ..log.reader import section
from ..log.store import Store
from ..text.quantities import duration, speed
from .json_shapes import (
    COLUMNS,
    amounts_of,
    asked_json,
    cases_json,
    columns_of,
    encoded,
    line_json,
    short,
    ticks_of,
    troubles,
)
from .log_follower import Follower

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

    def read(self, reader: Callable[[State], Answer]) -> Answer:
        """What ``reader`` returns for the newest state, which it must not change."""
        with self._lock:
            self.catch_up()
            return reader(self.ledger)

    def _remember(self, events: Sequence[Event]) -> None:
        self._told.extend(event.time for event in events if event.kind == "told" and event.time is not None)
        self.last.extend(line_json(event, self.arms, self._look) for event in events[-LAST:])
        failures = [each.seq for each in events if each.cause in BLAMED or each.kind in ("retired", "restored")]
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


# One arm: its rewards, and how its evidence grew.

MOST_REWARDS = 2000  # the last ones are sent
MOST_REPLAYED = 20_000  # commits whose evidence is computed again
MOST_POINTS = 400


def arm_json(live: Live, name: str) -> dict[str, Any]:
    """What the arm's page shows. The replay runs outside the lock."""
    data, commits, stakes, spec = live.read(lambda ledger: _copied(ledger, ledger.spec.arm(name)))
    points = list(_replayed(commits, stakes, spec))
    data["evidence"] = points[: -1 : max(1, len(points) // MOST_POINTS)] + points[-1:]
    return data


def _copied(ledger: State, arm: int) -> tuple[dict[str, Any], list[Commit], Stakes, Spec]:
    spec, look = ledger.spec, sentences.look_of(ledger.spec)
    row = row_of(ledger, arm)
    pulls = [pull for pull, of in enumerate(ledger.pull_arm, start=1) if of == arm]
    rewards = [_pull(ledger, arm, pull, look) for pull in pulls[-MOST_REWARDS:]]
    commits = committed(ledger, arm)[:MOST_REPLAYED] if ledger.certifies else []
    commits = [commit._replace(pull=ledger.pull_number[commit.pull - 1]) for commit in commits]
    data = {
        "format": 1,
        "seq": ledger.seq,
        "index": arm,
        "question": sentences.question_of(spec),
        "answer": sentences.standing(row, outside=ledger.is_outside(arm)),
        **asked_json(look),
        "facts": facts(row, look),
        "amounts": {} if look.ratio is not None else amounts_of(look),
        "bounds": spec.bounds,
        "tolerance": spec.tolerance,
        "confidence": spec.confidence,
        "cases": spec.case_count or None,
        "row": {field: getattr(row, field) for field in row.__dataclass_fields__},
        "params": dict(spec.params[arm]) if spec.params else {},
        "outside": ledger.is_outside(arm),
        "asked": len(pulls),
        "late": sum(ledger.pull_state[pull - 1] == LATE for pull in pulls),
        "rewards": rewards,
    }
    return data, commits, ledger.stakes, spec


def facts(row: Row, look: Look) -> list[tuple[str, str]]:
    """The numbers of an arm by what they are, as people read them."""
    if row.label == "baseline":
        return [("mean", look.amount(row.mean))]
    found = {head_of(look): look.estimate(row.estimate), "interval": look.span(row.low, row.high) or "–"}
    found["bar"] = look.estimate(look.bar, exact=True)
    if look.asks == "share" and look.baseline is None:
        found["limit"] = look.amount(look.stated_bar, exact=True)
    return [*found.items(), *((head, cells[0] or "–") for head, cells in details([row], look).items())]


def _pull(ledger: State, arm: int, pull: int, look: Look) -> dict[str, Any]:
    """One pull: its reward, and as ``value`` what a picture shows against the bar or the limit."""
    spec, state, case = ledger.spec, ledger.pull_state[pull - 1], ledger.case_of(pull)
    told = ledger.pull_reward[pull - 1] if ledger.has_reward(pull) else None
    found: dict[str, Any] = {"pull": pull, "number": ledger.pull_number[pull - 1], "state": STATES[state]}
    found |= {"reward": told, "value": told, "text": look.amount(told)}
    if case is not None:
        found["case"] = spec.case_name(case)
    if ledger.base < 0 or arm == ledger.base:
        return found if spec.share is None or told is None else {**found, "within": spec.counted(told) == 1.0}
    known = None if state in (PENDING, DROPPED) else pull
    other = ledger.table.get(case) if case is not None else ledger.pull_other[known - 1] if known else None
    found |= {"baseline": other, "value": None, "baseline_text": look.amount(other)}
    if told is None or other is None or state == OUTSIDE:
        return found
    if spec.share is not None:
        found["within"] = spec.counted(told, other) == 1.0
    if spec.ratio is None:
        return {**found, "value": told - other}
    return {**found, "value": min(told / other, MOST) if other else None}


def _replayed(commits: list[Commit], stakes: Stakes, spec: Spec) -> Iterator[dict[str, Any]]:
    """After each commit: the evidence for either side, as a share of what settles the arm, and the interval.

    In people's terms: where lower is better, evidence in favour of an arm says that it lies below the bar.
    """
    if not commits:
        return
    capital = certificate.fresh(stakes)
    interval = Interval(1.0 / stakes.level)
    for commit in commits:
        bars = (commit.low_bar, commit.high_bar, stakes.tolerance * commit.scale)
        certificate.bet(capital, stakes, commit.low, commit.high, *bars)
        interval.feed(commit, stakes.bar)
        ends = sorted(spec.shown(spec.unscale(side.end)) for side in (interval.low, interval.high))
        ways = [short(way(capital, side, stakes.level)) for side in (0, BETS)]  # of reaching the bar, and of not
        above, below = reversed(ways) if spec.lower_is_better else ways
        span = {"low": short(ends[0]), "high": short(ends[1])}
        yield {"number": commit.pull, "above": above, "below": below, **span}
