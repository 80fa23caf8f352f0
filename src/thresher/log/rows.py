"""Events as rows of a table: what the durable stores have in common."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..core.events import Event
from ..errors import UNSAID, Conflict, StoreFailed, shown
from .chain import SIZE, START, Head, link

SCHEMA = 2  # of the tables; increases with every change of their columns
OLDEST = 1  # that can be read: version 0.1 wrote it, without digests and heads
COLUMNS = ", ".join(Event._fields)
OLD_COLUMNS = f"{', '.join(Event._fields[:-1])}, NULL"  # of schema 1
LATE, SPEC = Event._fields.index("late"), Event._fields.index("spec")
BUSY_WITHOUT_TURN = 5.0  # seconds without waiting for a turn, after a wait that ended without one
NAMES = """WITH RECURSIVE names (study) AS (
    SELECT min(study) FROM {events}
    UNION ALL SELECT (SELECT min(study) FROM {events} WHERE study > names.study) FROM names WHERE study IS NOT NULL
) SELECT study FROM names WHERE study IS NOT NULL"""  # from one name to the next, by the primary key: never every event
_tuple = tuple.__new__
# The error for a process of version 0.1 that has a store open while it is upgraded; see the triggers of the schemas.
TOO_OLD = "a newer version of thresher upgraded this store, so update this one"
TURN = 2.0  # seconds to wait for a turn: its holder hangs, or was stopped


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


def check_schema(version: int, place: object = UNSAID) -> None:
    """Raise unless tables of that version can be read."""
    if not OLDEST <= version <= SCHEMA:
        older = version < OLDEST
        rule = f"has schema {version}, {'older' if older else 'newer'} than the {SCHEMA} of this thresher"
        raise StoreFailed("storage", place, rule, "restore it from a copy" if older else "update thresher")


def schema_text(version: int) -> str:
    """A version of the tables, for people.

    >>> schema_text(1)
    '1, of version 0.1: without digests; the first write upgrades it'
    """
    old = ", of version 0.1: without digests; the first write upgrades it"
    return f"{version}{'' if version == SCHEMA else old}"


def sealed(rows: Iterable[Sequence[Any]], heads: dict[str, Head]) -> Iterator[tuple[Any, ...]]:
    """Rows of schema 1, each with its study's name first, as rows of schema 2; ``heads`` gets where each study ends.

    The chain begins here: it proves what was there at this moment, whatever happened to it before. A row that is
    not an event gets a digest that never matches, so reading it reports damage.
    """
    for study, *row in rows:
        before = heads[study].digest if study in heads else START
        assert before is not None
        try:
            digest = link(before, from_row([*row, None]))
        except (AttributeError, TypeError, ValueError):
            digest = bytes(SIZE)
        heads[study] = Head(row[0], digest)
        yield (study, *row, digest)


def not_upgraded(heads: dict[str, Head]) -> StoreFailed:
    """The error for a row that cannot be read; ``heads`` has the studies before it."""
    after = f", in study {shown(next(reversed(heads)))} or the next" if heads else ""
    remedy = "it can still be read; delete the study that thresher doctor names, or restore it from a copy"
    return StoreFailed("storage", rule=f"cannot be upgraded from schema 1: it is damaged{after}", remedy=remedy)


def taken(name: str) -> Conflict:
    return Conflict("study", name, "already exists", "choose another name")


def beaten(seq: int) -> Conflict:
    """Another agent wrote the event of that number."""
    return Conflict("event", seq, "another agent wrote it first", "read, and decide again")


def asked(events: Iterable[Event]) -> list[int]:
    """The pulls that the events leave pending."""
    over = {None, *ended(events)}
    return [event.pull for event in events if event.kind == "asked" and event.pull not in over]  # type: ignore[misc]


def ended(events: Iterable[Event]) -> list[int]:
    return [event.pull for event in events if event.kind != "asked" and event.pull is not None]
