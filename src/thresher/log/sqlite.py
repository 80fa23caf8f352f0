"""Studies in an SQLite file, through apsw, which bundles a current SQLite.

Older versions of SQLite can lose data under several writers.
"""

import contextlib
import os
import stat
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import apsw

from ..core.events import Event
from ..errors import StoreFailed
from .locks import TURN, FileLock, LockPatience, locks_renewed_after_fork
from .reader import unreadable_log
from .sqlite_file import DAMAGED, SQLITE, OpenSqliteFile, create_sqlite_file, file_beside_sqlite, is_sqlite_file_missing
from .store import (
    COLUMNS,
    Head,
    event_from_store_row,
    event_to_store_row,
    pulls_changed_in_store,
    store_race_lost,
    store_read_queries,
)

BUSY = 60.0  # seconds to wait for another writer, who usually holds the file for a millisecond
PAUSES = (0.001, 0.002, 0.005, 0.01, 0.015, 0.02, 0.025, 0.05, 0.1)  # seconds between two tries
CHECKED = 0.1  # seconds between two checks of the files while nothing is acknowledged
FIRST_SAFE = (3, 51, 3)  # before it, several writers could meet a bug that corrupts the file
LEVELS = {
    "full": "full: what was acknowledged is on the disk",
    "normal": "normal: a power cut may lose the last moments",
}
TABLES = """
CREATE TABLE events (
    study TEXT NOT NULL, seq INTEGER NOT NULL, kind TEXT NOT NULL, pull INTEGER, arm INTEGER, reward REAL, reason TEXT,
    cause TEXT, late INTEGER, budget INTEGER, spec TEXT, key TEXT, time REAL, agent TEXT, digest BLOB NOT NULL,
    PRIMARY KEY (study, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE heads (study TEXT NOT NULL PRIMARY KEY, seq INTEGER NOT NULL, digest BLOB NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE leases (
    study TEXT NOT NULL, pull INTEGER NOT NULL, until REAL NOT NULL, PRIMARY KEY (study, pull)
) STRICT, WITHOUT ROWID;
CREATE TABLE agents (
    study TEXT NOT NULL, agent TEXT NOT NULL, command TEXT NOT NULL, time REAL NOT NULL, PRIMARY KEY (study, agent)
) STRICT, WITHOUT ROWID;
"""
_READ, _HEAD, _NAMES = store_read_queries("", "?")
_BEGIN = """INSERT INTO heads SELECT ?1, ?2, ?3 WHERE NOT EXISTS (SELECT 1 FROM events WHERE study = ?1)
ON CONFLICT DO NOTHING"""
_MOVE = "UPDATE heads SET seq = ?2, digest = ?3 WHERE study = ?1 AND seq = ?4 AND digest = ?5"
_INSERT = f"INSERT INTO events (study, {COLUMNS}) VALUES (?{', ?' * len(Event._fields)})"  # noqa: S608


class SqliteStore:
    """Logs in one file, for any number of processes of one machine. Durable: what is flushed is on the disk."""

    leased = True

    def __init__(self, path: Path, *, durability: str = "full") -> None:
        # the file that links lead to: SQLite keeps its log beside that one, and all agents must queue at one lock
        self.path, self.durability = Path(os.path.realpath(path)), durability
        self._turns = FileLock(file_beside_sqlite(self.path, "lock"))
        self._failed: tuple[str, str] | None = None  # why nothing more is written, and what to do
        self._identity: tuple[int, int] | None = None  # of the file, once it was opened: another would lack our events
        self._begin()
        _STORES.add(self)

    def _begin(self) -> None:
        """Set what a forked child does not share with its parent."""
        self._file: OpenSqliteFile | None = None
        self._using, self._flushing = threading.RLock(), threading.RLock()
        self._next_check = 0.0

    # -- the log ------------------------------------------------------------------------------------------------------

    def read(self, study: str, after: int = 0, limit: int | None = None) -> Sequence[Event]:
        return [event_from_store_row(row) for row in self._rows(_READ, study, after, -1 if limit is None else limit)]

    def head(self, study: str) -> Head | None:
        rows = self._rows(_HEAD, study)
        return Head(*rows[0]) if rows else None

    def append(self, study: str, events: Sequence[Event], *, before: bytes | None, lease: float | None = None) -> None:
        """Write all of the events, or raise and write none: only if the log's head is the event before the first."""
        rows, first, last = [(study, *event_to_store_row(event)) for event in events], events[0].seq, events[-1]
        begun, over = pulls_changed_in_store(events)
        with self._write(study) as connection:
            head = (study, last.seq, last.digest)
            if first == 1:
                connection.execute(_BEGIN, head)
            else:
                connection.execute(_MOVE, (*head, first - 1, before))
            if not connection.changes():
                raise store_race_lost(first)
            connection.executemany(_INSERT, rows)
            if lease is not None and begun:
                leases = [(study, pull, time.time() + lease) for pull in begun]
                connection.executemany("INSERT OR REPLACE INTO leases VALUES (?, ?, ?)", leases)
            if over:
                pulls = [(study, pull) for pull in over]
                connection.executemany("DELETE FROM leases WHERE study = ? AND pull = ?", pulls)

    def flush(self, study: str, last: Event) -> None:
        self._flush()

    def _flush(self) -> None:
        """Bring the write-ahead log to the disk: as durable as synchronous=FULL, but no other process waits meanwhile.

        If that fails, it is not tried again: the system may have dropped what was written, and a second try would find
        nothing left to write and succeed.
        """
        with self._flushing:  # one at a time: of several, the system reports a failure to only one
            self._raise_if_failed()
            if self._file is not None and self._file.is_settled:
                self._bring_to_disk(self._file)
            elif not self._is_missing():
                with self._use() as file:
                    self._bring_to_disk(file)

    def _bring_to_disk(self, file: OpenSqliteFile) -> None:
        patience: LockPatience | None = None

        def pause() -> bool:
            nonlocal patience
            patience = patience or LockPatience(TURN)
            return patience.pause(PAUSES[3], f"another process to finish reading {self.path}")

        try:
            file.flush(pause)
            self._raise_if_lost(file.problem())
        except OSError as error:
            raise self._fail(*_broken(error)) from None

    def studies(self) -> list[str]:
        return sorted(name for (name,) in self._rows(_NAMES))

    def turn(self, study: str) -> AbstractContextManager[object]:
        """One queue per file, because SQLite allows one writer per file."""
        if self._file is None:
            with self._use():  # a missing folder gives a clearer error here than as a lock that cannot be created
                pass
        return self._turns.turn()

    def delete(self, study: str) -> None:
        if self._is_missing():
            return
        with self._write(study) as connection:
            for table in ("heads", "events", "leases", "agents"):
                connection.execute(f"DELETE FROM {table} WHERE study = ?", (study,))  # noqa: S608
        self._flush()

    # -- beside the log -----------------------------------------------------------------------------------------------

    def renew(self, study: str, pulls: Iterable[int], seconds: float) -> None:
        """Renew by the machine's clock, which all its processes share."""
        until = time.time() + seconds
        with self._write(study) as connection:
            query = "UPDATE leases SET until = ? WHERE study = ? AND pull = ?"
            connection.executemany(query, [(until, study, pull) for pull in pulls])

    def expired(self, study: str) -> list[int]:
        query = "SELECT pull FROM leases WHERE study = ? AND until < ?"
        return sorted(pull for (pull,) in self._rows(query, study, time.time()))

    def note(self, study: str, agent: str, command: str) -> None:
        with self._write(study) as connection:
            row = (study, agent, command, time.time())
            connection.execute("INSERT OR REPLACE INTO agents VALUES (?, ?, ?, ?)", row)

    def notes(self, study: str) -> Mapping[str, str]:
        return dict(self._rows("SELECT agent, command FROM agents WHERE study = ? ORDER BY time", study))

    def describe(self) -> Mapping[str, str]:
        if self._is_missing():
            return {"! file": f"{self.path} is not there"}
        with self._use() as file:
            return _examined(self.path, file.connection, self.durability)

    # -- the connection -----------------------------------------------------------------------------------------------

    def close(self) -> None:
        self._turns.close()
        with self._flushing, self._using, SQLITE.use():
            if self._file is not None:
                file, self._file = self._file, None
                file.close()

    @contextlib.contextmanager
    def _use(self, study: str | None = None) -> Iterator[OpenSqliteFile]:
        """The open file, for one thread at a time; errors of SQLite become one line.

        If the file is damaged, the error names the study that is read or written.
        """
        with self._using, SQLITE.use():
            is_open = False
            try:
                file = self._file
                if file is None or file.is_closed:
                    file = self._open()
                is_open = True
                now = time.monotonic()
                if now >= self._next_check:
                    self._raise_if_lost(file.problem() or file.index_problem())
                    self._next_check = now + CHECKED
                yield file
            except (apsw.Error, OSError, UnicodeDecodeError) as error:
                if getattr(error, "extendedresult", None) in _FSYNC:
                    raise self._fail(*_broken(error)) from None
                if study is not None and is_open and isinstance(error, apsw.CorruptError | UnicodeDecodeError):
                    raise unreadable_log(study, self.path) from None
                raise _explained(self.path, error) from None

    def _open(self) -> OpenSqliteFile:
        if self._identity is None and is_sqlite_file_missing(self.path):
            create_sqlite_file(self.path, self._turns, TABLES)
        file = OpenSqliteFile(self.path, _waiting(self.path), syncs=self.durability == "full")
        if self._identity not in (None, file.identity):
            file.close()
            raise self._fail("was deleted or replaced while it was in use; rewards may be lost", "start again")
        self._file, self._identity = file, file.identity
        weakref.finalize(self, SQLITE.abandon, file)  # when the store is garbage, or when Python ends
        return file

    @contextlib.contextmanager
    def _write(self, study: str) -> Iterator[apsw.Connection]:
        """The connection, in a transaction. IMMEDIATE: one that begins by reading might not be able to write later.

        apsw's own, ``with connection``, would report a failed ROLLBACK in place of the error that was before it.
        """
        self._raise_if_failed()
        with self._use(study) as file:
            self._raise_if_lost(file.index_problem())
            connection = file.connection
            try:
                connection.execute("BEGIN IMMEDIATE")
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:  # after some errors SQLite has already rolled back
                    connection.execute("ROLLBACK")
                raise

    def _rows(self, query: str, study: str | None = None, *values: object) -> list[Any]:
        if self._is_missing():
            return []
        with self._use(study) as file:
            return file.connection.execute(query, () if study is None else (study, *values)).fetchall()

    def _is_missing(self) -> bool:
        """Whether there is nothing to read yet: reading does not create the file."""
        try:
            return self._identity is None and is_sqlite_file_missing(self.path)
        except OSError as error:
            raise _explained(self.path, error) from None

    def _fail(self, rule: str, remedy: str) -> StoreFailed:
        """Stop writing: some of what was written may be lost."""
        self._failed = self._failed or (rule, remedy)
        return StoreFailed("storage", str(self.path), rule, remedy)

    def _raise_if_failed(self) -> None:
        if self._failed is not None:
            raise StoreFailed("storage", str(self.path), *self._failed)

    def _raise_if_lost(self, problem: tuple[str, str] | None) -> None:
        if problem is not None:
            raise self._fail(*problem)


_STORES = locks_renewed_after_fork(SqliteStore._begin)


def _waiting(path: Path) -> Callable[[int], bool]:
    """What SQLite calls while another process holds a lock: whether to try again, after a pause. Ctrl-C ends it."""
    patience, waited_for = LockPatience(BUSY), f"another process to finish writing to {path}"

    def pause(tries: int) -> bool:
        nonlocal patience
        if tries == 0:
            patience = LockPatience(BUSY)
        return patience.pause(PAUSES[min(tries, len(PAUSES) - 1)], waited_for)

    return pause


def _broken(error: Exception) -> tuple[str, str]:
    """The rule and the remedy after a write to the disk failed."""
    words = error.strerror if isinstance(error, OSError) else error
    return f"a write to the disk failed ({words}); what was told since may be lost", "check the disk and start again"


_FSYNC = (apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_IOERR_DIR_FSYNC)
_EXPLANATIONS: dict[type[Exception], tuple[str, str]] = {
    apsw.FullError: ("cannot be written: the disk is full", "free some space; nothing that was acknowledged is lost"),
    apsw.IOError: ("cannot be read or written: the disk fails or is full", "check the disk, then continue"),
    apsw.ReadOnlyError: ("is read-only", "make the file, those that belong to it and their folder writable"),
    apsw.PermissionsError: ("may not be used by you", "ask for the permission to read and write it"),
    apsw.CantOpenError: ("cannot be opened", "check that the file and its folder can be read and written"),
    apsw.NotADBError: ("is not an SQLite file", "name another file"),
    apsw.CorruptError: DAMAGED,
    apsw.BusyError: ("another process does not finish writing to it", "is it stopped? continue it, or end it"),
    UnicodeDecodeError: DAMAGED,  # a text in the file is not valid UTF-8
}


def _explained(path: Path, error: Exception) -> StoreFailed:
    """An error of SQLite or of the system, in one line."""
    if isinstance(error, OSError):
        return StoreFailed("storage", str(path), f"cannot be used ({error.strerror})", "check the path and the disk")
    problem = _EXPLANATIONS.get(type(error), (f"SQLite says: {error}", "run thresher doctor"))
    return StoreFailed("storage", str(path), *problem)


def _examined(path: Path, connection: apsw.Connection, durability: str) -> dict[str, str]:
    """What ``thresher doctor`` reports about a file."""
    mode = stat.S_IMODE(path.stat().st_mode)
    report = {
        "store": f"SQLite {apsw.sqlite_lib_version()} (apsw {apsw.apsw_version()})",
        "file": f"{path} ({path.stat().st_size:,} bytes, mode {mode:o})",
        "schema": str(connection.pragma("user_version")),
        "durability": LEVELS[durability],
    }
    if tuple(map(int, apsw.sqlite_lib_version().split("."))) < FIRST_SAFE:
        report["! version"] = "this SQLite can corrupt a file under several writers: update apsw"
    if mode & 0o077:
        report["! mode"] = f"others may read or write it: chmod 600 {path}"
    if not os.access(path, os.W_OK):
        report["! access"] = f"this user cannot write {path}"
    check = connection.pragma("quick_check", 1)
    if check == "ok":
        return {**report, "check": "sound"}
    return {**report, "! check": f"{DAMAGED[0]} ({check}): {DAMAGED[1]}"}
