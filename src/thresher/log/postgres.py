"""Studies in PostgreSQL."""

import contextlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import psycopg
from psycopg import errors as postgres

from ..core.events import Event
from ..errors import Interrupted
from . import postgres_schema as schema
from .chain import Head
from .locks import BUSY_WITHOUT_TURN, in_a_hurry
from .postgres_connection import PostgresConnection, Turn
from .store import beaten, begun_and_over, from_row, taken, to_row


class PostgresStore(PostgresConnection):
    """Logs in tables of a PostgreSQL database, for any number of agents on any number of machines."""

    leased = True

    # -- the log ------------------------------------------------------------------------------------------------

    def read(self, study: str, after: int = 0, limit: int | None = None) -> Sequence[Event]:
        return [from_row(row) for row in self._rows(schema.READ, study, after, limit)]

    def head(self, study: str) -> Head | None:
        found = self._rows(schema.HEAD, study)
        return Head(*found[0]) if found else None

    def _rows(self, query: str, study: str | None = None, *values: object) -> list[Any]:
        def work(connection: "psycopg.Connection[Any]") -> list[Any]:
            return connection.execute(query, () if study is None else (study, *values)).fetchall()

        return self._do(work, study=study)

    def append(self, study: str, events: Sequence[Event], *, lease: float | None = None) -> None:
        """Write all of the events, or raise and write none; in one statement, so in one message."""
        first = events[0].seq
        one, (begun, over) = len(events) == 1, begun_and_over(events)
        new = to_row(events[0]) if one else map(list, zip(*map(to_row, events), strict=True))
        values = dict(zip(Event._fields, new, strict=True))
        values |= {"study": study, "before": first - 1, "lease": lease, "begun": begun, "over": over}
        values |= {"end": events[-1].seq, "last": events[-1].digest}
        query = schema.append(one=one, begins_log=first == 1, begins=lease is not None and bool(begun), ends=bool(over))

        def work(connection: "psycopg.Connection[Any]") -> None:
            self._is_flushed = False
            try:
                written = connection.execute(query, values).fetchone()
            except postgres.UniqueViolation:
                raise beaten(first) from None
            if written != (len(events),):
                raise beaten(first)
            self._unflushed = connection
            if self._turn is not None and self._turn.session is connection:  # nothing is left to do in it
                self._end(self._turn, connection)

        self._do(work, study=study, writes=True)

    def _end(self, turn: "Turn", connection: "psycopg.Connection[Any]") -> None:
        """End the turn and wait for the disk, in one message: the next agent need not wait for it."""
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
        return sorted(name for (name,) in self._rows(schema.NAMES))

    @contextlib.contextmanager
    def turn(self, study: str) -> Iterator[None]:
        """One queue per study: a lock that the server frees when the agent's connection ends."""
        turn = Turn(study)

        def take(connection: "psycopg.Connection[Any]") -> None:
            hopeless = time.monotonic() < self._impatient_until or in_a_hurry()
            query = schema.TRY_TURN if hopeless else schema.TURN
            try:
                held = connection.execute(query, (turn.study,)).fetchone() != (False,)
            except postgres.LockNotAvailable:  # its holder hangs, or was stopped
                self._impatient_until = time.monotonic() + BUSY_WITHOUT_TURN
                held = False
            turn.session = connection if held else None

        with self._lock:  # the session owns the lock, so threads of this process queue here
            try:
                self._do(take)
            except BaseException:
                self.close()  # an interrupt may have come after the lock was acquired: closing the session frees it
                raise
            self._is_flushed = False  # an earlier call's flush does not cover what this one finds
            outer, self._turn = self._turn, turn
            try:
                yield
            finally:
                self._turn = outer
                if turn.session is not None and turn.session is self._connection:
                    with contextlib.suppress(psycopg.Error):  # a session that is gone holds no lock
                        turn.session.execute(schema.END_TURN, (turn.study,))

    def rename(self, study: str, name: str) -> None:
        self._change("UPDATE {} SET study = %(name)s WHERE study = %(study)s", study, name)

    def delete(self, study: str) -> None:
        self._change("DELETE FROM {} WHERE study = %(study)s", study)

    def _change(self, query: str, study: str, name: str | None = None) -> None:
        """Change all rows of a study, its head first. The lock waits for running appends and blocks new ones."""

        def work(connection: "psycopg.Connection[Any]") -> None:
            with connection.transaction():
                connection.execute("LOCK TABLE thresher_events IN SHARE ROW EXCLUSIVE MODE")
                if name is not None and (name,) in connection.execute(schema.NAMES):
                    raise taken(name)
                for table in ("heads", "events", "leases", "agents"):
                    connection.execute(query.format(f"thresher_{table}"), {"study": study, "name": name})
            self._is_flushed = False

        self._do(work, study=study)
        self.flush()

    # -- beside the log -----------------------------------------------------------------------------------------

    def renew(self, study: str, pulls: Iterable[int], seconds: float) -> None:
        self._do(lambda connection: connection.execute(schema.RENEW, (seconds, study, list(pulls))), study=study)

    def expired(self, study: str) -> list[int]:
        """The expired pulls by the server's clock: an agent whose own clock is wrong does no harm."""
        query = "SELECT pull FROM thresher_leases WHERE study = %s AND until < clock_timestamp() ORDER BY pull"
        return [pull for (pull,) in self._rows(query, study)]

    def note(self, study: str, agent: str, command: str) -> None:
        self._do(lambda connection: connection.execute(schema.NOTE, (study, agent, command)), study=study)

    def notes(self, study: str) -> Mapping[str, str]:
        query = "SELECT agent, command FROM thresher_agents WHERE study = %s ORDER BY time"
        return dict(self._rows(query, study))

    def describe(self) -> Mapping[str, str]:
        return {"store": f"PostgreSQL at {self.url}", **self._do(schema.examine)}
