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
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote

import psycopg
from psycopg import errors as postgres

from ..core.events import Event
from ..errors import UNSAID, Conflict, DamagedStudy, Interrupted, StoreFailed
from ..text.masking import masked
from . import postgres_schema as schema
from .chain import Head
from .patience import HURRY, Patience, in_a_hurry
from .postgres_waiting import blockers, is_leaving, passes
from .rows import BUSY_WITHOUT_TURN, SCHEMA, TURN, asked, ended, from_row, taken, to_row

Answer = TypeVar("Answer")
PATIENCE = 60.0  # seconds in which a server may come, or come back, and a lock on its tables be let go
LONG = 1.0  # seconds after which an interrupted statement was one that waited
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
        self._known = False  # whether the server ever let us in: then no refusal is taken for its last word
        self._held = ""  # who held a lock when we last connected
        self._unflushed: psycopg.Connection[Any] | None = None  # the session that wrote what is to be flushed
        self._is_flushed = False  # whether the last append was brought to the disk with the end of its turn
        self._level = "on"  # the server's own synchronous_commit
        self._turn: _Turn | None = None
        self._impatient_until = self._given_up_until = 0.0
        self._schema = 0  # of the tables, as far as we know
        _STORES.add(self)

    # -- the log ------------------------------------------------------------------------------------------------

    def read(self, study: str, after: int = 0, limit: int | None = None) -> Sequence[Event]:
        """The events after that number."""
        return [from_row(row) for row in self._log(schema.READ, study, after, limit)]

    def head(self, study: str) -> Head | None:
        """Beside the log, in a table of its own."""
        found = self._log(schema.HEAD, study)
        return Head(*found[0]) if found else None

    def _log(self, query: str, *values: object) -> list[Any]:
        """What is there; if it cannot be read, the study is named."""

        def work(connection: "psycopg.Connection[Any]") -> list[Any]:
            query_now = schema.OLD[query] if self._is_old(connection) else query
            return connection.execute(query_now, values).fetchall()

        try:
            return self._do(work)
        except UnicodeDecodeError:
            rule, remedy = f"cannot be read: {self.url} is damaged, at least in parts", "restore it from a copy"
            raise DamagedStudy("study", values[0] if values else UNSAID, rule, remedy) from None

    def append(self, study: str, events: Sequence[Event], *, lease: float | None = None) -> None:
        """Write all of the events, or raise and write none; in one statement, so in one message."""
        first = events[0].seq
        one, begun, over = len(events) == 1, [] if lease is None else asked(events), ended(events)
        new = to_row(events[0]) if one else map(list, zip(*map(to_row, events), strict=True))
        values = dict(zip(Event._fields, new, strict=True))
        values |= {"study": study, "before": first - 1, "lease": lease, "begun": begun, "over": over}
        values |= {"end": events[-1].seq, "last": events[-1].digest}
        query = schema.append(one=one, begins_log=first == 1, begins=bool(begun), ends=bool(over))
        taken = Conflict("event", first, "another agent wrote it first", "read, and decide again")

        def work(connection: "psycopg.Connection[Any]") -> None:
            self._is_flushed = False
            self._upgrade(connection)
            try:
                written = connection.execute(query, values).fetchone()
            except postgres.UniqueViolation:
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
        return sorted(name for (name,) in self._log(schema.NAMES))

    def turn(self, study: str) -> AbstractContextManager[object]:
        """One queue a study, by a lock that the server frees when the agent's connection ends."""
        return self._in_turn(_Turn(study))

    @contextlib.contextmanager
    def _in_turn(self, turn: "_Turn") -> Iterator[None]:
        def take(connection: "psycopg.Connection[Any]") -> None:
            hopeless = time.monotonic() < self._impatient_until or in_a_hurry()
            query = schema.TRY_TURN if hopeless else schema.TURN
            try:
                held = connection.execute(query, (turn.study,)).fetchone() != (False,)
            except postgres.LockNotAvailable:  # its holder hangs, or was stopped
                self._impatient_until = time.monotonic() + BUSY_WITHOUT_TURN
                held = False
            turn.session = connection if held else None

        with self._lock:  # a lock is the session's: within this process, threads queue here
            try:
                self._do(take)
            except BaseException:
                self.close()  # an interrupt may have come when the lock was ours already: it ends with the session
                raise
            self._is_flushed = False  # what another call flushed says nothing of what this one finds
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
        """Change all that belongs to a study, its head first. The lock waits for appends, and lets none begin."""

        def work(connection: "psycopg.Connection[Any]") -> None:
            if name is not None:  # what is damaged can be deleted as it is
                self._upgrade(connection)
            with connection.transaction():
                connection.execute("LOCK TABLE thresher_events IN SHARE ROW EXCLUSIVE MODE")
                if name is not None and name in [found for (found,) in connection.execute(schema.NAMES)]:
                    raise taken(name)
                for table in (*(() if self._is_old(connection) else ("heads",)), "events", "leases", "agents"):
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

    def _is_old(self, connection: "psycopg.Connection[Any]") -> bool:
        """Whether the tables are still those of version 0.1; another agent may upgrade them at any time."""
        if self._schema != SCHEMA:
            self._schema = schema.version_of(connection)
        return self._schema != SCHEMA

    def _upgrade(self, connection: "psycopg.Connection[Any]") -> None:
        """What is written is of this version, and so are then the tables."""
        if self._is_old(connection):
            schema.upgrade(connection)

    def _ask(self, query: str, *values: object) -> list[Any]:
        return self._do(lambda connection: connection.execute(query, values).fetchall())

    def _do(self, work: "Callable[[psycopg.Connection[Any]], Answer]", *, writes: bool = False) -> Answer:
        """Work on the connection. If it is lost, connect and work again; but ``writes`` may have got through.

        A lock that somebody holds is waited for like a server that is away: nothing is written before it is let go.
        """
        with self._lock:
            patience = Patience(PATIENCE)
            while True:
                with self._until_interrupted():
                    connection = self._connection or self._connect(patience)
                    try:
                        return work(connection)
                    except postgres.LockNotAvailable:
                        held = blockers(connection)
                        if not patience.pause(0.05, partial(self._lock_held, held)):
                            raise self._locked(held) from None
                    except psycopg.Error as error:
                        if not (connection.closed or is_leaving(error)):
                            raise StoreFailed(
                                "storage", self.url, self._said(error), "thresher doctor may know more"
                            ) from None
                        self._connection = None
                        connection.close()
                        if writes:
                            raise Interrupted("storage", self.url, "the connection was lost while writing") from None

    @contextlib.contextmanager
    def _until_interrupted(self) -> Iterator[None]:
        """After Ctrl-C or SIGTERM in a wait, whoever tidies up does not wait for the same again."""
        began = time.monotonic()
        if began < self._given_up_until:
            raise StoreFailed("storage", self.url, "was being waited for when this process was interrupted")
        try:
            yield
        except Exception:
            raise
        except BaseException:
            if time.monotonic() - began >= LONG:
                self._given_up_until = time.monotonic() + HURRY
            session = self._connection
            if session and session.pgconn.transaction_status == psycopg.pq.TransactionStatus.ACTIVE:
                self._connection = None  # nobody will ever fetch its answer
                session.close()
            raise

    def _connect(self, patience: Patience) -> "psycopg.Connection[Any]":
        pause, began = 0.05, time.monotonic()
        while True:
            try:
                return self._connected()
            except postgres.LockNotAvailable:
                if not patience.pause(pause, lambda: self._lock_held(self._held)):
                    raise self._locked(self._held) from None
            except (psycopg.Error, OSError, ValueError) as error:  # a host name may be no name at all
                words, waits = self._said(error), self._known or passes(error)
                if not (waits and patience.pause(pause, partial("{}: {}".format, self.url, words))):
                    waited = f", for {time.monotonic() - began:.0f} s" if waits else ""
                    what = "reached" if isinstance(error, psycopg.OperationalError | OSError) else "used"
                    rule, remedy = f"cannot be {what}{waited}: {words}", "check the URL and the server"
                    raise StoreFailed("storage", self.url, rule, remedy) from None
            pause = min(1.0, 2 * pause)

    def _connected(self) -> "psycopg.Connection[Any]":
        connection = psycopg.connect(**self._settings, autocommit=True)
        try:
            self._level = schema.prepare(connection, lock_timeout=TURN)
        except BaseException as error:
            self._held = blockers(connection) if isinstance(error, postgres.LockNotAvailable) else ""
            connection.close()
            raise
        self._connection, self._known = connection, True
        return connection

    def _lock_held(self, held: str) -> str:
        return f"another session to let go of a lock on the tables at {self.url}{held}"

    def _locked(self, held: str) -> StoreFailed:
        return StoreFailed("storage", self.url, f"another session holds a lock on its tables{held}", "end it")

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
