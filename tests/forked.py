"""Commands in processes forked from one that has already imported thresher: they start in a tenth of the time.

Each command is a process of its own, with its own files, folder and environment. Only Python's start is shared, so
tests of that, and of variables that Python reads when it starts, run the real program. At its end, a command waits for
its threads, writes what is left to write and closes what it opened, but does not take its modules apart, which takes
longer than most commands.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

SERVER = """
import atexit, contextlib, gc, importlib, json, os, sys, threading
import importlib.metadata, rich.console, rich.table, tempfile  # to save time: a command imports what is missing here
import thresher.cli
for name in sys.argv[1:]:
    importlib.import_module(f"thresher.{name}")
gc.freeze()
for line in sys.stdin:
    job, child = json.loads(line), os.fork()
    if not child:
        break
    print(child, flush=True)
    _, status, used = os.wait4(child, 0)
    print(os.waitstatus_to_exitcode(status), used.ru_maxrss, flush=True)
else:
    sys.exit()
os.chdir(job["cwd"])
os.environ.clear()
os.environ.update(job["env"])
for number, (name, flags) in enumerate([("in", os.O_RDONLY), ("out", os.O_WRONLY), ("err", os.O_WRONLY)]):
    os.dup2(os.open(job[name], flags), number)
sys.stdin, sys.stdout = open(0, encoding="utf-8", closefd=False), open(1, "w", encoding="utf-8", closefd=False)
sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)
sys.argv = ["thresher", *job["args"]]
def status():
    try:
        thresher.cli.main()
    except SystemExit as end:
        return end.code
code = status()
if code is None or code in range(256):
    with contextlib.suppress(Exception):  # then Python itself reports what went wrong
        threading._shutdown()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        gc.collect()  # what was opened is closed
        sys.stderr.flush()
        os._exit(code or 0)
sys.exit(code)
"""
COMMANDS = (
    "agent_commands",
    "import_export",
    "live_table",
    "read_commands",
    "run_command",
    "study_commands",
)
IMPORTED = (
    *(f"cli.{name}" for name in COMMANDS),
    *("study", "core.replay", "log.sqlite", "run.loop", "run.failures", "run.command.persistent"),
)


class Server:
    """The process that is forked; it starts with the first command, and imports these modules."""

    def __init__(self, *modules: str) -> None:
        self._modules = (*IMPORTED, *modules)
        self._turn = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self.peak = 0.0  # memory of the last command, in MB, with all that it has imported

    def run(
        self,
        args: Sequence[str],
        *,
        stdin: bytes,
        cwd: Path | None,
        env: Mapping[str, str],
        patience: float,
        terminal: str | None = None,
    ) -> tuple[int, str, str]:
        """Exit status, standard output and standard error of a command; on a terminal, these remain empty."""
        with self._turn, tempfile.TemporaryDirectory(prefix="thresher-forked-") as name:
            files = {stream: Path(name, stream) for stream in ("in", "out", "err")}
            for file in files.values():
                file.write_bytes(stdin if file.name == "in" else b"")
            job = {"args": [*args], "cwd": str(cwd or Path.cwd()), "env": dict(env)}
            status = self._status({**job, **{name: terminal or str(file) for name, file in files.items()}}, patience)
            return status, files["out"].read_bytes().decode(), files["err"].read_bytes().decode()

    def _status(self, job: Mapping[str, object], patience: float) -> int:
        if self._process is None or self._process.poll() is not None:
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(  # without buffers: `select` sees no line that was read ahead
                [sys.executable, "-c", SERVER, *self._modules], stdin=pipe, stdout=pipe, bufsize=0
            )
        server = self._process
        assert server.stdin
        assert server.stdout
        text = f"{json.dumps(job)}\n".encode()
        while text:  # a pipe may take it in parts
            text = text[server.stdin.write(text) :]
        child = int(server.stdout.readline())
        if not select.select([server.stdout], [], [], patience)[0]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            server.stdout.readline()
            raise subprocess.TimeoutExpired(["thresher", *map(str, job["args"])], patience)  # type: ignore[call-overload]
        status, peak = map(int, server.stdout.readline().split())
        self.peak = peak / 1024
        return status
