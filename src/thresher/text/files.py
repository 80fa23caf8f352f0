"""Files: read as text, and written whole or not at all, never by mistake in place of something else."""

import contextlib
import os
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from ..errors import InvalidInput

HEAD = 512  # bytes of a file that tell what it is


class Kind:
    """A kind of file that this program writes, and how to tell it by its first bytes."""

    def __init__(self, name: str, is_ours: Callable[[bytes], bool]) -> None:
        self.name, self.is_ours = name, is_ours


@contextlib.contextmanager
def replacing(out: str | Path, kind: Kind, *, force: bool = False) -> Iterator[Path]:
    """A file beside ``out`` to write to, of the same ending. It takes the place of ``out`` when the block ends well.

    Whatever happens, ``out`` is the old file or the new one, whole, and nothing else is left behind. Links are
    followed, and a file keeps its permissions. Pipes and devices, such as /dev/stdout, are written to as they are.
    Raises `InvalidInput` where nothing can be written, and where a file of another kind is, unless by ``force``.
    """
    if _is_stream(out):
        with _explained(out):
            yield Path(out)
        return
    check(out, kind, force=force)
    target = Path(os.path.realpath(out))
    partial = target.with_name(f".partial-{os.urandom(6).hex()}{target.suffix}")
    with _explained(out):
        os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666))  # less the umask
        try:
            yield partial
            settle(partial, target)
        finally:
            partial.unlink(missing_ok=True)


def check(out: str | Path, kind: Kind, *, force: bool = False) -> None:
    """Raise `InvalidInput` if there is a file of another kind, or one that may not be written. An empty one is fine."""
    if _is_stream(out):
        return
    with _explained(out), contextlib.suppress(FileNotFoundError), Path(out).open("r+b") as file:
        head = file.read(HEAD)
        if head and not force and not kind.is_ours(head):
            rule = f"is there already, and is not {kind.name}"
            raise InvalidInput("file", str(out), rule, "name another file, or overwrite it with --force")


def settle(partial: Path, target: Path) -> None:
    """Let a finished file take the place of another, or of none, in such a way that a power cut loses neither."""
    target = Path(os.path.realpath(target))
    with contextlib.suppress(FileNotFoundError):
        partial.chmod(stat.S_IMODE(target.stat().st_mode))
    _sync(partial)
    partial.replace(target)
    with contextlib.suppress(OSError):  # some file systems cannot
        _sync(target.parent)


def _is_stream(out: str | Path) -> bool:
    """Whether it is there and neither a file nor a folder."""
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


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read_text(file: str) -> str:
    """The text of a file, - being standard input."""
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return data.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(
            "file",
            file,
            f"cannot be read ({getattr(error, 'strerror', None) or error})",
            "check its name, and that it is UTF-8",
        ) from None
