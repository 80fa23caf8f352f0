"""Studies in PostgreSQL, through psycopg 3, which is imported here alone.

One connection a process, behind a lock. A lost connection is made anew; whether what was being written got through is
the caller's to find out, by the key of its events.
"""

import contextlib
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar
from urllib.parse import quote

import psycopg
from psycopg import errors as postgres

from ..errors import Conflict, Interrupted, StoreFailed
from ..events import Event
from ..masking import masked
from . import postgres_schema as schema
from .rows import BUSY_WITHOUT_TURN, NAMES, TURN, asked, ended, from_row, taken, to_row

Answer = TypeVar("Answer")
PATIENCE = 60.0  # seconds in which a server that was there before may come back
_STORES: "weakref.WeakSet[PostgresStore]" = weakref.WeakSet()
_PARENTS: list[object] = []  # connections of the process that forked us: closing them here would end its sessions


class _Turn:
    """A place in the queue of a study's writers."""

    def __init__(self, study: str) -> None:
        self.study = study
        self.session: psycopg.Connection[Any] | None = None  # the one that holds the lock


class PostgresStore:
    """Logs in tables of a PostgreSQL database, for any number of agents on any number of machines."""

    leased = True

    def __init__(self, url: str) -> None:
        self._settings = schema.settings(url)
        self.url = masked(url)
        self._lock = threading.RLock()
        self._connection: psycopg.Connection[Any] | None = None
        self._known = False  # whether the server ever answered: one that never did is not waited for
        self._unflushed: psycopg.Connection[Any] | None = None  # the session that wrote what is to be flushed
        self._is_flushed = False  # whether the last append was brought to the disk with the end of its turn
        self._level = "on"  # the server's own synchronous_commit
        self._turn: _Turn | None = None
        self._impatient_until = 0.0
        _STORES.add(self)

    # -- the log ------------------------------------------------------------------------------------------------

    def read(self, study: str, after: int = 0, limit: int | None = None) -> Sequence[Event]:
        """The events after that number."""
        return [from_row(row) for row in self._ask(schema.READ, study, after, limit)]

    def append(self, study: str, events: Sequence[Event], *, lease: float | None = None) -> None:
        """Write all of the events, or raise and write none; in one statement, so in one message."""
        first = events[0].seq
        one, begun, over = len(events) == 1, [] if lease is None else asked(events), ended(events)
        new = to_row(events[0]) if one else map(list, zip(*map(to_row, events), strict=True))
        values = dict(zip(Event._fields, new, strict=True))
        values |= {"study": study, "before": first - 1, "lease": lease, "begun": begun, "over": over}
        query = schema.append(one=one, begins=bool(begun), ends=bool(over))
        taken = Conflict("event", first, "another agent wrote it first", "read, and decide again")

        def work(connection: "psycopg.Connection[Any]") -> None:
            self._is_flushed = False
            try:
                written = connection.execute(query, values).fetchone()
            except (postgres.UniqueViolation, postgres.LockNotAvailable):
                raise taken from None
            if written != (len(events),):
                raise taken
            self._unflushed = connection
            if self._turn is not None and self._turn.session is connection:  # nothing is left to do in it
                self._end(self._turn, connection)

        self._do(work, writes=True)

    def _end(self, turn: "_Turn", connection: "psycopg.Connection[Any]") -> None:
        """End the turn and wait for the disk, in one message: the next agent goes on meanwhile."""
        connection.execute(schema.END_TURN_AND_FLUSH, (turn.study, self._level))
        turn.session = self._unflushed = None
        self._is_flushed = True

    def flush(self) -> None:
        """Bring the server's log to its disk, and to its standbys if it waits for them: once for many agents."""
        if self._is_flushed:  # by the append before, which ended its turn
            self._is_flushed = False
            return

        def work(connection: "psycopg.Connection[Any]") -> None:
            if self._unflushed not in (None, connection):  # the server may have crashed, and lost it, since
                self._unflushed = None
                raise Interrupted("storage", self.url, "the connection was lost after writing")
            if self._level != "off":
                connection.execute(schema.FLUSH, (self._level,))
            self._unflushed = None

        self._do(work, writes=True)

    def studies(self) -> list[str]:
        """The names of all studies, sorted."""
        return sorted(name for (name,) in self._ask(NAMES.format(events="thresher_events")))

    def turn(self, study: str) -> AbstractContextManager[object]:
        """One queue a study, by a lock that the server frees when the agent's connection ends."""
        return self._in_turn(_Turn(study))

    @contextlib.contextmanager
    def _in_turn(self, turn: "_Turn") -> Iterator[None]:
        def take(connection: "psycopg.Connection[Any]") -> None:
            query = schema.TURN if time.monotonic() >= self._impatient_until else schema.TRY_TURN
            try:
                held = connection.execute(query, (turn.study,)).fetchone() != (False,)
            except postgres.LockNotAvailable:  # its holder hangs, or was stopped
                self._impatient_until = time.monotonic() + BUSY_WITHOUT_TURN
                held = False
            turn.session = connection if held else None

        with self._lock:  # a lock is the session's: within this process, threads queue here
            self._do(take)
            outer, self._turn = self._turn, turn
            try:
                yield
            finally:
                self._turn = outer
                if turn.session is not None and turn.session is self._connection:
                    with contextlib.suppress(psycopg.Error):  # a session that is gone holds no lock
                        turn.session.execute(schema.END_TURN, (turn.study,))

    def rename(self, study: str, name: str) -> None:
        """Give a study another name."""
        self._change("UPDATE {} SET study = %(name)s WHERE study = %(study)s", study, name)

    def delete(self, study: str) -> None:
        """Forget a study."""
        self._change("DELETE FROM {} WHERE study = %(study)s", study)

    def _change(self, query: str, study: str, name: str | None = None) -> None:
        """Change all that belongs to a study. The lock waits for appends under way, and lets none begin."""

        def work(connection: "psycopg.Connection[Any]") -> None:
            with connection.transaction():
                connection.execute("SET LOCAL lock_timeout = '60s'")
                connection.execute("LOCK TABLE thresher_events IN SHARE ROW EXCLUSIVE MODE")
                if name is not None and connection.execute(schema.READ, (name, 0, 1)).fetchone():
                    raise taken(name)
                for table in ("events", "leases", "agents"):
                    connection.execute(query.format(f"thresher_{table}"), {"study": study, "name": name})
            self._is_flushed = False

        self._do(work)
        self.flush()

    # -- beside the log -----------------------------------------------------------------------------------------

    def renew(self, study: str, pulls: Iterable[int], seconds: float) -> None:
        """By the server's clock."""
        self._do(lambda connection: connection.execute(schema.RENEW, (seconds, study, list(pulls))))

    def expired(self, study: str) -> list[int]:
        """By the server's clock: an agent whose own is wrong changes nothing."""
        query = "SELECT pull FROM thresher_leases WHERE study = %s AND until < clock_timestamp() ORDER BY pull"
        return [pull for (pull,) in self._ask(query, study)]

    def note(self, study: str, agent: str, command: str) -> None:
        """Keep what an agent runs."""
        self._do(lambda connection: connection.execute(schema.NOTE, (study, agent, command)))

    def notes(self, study: str) -> Mapping[str, str]:
        """What each agent runs."""
        return dict(self._ask("SELECT agent, command FROM thresher_agents WHERE study = %s ORDER BY time", study))

    def describe(self) -> Mapping[str, str]:
        """The server, its settings, and what is wrong with them."""
        return {"store": f"PostgreSQL at {self.url}", **self._do(schema.examine)}

    # -- the connection -----------------------------------------------------------------------------------------

    def close(self) -> None:
        """End the session."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _ask(self, query: str, *values: object) -> list[Any]:
        return self._do(lambda connection: connection.execute(query, values).fetchall())

    def _do(self, work: "Callable[[psycopg.Connection[Any]], Answer]", *, writes: bool = False) -> Answer:
        """Work on the connection. If it is lost, connect and work again; but ``writes`` may have got through."""
        with self._lock:
            end = time.monotonic() + PATIENCE
            while True:
                connection = self._connection or self._connect(end)
                try:
                    return work(connection)
                except psycopg.Error as error:
                    if not (connection.closed or schema.is_leaving(error)):
                        raise StoreFailed(
                            "storage", self.url, self._said(error), "thresher doctor may know more"
                        ) from None
                    self._connection = None
                    connection.close()
                    if writes:
                        raise Interrupted("storage", self.url, "the connection was lost while writing") from None

    def _connect(self, end: float) -> "psycopg.Connection[Any]":
        pause = 0.05
        while True:
            try:
                connection = psycopg.connect(**self._settings, autocommit=True)
                try:
                    self._level = schema.prepare(connection, lock_timeout=TURN)
                except BaseException:
                    connection.close()
                    raise
                self._connection, self._known = connection, True
                return connection
            except (psycopg.Error, OSError, ValueError) as error:  # a host name may be no name at all
                if not self._known or time.monotonic() + pause >= end:
                    waited = f", for {PATIENCE:g} s" if self._known else ""
                    what = "reached" if isinstance(error, psycopg.OperationalError | OSError) else "used"
                    rule, remedy = f"cannot be {what}{waited}: {self._said(error)}", "check the URL and the server"
                    raise StoreFailed("storage", self.url, rule, remedy) from None
                time.sleep(pause)
                pause = min(1.0, 2 * pause)

    def _said(self, error: Exception) -> str:
        """The server's words, on one line and without the password."""
        words = " ".join(str(error).split()) or type(error).__name__
        for secret in map(str, filter(None, map(self._settings.get, ("password", "sslpassword")))):
            for form in (secret, quote(secret), quote(secret, safe="")):
                words = words.replace(form, "***")
        return masked(words)[:500]

    def _forked(self) -> None:
        _PARENTS.append(self._connection)
        self._connection, self._lock, self._turn = None, threading.RLock(), None


def _after_fork() -> None:
    for store in list(_STORES):
        store._forked()


os.register_at_fork(after_in_child=_after_fork)
