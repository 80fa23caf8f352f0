"""Studies in PostgreSQL, through psycopg 3.

One session per process, behind a lock. A lost session is opened again. The caller finds out by the key of its events
whether they were written.

Everything happens in transactions, and nothing is kept in a pooler's session: no setting, no lock, no prepared
statement. Each transaction may have another session of the server, and other programs have the same ones in between. So
a turn is a transaction. An append ends it with a commit that does not wait for the disk, and waits in the transaction
after it, when the next agent has its turn already.
"""

import contextlib
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import quote

import psycopg
from psycopg import errors as postgres

from ..core.events import Event
from ..errors import UNSAID, Interrupted, StoreFailed
from ..text.masking import masked
from . import postgres_schema as schema
from .locks import (
    BUSY_WITHOUT_TURN,
    HURRY,
    TURN,
    LockPatience,
    are_locks_in_a_hurry,
    leave_locks_to_parent,
    locks_renewed_after_fork,
)
from .reader import unreadable_log
from .store import (
    Head,
    event_from_store_row,
    event_to_store_row,
    pulls_changed_in_store,
    store_race_lost,
)

Answer = TypeVar("Answer")
PATIENCE = 60.0  # seconds to wait for a server to come up, or for a lock on its tables
LONG = 1.0  # seconds; an interrupted statement that took longer was waiting
IDLE = psycopg.pq.TransactionStatus.IDLE
OPEN = (psycopg.pq.TransactionStatus.INTRANS, psycopg.pq.TransactionStatus.INERROR)
_DAMAGE = (postgres.DataCorrupted, postgres.IndexCorrupted, UnicodeDecodeError)

# libpq gives no code for a failure to connect, so only its text can be checked. In another language than English the
# failure counts as permanent, unless the server was reached before.
NEVER = (
    "authentication failed",
    "no password supplied",
    "no pg_hba.conf entry",
    "not permitted to log in",
    "does not exist",
)
PASSING = (
    "Is the server running",  # no server listens there, or not yet
    "refused",
    "timeout expired",
    "timed out",
    "unreachable",
    "No route to host",
    "Temporary failure in name resolution",
    "starting up",
    "shutting down",
    "recovery",
    "not yet accepting connections",
    "too many clients",
    "too many connections",
    "connection slots are reserved",
    "closed the connection unexpectedly",
    "reset by peer",
)
_NAMES = re.compile(r'"[^"]*"')  # of databases, users and hosts: they may contain any word
# Sessions that hold an exclusive lock on one of our tables. If there are none, sessions that have held any lock for a
# second: a deletion waits for these, too.
BLOCKERS = """WITH held AS (
    SELECT pid, application_name, xact_start,
        bool_or(mode NOT IN ('AccessShareLock', 'RowShareLock', 'RowExclusiveLock')) AS strong
    FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE granted AND pid <> pg_backend_pid()
    AND relation IN (to_regclass('thresher_schema'), to_regclass('thresher_events'), to_regclass('thresher_heads'),
        to_regclass('thresher_leases'), to_regclass('thresher_agents'))
    GROUP BY pid, application_name, xact_start
) SELECT pid, application_name FROM held
WHERE strong OR (NOT EXISTS (SELECT 1 FROM held WHERE strong) AND xact_start < now() - interval '1 second')
ORDER BY pid"""


class PostgresStore:
    """Logs in tables of a PostgreSQL database, for any number of agents on any number of machines."""

    leased = True

    def __init__(self, url: str) -> None:
        self._server = PostgresServer(url)
        self._impatient_until = 0.0
        self._durable: bytes | None = None  # the digest of the last event that this process appended

    def close(self) -> None:
        self._server.close()

    # -- the log ------------------------------------------------------------------------------------------------

    def read(self, study: str, after: int = 0, limit: int | None = None) -> Sequence[Event]:
        return [event_from_store_row(row) for row in self._rows(schema.READ, study, after, limit)]

    def head(self, study: str) -> Head | None:
        rows = self._rows(schema.HEAD, study)
        return Head(*rows[0]) if rows else None

    def _rows(self, query: str, study: str | None = None, *values: object) -> list[Any]:
        def work(connection: "psycopg.Connection[Any]") -> list[Any]:
            return connection.execute(query, () if study is None else (study, *values)).fetchall()

        return self._server.do(work, study=study)

    def append(self, study: str, events: Sequence[Event], *, before: bytes | None, lease: float | None = None) -> None:
        """Write all of the events, or raise and write none; in one statement, so in one message."""
        first, last = events[0].seq, events[-1]
        is_single, (begun, over) = len(events) == 1, pulls_changed_in_store(events)
        new = (
            event_to_store_row(events[0])
            if is_single
            else map(list, zip(*map(event_to_store_row, events), strict=True))
        )
        values = dict(zip(Event._fields, new, strict=True))
        values |= {"study": study, "first": first, "before": before, "lease": lease, "begun": begun, "over": over}
        is_alone = before == self._durable  # nobody has written since: nobody waits for the turn
        values |= {"end": last.seq, "last": last.digest, "waits": is_alone}
        begins = lease is not None and bool(begun)
        query = schema.append_statement(is_single=is_single, begins_log=first == 1, begins=begins, ends=bool(over))

        def work(connection: "psycopg.Connection[Any]") -> None:
            try:
                written = connection.execute(query, values).fetchone()
            except postgres.UniqueViolation:
                raise store_race_lost(first) from None
            if written is None or written[0] != len(events):
                raise store_race_lost(first)
            self._end_turn()  # nothing is left to do in it
            connection.execute("COMMIT" if is_alone else self._server.end)
            self._durable = last.digest

        self._server.do(work, study=study, writes=True)

    def flush(self, study: str, last: Event) -> None:
        """Wait for the disk, and for standbys if the server does. What this process appended last is there already."""
        if last.digest != self._durable:
            ((is_there, _),) = self._rows(schema.FLUSH, study, last.seq, last.digest)
            if not is_there:
                raise Interrupted("storage", self._server.url, f"event {last.seq} is gone: lost in a crash, or deleted")

    def studies(self) -> list[str]:
        return sorted(name for (name,) in self._rows(schema.NAMES))

    @contextlib.contextmanager
    def turn(self, study: str) -> Iterator[None]:
        """One queue per study: a transaction with a lock, which the server frees when it ends, in whatever way."""

        def take(connection: "psycopg.Connection[Any]") -> None:
            hopeless = time.monotonic() < self._impatient_until or are_locks_in_a_hurry()
            query = schema.turn_statement(connection, study, schema.TRY_TURN if hopeless else schema.TURN)
            try:
                held = self._server.begin(connection, query) != (False,)
            except postgres.LockNotAvailable:  # its holder hangs, or was stopped
                self._impatient_until = time.monotonic() + BUSY_WITHOUT_TURN
                held = False
            self._server.turn = connection if held else None

        with self._server.lock:  # the transaction is the session's, so threads of this process queue here
            try:
                self._server.do(take, begun=True)
            except BaseException:
                self._server.close()  # an interrupt may have come after the lock was acquired: this frees it
                raise
            try:
                yield
                if self._server.turn is not None:  # nothing was appended, but leases may have been renewed
                    self._server.do(lambda _: self._end_turn(), study=study, writes=True)
            finally:
                self._server.end_turn()

    def _end_turn(self) -> None:
        """Let the transaction end with the commit that follows."""
        self._server.turn = None

    def delete(self, study: str) -> None:
        """Delete all rows of a study, its head first. The lock waits for running appends and blocks new ones."""

        def work(connection: "psycopg.Connection[Any]") -> None:
            connection.execute("LOCK TABLE thresher_events IN SHARE ROW EXCLUSIVE MODE")
            for table in ("heads", "events", "leases", "agents"):
                connection.execute(f"DELETE FROM thresher_{table} WHERE study = %s", (study,))  # noqa: S608
            self._end_turn()

        self._server.do(work, study=study)

    # -- beside the log -----------------------------------------------------------------------------------------

    def renew(self, study: str, pulls: Iterable[int], seconds: float) -> None:
        self._server.do(lambda connection: connection.execute(schema.RENEW, (seconds, study, list(pulls))), study=study)

    def expired(self, study: str) -> list[int]:
        """The expired pulls by the server's clock: an agent whose own clock is wrong does no harm."""
        query = "SELECT pull FROM thresher_leases WHERE study = %s AND until < clock_timestamp() ORDER BY pull"
        return [pull for (pull,) in self._rows(query, study)]

    def note(self, study: str, agent: str, command: str) -> None:
        self._server.do(lambda connection: connection.execute(schema.NOTE, (study, agent, command)), study=study)

    def notes(self, study: str) -> Mapping[str, str]:
        query = "SELECT agent, command FROM thresher_agents WHERE study = %s ORDER BY time"
        return dict(self._rows(query, study))

    def describe(self) -> Mapping[str, str]:
        return {"store": f"PostgreSQL at {self._server.url}", **self._server.do(schema.examine_postgres_schema)}


class PostgresServer:
    """A server: holds one session, and connects again when it is lost."""

    def __init__(self, url: str) -> None:
        self._settings = schema.postgres_schema_settings(url)
        self.url = masked(url)
        self.lock = threading.RLock()
        self.session: psycopg.Connection[Any] | None = None
        self.turn: psycopg.Connection[Any] | None = None  # the session in which the transaction of a turn is open
        self._begin = self.end = ""  # how a transaction begins there, and how one that appended ends
        self._known = False  # whether we were ever connected: then a refusal may be temporary
        self._held = ""  # who held a lock when we last connected
        self._given_up_until = 0.0
        _SERVERS.add(self)

    def close(self) -> None:
        with self.lock:
            if self.session is not None:
                self.session.close()
                self.session = self.turn = None

    def begin(self, connection: "psycopg.Connection[Any]", query: str) -> Any:
        """Begin a transaction with a statement without parameters, in one message; returns the first row."""
        cursor = connection.execute(f"{self._begin}; {query}")
        while cursor.nextset():
            pass
        return cursor.fetchone()

    def do(
        self,
        work: "Callable[[psycopg.Connection[Any]], Answer]",
        *,
        study: str | None = None,
        writes: bool = False,
        begun: bool = False,
    ) -> Answer:
        """Call ``work`` in the turn's transaction, or one of its own; again if it is lost, unless it ``writes``.

        If that is ``begun`` by ``work``, it is not begun here.

        A cancelled statement is like a lost connection. A lock that another session holds is waited for like a server
        that is down: nothing is written meanwhile.
        If the tables are damaged, the error names the study that is read or written.
        """
        with self.lock:
            patience = LockPatience(PATIENCE)
            while True:
                with self._until_interrupted():
                    connection = self._idle_session() or self._connect(patience)
                    try:
                        return self._in_transaction(connection, work, begun=begun)
                    except postgres.LockNotAvailable:
                        self._wait_for_lock(patience, 0.05, blocking_postgres_sessions(connection))
                    except _DAMAGE:
                        raise unreadable_log(UNSAID if study is None else study, self.url) from None
                    except postgres.QueryCanceled as error:  # by an administrator or a time-out
                        if writes:
                            raise Interrupted("storage", self.url, "a statement was cancelled while writing") from None
                        if not patience.pause(0.05, f"{self.url}: {self._said(error)}"):
                            raise StoreFailed("storage", self.url, self._said(error), "run thresher doctor") from None
                    except psycopg.Error as error:
                        if not (connection.closed or is_postgres_shutting_down(error)):
                            raise StoreFailed("storage", self.url, self._said(error), "run thresher doctor") from None
                        self.session = self.turn = None
                        connection.close()
                        if writes:
                            raise Interrupted("storage", self.url, "the connection was lost while writing") from None

    def _idle_session(self) -> "psycopg.Connection[Any] | None":
        """The session, unless an interrupt left it in the middle of something."""
        session = self.session
        if session is not None and self.turn is None and session.pgconn.transaction_status != IDLE:
            self.close()
        return self.session

    def _in_transaction(
        self,
        connection: "psycopg.Connection[Any]",
        work: "Callable[[psycopg.Connection[Any]], Answer]",
        *,
        begun: bool,
    ) -> Answer:
        try:
            if self.turn is not connection and not begun:
                connection.execute(self._begin)
            answer = work(connection)
            if self.turn is not connection and connection.pgconn.transaction_status in OPEN:  # no turn, or at its end
                connection.execute("COMMIT")
            return answer
        except BaseException:
            self.end_turn(connection)
            raise

    def end_turn(self, connection: "psycopg.Connection[Any] | None" = None) -> None:
        """End the transaction that is open, without its changes."""
        session, self.turn = connection or self.turn, None
        if session is not None and not session.closed and session.pgconn.transaction_status in OPEN:
            with contextlib.suppress(psycopg.Error):  # a session that is gone holds no lock
                session.execute("ROLLBACK")

    @contextlib.contextmanager
    def _until_interrupted(self) -> Iterator[None]:
        """After Ctrl-C or SIGTERM in a wait, cleaning up does not wait for the same thing again."""
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
            session = self.session
            if session and session.pgconn.transaction_status != IDLE:
                self.close()  # its answer will never be fetched
            raise

    def _connect(self, patience: LockPatience) -> "psycopg.Connection[Any]":
        pause, began = 0.05, time.monotonic()
        while True:
            try:
                return self._connected()
            except postgres.LockNotAvailable:
                self._wait_for_lock(patience, pause, self._held)
            except (psycopg.Error, OSError, ValueError) as error:  # ValueError: an invalid host name
                words, waits = self._said(error), self._known or is_temporary_in_postgres(error)
                if not (waits and patience.pause(pause, f"{self.url}: {words}")):
                    waited = f", for {time.monotonic() - began:.0f} s" if waits else ""
                    failed = "reached" if isinstance(error, psycopg.OperationalError | OSError) else "used"
                    rule, remedy = f"cannot be {failed}{waited}: {words}", "check the URL and the server"
                    raise StoreFailed("storage", self.url, rule, remedy) from None
            pause = min(1.0, 2 * pause)

    def _connected(self) -> "psycopg.Connection[Any]":
        connection = psycopg.connect(**self._settings, autocommit=True, prepare_threshold=None)
        try:
            connection.prepare_threshold = 5 if schema.is_own_session(connection) else None
            self._begin, self.end = schema.transaction_ends(connection, lock_timeout=TURN)
            connection.execute(self._begin)
            schema.create_tables(connection)
            connection.execute("COMMIT")
        except BaseException as error:
            self.end_turn(connection)
            self._held = blocking_postgres_sessions(connection) if isinstance(error, postgres.LockNotAvailable) else ""
            connection.close()
            raise
        self.session, self.turn, self._known = connection, None, True
        return connection

    def _wait_for_lock(self, patience: LockPatience, pause: float, held: str) -> None:
        """Wait a moment for the sessions ``held``, in words, which lock the tables; raise when the time is over."""
        if not patience.pause(pause, f"another session to release a lock on the tables at {self.url}{held}"):
            rule = f"another session holds a lock on its tables{held}"
            raise StoreFailed("storage", self.url, rule, "end it") from None

    def _said(self, error: Exception) -> str:
        """The server's words, on one line and without the password."""
        words = " ".join(str(error).split()) or type(error).__name__
        for secret in map(str, filter(None, map(self._settings.get, ("password", "sslpassword")))):
            for form in (secret, quote(secret), quote(secret, safe="")):
                words = words.replace(form, "***")
        return masked(words)[:500]

    def begin_in_child(self) -> None:
        """In a forked child: the session is the parent's, and a thread of the parent may hold the lock."""
        leave_locks_to_parent(self.session)
        self.session, self.turn, self.lock = None, None, threading.RLock()


_SERVERS = locks_renewed_after_fork(PostgresServer.begin_in_child)


def is_postgres_shutting_down(error: psycopg.Error) -> bool:
    """Whether the server, or this session, is being shut down."""
    return (error.sqlstate or "")[:3] in ("57P", "080", "08P")


def is_temporary_in_postgres(error: Exception) -> bool:
    """Whether a connection that failed with this error may succeed a moment later by itself.

    >>> refused = 'connection to server at "127.0.0.1", port 1 failed: Connection refused'
    >>> is_temporary_in_postgres(psycopg.OperationalError(refused))
    True
    >>> is_temporary_in_postgres(psycopg.OperationalError('FATAL:  database "recovery" does not exist'))
    False
    """
    if not isinstance(error, psycopg.OperationalError):
        return False
    words = _NAMES.sub("", str(error))
    return is_postgres_shutting_down(error) or (any(w in words for w in PASSING) and not any(w in words for w in NEVER))


def blocking_postgres_sessions(connection: "psycopg.Connection[Any]") -> str:
    """The sessions that block all others, in words; empty if none are found."""
    try:
        rows = connection.execute(BLOCKERS).fetchall()
    except psycopg.Error:
        return ""
    sessions = [f"server process {pid}{f', {name}' if name else ''}" for pid, name in rows]
    return f" ({'; '.join(sessions)})" if sessions else ""
