"""The guard kills programs that outlive thresher, and nothing else."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from engines import until
from program import runs

from thresher.run.command import guard
from thresher.run.command.guard import Guard
from thresher.run.command.process import Command
from thresher.study import Pull

FORKS = """
import os, signal, sys, threading, time
from pathlib import Path
from thresher.run.command.process import Command
from thresher.study import Pull

command = Command(("sh", "-c", "echo $$ > pid; exec sleep 600"))
threading.Thread(target=command, args=(Pull(1, "a", 1, {}, 7),), daemon=True).start()
while not (Path("pid").exists() and Path("pid").read_text().strip()):
    time.sleep(0.01)
child = os.fork()
if child == 0:
    time.sleep(600)
Path("child").write_text(str(child))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_forked_child_does_not_keep_the_guard_of_its_parent_waiting(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", FORKS], cwd=tmp_path, check=False)
    child, program = (int((tmp_path / name).read_text()) for name in ("child", "pid"))
    try:
        until(lambda: not runs(program), "the end of the program")
        assert runs(child)
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_command_that_ended_is_guarded_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its number may belong to another program by the time thresher dies."""
    told: list[tuple[str, int]] = []

    class Noted(Guard):
        def watch(self, group: int, *, gently: bool = False) -> None:
            told.append(("watch", group))

        def forget(self, group: int) -> None:
            told.append(("forget", group))

    monkeypatch.setattr(guard, "GUARD", Noted())
    assert Command(("echo", "0.5"), "last-float")(Pull(1, "a", 1, {}, 7)) == 0.5
    (begun, first), (ended, second) = told
    assert (begun, ended, first) == ("watch", "forget", second)


def test_a_guard_is_told_of_groups_and_how_to_end_them(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = os.pipe()
    started: list[Any] = []

    class Popen:
        def __init__(self, argv: list[str], **options: Any) -> None:
            started.append(self)
            assert options["start_new_session"], "Ctrl-C in a terminal is not for it"
            self.stdin = os.fdopen(theirs, "wb")

        def wait(self) -> None:
            """What is started exits at once, and leaves the guard."""

    monkeypatch.setattr(guard.subprocess, "Popen", Popen)  # type: ignore[attr-defined]
    new_guard = Guard()
    new_guard.start()
    new_guard.watch(12)
    new_guard.watch(13, gently=True)
    new_guard.forget(12)
    assert os.read(ours, 100) == b"+12\n~13\n-12\n"
    os.close(ours)
    new_guard.forget(13)  # the guard is gone: nobody to tell
    assert len(started) == 1


def test_without_a_guard_programs_run_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("no more processes")

    monkeypatch.setattr(guard.subprocess, "Popen", fail)  # type: ignore[attr-defined]
    new_guard = Guard()
    new_guard.start()
    new_guard.watch(12)
    new_guard.forget(12)
