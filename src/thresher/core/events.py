"""Events: everything that a study's log holds. State is what folding them gives, and nothing else."""

import json
import math
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, get_args

PENDING, TOLD, DROPPED, LATE, OUTSIDE = range(5)  # the states of a pull; LATE: dropped first, told later
STATES = ("pending", "told", "dropped", "late", "outside")  # their names
ONCE, REPEATABLE, FAILED, IMPORTED = 0, 1, 2, 4  # how a reward came about, or the sum of some; FAILED: of a failure
Kind = Literal[
    "created", "asked", "repeated", "told", "dropped", "retired", "restored", "extended", "weighed", "revised",
]  # fmt: skip
CallersCause = Literal["failed", "lost"]  # of a drop, by whoever asked for the pull
RunnersCause = Literal["cancelled", "refused", "broken-pool", "outage"]  # by a runner, which knows what happened
Cause = Literal[CallersCause, RunnersCause]
CAUSES = get_args(Cause)
BLAMED: tuple[Cause, ...] = ("failed", "refused")  # causes that count against the arm
CALLERS = get_args(CallersCause)
NO_CAUSE = "must be failed or lost"  # of a cause that a caller gives
EventCause = Cause | Literal["chosen", "imported", "repeatable", "failures", "bounds", "fresh", "vouched"]
# what reading can raise if something is not an event
NO_EVENT = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
LAST = 253_402_300_799  # the end of the year 9999


class Event(NamedTuple):
    """One line of the log; fields that an event does not need are None.

    The fold reads neither ``key`` nor ``time`` nor ``agent``. The call that wrote the event chose its ``key``, so that
    a caller that never got the answer finds its own events; the other two are for people.
    """

    seq: int  # from 1, without a gap
    kind: Kind
    pull: int | None = None  # counts asked events, from 1
    arm: int | None = None
    reward: float | None = None  # as told, in the user's units
    reason: str | None = None  # of an imported pull: its case, if there are cases; of a chosen pull: its case, if the
    # host chose that too; of a reward: see `EventRemarks`
    cause: EventCause | None = None  # of a drop: one of CAUSES; of a reward: "imported", "repeatable" or "failed";
    # of an ask: "imported", or "chosen", where the caller named the arm; of a retirement: "failures", by rule, or
    # "bounds", by a pull whose reward lies outside them; of a revision: "fresh" if it takes nothing over, "vouched" if
    # somebody says that a change of what measures all rewards makes no difference
    late: bool | None = None  # told after the pull was dropped
    budget: int | None = None  # the new total
    spec: dict[str, Any] | None = None  # of `created` and `revised`
    key: str | None = None
    time: float | None = None  # seconds since 1970
    agent: str | None = None
    digest: bytes | None = None  # of this event and all before it, see `log/store.py`; None: not chained yet


def event_to_json(event: Event) -> dict[str, Any]:
    """An event as JSON-ready data.

    >>> event_to_json(Event(2, "asked", 1, 0, digest=bytes(16)))["digest"]
    '00000000000000000000000000000000'
    """
    return {**event._asdict(), "digest": None if event.digest is None else event.digest.hex()}


class EventRemarks(NamedTuple):
    """What a reward was told with, which is the ``reason`` of its event.

    The baseline's reward of a pair is written as `repr` writes it. With a note or a cost, the reason is a JSON object
    instead, with sorted keys. Nothing but the baseline's reward has an effect on the state.

    >>> EventRemarks(note="cut off", cost=0.02).text()
    '{"cost": 0.02, "note": "cut off"}'
    """

    baseline: float | None = None  # the baseline's reward, of a pair
    note: str | None = None
    cost: float | None = None

    def text(self) -> str | None:
        """The reason that says this; None if there is nothing to say."""
        if self.note is None and self.cost is None:
            return None if self.baseline is None else repr(self.baseline)
        return json.dumps({key: value for key, value in self._asdict().items() if value is not None}, sort_keys=True)


def event_remarks(event: Event) -> EventRemarks | None:
    """What a reward was told with; None if the reason is not written as `EventRemarks.text` writes it.

    >>> event_remarks(Event(5, "told", 1, 0, 0.5, reason="0.25")).baseline
    0.25
    >>> event_remarks(Event(5, "told", 1, 0, 0.5, reason='{"cost": 0.02}')).cost
    0.02
    """
    text = event.reason
    if text is None or event.cause == "failed":  # then it is why the pull failed
        return EventRemarks()
    try:
        remarks = EventRemarks(**json.loads(text)) if text.startswith("{") else EventRemarks(baseline=float(text))
        proper = remarks.text() == text and _are_proper(remarks)
    except NO_EVENT:
        return None
    return remarks if proper else None


def _are_proper(remarks: EventRemarks) -> bool:
    baseline, note, cost = remarks
    numbers = [number for number in (baseline, cost) if number is not None]
    if not all(type(number) is float and math.isfinite(number) for number in numbers):
        return False
    return (cost is None or cost >= 0) and (note is None or (isinstance(note, str) and note != ""))


def event_baseline_reward(event: Event) -> float:
    """The baseline's reward in a pair that was told; NaN if there is none.

    >>> event_baseline_reward(Event(5, "told", 1, 0, 0.5, reason="0.25"))
    0.25
    """
    remarks = event_remarks(event)
    return math.nan if remarks is None or remarks.baseline is None else remarks.baseline


def total_event_cost(costs: Iterable[float]) -> float:
    """The sum of costs, and at most the largest float.

    >>> total_event_cost([1e308, 1e308, 1e308]) == sys.float_info.max
    True
    """
    return min(sum(costs), sys.float_info.max)


def event_imported_case(event: Event) -> int | None:
    """The case that an imported pull names, in a study with cases."""
    return int(event.reason or 0) if event.cause == "imported" else None


def event_named_case(event: Event) -> int | None:
    """The case of a chosen pull, if the host chose the case too.

    >>> event_named_case(Event(2, "asked", 1, 0, None, "7", "chosen"))
    7
    >>> event_named_case(Event(2, "asked", 1, 0, cause="chosen"))
    """
    return int(event.reason) if event.cause == "chosen" and event.reason is not None else None


def event_time_text(seconds: float | None) -> str | None:
    """A time of the log as text.

    >>> event_time_text(0.0)
    '1970-01-01T00:00:00Z'
    """
    date = event_date(seconds)
    return None if date is None else date.strftime("%Y-%m-%dT%H:%M:%SZ")


def event_date(seconds: float | None) -> datetime | None:
    """A time of the log as a date; times before 1970 and after the year 9999 become the nearest that has one.

    >>> event_date(1e300).year
    9999
    """
    return None if seconds is None else datetime.fromtimestamp(min(max(seconds, 0.0), LAST), UTC)
