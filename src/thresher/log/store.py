"""Stores: where logs are kept. What a store must do, the store in memory, and opening the one that a user names."""

import json
import os
import struct
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import parse_qsl

from ..core.events import Event
from ..errors import UNSAID, Conflict, InvalidInput, StoreFailed, missing_package

KINDS = "memory, sqlite:///file.db or postgresql://user@host/database"
COLUMNS = ", ".join(Event._fields)
SCHEMA = 1  # the version of the tables; increases with every change of their columns
LATE, SPEC = Event._fields.index("late"), Event._fields.index("spec")
# From one name to the next, by the primary key: never every event.
_NAMES = """WITH RECURSIVE names (study) AS (
    SELECT min(study) FROM {events}
    UNION ALL SELECT (SELECT min(study) FROM {events} WHERE study > names.study) FROM names WHERE study IS NOT NULL
) SELECT study FROM names WHERE study IS NOT NULL UNION SELECT study FROM {heads}"""
_tuple = tuple.__new__

# The chain of a log: every event carries a digest of itself and of all events before it.
#
# A digest is a 16-byte BLAKE2b over the previous event's digest and the event's fields. No two events give the same
# bytes, and every version of Python gives the same ones:
#
# - the numbers: a byte that says which of seq, pull, arm, time, reward, late and budget are present (1, 2, 4, …), then
#   these, 8 bytes each, little endian; rewards and times as floats, the others as integers;
# - the texts: kind, key, agent, reason, cause, and the specification as JSON with sorted keys. Each is ``=`` and its
#   text, or nothing if it is absent, and they are separated by NUL, which no text contains. Absent texts at the end
#   are left out.
#
# The study's name is not part of it: a study that is imported under another name keeps its chain.

SIZE = 16  # bytes of a digest
START = b"thresher chain 1"  # what the first event follows
_FORMS = "qqqddqq"  # of seq, pull, arm, time, reward, late, budget
_ASKED, _TOLD = struct.Struct("<Bqqqd").pack, struct.Struct("<Bqqqdd").pack  # as nearly all events are

_EMPTY = blake2b(digest_size=SIZE)


class Head(NamedTuple):
    """The end of a log: its last event's number and digest."""

    seq: int
    digest: bytes | None  # as the event has it


def store_chain_digest(before: bytes, event: tuple[Any, ...]) -> bytes:
    """The digest of an event that follows the one with the digest ``before``. Raises ValueError if it is not an event.

    >>> store_chain_digest(START, Event(1, "created", key="k")).hex()
    '3b82c4a8832b36398f7f8cd150324edd'
    """
    seq, kind, pull, arm, reward, reason, cause, late, budget, spec, key, time, agent, _ = event
    try:
        if pull is None or arm is None or time is None or late is not None or budget is not None:
            numbers = _numbers(seq, pull, arm, time, reward, late, budget)
        elif reward is None:
            numbers = _ASKED(0b1111, seq, pull, arm, time)
        else:
            numbers = _TOLD(0b11111, seq, pull, arm, time, reward)
        if key is None or agent is None or reason is not None or cause is not None or spec is not None:
            texts = _texts(kind, key, agent, reason, cause, None if spec is None else json.dumps(spec, sort_keys=True))
        else:
            texts = "=" + "\0=".join((kind, key, agent))
            if texts.count("\0") != 2:
                raise ValueError("a text holds a NUL")
        digest = _EMPTY.copy()  # a copy costs half as much as a new one
        digest.update(before + numbers + texts.encode())
        return digest.digest()
    except (struct.error, TypeError) as error:
        raise ValueError(f"a field is of the wrong type ({error})") from None


def _numbers(*values: float | None) -> bytes:
    there = [number for number in range(len(values)) if values[number] is not None]
    form = "".join(_FORMS[number] for number in there)
    return struct.pack(f"<B{form}", sum(1 << number for number in there), *(values[number] for number in there))


def _texts(*texts: str | None) -> str:
    joined = "\0".join(["" if text is None else "=" + text for text in texts])
    if joined.count("\0") != len(texts) - 1:
        raise ValueError("a text holds a NUL")
    return joined.rstrip("\0")


def chained_in_store(events: Iterable[Event]) -> list[Event]:
    """The events of a whole log, with their digests.

    >>> [event.digest.hex()[:4] for event in chained_in_store([Event(1, "created", key="k"), Event(2, "asked", 1, 0)])]
    ['3b82', 'a52e']
    """
    log, digest = [], START
    for event in events:
        digest = store_chain_digest(digest, event)
        log.append(event._replace(digest=digest))
    return log


# -- what a store must do ----------------------------------------------------------------------------------------


class Store(Protocol):
    """A log per study, and beside it leases and commands, which do not affect the ledger.

    It keeps events in order, and knows only which pulls they begin and end.

    ``(study, seq)`` is the primary key: an append at a number that is taken, or that would leave a gap, or after an
    event that is not the log's head, raises `Conflict` and writes nothing.
    """

    @property
    def leased(self) -> bool:
        """Whether pulls have leases: a store that outlives its agents must notice when they die."""

    def read(self, study: str, after: int = 0, limit: int | None = None) -> Sequence[Event]:
        """The events of a study with ``seq > after``, in order, at most ``limit``; none if there is no such study.

        These are the events that are there. `reader.read_log_pages` checks whether they are the ones that were written.
        """

    def head(self, study: str) -> Head | None:
        """The number and the digest of the last event that was written, as noted beside the log; None: no study."""

    def append(self, study: str, events: Sequence[Event], *, before: bytes | None, lease: float | None = None) -> None:
        """Write all of the events, or raise and write none; after `Interrupted` it is unknown which. Then call `flush`.

        The events carry their digests (see `store_chain_digest`), and the last of them becomes the head. They follow
        the event with the digest ``before``; event 1 follows `START`.

        Pulls that the events ask for get a lease of ``lease`` seconds; pulls that they end lose theirs.
        """

    def flush(self, study: str, last: Event) -> None:
        """Make the log up to this event survive a power cut, whoever wrote it.

        Called after the turn, so that no other agent waits for the disk. `Interrupted`: the event may be gone.
        """

    def studies(self) -> list[str]:
        """The names of all studies, sorted."""

    def turn(self, study: str) -> AbstractContextManager[object]:
        """Held from reading to appending, so that writers queue. Correctness does not depend on it."""

    def renew(self, study: str, pulls: Iterable[int], seconds: float) -> None:
        """Let the leases of these pulls run out ``seconds`` from now. Pulls without a lease are ignored."""

    def expired(self, study: str) -> list[int]:
        """The pulls whose leases have run out, sorted."""

    def note(self, study: str, agent: str, command: str) -> None:
        """Record what an agent runs, for people."""

    def notes(self, study: str) -> Mapping[str, str]:
        """What each agent of a study runs, in the order in which they came."""

    def delete(self, study: str) -> None:
        """Forget a study and all that belongs to it; a repeated call does nothing."""

    def describe(self) -> Mapping[str, str]:
        """What the store is, for people; a key that begins with ``!`` names a problem."""

    def close(self) -> None:
        """Close files and connections; the next use opens them again."""


Storage = str | os.PathLike[str] | Store | None  # a URL, a path to an SQLite file, a store, or None for memory


def open_store(storage: Storage) -> Store:
    """The store at a URL or a path; None or ``"memory"`` keeps the log in this process.

    >>> open_store(None).studies()
    []
    """
    if storage is None or storage == "memory":
        return MemoryStore()
    if isinstance(storage, os.PathLike):
        return _sqlite_file(os.fspath(storage), str(storage), "full")
    if not isinstance(storage, str):
        if not (hasattr(storage, "read") and hasattr(storage, "append")):
            raise InvalidInput("storage", storage, "is not a store", f"use {KINDS}")
        return storage
    scheme = storage.partition("://")[0]
    if scheme == "sqlite":
        return _sqlite(storage)
    if scheme in ("postgresql", "postgres"):
        return _postgres(storage)
    from ..text.masking import masked

    account, at, location = storage.rpartition("@")
    shown = masked(storage) if "://" in account or not at else f"***@{location}"
    is_file = storage and shown == storage and not any(sign in storage for sign in ":=@")
    remedy = f"write sqlite:///{storage} for a file, or use {KINDS}" if is_file else f"use {KINDS}"
    raise InvalidInput("storage", shown, "is not a store that this version knows", remedy)


def _sqlite(url: str) -> Store:
    """``sqlite:///relative.db`` or ``sqlite:////absolute.db``, with ``?durability=normal`` for faster writes."""
    from ..text.masking import masked

    location, _, query = url.removeprefix("sqlite://").partition("?")
    options = dict(parse_qsl(query, keep_blank_values=True))
    durability = options.pop("durability", "full")
    path = location[1:]
    if not location.startswith("/") or not path or path.endswith("/") or path == ":memory:":
        remedy = "write sqlite:///file.db for a file here, sqlite:////folder/file.db for any other"
        raise InvalidInput("storage", masked(url), "names no file", remedy)
    if options or durability not in ("full", "normal"):
        rule = "has an option that SQLite stores do not have"
        raise InvalidInput("storage", masked(url), rule, "?durability=normal is one")
    return _sqlite_file(path, masked(url), durability)


def _sqlite_file(path: str, said: str, durability: str) -> Store:
    """The store in a file that a user named as ``said``."""
    if not isinstance(path, str) or not path.isprintable():
        raise InvalidInput("storage", said, "must be printable, on one line", "name another file")
    from .sqlite import SqliteStore

    return SqliteStore(Path(path), durability=durability)


def _postgres(url: str) -> Store:
    try:
        from .postgres import PostgresStore
    except ImportError as error:
        raise StoreFailed("storage", "postgresql://…", *missing_package(error, "postgres")) from None
    return PostgresStore(url)


class MemoryStore:
    """Logs in this process's memory; may be handed to several studies as ``storage=``.

    There are no leases: the log dies with the process that asks.

    >>> store = MemoryStore()
    >>> from thresher.log.store import START, chained_in_store
    >>> store.append("s", chained_in_store([Event(1, "created")]), before=START)
    >>> store.read("s"), store.read("s", after=1), store.studies()
    ([Event(seq=1, kind='created', ...)], [], ['s'])
    """

    leased = False

    def __init__(self) -> None:
        self.logs: dict[str, list[Event]] = {}
        self._notes: dict[str, dict[str, str]] = {}
        self._lock = threading.RLock()

    def read(self, study: str, after: int = 0, limit: int | None = None) -> Sequence[Event]:
        return self.logs.get(study, [])[after : None if limit is None else after + limit]

    def head(self, study: str) -> Head | None:
        log = self.logs.get(study)
        return _tuple(Head, (log[-1].seq, log[-1].digest)) if log else None

    def append(self, study: str, events: Sequence[Event], *, before: bytes | None, lease: float | None = None) -> None:
        with self._lock:
            log = self.logs.get(study, [])
            if events[0].seq != len(log) + 1 or (log and log[-1].digest != before):
                raise store_race_lost(events[0].seq)
            if events[0].digest is None:
                raise InvalidInput("event", events[0].seq, "has no digest", "store.chained gives it one")
            log.extend(events)
            self.logs[study] = log

    def flush(self, study: str, last: Event) -> None:
        """Memory survives nothing."""

    def studies(self) -> list[str]:
        return sorted(self.logs)

    def turn(self, study: str) -> AbstractContextManager[object]:
        """One lock for all studies of the process."""
        return self._lock

    def renew(self, study: str, pulls: Iterable[int], seconds: float) -> None:
        """Nothing to renew: a process cannot outlive its own memory."""

    def expired(self, study: str) -> list[int]:
        return []

    def note(self, study: str, agent: str, command: str) -> None:
        self._notes.setdefault(study, {})[agent] = command

    def notes(self, study: str) -> Mapping[str, str]:
        return self._notes.get(study, {})

    def delete(self, study: str) -> None:
        with self._lock:
            self.logs.pop(study, None)
            self._notes.pop(study, None)

    def describe(self) -> Mapping[str, str]:
        return {"store": "memory of this process", "durability": "none: nothing is kept"}

    def close(self) -> None:
        """Nothing is open."""


# -- events as rows of a table: what the durable stores have in common ----------------------------------------


def store_read_queries(prefix: str, mark: str) -> tuple[str, str, str]:
    """How to read a log, its head and the names of all studies.

    Tables have that prefix, and ``mark`` stands for a parameter.
    """
    events, heads = f"{prefix}events", f"{prefix}heads"
    read = f"SELECT {COLUMNS} FROM {events} WHERE study = {mark} AND seq > {mark} ORDER BY seq LIMIT {mark}"  # noqa: S608
    head = f"SELECT seq, digest FROM {heads} WHERE study = {mark}"  # noqa: S608
    return read, head, _NAMES.format(events=events, heads=heads)


def check_store_version(version: int, location: object = UNSAID) -> None:
    """Raise unless tables of that version can be read."""
    if version != SCHEMA:
        rule = f"has schema {version}, but this thresher knows only schema {SCHEMA}"
        raise StoreFailed("storage", location, rule, "update thresher, or restore the store from a copy")


def event_to_store_row(event: Event) -> tuple[Any, ...]:
    """An event as values of a database.

    >>> row = event_to_store_row(Event(1, "created", spec={"a": 1}))
    >>> row[:3], row[SPEC]
    ((1, 'created', None), '{"a": 1}')
    """
    if event.spec is None and event.late is None:
        return event
    spec = None if event.spec is None else json.dumps(event.spec)
    return event._replace(spec=spec, late=None if event.late is None else int(event.late))  # type: ignore[arg-type]


def event_from_store_row(row: Sequence[Any]) -> Event:
    """The event that `event_to_store_row` wrote.

    >>> event_from_store_row(event_to_store_row(Event(2, "told", late=True)))
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


def store_race_lost(seq: int) -> Conflict:
    """Another agent wrote the event of that number."""
    return Conflict("event", seq, "another agent wrote it first", "read, and decide again")


def pulls_changed_in_store(events: Sequence[Event]) -> tuple[list[int], list[int]]:
    """The pulls that the events leave pending, and those that they end.

    >>> pulls_changed_in_store([Event(2, "asked", 1), Event(3, "asked", 2), Event(4, "told", 1)])
    ([2], [1])
    """
    goes_on = ("asked", "repeated")
    over = {event.pull: None for event in events if event.kind not in goes_on and event.pull is not None}  # in order
    begun = [event.pull for event in events if event.kind == "asked" and event.pull is not None]
    return [pull for pull in begun if pull not in over], list(over)
