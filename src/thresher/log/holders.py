"""Which processes hold a lock on a file, as far as Linux says."""

import contextlib
import os
from pathlib import Path

LOCKS = Path("/proc/locks")
WRITER = 120  # the byte of an SQLite -shm file that its one writer locks


def holders(path: str, byte: int = 0) -> list[int]:
    """The processes that hold a write lock on that byte of a file."""
    found: set[int] = set()
    with contextlib.suppress(OSError, ValueError):  # a best effort: other systems have no such list
        file = os.stat(path)  # noqa: PTH116 - of a path that is a text everywhere else
        file_id = f"{os.major(file.st_dev):02x}:{os.minor(file.st_dev):02x}:{file.st_ino}"
        for line in LOCKS.read_text().splitlines():
            words = line.split()
            if len(words) == 8 and words[3] == "WRITE" and words[5] == file_id:  # waiting ones have an extra ->
                first, last = int(words[6]), words[7]
                if first <= byte and (last == "EOF" or byte <= int(last)):
                    found.add(int(words[4]))
    return sorted(found - {-1, 0, os.getpid()})


def named(processes: list[int]) -> str:
    """Processes in words; nothing if there are none.

    >>> named([]), named([4_194_305])
    ('', ' (process 4194305)')
    """
    if not processes:
        return ""
    words = [f"process {pid}{', which is stopped' if _is_stopped(pid) else ''}" for pid in processes]
    return f" ({', '.join(words)})"


def _is_stopped(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "Tt"
    except (OSError, IndexError):
        return False
