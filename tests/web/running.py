"""`thresher serve` as its own process."""

import contextlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
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
def served(
    storage: str,
    *options: str,
    log: Path | None = None,
    files: int | None = None,
    patience: Mapping[str, float] | None = None,
) -> Iterator[Served]:
    """A server on a free port; it has printed its address before the block begins.

    ``files`` is how many it may open. ``patience`` sets durations, such as ``{"wire.HEAD": 2.0}``, so that a test need
    not wait for the real ones.
    """
    program = ["-m", "thresher"]
    if patience:
        lines = [
            f"from thresher.web import {name.partition('.')[0]}; {name} = {value}" for name, value in patience.items()
        ]
        program = ["-c", "\n".join([*lines, "from thresher.cli import main", "main()"])]
    argv = [sys.executable, *program, "serve", "--storage", storage, "--port", "0", "--token", TOKEN]
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
    """Another writer that never finishes."""
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
