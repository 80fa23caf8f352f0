"""Events: everything that a study's log holds. State is what folding them gives, and nothing else."""

import math
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, get_args

PENDING, TOLD, DROPPED, LATE, OUTSIDE = range(5)  # the states of a pull; LATE: dropped first, told later
STATES = ("pending", "told", "dropped", "late", "outside")  # their names
Kind = Literal["created", "asked", "told", "dropped", "retired", "restored", "extended", "weighed", "accepted"]
Cause = Literal["failed", "lost", "cancelled", "broken-pool", "outage"]  # of a drop
CAUSES = get_args(Cause)
EventCause = Cause | Literal["chosen", "imported", "repeatable", "failures", "bounds"]
# what can be raised where something is not an event
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
    reason: str | None = None  # of an imported pull: its case, if there are cases, and so of a chosen one, if the host
    # chose the case too; of a pair: the baseline's reward
    cause: EventCause | None = None  # of a drop: one of CAUSES; of a reward: "imported", "repeatable" or "failed";
    # of an ask: "imported", or "chosen", where the caller named the arm; of a retirement: "failures", by rule, or
    # "bounds", by a pull whose reward lies outside them
    late: bool | None = None  # told after the pull was dropped
    budget: int | None = None  # the new total
    spec: dict[str, Any] | None = None  # only of `created`
    key: str | None = None
    time: float | None = None  # seconds since 1970
    agent: str | None = None
    digest: bytes | None = None  # of this event and all before it, see `chain`; None: not chained (version 0.1)


def to_json(event: Event) -> dict[str, Any]:
    """An event as JSON-ready data.

    >>> to_json(Event(2, "asked", 1, 0, digest=bytes(16)))["digest"]
    '00000000000000000000000000000000'
    """
    return {**event._asdict(), "digest": None if event.digest is None else event.digest.hex()}


def other_of(event: Event) -> float:
    """The baseline's reward in a pair that was told; NaN if there is none, written as `repr` writes it.

    >>> other_of(Event(5, "told", 1, 0, 0.5, reason="0.25"))
    0.25
    """
    try:
        found = float(event.reason or "nan")
    except ValueError:
        return math.nan
    return found if repr(found) == event.reason else math.nan


def imported_case(event: Event) -> int | None:
    """The case that an imported pull names, in a study with cases."""
    return int(event.reason or 0) if event.cause == "imported" else None


def named_case(event: Event) -> int | None:
    """The case of a chosen pull, if the host chose the case too.

    >>> named_case(Event(2, "asked", 1, 0, cause="chosen")), named_case(Event(2, "asked", 1, 0, None, "7", "chosen"))
    (None, 7)
    """
    return int(event.reason) if event.cause == "chosen" and event.reason is not None else None


def moment(seconds: float | None) -> str | None:
    """A time of the log as text.

    >>> moment(0.0)
    '1970-01-01T00:00:00Z'
    """
    found = when(seconds)
    return None if found is None else found.strftime("%Y-%m-%dT%H:%M:%SZ")


def when(seconds: float | None) -> datetime | None:
    """A time of the log as a date; times before 1970 and after the year 9999 become the nearest that has one.

    >>> when(1e300).year
    9999
    """
    return None if seconds is None else datetime.fromtimestamp(min(max(seconds, 0.0), LAST), UTC)
