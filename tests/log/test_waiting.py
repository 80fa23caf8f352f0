"""Waiting for processes that are stopped in the middle of a write: the wait is logged, and Ctrl-C ends it at once."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import storm
from waiters import ASK, LATEST, RUN, SOON, THRESHER, ends_at_once, said_by, started

import thresher
from thresher.log import locks, sqlite
from thresher.log.store import open_store

HOLD = """
import apsw, os, signal, sys
from thresher.log.store import open_store
with open_store(sys.argv[1]).turn("s"):
    connection = apsw.Connection(sys.argv[1].removeprefix("sqlite:///"))
    connection.execute("BEGIN IMMEDIATE")
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
    with stopped(HOLD, url), started([*ASK, url]) as waiting:
        assert f"waiting for another process to finish writing to {tmp_path}/thresher.db, for up to" in said_by(waiting)
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
        with stopped(HOLD, url):
            (tmp_path / "go").touch()
            assert "waiting for another process" in said_by(run)
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
    with stopped(HOLD_LOCK, str(lock)), started([sys.executable, "-c", script]) as waiting:
        assert f"waiting for another process to release {lock}, for up to" in said_by(waiting)
        assert "KeyboardInterrupt" in ends_at_once(waiting, signal.SIGINT)
    assert not (tmp_path / "thresher.db").exists()


def test_every_wait_for_a_writer_has_its_whole_time_and_is_then_given_up(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "BUSY", 0.2)
    store = open_store(url)
    with stopped(HOLD, url):
        for _ in range(2):
            began = time.monotonic()
            with pytest.raises(thresher.StoreFailed, match=r"does not finish writing to it; is it stopped\?"):
                store.note("s", "agent", "command")
            assert time.monotonic() - began >= 0.2
    store.note("s", "agent", "command")
    store.close()


def test_a_wait_that_many_share_is_logged_once_until_it_changes(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(locks, "SAID_AFTER", 0.01)
    monkeypatch.setattr(locks, "SLICE", 0.01)
    for what in ("a lock", "a lock", "another", "a lock"):
        assert not locks.LockPatience(0.1).pause(60.0, what)

    def said() -> list[str]:  # threads of earlier tests may be waiting too, for other things
        lines = [line.partition(", ")[0] for line in caplog.messages]
        return [line for line in lines if line in ("waiting for a lock", "waiting for another")]

    assert said() == ["waiting for a lock", "waiting for another"]
    monkeypatch.setattr(locks, "AGAIN", 0.0)  # much later
    locks.LockPatience(60).pause(0.03, "a lock")
    assert "waiting for a lock" in said()[2:]
