"""Studies in an SQLite file, through apsw, which carries a current SQLite: older ones can lose data under our writers.

One connection a process, behind a lock, and none while it forks.
"""

import contextlib
import os
import threading
import time
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import apsw

from ..core.events import Event
from ..errors import Conflict, DamagedStudy, StoreFailed
from .chain import Head
from .filelock import FileLock
from .rows import COLUMNS, NAMES, OLD_COLUMNS, SCHEMA, asked, ended, from_row, taken, to_row
from .sqlite_file import beside, create, examine, explained, explanation, is_missing
from .sqlite_schema import upgrade, version_of
from .sqlite_session import Session

_STORES: "weakref.WeakSet[SqliteStore]" = weakref.WeakSet()
_MARKS = ", ".join("?" * len(Event._fields))
_FSYNC = (apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_IOERR_DIR_FSYNC)
_READ = f"SELECT {COLUMNS} FROM events WHERE study = ? AND seq > ? ORDER BY seq LIMIT ?"  # noqa: S608
_HEAD = "SELECT seq, digest FROM heads WHERE study = ?"
_NAMES = f"{NAMES.format(events='events')} UNION SELECT study FROM heads"  # noqa: S608
_OLD = {  # the same of schema 1
    _READ: _READ.replace(COLUMNS, OLD_COLUMNS),
    _HEAD: "SELECT max(seq), NULL FROM events WHERE study = ?",
    _NAMES: NAMES.format(events="events"),
}
_MOVE = "UPDATE heads SET seq = ?, digest = ? WHERE study = ? AND seq = ?"
_INSERT = f"INSERT INTO events (study, {COLUMNS}) VALUES (?, {_MARKS})"  # noqa: S608


class SqliteStore:
    """Logs in one file, for any number of processes of one machine. Durable: a commit is on the disk."""

    leased = True

    def __init__(self, path: Path, *, durability: str = "full") -> None:
        # the file that links lead to: SQLite keeps its log beside that one, and all agents must queue at one lock
        self.path, self.durability = Path(os.path.realpath(path)), durability
        self._turns = FileLock(beside(self.path, "lock"))
        self._flushing, self._lock = threading.RLock(), threading.RLock()  # who needs both takes them in this order
        self._session: Session | None = None
        self._unflushed: tuple[int, int] | None = None  # the file to which something was written since the last flush
        self._failed: tuple[str, str] | None = None  # why this object writes nothing any more, and what to do
        self._schema = 0  # of the file, as far as we know
        self._held: list[Any] = []  # locks that are held while the process forks
        _STORES.add(self)

    # -- the log ------------------------------------------------------------------------------------------------

    def read(self, study: str, after: int = 0, limit: int | None = None) -> Sequence[Event]:
        """The events after that number."""
        return [from_row(row) for row in self._rows(_READ, study, after, -1 if limit is None else limit)]

    def head(self, study: str) -> Head | None:
        """Beside the log, in a table of its own."""
        found = self._rows(_HEAD, study)
        return Head(*found[0]) if found and found[0][0] is not None else None

    def _rows(self, query: str, study: str, *values: object) -> list[Any]:
        """What is there of a study; if it cannot be read, the study is named."""
        if self._is_missing():
            return []
        with self._use() as connection:
            query = _OLD[query] if self._is_old(connection) else query
            try:
                return connection.execute(query, (study, *values)).fetchall()  # type: ignore[no-any-return]
            except (apsw.CorruptError, UnicodeDecodeError):
                rule = f"cannot be read: {self.path} is damaged, at least in parts"
                raise DamagedStudy("study", study, rule, "restore it from a copy; other studies may be well") from None

    def append(self, study: str, events: Sequence[Event], *, lease: float | None = None) -> None:
        """Write all of the events, or raise and write none."""
        rows, first, last = [(study, *to_row(event)) for event in events], events[0].seq, events[-1]
        with self._write() as connection:
            if not _is_moved(connection, study, first, last):
                raise Conflict("event", first, "another agent wrote it first", "read, and decide again")
            connection.executemany(_INSERT, rows)
            if lease is not None and (begun := asked(events)):
                leases = [(study, pull, time.time() + lease) for pull in begun]
                connection.executemany("INSERT OR REPLACE INTO leases VALUES (?, ?, ?)", leases)
            if over := ended(events):
                pulls = [(study, pull) for pull in over]
                connection.executemany("DELETE FROM leases WHERE study = ? AND pull = ?", pulls)

    def flush(self) -> None:
        """Bring the write-ahead log to the disk: as good as synchronous=FULL, but not while others wait.

        If that fails, the system may have dropped what was written, and another try would find nothing left to write
        and succeed: so there is none.
        """
        with self._flushing:  # one at a time: the system reports a failure to one of several
            self._raise_if_failed()
            if self._session is None and self._is_missing() and self._unflushed is None:
                return
            try:
                if self._session is not None and self._session.is_settled:
                    self._session.flush()
                else:
                    with self._use():
                        self._settle()
            except OSError as error:
                raise self._fail(*_broken(error)) from None
            except StoreFailed:
                self._save()
                raise
            self._unflushed = None

    def _settle(self) -> None:
        """The first flush of a connection."""
        assert self._session is not None
        try:
            self._session.settle()
        except OSError as error:
            raise self._fail(*_broken(error)) from None

    def studies(self) -> list[str]:
        """The names of all studies, sorted."""
        if self._is_missing():
            return []
        with self._use() as connection:
            query = _OLD[_NAMES] if self._is_old(connection) else _NAMES
            return sorted(name for (name,) in connection.execute(query))

    def turn(self, study: str) -> AbstractContextManager[object]:
        """One queue a file, for SQLite has one writer a file."""
        if self._session is None:
            with self._use():  # a folder that is not there is a clearer message than a lock that cannot be made
                pass
        return self._turns.turn()

    def rename(self, study: str, name: str) -> None:
        """Give a study another name."""
        with self._write() as connection:
            if connection.execute(_HEAD, (name,)).fetchone() or _has_events(connection, name):
                raise taken(name)
            for table in ("heads", "events", "leases", "agents"):
                connection.execute(f"UPDATE {table} SET study = ? WHERE study = ?", (name, study))  # noqa: S608
        self.flush()

    def delete(self, study: str) -> None:
        """Forget a study."""
        if self._is_missing():
            return
        with self._write(upgrades=False) as connection:
            for table in (*(() if self._is_old(connection) else ("heads",)), "events", "leases", "agents"):
                connection.execute(f"DELETE FROM {table} WHERE study = ?", (study,))  # noqa: S608
        self.flush()

    # -- beside the log -----------------------------------------------------------------------------------------

    def renew(self, study: str, pulls: Iterable[int], seconds: float) -> None:
        """By the clock of the machine, which all its processes share."""
        until = time.time() + seconds
        with self._write() as connection:
            connection.executemany(
                "UPDATE leases SET until = ? WHERE study = ? AND pull = ?", [(until, study, pull) for pull in pulls]
            )

    def expired(self, study: str) -> list[int]:
        """The pulls whose leases have run out."""
        if self._is_missing():
            return []
        query = "SELECT pull FROM leases WHERE study = ? AND until < ?"
        with self._use() as connection:
            return sorted(pull for (pull,) in connection.execute(query, (study, time.time())))

    def note(self, study: str, agent: str, command: str) -> None:
        """Keep what an agent runs."""
        with self._write() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO agents VALUES (?, ?, ?, ?)", (study, agent, command, time.time())
            )

    def notes(self, study: str) -> Mapping[str, str]:
        """What each agent runs."""
        if self._is_missing():
            return {}
        with self._use() as connection:
            query = "SELECT agent, command FROM agents WHERE study = ? ORDER BY time"
            return dict(connection.execute(query, (study,)).fetchall())

    def describe(self) -> Mapping[str, str]:
        """The file, its settings, and what is wrong with it."""
        if self._is_missing():
            return {"! file": f"{self.path} is not there"}
        with self._use() as connection:
            return examine(self.path, connection, self.durability)

    # -- the connection -----------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the connection."""
        self._turns.close()
        with self._flushing, self._lock:
            if self._session is not None:
                session, self._session = self._session, None
                session.close()

    def __del__(self) -> None:
        """SQLite would close the connection by itself, without looking whether its files are still the same."""
        with contextlib.suppress(Exception):  # Python may have begun to end
            self.close()

    @contextlib.contextmanager
    def _use(self) -> Iterator[Any]:
        """The connection, for one thread at a time; what SQLite finds wrong comes out in one line."""
        with self._lock:
            try:
                if self._session is None or self._session.is_over:
                    self._open()
                else:
                    self._session.check_now_and_then()
                yield self._session.connection  # type: ignore[union-attr]
            except StoreFailed:
                self._save()
                raise
            except (apsw.Error, OSError, UnicodeDecodeError) as error:
                if getattr(error, "extendedresult", None) in _FSYNC:
                    raise self._fail(*_broken(error)) from None
                raise explanation(self.path, error) from None

    def _save(self) -> None:
        """If it was the log that got lost, save what is in it at once: this process may be killed next."""
        with self._lock:
            if self._session is not None and self._session.can_save and not self._session.is_over:
                self._session.save()

    def _open(self) -> None:
        if is_missing(self.path) and self._unflushed is None:
            create(self.path, self._turns)
        self._session = Session(self.path, self._fail, syncs=self.durability == "full")
        self._schema = version_of(self._session.connection)
        if self._unflushed not in (None, self._session.file):
            raise self._fail("was deleted or replaced while it was in use; rewards may be lost", "start again")

    @contextlib.contextmanager
    def _write(self, *, upgrades: bool = True) -> Iterator[Any]:
        """The connection, in a transaction. A store of version 0.1 is upgraded first, but to delete from it."""
        self._raise_if_failed()
        with self._use() as connection:
            self._session.check_index()  # type: ignore[union-attr]
            if upgrades and self._is_old(connection):
                with _transaction(connection):
                    upgrade(connection)
            with _transaction(connection):
                yield connection
            self._unflushed = self._session.file  # type: ignore[union-attr]

    def _is_old(self, connection: Any) -> bool:
        """Whether the file is still one of version 0.1; another process may upgrade it at any time."""
        if self._schema != SCHEMA:
            self._schema = version_of(connection)
        return self._schema != SCHEMA

    def _fail(self, rule: str, remedy: str) -> StoreFailed:
        """Write nothing any more with this object: what it wrote may be lost, and nobody can tell what."""
        self._failed = self._failed or (rule, remedy)
        return StoreFailed("storage", str(self.path), rule, remedy)

    def _raise_if_failed(self) -> None:
        if self._failed is not None:
            raise StoreFailed("storage", str(self.path), *self._failed)

    def _is_missing(self) -> bool:
        """Whether there is nothing to read yet: reading makes no file."""
        if self._session is not None:
            return False
        with explained(self.path):
            return is_missing(self.path)

    def _before_fork(self) -> None:
        """Python goes on with a fork whatever is raised here, an interrupt too: so it is noted what was done."""
        for lock in (self._flushing, self._lock):
            lock.acquire()
            self._held.append(lock)
        self.close()

    def _after_fork(self) -> None:
        while self._held:
            self._held.pop().release()

    def _begin_anew(self) -> None:
        """In the child: the parent's locks and connection are not ours."""
        self._held, self._flushing, self._lock = [], threading.RLock(), threading.RLock()
        if self._session is not None:
            _PARENTS.append(self._session)
            self._session = None


def _broken(error: Exception) -> tuple[str, str]:
    words = error.strerror if isinstance(error, OSError) else error
    return f"a write to the disk failed ({words}); what was told since may be lost", "check the disk and start again"


def _is_moved(connection: Any, study: str, first: int, last: Event) -> bool:
    """Move the head of a log to its new end, if it is where it must be: at the event before the first new one."""
    if first > 1:
        connection.execute(_MOVE, (last.seq, last.digest, study, first - 1))
    elif _has_events(connection, study):
        return False
    else:
        connection.execute("INSERT OR IGNORE INTO heads VALUES (?, ?, ?)", (study, last.seq, last.digest))
    return bool(connection.changes())


def _has_events(connection: Any, study: str) -> bool:
    return connection.execute("SELECT 1 FROM events WHERE study = ? LIMIT 1", (study,)).get is not None


@contextlib.contextmanager
def _transaction(connection: Any) -> Iterator[None]:
    """All or nothing. IMMEDIATE: a transaction that begins by reading could not become a writing one."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # SQLite has rolled back itself after some errors
            connection.execute("ROLLBACK")
        raise


# SQLite keeps its locks per process and file: a child that finds an open connection of its parent's, or one in the
# middle of a transaction, would wait for itself for ever. So none is open while a process forks.
_FORKING: list[SqliteStore] = []
_FORK = threading.Lock()  # held from before a fork until after it: two threads may fork at once
_FORKER: list[int] = []  # the thread that holds it
_PARENTS: list[object] = []  # connections of the process that forked us, should one have stayed open: not ours to close


def _before_fork() -> None:
    _FORK.acquire()
    _FORKER[:] = [threading.get_ident()]
    _FORKING[:] = list(_STORES)
    for store in _FORKING:
        store._before_fork()


def _after_fork_in_parent() -> None:
    if [threading.get_ident()] != _FORKER:  # an interrupt ended the wait for the other thread's fork
        return
    for store in _FORKING:
        store._after_fork()
    _FORKING.clear()
    _FORKER.clear()
    _FORK.release()


def _after_fork_in_child() -> None:
    global _FORK
    for store in list(_STORES):
        store._begin_anew()
    _FORKING.clear()
    _FORKER.clear()
    _FORK = threading.Lock()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
