"""What results depend on besides the question: files, folders and source code, known by the digests of their content.

A specification stores them as `revisions.Depends` has them. A result holds as long as they are unchanged.
"""

import hashlib
import os
import stat
from pathlib import Path

from .errors import InvalidInput

LARGEST = 2**26  # bytes: a larger file is known by its size and the time of its last change
NOT_CONTENT = frozenset({"__pycache__", ".git"})  # folders whose files say nothing about what a folder does


def file_digests(path: str | Path, label: str = "depends") -> dict[str, str]:
    """A digest of the file's content or, of a folder, of each file below it, by name. An error begins with the label.

    >>> file_digests("nowhere.txt")
    Traceback (most recent call last):
    thresher.errors.InvalidInput: depends 'nowhere.txt': cannot be read (No such file or directory); check its name
    """
    try:
        info = Path(path).stat()
        if stat.S_ISDIR(info.st_mode):
            return {str(file): _digest(file, file.stat()) for file in _files_below(Path(path))}
        if stat.S_ISREG(info.st_mode):
            return {str(path): _digest(Path(path), info)}
    except OSError as error:
        raise InvalidInput(label, str(path), f"cannot be read ({error.strerror})", "check its name") from None
    raise InvalidInput(label, str(path), "is neither a file nor a folder", "name a file or a folder")


def _files_below(folder: Path) -> list[Path]:
    """The regular files below a folder, through links too. A folder that cannot be read is an error."""

    def refuse(error: OSError) -> None:
        raise error

    files, visited = list[Path](), set[tuple[int, int]]()
    for where, folders, names in os.walk(folder, onerror=refuse, followlinks=True):
        info = Path(where).stat()
        folders[:] = sorted(set(folders) - NOT_CONTENT) if (info.st_dev, info.st_ino) not in visited else []
        visited.add((info.st_dev, info.st_ino))
        files += [file for name in sorted(names) if (file := Path(where, name)).is_file()]
    return files


def _digest(file: Path, info: os.stat_result) -> str:
    if info.st_size > LARGEST:
        return f"{info.st_size}:{info.st_mtime_ns}"
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()[:32]
