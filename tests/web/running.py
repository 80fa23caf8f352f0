"""`thresher serve` as a process of its own."""

import contextlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import apsw

TOKEN, WRITE_TOKEN = "a-token-for-tests", "a-token-that-writes"
BEARER = {"authorization": f"Bearer {TOKEN}"}
WRITER = {"authorization": f"Bearer {WRITE_TOKEN}"}


class Served(NamedTuple):
    url: str
    entry: str  # with the token
    pid: int


@contextlib.contextmanager
def served(storage: str, *options: str, log: Path | None = None, files: int | None = None) -> Iterator[Served]:
    """A server on a free port; it has said where before the block begins. It may open so many files."""
    argv = [sys.executable, "-m", "thresher.cli", "serve", "--storage", storage, "--port", "0", "--token", TOKEN]
    argv += ["--write-token", WRITE_TOKEN] if "--write" in options else []
    if files is not None:
        argv = ["sh", "-c", f'ulimit -n {files} && exec "$@"', "sh", *argv]
    with contextlib.ExitStack() as stack:
        errors = stack.enter_context(log.open("wb")) if log else subprocess.DEVNULL
        process = stack.enter_context(subprocess.Popen([*argv, *options], stdout=subprocess.PIPE, stderr=errors))
        try:
            assert process.stdout
            entry = process.stdout.readline().decode().strip()
            assert entry.startswith(("http://127.0.0.1:", "https://127.0.0.1:")), entry
            yield Served(entry.partition("/?")[0], entry, process.pid)
        finally:
            process.terminate()
            process.wait(30)


@contextlib.contextmanager
def stuck(path: Path) -> Iterator[None]:
    """Another writer that does not come to an end."""
    connection = apsw.Connection(str(path))
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")
        connection.close()


def until(found: Callable[[], bool], seconds: float = 30) -> None:
    """Wait for something that must come."""
    end = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < end
        time.sleep(0.02)
