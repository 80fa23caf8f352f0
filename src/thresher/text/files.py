"""Files: read as text; written whole or not at all, and never in place of another kind of file by mistake."""

import contextlib
import csv
import errno
import io
import json
import os
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from ..errors import InvalidInput
from .naming import Naming
from .quantities import read_whole_quantity

HEAD = 512  # bytes that tell which kind of file it is
MOST_BYTES = 1 << 30  # that are read of one file


class Kind(NamedTuple):
    """A kind of file that this program writes, and how to recognise it by its first bytes."""

    name: str
    is_ours: Callable[[bytes], bool]


@contextlib.contextmanager
def replacing_file(out: str | Path, kind: Kind, *, force: bool = False) -> Iterator[Path]:
    """A file beside ``out`` to write to, with the same ending. It replaces ``out`` when the block succeeds.

    Whatever happens, ``out`` is the whole old file or the whole new one, and nothing else is left behind. Links
    to files are followed, and a file keeps its permissions. Pipes and devices, such as /dev/stdout, are written
    directly. Raises `InvalidInput` if nothing can be written, or if ``out`` is a file of another kind, unless ``force``
    is set.
    """
    if _is_stream(out):
        with _explained(out):
            yield Path(out)
        return
    check_file_to_write(out, kind, force=force)
    target = _target(out)
    partial = target.with_name(f".partial-{os.urandom(6).hex()}{target.suffix}")
    with _explained(out):
        os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666))  # less the umask
        try:
            yield partial
            put_in_place(partial, target)
        finally:
            partial.unlink(missing_ok=True)


def check_file_to_write(out: str | Path, kind: Kind, *, force: bool = False) -> None:
    """Raise `InvalidInput` if ``out`` is a file of another kind or cannot be written. An empty file is fine."""
    if _is_stream(out):
        return
    with _explained(out), contextlib.suppress(FileNotFoundError), _target(out).open("r+b") as file:
        head = file.read(HEAD)
        if head and not force and not kind.is_ours(head):
            rule = f"already exists, and is not {kind.name}"
            raise InvalidInput("file", str(out), rule, Naming("name another file, or overwrite it with {force=True}"))


def put_in_place(partial: Path, target: Path) -> None:
    """Move a finished file into place, over an old one if there is one; a power cut loses neither."""
    target = _target(target)
    with contextlib.suppress(FileNotFoundError):
        partial.chmod(stat.S_IMODE(target.stat().st_mode))
    sync_to_disk(partial)
    partial.replace(target)
    with contextlib.suppress(OSError):  # some file systems cannot do this
        sync_to_disk(target.parent)


def _target(out: str | Path) -> Path:
    """The file that a path leads to. A link to nothing, which anybody may have put there, leads nowhere."""
    target = Path(os.path.realpath(out))
    if Path(out).is_symlink() and not target.exists():
        rule = f"is a link to {target}, which does not exist"
        raise InvalidInput("file", str(out), rule, "remove the link, or name another file")
    return target


def _is_stream(out: str | Path) -> bool:
    """Whether it exists and is neither a file nor a folder."""
    try:
        mode = Path(out).stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


@contextlib.contextmanager
def _explained(out: str | Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InvalidInput("file", str(out), f"cannot be written ({error.strerror})", "name another file") from error


def sync_to_disk(path: Path) -> None:
    """Bring a file, or the names in a folder, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read_text(file: str | Path, label: str = "file", *, remedy: str = "check its name") -> str:
    """The text of a file; the str ``"-"`` is standard input. An error begins with the ``label``."""
    where = "standard input" if file == "-" else str(file)
    try:
        with _standard_input() if file == "-" else Path(file).open("rb") as opened:
            status = os.fstat(opened.fileno())
            if stat.S_ISBLK(status.st_mode) or (stat.S_ISCHR(status.st_mode) and not opened.isatty()):
                raise InvalidInput(label, where, "is a device, which may never end", remedy)
            data = b"" if status.st_size > MOST_BYTES else opened.read(MOST_BYTES + 1)  # a pipe's size is 0
        if status.st_size > MOST_BYTES or len(data) > MOST_BYTES:
            raise InvalidInput(label, where, f"is longer than {MOST_BYTES >> 20:,} MiB", remedy)
        return data.decode("utf-8-sig")
    except OSError as error:
        raise InvalidInput(label, where, f"cannot be read ({error.strerror})", remedy) from None
    except UnicodeDecodeError as error:
        rule = f"is not UTF-8 text ({error.reason} at byte {error.start})"
        raise InvalidInput(label, where, rule, "save it as UTF-8") from None


def _standard_input() -> contextlib.AbstractContextManager[BinaryIO]:
    if sys.stdin is None:
        raise OSError(errno.EBADF, "it is closed")
    return contextlib.nullcontext(sys.stdin.buffer)


# CSV as people write it, row by row, each with its location in the file.
#
# >>> columns, rows = read_csv("arm,reward\na,1\n\nb,0\n", "results.csv")
# >>> columns, list(rows)
# (['arm', 'reward'], [('line 2 of results.csv', ['a', '1']), ('line 4 of results.csv', ['b', '0'])])

QUOTING = "put cells that hold commas, quotes or line breaks in double quotes"


def read_csv(text: str, file: str) -> tuple[list[str], Iterator[tuple[str, list[str]]]]:
    """The names of the columns, and the rows that are not blank. An error names the line; the header is line 1."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)

    def lines() -> Iterator[list[str]]:
        try:
            yield from reader
        except csv.Error as error:
            location = f"line {reader.line_num} of {file}"
            raise InvalidInput(location, rule=f"is not CSV ({error})", remedy=QUOTING) from None

    lines_read = lines()
    columns = [column.strip() for column in next(lines_read, [])]

    def rows() -> Iterator[tuple[str, list[str]]]:
        for cells in lines_read:
            if not any(cell.strip() for cell in cells):
                continue
            location = f"line {reader.line_num} of {file}"
            if len(cells) != len(columns):
                rule = f"has {len(cells)} cells, and the first line has {len(columns)} columns"
                raise InvalidInput(f"{location}:", ",".join(cells), rule, QUOTING)
            yield location, cells

    return columns, rows()


def read_json(text: str, object_pairs_hook: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """The value of JSON text. Raises ValueError with a message for people.

    >>> read_json('{"a": 1' + "0" * 5000 + "}")
    Traceback (most recent call last):
    ValueError: a whole number in it has 5,001 digits, more than the 4,300 that can be read
    """
    try:
        return json.loads(text, parse_int=read_whole_quantity, object_pairs_hook=object_pairs_hook)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
