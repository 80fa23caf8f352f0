"""Events as rows of a table: what the durable stores have in common."""

import json
from collections.abc import Sequence
from typing import Any

from ..core.events import Event
from ..errors import Conflict

COLUMNS = ", ".join(Event._fields)
LATE, SPEC = Event._fields.index("late"), Event._fields.index("spec")
_tuple = tuple.__new__


def to_row(event: Event) -> tuple[Any, ...]:
    """An event as values of a database.

    >>> to_row(Event(1, "created", spec={"a": 1}))[:3], to_row(Event(1, "created", spec={"a": 1}))[SPEC]
    ((1, 'created', None), '{"a": 1}')
    """
    if event.spec is None and event.late is None:
        return event
    spec = None if event.spec is None else json.dumps(event.spec)
    return event._replace(spec=spec, late=None if event.late is None else int(event.late))  # type: ignore[arg-type]


def from_row(row: Sequence[Any]) -> Event:
    """The event that `to_row` wrote.

    >>> from_row(to_row(Event(2, "told", late=True)))
    Event(seq=2, kind='told', pull=None, arm=None, reward=None, reason=None, cause=None, late=True, ...)
    """
    event = _tuple(Event, row)  # as Event._make does, in a third of the time
    if row[LATE] is not None:
        event = event._replace(late=bool(row[LATE]))
    if row[SPEC] is not None:
        event = event._replace(spec=_parsed(row[SPEC]))
    return event


def _parsed(text: str) -> Any:
    """The specification. Invalid JSON is returned as text: folding it reports the error."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def taken(name: str) -> Conflict:
    return Conflict("study", name, "already exists", "choose another name")


def beaten(seq: int) -> Conflict:
    """Another agent wrote the event of that number."""
    return Conflict("event", seq, "another agent wrote it first", "read, and decide again")


def begun_and_over(events: Sequence[Event]) -> tuple[list[int], list[int]]:
    """The pulls that the events leave pending, and those that they end.

    >>> begun_and_over([Event(2, "asked", 1), Event(3, "asked", 2), Event(4, "told", 1)])
    ([2], [1])
    """
    goes_on = ("asked", "repeated")
    over = {event.pull: None for event in events if event.kind not in goes_on and event.pull is not None}  # in order
    begun = [event.pull for event in events if event.kind == "asked" and event.pull is not None]
    return [pull for pull in begun if pull not in over], list(over)
