"""One connection to an SQLite store, which checks that the files it has open are not deleted or replaced.

A connection can still write and flush a write-ahead log that was deleted, but no other process will ever read it.
SQLite itself deletes the log only with the last connection, so while one is open the log must exist.
"""

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path

import apsw

from ..errors import StoreFailed
from .locks import BUSY_WITHOUT_TURN, TURN
from .sqlite_file import beside, opened, sync_folder
from .sqlite_waiting import PAUSES, BusyHandler

MAGIC = b"\x37\x7f\x06"  # how a write-ahead log begins
CHECKED = 0.1  # seconds between two checks of the files while nothing is acknowledged
Fail = Callable[[str, str], StoreFailed]  # makes the error from a rule and a remedy, and stops further writes


class Session:
    """A connection that notices when one of its files is deleted or replaced, and flushes its log."""

    def __init__(self, path: Path, fail: Fail, *, syncs: bool) -> None:
        self._path, self._fail, self._syncs = path, fail, syncs
        self._log, self._index = str(beside(path, "wal")), str(beside(path, "shm"))
        self._waiting = BusyHandler(path)
        self._handle: int | None = None  # of the log; None: this connection has none
        # Where Linux shows the name of the open log. Not stat: after it has read a file's times, the next write must
        # update them, which makes flushing a quarter slower.
        self._link = ""
        self._next_check = self._next_try = 0.0
        self.can_save = self.is_over = False
        self.is_settled = False  # whether everything written to the log before this connection is on the disk
        self.connection = opened(path, self._waiting)
        self.file = _identity(str(path))
        self._files: tuple[tuple[str, object], ...] = ((str(path), self.file),)
        self._index_file: tuple[int, int] | None = None
        try:
            self._note_files()
        except BaseException:
            self.close()
            raise

    def _note_files(self) -> None:
        """Note the connection's files. Keep a handle of the log: Linux reports a lost write once to every handle."""
        read_only = self.connection.readonly("main") and _identity(self._log) is None
        if read_only or self.connection.pragma("journal_mode") != "wal":  # then SQLite waits for the disk itself
            self.connection.execute("PRAGMA synchronous = FULL")
            return
        self._handle = os.open(self._log, os.O_RDONLY | os.O_CLOEXEC)
        found = os.fstat(self._handle)
        self._index_file = _identity(self._index)
        self._link = f"/proc/self/fd/{self._handle}"
        if not self._syncs or _name_of(self._link) != self._log:  # or a system that does not show it
            self._link = ""
            self._files += ((self._log, (found.st_dev, found.st_ino)),)

    # -- files --------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Before each acknowledgement: raise if the database or its log was deleted or replaced."""
        for name, file in self._files:
            if _identity(name) != file:
                raise self._missed(name)
        if self._link and _name_of(self._link) != self._log:
            raise self._missed(self._log)
        if self._handle is not None and os.pread(self._handle, len(MAGIC), 0) not in (b"", MAGIC):
            self._leave_alone()
            what = f"its log {Path(self._log).name} was truncated or overwritten while in use"
            raise self._fail(f"{what}, and nothing more is acknowledged", "end all agents; rewards may be lost")

    def check_index(self) -> None:
        """Before each write: the index holds the locks, and a process that created a new index does not see ours."""
        if self._handle is not None and _identity(self._index) != self._index_file:
            raise self._missed(self._index)

    def check_now_and_then(self) -> None:
        """For readers, at most ten times a second: a check takes time."""
        now = time.monotonic()
        if now >= self._next_check:
            self.check()
            self.check_index()
            self._next_check = now + CHECKED

    def _missed(self, name: str) -> StoreFailed:
        if name == str(self._path):
            self._leave_alone()
            rule = "was deleted or replaced while it was in use; what is written now would be lost"
            return StoreFailed("storage", name, rule, "put the file back, or start again")
        gone = _identity(self._log) is None and _identity(self._index) == self._index_file
        if gone:  # no process can have begun another log: without one, the file cannot be opened
            self.can_save = True
        else:
            self._leave_alone()
        what = f"its {'log' if name == self._log else 'index'} {Path(name).name} was deleted or replaced while in use"
        saved = "what was acknowledged is copied into the file" if gone else "rewards may be lost"
        return self._fail(f"{what}, and nothing more is acknowledged", f"end all agents and start again: {saved}")

    def save(self) -> None:
        """Copy the log, which was deleted but is still open here, into the database. The last to close cleans up."""
        self.is_over = True
        with contextlib.suppress(apsw.Error), self._waiting.within(TURN):
            self.connection.execute("PRAGMA wal_checkpoint(FULL)").fetchall()
        self.connection.close()

    def _leave_alone(self) -> None:
        """Closing must not copy our log into a file that already uses another one."""
        self.connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)

    def close(self) -> None:
        """Close the connection; the last one to do so empties the log."""
        if not self.is_over:
            with contextlib.suppress(StoreFailed, OSError):
                self.check()
                self.check_index()
            self.connection.close()
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    # -- the disk -----------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Bring the log to the disk, and check that it was not replaced."""
        try:
            if not self.is_settled:
                self._settle()
            elif self._syncs:
                os.fdatasync(self._handle)  # type: ignore[arg-type]  # only a log is ever settled
            self.check()
        except OSError as error:
            raise self._fail(*broken(error)) from None

    def _settle(self) -> None:
        """The first flush: copy the log into the file, and restart the log.

        Frames that other processes wrote may never have reached the disk, although the system considers them written:
        if their fsync failed and they died, the failure is not reported again. Copying writes everything once more.
        """
        if self._handle is None:  # another process may have switched to WAL since
            self._note_files()
        if self._handle is not None and self._syncs:
            if time.monotonic() >= self._next_try:
                sync_folder(self._path.parent)
                self._copy()
            if not self.is_settled:  # a reader hangs, or was stopped: try again later
                self._next_try = time.monotonic() + BUSY_WITHOUT_TURN
                os.fdatasync(self._handle)
        elif self._handle is not None:
            self.is_settled = True

    def _copy(self) -> None:
        with self._waiting.within(TURN) as patience:
            while not self.is_settled:
                row = self.connection.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()[0]
                self.is_settled = row[0] == 0  # no other process was in the way
                if not (self.is_settled or patience.pause(PAUSES[3], self._waiting.holder)):
                    return


def broken(error: Exception) -> tuple[str, str]:
    """The rule and the remedy after a write to the disk failed."""
    words = error.strerror if isinstance(error, OSError) else error
    return f"a write to the disk failed ({words}); what was told since may be lost", "check the disk and start again"


def _identity(path: str) -> tuple[int, int] | None:
    """Which file has that name now."""
    try:
        found = os.stat(path)  # noqa: PTH116 - called before every use: twice as fast as with a Path
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _name_of(link: str) -> str:
    try:
        return os.readlink(link)  # noqa: PTH115 - called after every write: twice as fast as with a Path
    except OSError:
        return ""
