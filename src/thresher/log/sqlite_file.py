"""The SQLite file itself: creating it atomically, telling ours from others, and what can be wrong with it."""

import contextlib
import errno
import os
import re
import stat
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import apsw

from ..errors import StoreFailed
from ..text.files import sync
from .holders import WRITER, holders, named
from .locks import FileLock
from .sqlite_schema import APPLICATION, NEW
from .store import check_schema

WITHOUT_LINKS = (errno.EPERM, errno.EACCES, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)  # file systems that say so
PAGE = 4096  # bytes
ROOM = 64 * 1024  # bytes; with less free space, SQLite may report another error than a full disk
STALE = 600.0  # seconds after which a half-made store was abandoned, even if its process number is in use again
LEVELS = {
    "full": "full: what was acknowledged is on the disk",
    "normal": "normal: a power cut may lose the last moments",
}
FIRST_SAFE = (3, 51, 3)  # before it, several writers could meet a bug that corrupts the file


def beside(path: Path, what: str) -> Path:
    """A file that belongs to the store's: its log, its lock."""
    return path.with_name(f"{path.name}-{what}")


def is_missing(path: Path) -> bool:
    """Whether there is no store yet. A log without its file is an error: SQLite would apply it to a new file."""
    if path.exists():
        return False
    for log in (beside(path, "wal"), beside(path, "journal")):
        if log.exists() and log.stat().st_size and not path.exists():  # it was not created meanwhile
            rule = f"is not there, but its log {log.name} is: the file was deleted or moved, and rewards may be in both"
            remedy = "put the file back, or move its log away to start with an empty store"
            raise StoreFailed("storage", str(path), rule, remedy)
    return True


def create(path: Path, lock: FileLock) -> None:
    """Create a store, unless another process was quicker. It gets its name when it is complete."""
    if not path.parent.is_dir():
        raise StoreFailed("storage", str(path), "its folder does not exist", f"make it: mkdir -p {path.parent}")
    with lock.turn(patience=30.0) as is_held:
        if not is_missing(path):
            return
        if is_held:
            _remove_leftovers(path)
        made = path.with_name(f"{path.name}-new-{os.getpid()}-{os.urandom(6).hex()}")
        os.close(os.open(made, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))  # -wal and -shm get the same mode
        try:
            _fill(made)
            _publish(made, path)
        finally:
            for leftover in (made, *(beside(made, what) for what in ("wal", "shm", "journal"))):
                leftover.unlink(missing_ok=True)


def _remove_leftovers(path: Path) -> None:
    """Remove the files of processes that died while they created this store.

    A process that creates it either holds the lock, which we hold now, or waited half a minute for it in vain and is
    still alive.
    """
    pattern = re.compile(rf"{re.escape(path.name)}-new-([0-9]{{1,10}})-[0-9a-f]{{12}}(?:-wal|-shm|-journal)?")
    with contextlib.suppress(OSError):
        for file in path.parent.iterdir():
            found = pattern.fullmatch(file.name)
            if found and (_is_over(int(found[1])) or time.time() - file.stat().st_mtime > STALE):
                file.unlink(missing_ok=True)


def _is_over(process: int) -> bool:
    """Whether there is no such process, on this machine."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return True
    except PermissionError:  # it belongs to another user
        return False
    return False


def _fill(made: Path) -> None:
    """Create the tables and make sure that they are on the disk. SQLite does not report every failure."""
    connection = apsw.Connection(str(made))
    try:
        connection.pragma("page_size", PAGE)
        if connection.pragma("journal_mode", "wal") != "wal":
            raise OSError(errno.EIO, "SQLite cannot write there")
        connection.execute(f"BEGIN; {NEW} COMMIT")
        # closing does this too, but does not report a failure
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    finally:
        connection.close()
    sync(made)


def _publish(made: Path, path: Path) -> None:
    """Give the file its name, never replacing another file, and make sure that the name survives a power cut."""
    try:
        os.link(made, path)
    except FileExistsError:  # made by another process that did not get the lock in time either
        return
    except OSError as error:
        if error.errno not in WITHOUT_LINKS:
            raise
        made.rename(path)
    try:
        sync_folder(path.parent)
    except OSError:
        path.unlink(missing_ok=True)  # a store whose name may vanish must not be used
        raise


def sync_folder(folder: Path) -> None:
    """Make sure that the names of the files in a folder survive a power cut."""
    try:
        sync(folder)
    except PermissionError:  # a folder that may be written but not listed
        return
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system that does not support this
            raise


def opened(path: Path, wait: Callable[[int], bool]) -> apsw.Connection:
    """A connection to a store that is complete, ours, and of a known version; ``wait`` is called when it is locked."""
    if not path.is_file():
        raise StoreFailed("storage", str(path), "is not a file", "name another")
    if path.stat().st_size == 0:
        rule = "is an empty file, which no store ever is: it was truncated, or made by another program"
        raise StoreFailed("storage", str(path), rule, "restore it from a copy, or name another file")
    if _lost_its_log(path):
        rule = f"its log {path.name}-wal is missing: it was deleted, or not copied along, and rewards may be in it"
        remedy = f"end all agents and start again, or put it back; or delete {path.name}-shm to do without it"
        raise StoreFailed("storage", str(path), rule, remedy)
    connection = _connected(path)
    try:
        connection.set_busy_handler(wait)  # not a timeout: SQLite would wait without noticing Ctrl-C
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)  # plan a query once, not again for each value
        if connection.pragma("application_id") != APPLICATION:
            raise StoreFailed("storage", str(path), "is an SQLite file of another program", "name another file")
        if _is_cut(path):
            time.sleep(0.1)  # another process may have been writing to it
            if _is_cut(path):
                raise StoreFailed("storage", str(path), *_CORRUPT)
        check_schema(connection.pragma("user_version"), str(path))
        connection.execute("PRAGMA synchronous = NORMAL")  # consistent always; `flush` makes it durable
    except BaseException:
        connection.close()
        raise
    return connection


def _connected(path: Path) -> apsw.Connection:
    """Connect. On a read-only disk there are no writers, so SQLite reads without the files it would share with them."""
    if os.statvfs(path).f_flag & os.ST_RDONLY and not beside(path, "wal").exists():
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        return apsw.Connection(f"file:{quote(str(path))}?immutable=1", flags=flags)
    return apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)


def _is_cut(path: Path) -> bool:
    """Whether the file ends within a page; SQLite itself only notices missing pages.

    Checks only the size: opening and closing the file here would release the locks that SQLite holds in this process.
    """
    log = beside(path, "wal")
    return bool(path.stat().st_size % PAGE) and not (log.exists() and log.stat().st_size)


def _lost_its_log(path: Path) -> bool:
    """Whether there is an index without a log. SQLite makes the log first, and deletes it last."""
    log, index = beside(path, "wal"), beside(path, "shm")
    for _ in range(5):
        if log.exists() or not index.exists():
            return False
        time.sleep(0.02)  # another process may be opening or closing it
    return True


def explanation(path: Path, error: Exception) -> StoreFailed:
    """An error of SQLite or of the system, in one line."""
    if isinstance(error, apsw.Error):
        rule, remedy = _EXPLANATIONS.get(type(error), (f"SQLite says: {error}", "run thresher doctor"))
        if isinstance(error, apsw.IOError) and _is_full(path):
            rule, remedy = _NO_ROOM
        elif isinstance(error, apsw.ReadOnlyError) and (files := _read_only(path)) and path not in files:
            rule, remedy = "cannot be written: files that belong to it are read-only", f"chmod u+w {_listed(files)}"
        elif isinstance(error, apsw.BusyError):
            rule = f"another process does not finish writing to it{writers(path)}"
            remedy = "is it stopped? continue it, or end it"
        return StoreFailed("storage", str(path), rule, remedy)
    if isinstance(error, UnicodeDecodeError):  # a text in the file is not valid UTF-8
        return StoreFailed("storage", str(path), *_CORRUPT)
    words = error.strerror if isinstance(error, OSError) else error
    remedy = "check the disk" if getattr(error, "errno", None) in (errno.EIO, errno.ENOSPC) else "check the path"
    return StoreFailed("storage", str(path), f"cannot be used ({words})", remedy)


def writers(path: Path) -> str:
    """The processes that are writing to the file, in words; nothing if none are known."""
    return named(holders(str(beside(path, "shm")), WRITER))


def _read_only(path: Path) -> list[Path]:
    """The store's files that cannot be written; SQLite creates its own with the mode that the first one had then."""
    files = (path, beside(path, "wal"), beside(path, "shm"))
    return [file for file in files if file.exists() and not os.access(file, os.W_OK)]


def _listed(files: list[Path]) -> str:
    return " ".join(map(str, files))


def _is_full(path: Path) -> bool:
    with contextlib.suppress(OSError):
        found = os.statvfs(path.parent)
        return found.f_bavail * found.f_frsize < ROOM
    return False


_CORRUPT = ("is damaged or was truncated", "restore it from a copy; sqlite3 FILE .recover may save what is left")
_NO_ROOM = (
    "cannot be written: the disk is full",
    "free some space and continue: nothing that was acknowledged is lost",
)
_EXPLANATIONS = {
    apsw.FullError: _NO_ROOM,
    apsw.IOError: ("cannot be read or written: the disk fails or is full", "check the disk, then continue"),
    apsw.ReadOnlyError: ("is read-only", "make the file and its folder writable"),
    apsw.PermissionsError: ("may not be used by you", "ask for the permission to read and write it"),
    apsw.CantOpenError: ("cannot be opened", "check that the file and its folder can be read and written"),
    apsw.NotADBError: ("is not an SQLite file", "name another file"),
    apsw.CorruptError: _CORRUPT,
}


def examine(path: Path, connection: apsw.Connection, durability: str) -> dict[str, str]:
    """What ``thresher doctor`` reports about a file."""
    mode = stat.S_IMODE(path.stat().st_mode)
    found = {
        "store": f"SQLite {apsw.sqlite_lib_version()} (apsw {apsw.apsw_version()})",
        "file": f"{path} ({path.stat().st_size:,} bytes, mode {mode:o})",
        "schema": str(connection.pragma("user_version")),
        "journal": str(connection.pragma("journal_mode")),
        "durability": LEVELS[durability],
    }
    if tuple(map(int, apsw.sqlite_lib_version().split("."))) < FIRST_SAFE:
        found["! version"] = "this SQLite can corrupt a file under several writers: update apsw"
    if found["journal"] != "wal" and os.access(path, os.W_OK):  # a read-only file is read without one
        found["! journal"] = "is not wal: readers and writers block each other"
    if mode & 0o077:
        found["! mode"] = f"others may read or write it: chmod 600 {path}"
    if files := _read_only(path):
        found["! access"] = f"this user cannot write {_listed(files)}"
    check = connection.execute("PRAGMA quick_check(1)").get
    if check == "ok":
        return {**found, "check": "sound"}
    return {**found, "! check": f"{_CORRUPT[0]} ({check}): {_CORRUPT[1]}"}
