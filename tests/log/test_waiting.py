"""Waiting for processes that are stopped in the middle of a write: the wait is logged, and Ctrl-C ends it at once."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import storm
from thresher.log.holders import holders, named
from thresher.log.sqlite_waiting import BusyHandler
from waiters import ASK, LATEST, RUN, SOON, THRESHER, ends_at_once, said_by, started

import thresher
from thresher.log import locks
from thresher.log.locks import Patience

HOLD = """
import os, signal, sys
from thresher.log.store import open_store
store = open_store(sys.argv[1])
with store.turn("s"), store._write("s"):
    os.kill(os.getpid(), signal.SIGSTOP)
"""
HOLD_LOCK = """
import os, signal, sys
from pathlib import Path
from thresher.log.locks import FileLock
with FileLock(Path(sys.argv[1])).turn():
    os.kill(os.getpid(), signal.SIGSTOP)
"""


@contextlib.contextmanager
def stopped(script: str, argument: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A process that stopped itself at a place in its script."""
    process = subprocess.Popen([sys.executable, "-c", script, argument])
    try:
        assert os.WIFSTOPPED(os.waitpid(process.pid, os.WUNTRACED)[1])
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def url(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path}/thresher.db"
    thresher.create_study("s", arms=["a", "b"], at_least=0.5, budget=100, storage=url).store.close()
    return url


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)])
def test_waiting_for_a_stopped_writer_is_logged_and_ends_with_a_signal(
    url: str, tmp_path: Path, number: signal.Signals, status: int
) -> None:
    with stopped(HOLD, url) as holder, started([*ASK, url]) as waiting:
        line = said_by(waiting)
        assert f"{tmp_path}/thresher.db (process {holder.pid}, which is stopped), for up to" in line
        assert ends_at_once(waiting, number).strip() == "", "it is logged once"
        assert waiting.returncode == status


def test_waiting_is_logged_within_five_seconds(url: str) -> None:
    """Of the waiting, not of starting Python."""
    script = (
        f"{SOON}import time, thresher, sys; s = thresher.open_study('s', storage={url!r}); print(flush=True); s.ask()"
    )
    with stopped(HOLD, url), started([sys.executable, "-c", script]) as waiting:
        assert waiting.stdout
        waiting.stdout.readline()
        began = time.monotonic()
        assert "waiting for" in said_by(waiting)
        assert time.monotonic() - began < LATEST
    assert locks.TURN + locks.SAID_AFTER < 5.0, "what it waits for if they are as they are"


def test_a_stopped_writer_that_continues_is_waited_for(url: str) -> None:
    with stopped(HOLD, url) as holder, started([*ASK, url]) as waiting:
        assert "waiting for" in said_by(waiting)
        holder.send_signal(signal.SIGCONT)
        out, said = waiting.communicate(timeout=60)
        assert (waiting.returncode, said) == (0, "")
        assert out.startswith("1")


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 1), (signal.SIGTERM, -signal.SIGTERM)])
def test_a_run_whose_store_is_blocked_ends_with_a_signal(
    url: str, tmp_path: Path, number: signal.Signals, status: int
) -> None:
    """`run` keeps signals from interrupting a write, but not a wait for another process."""
    with started([sys.executable, "-c", RUN, url, str(tmp_path)]) as run:
        storm.until(lambda: len(list(tmp_path.glob("began-*"))) == 2, 60)
        with stopped(HOLD, url) as holder:
            (tmp_path / "go").touch()
            line = said_by(run)
            assert f"process {holder.pid}, which is stopped" in line
            said = ends_at_once(run, number)
            assert run.returncode in (status, -number), said
            assert said.count("waiting for") == 0


def test_a_running_command_ends_with_ctrl_c_although_its_store_is_blocked(url: str, tmp_path: Path) -> None:
    arms = tmp_path / "arms.txt"
    arms.write_text("a\nb\n")
    argv = [*THRESHER, "run", "--at-least=0.5", "--budget=9", f"--storage={url}"]
    with stopped(HOLD, url), started([*argv, f"--arms={arms}", "--", "echo", "1", "{arm}"]) as run:
        assert "waiting for" in said_by(run)
        ends_at_once(run, signal.SIGINT)
        assert run.returncode == 130


def test_waiting_to_create_a_store_is_logged_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    lock, url = tmp_path / "thresher.db-lock", f"sqlite:///{tmp_path}/thresher.db"
    script = f"{SOON}import thresher; thresher.create_study('s', arms=['a'], at_least=0.5, budget=9, storage={url!r})"
    with stopped(HOLD_LOCK, str(lock)) as holder, started([sys.executable, "-c", script]) as waiting:
        assert f"{lock} (process {holder.pid}, which is stopped)" in said_by(waiting)
        assert "KeyboardInterrupt" in ends_at_once(waiting, signal.SIGINT)
    assert not (tmp_path / "thresher.db").exists()


def test_a_wait_without_end_is_given_up(url: str) -> None:
    script = f"{SOON}import thresher.log.sqlite_waiting, thresher; thresher.log.sqlite_waiting.BUSY = 0.2\n"
    script += f"thresher.open_study('s', storage={url!r}).ask()"
    with stopped(HOLD, url) as holder, started([sys.executable, "-c", script]) as waiting:
        _, said = waiting.communicate(timeout=60)
        assert re.search(rf"StoreFailed: .*process {holder.pid}, which is stopped.*continue it", said), said


def test_holders_are_named_if_the_system_shows_them(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with stopped(HOLD_LOCK, str(lock)) as holder:
        assert holders(str(lock)) == [holder.pid]
        assert named([holder.pid]) == f" (process {holder.pid}, which is stopped)"
    assert holders(str(lock)) == []
    assert holders(str(tmp_path / "nowhere")) == []


def test_a_wait_that_many_share_is_logged_once_until_it_changes(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(locks, "SAID_AFTER", 0.01)
    monkeypatch.setattr(locks, "SLICE", 0.01)
    for what in ("a lock", "a lock", "another", "a lock"):
        assert not locks.Patience(0.1).pause(60.0, lambda what=what: what)  # type: ignore[misc]

    def said() -> list[str]:  # threads of earlier tests may be waiting too, for other things
        lines = [line.partition(", ")[0] for line in caplog.messages]
        return [line for line in lines if line in ("waiting for a lock", "waiting for another")]

    assert said() == ["waiting for a lock", "waiting for another"]
    monkeypatch.setattr(locks, "AGAIN", 0.0)  # much later
    locks.Patience(60).pause(0.03, lambda: "a lock")
    assert "waiting for a lock" in said()[2:]


def test_nothing_is_waited_for_right_after_an_interruption(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "_hurry_until", 0.0)
    assert locks.Patience(60).pause(0.001, str)
    locks.hurry()
    assert not locks.Patience(60).pause(0.001, str)


def test_the_pauses_of_a_wait_for_sqlite_grow_to_a_tenth_of_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses = list[float]()

    def pause(_: Patience, seconds: float, what: object) -> bool:
        pauses.append(seconds)
        return True

    monkeypatch.setattr(Patience, "pause", pause)
    wait = BusyHandler(tmp_path / "s.db")
    assert all(wait(tries) for tries in range(11))
    assert pauses == [0.001, 0.002, 0.005, 0.01, 0.015, 0.02, 0.025, 0.05, 0.1, 0.1, 0.1]
