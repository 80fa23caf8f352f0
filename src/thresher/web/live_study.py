"""A study as the server shows it: read once, then followed. All viewers share one `LiveStudy`.

Each arm has the number of its last event, so the changes since any event are known at any time. The cost of reading and
sending is proportional to the number of changes.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from ..core import forecast, sentences
from ..core import guarantee as guarantees
from ..core.events import BLAMED, DROPPED, LATE, OUTSIDE, PENDING, STATES, Event
from ..core.evidence import BETS, Stakes, bet_capital, fresh_capital, mean_capital
from ..core.intervals import Commit, Interval, committed_for_interval
from ..core.revisions import Phase, weigh_revision_phase
from ..core.row_text import DETAILS, row_text_cells
from ..core.rows import MOST, ORDER, Row, row_of
from ..core.sentences import SentenceWording
from ..core.spec import Spec
from ..core.state import State
from ..core.verdict import Verdict, verdict_full_run, verdict_of
from ..log.reader import read_log_section
from ..log.store import Store
from ..text.quantities import duration_text, speed_quantity_text
from .json_shapes import (
    COLUMNS,
    amounts_json,
    asked_json_shape,
    cases_json_shape,
    columns_json,
    encoded_json_shape,
    intervals_json,
    line_json_shape,
    revision_json,
    short_json,
    ticks_json_shape,
    troubles_json,
)
from .log_follower import LogFollower

LAST = 30  # events that a page shows
SHORT = 12  # hexadecimal digits of the log's head that a page shows
SHARE = 20.0  # counting cases takes at most 1/20 of the time
WINDOW = 60.0  # seconds over which the rate is measured
Answer = TypeVar("Answer")


class LiveStudy:
    """One study: its rows as JSON, and its history. Thread-safe."""

    def __init__(self, name: str, store: Store) -> None:
        self.follower = follower = LogFollower(name, store)
        self._lock = threading.RLock()
        self._told_times: deque[float] = deque(maxlen=5000)
        self._last_events: deque[dict[str, Any]] = deque(maxlen=LAST)
        self._failures_at = self._guarantee_at = follower.seq  # the last events that changed them
        self._guarantee = guarantees.guarantee(follower.ledger)
        self._earlier = follower.ledger.own_told
        self._table: tuple[int, bytes] = (0, b"")
        self._cases: dict[int, tuple[float, bytes]] = {}  # by limit: the time until which they are fresh, and the JSON
        self._begin()
        self._remember(read_log_section(store, name, max(1, follower.seq - 2000), 2000))
        self._update_rows()

    def _begin(self) -> None:
        """Begin with the revision that the study now has."""
        spec = self.follower.ledger.spec
        self.arms, self.revised = spec.arms, self.follower.revised  # the event that made it
        self._look = sentences.sentence_wording(spec)
        self._rows: list[tuple[Any, ...]] = [()] * len(spec.arms)
        self._left: list[int | None] = [None] * len(spec.arms)  # of each arm, about how many pulls settle it
        self._rows_at = 0  # the event up to which the rows are known
        self._cases.clear()

    def catch_up(self) -> int:
        """Read the new events. Returns the number of the last event."""
        with self._lock:
            for events in self.follower.catch_up():
                if self.revised != self.follower.revised:
                    self._begin()
                self._remember(events)
            return self.follower.seq

    def read(self, reader: Callable[[State], Answer]) -> Answer:
        """Return ``reader`` of the newest state, which it must not change."""
        with self._lock:
            self.catch_up()
            return reader(self.follower.ledger)

    def _remember(self, events: Sequence[Event]) -> None:
        self._told_times.extend(event.time for event in events if event.kind == "told" and event.time is not None)
        self._last_events.extend(line_json_shape(event, self.follower.ledger) for event in events[-LAST:])
        for event in events:
            if event.cause in BLAMED or event.kind in ("retired", "restored", "revised"):
                self._failures_at = max(self._failures_at, event.seq)
        guarantee = guarantees.guarantee(self.follower.ledger)
        if self._guarantee != guarantee:
            self._guarantee, self._guarantee_at = guarantee, self.follower.seq

    def verdict(self) -> Verdict:
        """The verdict. Its earlier rewards are those that were there when the server first read the study."""
        verdict = self.read(lambda ledger: verdict_of(self.follower.name, ledger))
        return (
            replace(verdict, earlier=self._earlier, since=self.follower.created if verdict.revision == 1 else None)
            if self._earlier
            else verdict
        )

    def head(self) -> dict[str, Any]:
        """The question, the answer, what it took and what is left. Its size does not grow with the study."""
        with self._lock:
            spec = self.follower.ledger.spec
            return {
                "format": 1,
                "study": self.follower.name,
                "question": sentences.question_sentence_of(spec),
                "arms": len(spec.arms),
                **asked_json_shape(self._look),
                "bounds": spec.bounds,
                "policy": str(spec.policy),
                "confidence": spec.confidence,
                "cases": spec.case_count or None,
                "find": spec.find,
                **self._revision(),
                "intervals": intervals_json(spec),
                **self._counts(),
                "guarantee": self._guarantee,
                "troubles": troubles_json(self.follower.ledger),
            }

    def _revision(self) -> dict[str, Any]:
        ledger = self.follower.ledger
        text = revision_json(ledger, ledger.revision) if ledger.revision > 1 else None
        return {"revision": ledger.revision, "revision_text": text and f"{text[0].upper()}{text[1:]}."}

    def _counts(self) -> dict[str, Any]:
        """The fields of `head` that change with every pull."""
        self._update_rows()
        ledger, tally, look, rate = self.follower.ledger, self.follower.tally, self._look, self._rate()
        reached, missed = tally.count("reaches"), tally.count("misses")
        counts = reached, missed, tally.count("open", "retired")
        if look.find is None:
            answer = sentences.answer_sentence(look, *counts, certifies=ledger.certifies)
        else:
            names = [self.arms[arm] for arm in tally.reached()]
            answer = sentences.found_sentence(names, look.find, *counts[1:], done=ledger.done)
        question = sentences.question_sentence_of(ledger.spec)
        left, full = forecast.forecast_left(ledger, self._left), verdict_full_run(ledger)
        is_over = ledger.done and not ledger.pending
        seconds_left = None if left is None or rate <= 0 or is_over else (left + ledger.pending) / rate
        return {
            "seq": ledger.seq,
            "answer": answer,
            "headline": f"{question} {answer}" if counts[-1] else answer,
            "spent": sentences.spent_sentence(
                ledger.issued, ledger.pending, ledger.budget, full, ledger.cost, left=left, done=ledger.done
            ),
            **dict(zip(("reached", "missed", "open"), counts, strict=True)),
            "retired": tally.count("retired"),
            "leaning": [tally.leaning(reached=reached) for reached in (True, False, None)],
            **{name: getattr(ledger, name) for name in ("budget", "issued", "told", "pending", "done", "cost")},
            "full_run": full,
            "left": left,
            "rate": short_json(rate),
            "seconds_left": short_json(seconds_left),
            "facts": {
                "pulls": sentences.pulls_in_sentence(ledger.issued, ledger.budget, full).replace(" pulls", ""),
                "cost": None if ledger.cost is None else sentences.cost_in_sentence(ledger.cost, ledger.issued, full),
                "rate": speed_quantity_text(rate) if rate else "–",
                "left": "nothing" if is_over else live_study_left_text(left, ledger.pending, seconds_left),
            },
            "origin": f"Rewards since {sentences.time_in_sentence(self.follower.created)}."
            if ledger.told and ledger.revision == 1
            else None,
            "head": ledger.head and ledger.head[:SHORT],
            "last_reward": self._told_times[-1] if self._told_times else None,
        }

    def _rate(self) -> float:
        """Rewards per second over the last minute, or over the part of it that is known."""
        now = time.time()
        recent = [told for told in self._told_times if told >= now - WINDOW]
        if len(recent) < 2:
            return 0.0
        return len(recent) / max(now - recent[0], 0.001)

    def table(self) -> bytes:
        """The data that a page starts with, as JSON: the arms as columns, the history and the last events."""
        with self._lock:
            self.catch_up()
            seq = self.follower.seq
            if self._table[0] != seq:
                self._update_rows()
                columns = dict(zip(COLUMNS, map(list, zip(*self._rows, strict=True)), strict=True))
                history = {"step": self.follower.history.step, "points": self.follower.points}
                head = {"format": 1, "seq": seq, "standings": ORDER, "columns": COLUMNS, "names": self.arms}
                head["ticks"] = ticks_json_shape(self.arms)
                self._table = (
                    seq,
                    encoded_json_shape({**head, **columns, "history": history, "events": list(self._last_events)}),
                )
            return self._table[1]

    def cases(self, limit: int) -> bytes:
        """The hardest cases, as JSON. Counting them takes time, so they may be a little old."""
        with self._lock:
            began = time.monotonic()
            fresh_until, text = self._cases.get(limit, (0.0, b""))
            if not text or began >= fresh_until:
                text = encoded_json_shape(self.read(lambda ledger: cases_json_shape(ledger, limit)))
                ended = time.monotonic()
                self._cases[limit] = (ended + SHARE * (ended - began), text)
            return text

    def since(self, after: int) -> dict[str, Any]:
        """The changes after an event, for pages that know the study up to it."""
        with self._lock:
            self._update_rows()
            head, follower = self._counts(), self.follower
            if self._failures_at > after:
                head["troubles"] = troubles_json(follower.ledger)
            if self._guarantee_at > after:
                head["guarantee"] = self._guarantee
            return {
                "seq": follower.seq,
                "rows": [(arm, *self._rows[arm]) for arm in follower.arms_since(after)],
                "events": [event for event in self._last_events if event["seq"] > after],
                "history": {"step": follower.history.step, "points": follower.points_since(after)},
                "head": head,
            }

    def _update_rows(self) -> None:
        """Compute the rows of arms that had events."""
        ledger = self.follower.ledger
        for arm in self.follower.arms_since(self._rows_at):
            row = row_of(ledger, arm)
            self._rows[arm] = columns_json(row, self._look, outside=ledger.is_outside(arm))
            self._left[arm] = row.left
        self._rows_at = ledger.seq


def live_study_left_text(left: int | None, pending: int, seconds: float | None) -> str:
    """About what is left, as people read it.

    >>> live_study_left_text(341, 8, 40.0), live_study_left_text(0, 8, None), live_study_left_text(None, 8, None)
    ('about 340 pulls, 40 s', '8 pending', '–')
    """
    if left is None:
        return "–"
    pulls = sentences.remaining_in_sentence(left).removesuffix(" left") if left else f"{pending:,} pending"
    return pulls if seconds is None else f"{pulls}, {duration_text(seconds)}"


# One arm: its rewards, and how its evidence grew.

MOST_REWARDS = 2000  # only the last ones are sent
MOST_REPLAYED = 20_000  # commits for which the evidence is computed again
MOST_POINTS = 400


def live_study_arm_json(live: LiveStudy, name: str) -> dict[str, Any]:
    """The data of an arm's page. The evidence is computed outside the lock."""
    data, commits, phases, stakes, spec = live.read(lambda ledger: _copy_arm(ledger, ledger.spec.arm(name)))
    points = list(_evidence(commits, phases, stakes, spec))
    data["evidence"] = points[: -1 : max(1, len(points) // MOST_POINTS)] + points[-1:]
    return data


def _copy_arm(ledger: State, arm: int) -> tuple[dict[str, Any], list[Commit], list[Phase], Stakes, Spec]:
    spec, wording = ledger.spec, sentences.sentence_wording(ledger.spec)
    row = row_of(ledger, arm)
    pulls = [pull for pull, of in enumerate(ledger.pull_arm, start=1) if of == arm]
    numbers = {pull: number for number, pull in enumerate(pulls, start=1)}  # its own may be of an earlier history
    rewards = [{**_pull_json(ledger, arm, pull, wording), "number": numbers[pull]} for pull in pulls[-MOST_REWARDS:]]
    commits = committed_for_interval(ledger, arm)[:MOST_REPLAYED] if ledger.certifies else []
    commits = [commit._replace(pull=numbers[commit.pull]) for commit in commits]
    data = {
        "format": 1,
        "seq": ledger.seq,
        "index": arm,
        "question": sentences.question_sentence_of(spec),
        "answer": sentences.standing_sentence(row, outside=ledger.is_outside(arm)),
        **asked_json_shape(wording),
        "facts": live_arm_facts(row, wording),
        "amounts": {} if wording.ratio is not None else amounts_json(wording),
        "bounds": spec.bounds,
        "confidence": spec.confidence,
        "cases": spec.case_count or None,
        "level": short_json(ledger.stakes_of(arm).level) if ledger.certifies else None,
        "row": {field: getattr(row, field) for field in row.__dataclass_fields__},
        "params": dict(spec.params[arm]) if spec.params else {},
        "outside": ledger.is_outside(arm),
        "asked": len(pulls),
        "late": sum(ledger.pull_state[pull - 1] == LATE for pull in pulls),
        "rewards": rewards,
    }
    return data, commits, list(ledger.phases.get(arm, ())), ledger.stakes_of(arm), spec


def live_arm_facts(row: Row, wording: SentenceWording) -> list[tuple[str, str]]:
    """The numbers of an arm with their headings, as people read them."""
    if row.standing == "baseline":
        return [("mean", wording.amount(row.mean))]
    names = ("estimate", "between")
    texts = {head: text or "–" for head, [(text, _)] in row_text_cells([row], wording, names, keep=names).items()}
    texts["interval"] = texts.pop("between")
    texts["bar"] = wording.estimate(wording.bar, exact=True)
    if wording.asks == "share" and wording.baseline is None:
        texts["limit"] = wording.amount(wording.stated_bar, exact=True)
    further = row_text_cells([row], wording, DETAILS, keep=DETAILS)
    return [*texts.items(), *((head, text or "–") for head, [(text, _)] in further.items())]


def _pull_json(ledger: State, arm: int, pull: int, wording: SentenceWording) -> dict[str, Any]:
    """One pull and its reward. A picture shows ``value`` against the bar or the limit."""
    spec, state, case = ledger.spec, ledger.pull_state[pull - 1], ledger.case_of(pull)
    reward = ledger.pull_reward[pull - 1] if ledger.has_reward(pull) else None
    data: dict[str, Any] = {"pull": pull, "state": STATES[state]}
    data |= {"reward": reward, "value": reward, "text": wording.amount(reward)}
    if case is not None:
        data["case"] = spec.case_name(case)
    if ledger.base < 0 or arm == ledger.base:
        return data if spec.share is None or reward is None else {**data, "within": spec.counted(reward) == 1.0}
    if case is not None:
        other = ledger.table.get(case)
    else:
        other = None if state in (PENDING, DROPPED) else ledger.pull_other[pull - 1]
    data |= {"baseline": other, "value": None, "baseline_text": wording.amount(other)}
    if reward is None or other is None or state == OUTSIDE:
        return data
    if spec.share is not None:
        data["within"] = spec.counted(reward, other) == 1.0
    if spec.ratio is None:
        return {**data, "value": reward - other}
    return {**data, "value": min(reward / other, MOST) if other else None}


def _evidence(commits: list[Commit], phases: list[Phase], stakes: Stakes, spec: Spec) -> Iterator[dict[str, Any]]:
    """After each commit, the evidence that the arm reaches the bar, and that it misses it, and the interval.

    Evidence is the capital of a bet, which begins at 1, or where it was when the list of cases changed.
    """
    if not commits:
        return
    capital = fresh_capital()
    for phase in phases:
        for _ in weigh_revision_phase(phase, spec.case_count, capital, stakes):
            pass
    interval = Interval(1.0 / stakes.level)
    for commit in commits:
        bet_capital(capital, stakes, commit.low, commit.high, commit.low_bar, commit.high_bar)
        interval.feed(commit)
        ends = sorted(spec.shown(spec.unscale(side.end)) for side in (interval.low, interval.high))
        reaching, missing = (short_json(min(mean_capital(capital, start), MOST)) for start in (0, BETS))
        span = {"low": short_json(ends[0]), "high": short_json(ends[1])}
        yield {"number": commit.pull, "reaching": reaching, "missing": missing, **span}
