"""Waiting for another process that holds an SQLite file: SQLite asks after each try whether to try again."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from .locks import Patience
from .sqlite_file import writers

BUSY = 60.0  # seconds to wait for another writer, who usually holds the file for a millisecond
PAUSES = (0.001, 0.002, 0.005, 0.01, 0.015, 0.02, 0.025, 0.05, 0.1)  # seconds between two tries


class BusyHandler:
    """What SQLite calls when another process holds a lock. Ctrl-C ends the wait at once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._patience: Patience | None = None  # the wait for the process that holds the file now
        self._limited: Patience | None = None

    def __call__(self, tries: int) -> bool:
        """Whether to try again, after a pause."""
        if self._limited is not None:
            self._patience = self._limited
        elif self._patience is None or tries == 0:
            self._patience = Patience(BUSY)
        return self._patience.pause(PAUSES[min(tries, len(PAUSES) - 1)], self.holder)

    @contextlib.contextmanager
    def within(self, seconds: float) -> Iterator[Patience]:
        """Inside the block, all waits together take at most that long."""
        self._limited = Patience(seconds)
        try:
            yield self._limited
        finally:
            self._limited = None

    def holder(self) -> str:
        return f"another process to finish writing to {self._path}{writers(self._path)}"
