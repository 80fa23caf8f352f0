"""A connection to an SQLite file through apsw, which bundles a current SQLite.

Older versions of SQLite can lose data under several writers.
One connection per process, behind a lock, and none while it forks.
"""

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw

from ..errors import StoreFailed
from .locks import FileLock
from .reader import unreadable
from .sqlite_file import beside, create, explanation, is_missing
from .sqlite_forks import OpenFile
from .sqlite_session import Session, broken

_FSYNC = (apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_IOERR_DIR_FSYNC)


class SqliteConnection:
    """The file of a store: reading it, writing in transactions, and flushing to the disk."""

    def __init__(self, path: Path, *, durability: str = "full") -> None:
        # the file that links lead to: SQLite keeps its log beside that one, and all agents must queue at one lock
        self.path, self.durability = Path(os.path.realpath(path)), durability
        self._turns = FileLock(beside(self.path, "lock"))
        self._open_file = OpenFile(self.path)
        self._unflushed: tuple[int, int] | None = None  # the file to which something was written since the last flush

    def flush(self) -> None:
        """Bring the write-ahead log to the disk: as durable as synchronous=FULL, but no other process waits meanwhile.

        If that fails, it is not tried again: the system may have dropped what was written, and a second try would find
        nothing left to write and succeed.
        """
        with self._flushing:  # one at a time: of several, the system reports a failure to only one
            self._raise_if_failed()
            if self._unflushed is None and self._is_missing():
                return
            try:
                if self._session is not None and self._session.is_settled:
                    self._session.flush()
                else:
                    with self._use():
                        self._session.flush()  # type: ignore[union-attr]
            except StoreFailed:
                self._save()
                raise
            self._unflushed = None

    def close(self) -> None:
        self._turns.close()
        self._open_file.close()

    def __del__(self) -> None:
        """SQLite would close the connection itself, without checking that its files are still the same."""
        try:  # the interpreter may be shutting down, and `contextlib` be gone
            self._turns.close()
            self._open_file.end()
        except Exception:  # noqa: S110
            pass

    @contextlib.contextmanager
    def _use(self, study: str | None = None) -> Iterator[Any]:
        """The connection, for one thread at a time; errors of SQLite become one line.

        If the file is damaged, the error names the study that is read or written.
        """
        with self._lock:
            is_open = False
            try:
                if self._session is None or self._session.is_over:
                    self._open()
                else:
                    self._session.check_now_and_then()
                is_open = True
                yield self._session.connection  # type: ignore[union-attr]
            except StoreFailed:
                self._save()
                raise
            except (apsw.Error, OSError, UnicodeDecodeError) as error:
                if getattr(error, "extendedresult", None) in _FSYNC:
                    raise self._open_file.fail(*broken(error)) from None
                if study is not None and is_open and isinstance(error, apsw.CorruptError | UnicodeDecodeError):
                    raise unreadable(study, self.path) from None
                raise explanation(self.path, error) from None

    def _save(self) -> None:
        """If the log was deleted, save its content at once: this process may be killed next."""
        with self._lock:
            if self._session is not None and self._session.can_save and not self._session.is_over:
                self._session.save()

    def _open(self) -> None:
        if is_missing(self.path) and self._unflushed is None:
            create(self.path, self._turns)
        file = self._open_file
        file.session = session = Session(self.path, file.fail, syncs=self.durability == "full")
        if self._unflushed not in (None, session.file):
            raise file.fail("was deleted or replaced while it was in use; rewards may be lost", "start again")

    @contextlib.contextmanager
    def _write(self, study: str) -> Iterator[Any]:
        """The connection, in a transaction."""
        self._raise_if_failed()
        with self._use(study) as connection:
            self._session.check_index()  # type: ignore[union-attr]
            with _transaction(connection):
                yield connection
            self._unflushed = self._session.file  # type: ignore[union-attr]

    def _raise_if_failed(self) -> None:
        if self._open_file.failed is not None:
            raise StoreFailed("storage", str(self.path), *self._open_file.failed)

    def _is_missing(self) -> bool:
        """Whether there is nothing to read yet: reading does not create the file."""
        if self._session is not None:
            return False
        try:
            return is_missing(self.path)
        except OSError as error:
            raise explanation(self.path, error) from None

    @property
    def _flushing(self) -> "threading.RLock":
        return self._open_file.flushing

    @property
    def _lock(self) -> "threading.RLock":
        return self._open_file.lock

    @property
    def _session(self) -> Session | None:
        return self._open_file.session


@contextlib.contextmanager
def _transaction(connection: Any) -> Iterator[None]:
    """A transaction. IMMEDIATE, because one that begins by reading might not be able to write later.

    apsw's own, ``with connection``, would report a failed ROLLBACK in place of the error that was before it.
    """
    try:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # after some errors SQLite has already rolled back
            connection.execute("ROLLBACK")
        raise
