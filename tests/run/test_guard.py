"""What the guard is told, and what happens if there is none."""

import os
import subprocess
from typing import Any

import pytest

from thresher.run.command import guard
from thresher.run.command.guard import Guard


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> int:
    """The end of the pipe at which the guard listens; it is started once."""
    ours, theirs = os.pipe()
    started: list[Any] = []

    class Popen:
        def __init__(self, argv: list[str], **given: Any) -> None:
            assert not started
            started.append(self)
            assert (argv[1:4], argv[4]) == (["-I", "-S", "-c"], guard.SCRIPT)
            assert given["start_new_session"], "Ctrl-C in a terminal is not for it"
            assert (given["stdin"], given["stdout"]) == (subprocess.PIPE, subprocess.DEVNULL)
            self.stdin = os.fdopen(theirs, "wb")
            self.waited = False

        def wait(self) -> None:
            self.waited = True

    monkeypatch.setattr(guard.subprocess, "Popen", Popen)  # type: ignore[attr-defined]
    return ours


def test_a_guard_is_told_of_groups_and_how_to_end_them(told: int) -> None:
    found: Any = Guard()
    found.start()
    assert found._process.waited, "what is started exits at once, and leaves the guard"
    found.watch(12)
    found.watch(13, gently=True)
    found.forget(12)
    assert os.read(told, 100) == b"+12\n~13\n-12\n"
    os.close(told)
    found.forget(13)  # it is gone: nothing to tell
    assert not found._lock.locked()


def test_without_a_guard_programs_run_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("no more processes")

    monkeypatch.setattr(guard.subprocess, "Popen", fail)  # type: ignore[attr-defined]
    found = Guard()
    found.start()
    found.watch(12)
    found.forget(12)
    assert (found._process, found._lock.locked()) == (None, False)
