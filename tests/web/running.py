"""`thresher serve` as its own process, and other commands."""

import contextlib
import functools
import importlib
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import httpx
from forked import Server
from storm import CONTEXT

TOKEN, WRITE_TOKEN = "a-token-for-tests", "a-token-that-writes"
BEARER = {"authorization": f"Bearer {TOKEN}"}
WRITER = {"authorization": f"Bearer {WRITE_TOKEN}"}
# the default of 5 seconds is too short for a disk that stalls; and each call would read all root certificates again
for verb in ("get", "post"):
    setattr(httpx, verb, functools.partial(getattr(httpx, verb), timeout=60.0, verify=httpx.create_ssl_context()))

FORKED = {"serve": Server("web.server"), "report": Server("web.report")}


def command(*args: str) -> "subprocess.CompletedProcess[str]":
    """Run ``thresher serve`` or ``thresher report`` to its end."""
    status, out, err = FORKED[args[0]].run(args, stdin=b"", cwd=None, env=os.environ, patience=60)
    return subprocess.CompletedProcess(args, status, out, err)


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
    """Run a server on a free port. It has printed its address before the block begins.

    ``files`` is how many it may open. ``patience`` sets durations, such as ``{"server.HEAD": 2.0}``: no test
    waits for the real ones. It is forked from a process that has imported what a server needs.
    """
    args = ["serve", "--storage", storage, "--port", "0", "--token", TOKEN]
    args += ["--write-token", WRITE_TOKEN] if "--write" in options else []
    ours, its = CONTEXT.Pipe(duplex=False)
    process = CONTEXT.Process(target=_serve, args=([*args, *options], its, log, files, patience or {}))
    process.start()
    its.close()
    with ours, open(ours.fileno(), closefd=False) as output:
        try:
            entry = output.readline().strip()
            assert entry.startswith(("http://127.0.0.1:", "https://127.0.0.1:")), entry
            yield Served(entry.partition("/?")[0], entry, process.pid or 0)
        finally:
            process.terminate()
            process.join(60)
            assert process.exitcode is not None, "it did not end"


def _serve(args: list[str], output: Any, log: Path | None, files: int | None, patience: Mapping[str, float]) -> None:
    """The body of the server's process."""
    from thresher.cli import main

    os.dup2(output.fileno(), 1)
    output.close()
    os.dup2(os.open(log or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 2)
    sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))
    if files is not None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    for name, value in patience.items():
        module, _, duration = name.partition(".")
        setattr(importlib.import_module(f"thresher.web.{module}"), duration, value)
    sys.argv = ["thresher", *args]
    main()


@contextlib.contextmanager
def stuck(path: Path) -> Iterator[None]:
    """Hold the write lock of the store, like a writer that never finishes."""
    connection = apsw.Connection(str(path))
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")
        connection.close()


def until(condition: Callable[[], bool], seconds: float = 60) -> None:
    """Wait until the condition is true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)
