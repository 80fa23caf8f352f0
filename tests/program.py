"""thresher as a program: start it, wait for it, and look at what it leaves behind."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from forked import Server

THRESHER = [sys.executable, "-m", "thresher"]
PATIENCE = 60.0  # seconds until a test gives up waiting; far more than anything takes
ENVIRONMENT = {
    key: value
    for key, value in os.environ.items()
    if key not in ("COLUMNS", "LINES", "TERM", "NO_COLOR", "FORCE_COLOR")
}
ENVIRONMENT["THRESHER_STORAGE"] = "memory"  # unless a test says otherwise, nothing is left behind
FORKED = Server()
PLAIN_PYTEST = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # pytest without its plugins starts in a quarter of the time


class Result(NamedTuple):
    status: int
    out: str
    err: str


def thresher(
    *args: str,
    stdin: str | bytes = "",
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    first: str | None = None,
) -> Result:
    """Run it to its end; ``first`` is Python code that runs before it."""
    data, environment = stdin.encode() if isinstance(stdin, str) else stdin, {**ENVIRONMENT, **(env or {})}
    if first is None and not any(name.startswith("PYTHON") for name in env or {}):
        return Result(*FORKED.run(args, stdin=data, cwd=cwd, env=environment, patience=PATIENCE))
    program = [sys.executable, "-c", f"{first}\nfrom thresher.cli import main\nmain()"] if first else THRESHER
    done = subprocess.run(
        [*program, *args], input=data, capture_output=True, timeout=PATIENCE, cwd=cwd, env=environment
    )
    return Result(done.returncode, done.stdout.decode(), done.stderr.decode())


def run(*args: str, stdin: str | bytes = "", cwd: Path | None = None, env: Mapping[str, str] | None = None) -> Result:
    """``thresher run`` with two workers and, unless another is given, a bar of 0.5."""
    return thresher("run", "--at-least=0.5", "--workers=2", *args, stdin=stdin, cwd=cwd, env=env)


def start(*args: str) -> "subprocess.Popen[bytes]":
    """Start ``thresher run`` without waiting for it."""
    argv = [*THRESHER, "run", "--at-least=0.5", *args]
    pipe = subprocess.PIPE
    return subprocess.Popen(argv, stdout=pipe, stderr=pipe, env=ENVIRONMENT)


def finish(process: "subprocess.Popen[bytes]") -> Result:
    try:
        out, err = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    return Result(process.returncode, out.decode(), err.decode())


def until(condition: Callable[[], object], what: str) -> None:
    """Wait until something holds."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"never came: {what}"
        time.sleep(0.01)


def complaint(result: Result, status: int = 2) -> str:
    """The one line on standard error of a program that reported an error and did nothing else."""
    assert result.status == status, result
    assert result.out == "", result.out
    lines = result.err.splitlines()
    assert len(lines) == 1, result.err
    assert lines[0].startswith("thresher: error: "), lines
    return lines[0]


def runs(pid: int) -> bool:
    """Whether a process exists and is not a zombie."""
    try:
        return _state(pid) not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def sleeps(pid: int) -> bool:
    """Whether a process is inside a system call that waits: there, a signal interrupts it."""
    return _state(pid) == "S"


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def pids(folder: Path) -> list[int]:
    """Process ids that commands left as file names."""
    return [int(file.name) for file in folder.iterdir()]


def followed(pid: int) -> int:
    """How many commands a process and its descendants follow: each has a file that says when its command exits.

    It is opened after the guard was told of the command. Before that, a killed run may leave it behind.
    """
    count = 0
    for process in [pid, *_descendants(pid)]:
        with contextlib.suppress(OSError):
            count += sum("pidfd" in str(file.readlink()) for file in Path(f"/proc/{process}/fd").iterdir())
    return count


def _descendants(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, task.read_text().split()):
                found += [child, *_descendants(child)]
    return found
