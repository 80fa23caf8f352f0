"""The files of an SQLite store: created whole or not at all, watched while open, and never shared with a forked child.

An open store is three files: the database, its write-ahead log, and an index of that log, which holds the locks. SQLite
can still write to a log that was deleted, but no other process will ever read it. SQLite itself deletes the log only
with the last connection, so while one is open the log must exist.

Nothing but SQLite opens the database: closing any handle of it would release the locks of the whole process.
"""

import contextlib
import errno
import functools
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import apsw

from ..errors import StoreFailed
from ..text.files import sync_to_disk
from .locks import BUSY_WITHOUT_TURN, FileLock
from .store import SCHEMA, check_store_version

APPLICATION = 0x74687273  # "thrs", in the file's header
PAGE = 4096  # bytes
MAGIC = b"\x37\x7f\x06"  # how a write-ahead log begins
STALE = 600.0  # seconds after which a half-made store is abandoned
FORK_WAITS = 60.0  # seconds for which a fork waits for other threads that use SQLite
MOMENT = 0.0005  # seconds between two looks at who uses SQLite, and who forks
Problem = tuple[str, str]  # which rule is broken, and what to do
DAMAGED = ("is damaged or was truncated", "restore it from a copy; sqlite3 FILE .recover may save what is left")


def file_beside_sqlite(path: Path, what: str) -> Path:
    """A file that belongs to the store's: its log, its lock."""
    return path.with_name(f"{path.name}-{what}")


# -- creating ---------------------------------------------------------------------------------------------------------


def is_sqlite_file_missing(path: Path) -> bool:
    """Whether there is no store yet. A log without its file is an error: SQLite would apply it to a new file."""
    if path.exists():
        return False
    for log in (file_beside_sqlite(path, "wal"), file_beside_sqlite(path, "journal")):
        if _has_content(log) and not path.exists():  # it was not created meanwhile
            rule = f"is not there, but its log {log.name} is: the file was deleted or moved, and rewards may be in both"
            remedy = "put the file back, or move its log away to start with an empty store"
            raise StoreFailed("storage", str(path), rule, remedy)
    return True


def _has_content(file: Path) -> bool:
    return file.exists() and file.stat().st_size > 0


def create_sqlite_file(path: Path, lock: FileLock, tables: str) -> None:
    """Create a store, unless another process was quicker. It gets its name when it is complete."""
    if not path.parent.is_dir():
        raise StoreFailed("storage", str(path), "its folder does not exist", f"make it: mkdir -p {path.parent}")
    with lock.turn(patience=30.0):
        if not is_sqlite_file_missing(path):
            return
        _remove_leftovers(path)
        made = path.with_name(f"{path.name}-new-{os.urandom(6).hex()}")
        os.close(os.open(made, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))  # -wal and -shm get the same mode
        try:
            _fill(made, tables)
            _publish(made, path)
        finally:
            for leftover in (made, *(file_beside_sqlite(made, what) for what in ("wal", "shm", "journal"))):
                leftover.unlink(missing_ok=True)


def _remove_leftovers(path: Path) -> None:
    """Remove the files of processes that died while they created this store."""
    pattern = re.compile(rf"{re.escape(path.name)}-new-[0-9a-f]{{12}}(?:-wal|-shm|-journal)?")
    with contextlib.suppress(OSError):
        for file in path.parent.iterdir():
            if pattern.fullmatch(file.name) and time.time() - file.stat().st_mtime > STALE:
                file.unlink(missing_ok=True)


def _fill(made: Path, tables: str) -> None:
    """Create the tables and make sure that they are on the disk. SQLite does not report every failure."""
    connection = apsw.Connection(str(made))
    try:
        connection.pragma("page_size", PAGE)
        if connection.pragma("journal_mode", "wal") != "wal":
            raise OSError(errno.EIO, "SQLite cannot write there")
        marks = f"PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {SCHEMA};"
        connection.execute(f"BEGIN; {tables} {marks} COMMIT")
        # closing does this too, but does not report a failure
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    finally:
        connection.close()
    sync_to_disk(made)


def _publish(made: Path, path: Path) -> None:
    """Give the file its name, never replacing another file, and make sure that the name survives a power cut."""
    try:
        os.link(made, path)
    except FileExistsError:  # made by another process that did not get the lock in time either
        return
    except OSError:  # a file system without hard links
        made.rename(path)
    try:
        sync_to_disk(path.parent)
    except OSError:
        path.unlink(missing_ok=True)  # a store whose name may vanish must not be used
        raise


# -- an open file -----------------------------------------------------------------------------------------------------


class OpenSqliteFile:
    """A connection to a store that is complete and ours. It notices when one of the files is deleted or replaced.

    ``wait`` is called while another process holds a lock, and returns whether to try again. Without ``syncs`` a flush
    does not wait for the disk.
    """

    def __init__(self, path: Path, wait: Callable[[int], bool], *, syncs: bool) -> None:
        self._path, self._log, self._index = (
            str(path),
            str(file_beside_sqlite(path, "wal")),
            str(file_beside_sqlite(path, "shm")),
        )
        self._wait, self._syncs = wait, syncs
        self._handle: int | None = None  # of the log; None: this connection has none
        self._next_try = 0.0  # when to try again to settle
        self.is_settled = False  # whether everything written to the log before this connection is on the disk
        self.is_closed = False
        SQLITE.close_abandoned()
        _check_before_opening(path)
        self.connection = _connected(path)
        try:
            self._begin()
        except BaseException:
            self.close(tidy=False)
            raise
        SQLITE.files.add(self)

    def _begin(self) -> None:
        """Set up the connection, and note which files it has open."""
        connection = self.connection
        connection.set_busy_handler(self._wait)  # not a timeout: SQLite would wait without noticing Ctrl-C
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)  # plan a query once, not again for each value
        # Copying our log into a file that already uses another one would destroy it: `close` looks first.
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        if connection.pragma("application_id") != APPLICATION:
            rule = "is not a store of thresher: it was truncated, or is an SQLite file of another program"
            raise StoreFailed("storage", self._path, rule, "restore it from a copy, or name another file")
        if Path(self._path).stat().st_size % PAGE and not _has_content(Path(self._log)):
            raise StoreFailed("storage", self._path, *DAMAGED)  # SQLite itself notices only that pages are missing
        has_log = not connection.readonly("main") or _identity(self._log) is not None
        if has_log and connection.pragma("journal_mode", "wal") != "wal":  # another program may have changed it
            raise StoreFailed("storage", self._path, "cannot have a write-ahead log", "move it to a local disk")
        check_store_version(connection.pragma("user_version"), self._path)
        connection.execute("PRAGMA synchronous = NORMAL")  # consistent always; `flush` makes it durable
        self.identity = _identity(self._path)
        if not has_log:
            return
        # A handle that stays open: Linux reports a lost write once to every handle.
        self._handle = os.open(self._log, os.O_RDONLY | os.O_CLOEXEC)
        log = os.fstat(self._handle)
        self._log_identity, self._index_identity = (log.st_dev, log.st_ino), _identity(self._index)
        # Where Linux shows the name of the open log. Not stat: after it has read a file's times, the next write must
        # update them, which makes flushing a quarter slower.
        self._link = f"/proc/self/fd/{self._handle}"
        if not self._syncs or _name_of(self._link) != self._log:  # or a system that does not show it
            self._link = ""

    # -- are they still the same files? ------------------------------------------------------------------------------

    def problem(self) -> Problem | None:
        """What happened to the database or its log; asked before each acknowledgement."""
        if _identity(self._path) != self.identity:
            rule = "was deleted or replaced while it was in use; what is written now would be lost"
            return rule, "end all agents, put the file back if it was moved, and start again"
        if self._handle is None:
            return None
        if _name_of(self._link) != self._log if self._link else _identity(self._log) != self._log_identity:
            return _lost("log", self._log)
        if os.pread(self._handle, len(MAGIC), 0) not in (b"", MAGIC):
            rule = f"its log {Path(self._log).name} was truncated or overwritten while in use"
            return f"{rule}, and nothing more is acknowledged", "end all agents; rewards may be lost"
        return None

    def index_problem(self) -> Problem | None:
        """What happened to the index; asked before each write: who has a new index does not see our locks."""
        if self._handle is not None and _identity(self._index) != self._index_identity:
            return _lost("index", self._index)
        return None

    # -- the disk ----------------------------------------------------------------------------------------------------

    def flush(self, pause: Callable[[], bool]) -> None:
        """Bring the log to the disk. Only for one thread at a time, until it is settled."""
        if self._handle is None or not self._syncs:
            self.is_settled = True
        elif self.is_settled:
            os.fdatasync(self._handle)
        else:
            self._settle(pause)

    def _settle(self, pause: Callable[[], bool]) -> None:
        """The first flush: copy the log into the database, and restart the log, as long as ``pause`` permits.

        Frames that other processes wrote may never have reached the disk, although the system considers them written:
        if their fsync failed and they died, the failure is not reported again. Copying writes everything once more.
        """
        if time.monotonic() >= self._next_try:
            sync_to_disk(Path(self._path).parent)
            self.connection.set_busy_handler(None)  # `pause` takes less time
            try:
                while not self.is_settled:
                    try:
                        self.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)
                        self.is_settled = True
                    except apsw.BusyError:  # another process is in the way
                        if not pause():
                            break
            finally:
                self.connection.set_busy_handler(self._wait)
            self._next_try = time.monotonic() + BUSY_WITHOUT_TURN
        if not self.is_settled:  # a reader hangs, or was stopped
            os.fdatasync(self._handle)  # type: ignore[arg-type]  # only a log is settled

    def close(self, *, tidy: bool = True) -> None:
        """Close the connection. The last one to do so empties the log if ``tidy``, and if the files are the same."""
        if self.is_closed:
            return
        SQLITE.files.discard(self)
        self.is_closed, self.is_settled = True, False
        if tidy:
            with contextlib.suppress(OSError):
                if not (self.problem() or self.index_problem()):
                    self.connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
        self.connection.close()
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def _check_before_opening(path: Path) -> None:
    if SQLITE.is_unsafe:
        rule = "cannot be opened: this process was forked in the middle of its parent's use of SQLite"
        raise StoreFailed("storage", str(path), rule, "start it in another way, such as spawn or forkserver")
    if _lost_its_log(path):
        rule = f"its log {path.name}-wal is missing: it was deleted, or not copied along, and rewards may be in it"
        remedy = f"end all agents and start again, or put it back; or delete {path.name}-shm to do without it"
        raise StoreFailed("storage", str(path), rule, remedy)


def _lost_its_log(path: Path) -> bool:
    """Whether there is an index without a log. SQLite makes the log first, and deletes it last."""
    log, index = file_beside_sqlite(path, "wal"), file_beside_sqlite(path, "shm")
    for _ in range(5):
        if log.exists() or not index.exists():
            return False
        time.sleep(0.02)  # another process may be opening or closing it
    return True


def _connected(path: Path) -> apsw.Connection:
    """Connect. On a read-only disk there are no writers, so SQLite reads without the files it would share with them."""
    if os.statvfs(path).f_flag & os.ST_RDONLY and not file_beside_sqlite(path, "wal").exists():
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        return apsw.Connection(f"file:{quote(str(path))}?immutable=1", flags=flags)
    return apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)


def _lost(what: str, name: str) -> Problem:
    rule = f"its {what} {Path(name).name} was deleted or replaced while in use, and nothing more is acknowledged"
    return rule, "end all agents and start again: rewards may be lost"


def _identity(path: str) -> tuple[int, int] | None:
    """Which file has that name now."""
    try:
        status = os.stat(path)  # noqa: PTH116 - called before every use: twice as fast as with a Path
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def _name_of(link: str) -> str:
    try:
        return os.readlink(link)  # noqa: PTH115 - called after every write: twice as fast as with a Path
    except OSError:
        return ""


# -- threads and forks ------------------------------------------------------------------------------------------------


class SqliteFileUse:
    """Which threads use SQLite in this process: any number at once, and none while the process forks.

    SQLite notes its locks per process and file. A forked child inherits the notes, but not the locks: with a connection
    of its parent, or a new one to the same file, it could write without a lock. So a fork waits for the threads that
    use SQLite, and the child closes what it inherited, which changes nothing for the parent. It can then open the
    same file again.

    What a fork waits for, and what waits for a fork, only spares children: what counts is who was inside when the child
    was made.
    """

    def __init__(self) -> None:
        self.files: set[OpenSqliteFile] = set()
        self.forks: list[None] = []  # one for each fork that waits or happens
        self.is_unsafe = False  # whether this process was forked by a thread inside SQLite, or beside one
        self._inside: set[int] = set()  # threads
        self._abandoned: list[OpenSqliteFile] = []

    @contextlib.contextmanager
    def use(self, *, waits: bool = True) -> Iterator[None]:
        """Be inside SQLite. A thread that is inside already never waits for a fork, which waits for it."""
        thread = threading.get_ident()
        enters = thread not in self._inside
        try:
            while self.forks and enters and waits:
                time.sleep(MOMENT)
            self._inside.add(thread)
            yield
        finally:
            if enters:
                self._inside.discard(thread)

    def abandon(self, file: OpenSqliteFile) -> None:
        """Close a file whose store is garbage, or Python ends. This may happen anywhere, so it waits for nothing."""
        self._abandoned.append(file)
        if not self.forks and self._inside <= {threading.get_ident()}:
            with self.use(waits=False):
                self.close_abandoned()

    def close_abandoned(self) -> None:
        with contextlib.suppress(IndexError):  # there is none, or another thread took the last
            while not self.is_unsafe:
                self._abandoned.pop().close()

    def before_fork(self) -> None:
        """Wait for other threads. If this is interrupted, Python forks all the same."""
        end = time.monotonic() + FORK_WAITS
        while self._inside and threading.get_ident() not in self._inside and time.monotonic() < end:
            time.sleep(MOMENT)

    def after_in_child(self) -> None:
        self.is_unsafe = self.is_unsafe or bool(self._inside)
        self._inside, self._abandoned = set(), []
        self.forks.clear()
        for file in () if self.is_unsafe else list(self.files):
            file.close(tidy=False)


SQLITE = SqliteFileUse()
os.register_at_fork(before=SQLITE.before_fork, after_in_child=SQLITE.after_in_child)
# Called before the other one, and without a line of Python: Ctrl-C cannot come in between.
os.register_at_fork(before=functools.partial(SQLITE.forks.append, None), after_in_parent=SQLITE.forks.pop)
