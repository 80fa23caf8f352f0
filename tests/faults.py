"""Failing disks: strace makes the system calls of a process fail."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

AGENT = """
import sys, thresher
def answer(work):
    try:
        print(work(), flush=True)
    except thresher.ThresherError as error:
        print(type(error).__name__, error, flush=True)
study = thresher.create_study(
    "s", arms=["a", "b"], at_least=0.5, budget=1000, confidence=None, storage=sys.argv[1], if_exists="join"
)
print("ready", flush=True)
for line in sys.stdin:
    word, *rest = line.split()
    if word == "ask":
        answer(lambda: study.ask().id)
    elif word == "tell":
        answer(lambda: study.tell(int(rest[0]), float(rest[1])))
    elif word == "issued":
        answer(lambda: study.verdict().issued)
    elif word == "reopen":
        answer(study.store.close)
    elif word == "end":
        break
"""


def strace() -> str:
    found = shutil.which("strace")
    if not found or subprocess.run([found, "-qq", "-e", "trace=none", "true"], capture_output=True).returncode:
        pytest.skip("strace is not installed, or may not trace")
    return found


class Agent:
    """A process that reads commands, one per line."""

    def __init__(self, url: str, *before: str) -> None:
        argv = [*before, sys.executable, "-c", AGENT, url]
        self.process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.began = self.hear()

    def hear(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip()

    def send(self, line: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def do(self, line: str) -> str:
        self.send(line)
        return self.hear()

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def end(self) -> None:
        """End it normally."""
        self.process.communicate("end\n", timeout=60)

    def __enter__(self) -> "Agent":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


class Trace:
    """Record the system calls of a process from now on, and make some of them fail."""

    def __init__(self, pid: int, log: Path, *options: str) -> None:
        argv = [strace(), "-f", "-y", "-o", str(log), *options, "-p", str(pid)]
        self._log = log
        self._strace = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)
        assert self._strace.stderr
        assert "attached" in self._strace.stderr.readline()

    def __enter__(self) -> "Trace":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> list[str]:
        """The calls, in order."""
        if self._strace.returncode is None:
            self._strace.terminate()
            self._strace.communicate()
        return self._log.read_text().splitlines()
