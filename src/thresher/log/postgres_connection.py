"""A connection to PostgreSQL through psycopg 3, which only the files of this store import.

One connection per process, behind a lock. A lost connection is opened again. The caller finds out by the key of its
events whether they were written.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote

import psycopg
from psycopg import errors as postgres

from ..errors import UNSAID, Interrupted, StoreFailed
from ..text.masking import masked
from . import postgres_schema as schema
from .locks import HURRY, TURN, Patience, leave_to_parent, renewed
from .postgres_waiting import blockers, is_leaving, passes
from .reader import unreadable

Answer = TypeVar("Answer")
PATIENCE = 60.0  # seconds to wait for a server to come up, or for a lock on its tables
LONG = 1.0  # seconds; an interrupted statement that took longer was waiting
_DAMAGE = (postgres.DataCorrupted, postgres.IndexCorrupted, UnicodeDecodeError)


class Turn:
    """A place in the queue of a study's writers."""

    def __init__(self, study: str) -> None:
        self.study = study
        self.session: psycopg.Connection[Any] | None = None  # the one that holds the lock


class PostgresConnection:
    """The server of a store: uses one session, and connects again when it is lost."""

    def __init__(self, url: str) -> None:
        self._settings = schema.settings(url)
        self.url = masked(url)
        self._lock = threading.RLock()
        self._connection: psycopg.Connection[Any] | None = None
        self._known = False  # whether we were ever connected: then a refusal may be temporary
        self._held = ""  # who held a lock when we last connected
        self._unflushed: psycopg.Connection[Any] | None = None  # the session that wrote what is to be flushed
        self._is_flushed = False  # whether the last append was flushed together with the end of its turn
        self._level = "on"  # the server's own synchronous_commit
        self._turn: Turn | None = None
        self._impatient_until = self._given_up_until = 0.0
        _SERVERS.add(self)

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _do(
        self, work: "Callable[[psycopg.Connection[Any]], Answer]", *, study: str | None = None, writes: bool = False
    ) -> Answer:
        """Call ``work`` with the connection. If it is lost, connect and call it again, unless it ``writes``.

        A lock that another session holds is waited for like a server that is down: nothing is written meanwhile.
        If the tables are damaged, the error names the study that is read or written.
        """
        with self._lock:
            patience = Patience(PATIENCE)
            while True:
                with self._until_interrupted():
                    connection = self._connection or self._connect(patience)
                    try:
                        return work(connection)
                    except postgres.LockNotAvailable:
                        self._wait_for_lock(patience, 0.05, blockers(connection))
                    except _DAMAGE:
                        raise unreadable(UNSAID if study is None else study, self.url) from None
                    except psycopg.Error as error:
                        if not (connection.closed or is_leaving(error)):
                            raise StoreFailed("storage", self.url, self._said(error), "run thresher doctor") from None
                        self._connection = None
                        connection.close()
                        if writes:
                            raise Interrupted("storage", self.url, "the connection was lost while writing") from None

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
            session = self._connection
            if session and session.pgconn.transaction_status == psycopg.pq.TransactionStatus.ACTIVE:
                self._connection = None  # its answer will never be fetched
                session.close()
            raise

    def _connect(self, patience: Patience) -> "psycopg.Connection[Any]":
        pause, began = 0.05, time.monotonic()
        while True:
            try:
                return self._connected()
            except postgres.LockNotAvailable:
                self._wait_for_lock(patience, pause, self._held)
            except (psycopg.Error, OSError, ValueError) as error:  # ValueError: an invalid host name
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

    def _wait_for_lock(self, patience: Patience, pause: float, held: str) -> None:
        """Wait a moment for the sessions ``held``, in words, which lock the tables; raise when the time is over."""
        if not patience.pause(pause, lambda: f"another session to release a lock on the tables at {self.url}{held}"):
            rule = f"another session holds a lock on its tables{held}"
            raise StoreFailed("storage", self.url, rule, "end it") from None

    def _said(self, error: Exception) -> str:
        """The server's words, on one line and without the password."""
        words = " ".join(str(error).split()) or type(error).__name__
        for secret in map(str, filter(None, map(self._settings.get, ("password", "sslpassword")))):
            for form in (secret, quote(secret), quote(secret, safe="")):
                words = words.replace(form, "***")
        return masked(words)[:500]

    def _forked(self) -> None:
        leave_to_parent(self._connection)
        self._connection, self._lock, self._turn = None, threading.RLock(), None


_SERVERS = renewed(PostgresConnection._forked)
