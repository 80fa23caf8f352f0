"""Writes to the disk that fail: what was not written is never acknowledged, not even by a later success."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from faults import Agent, Trace, strace

import thresher
from thresher.log.store import open_store

SYNCS = "fsync,fdatasync"


@pytest.fixture(autouse=True)
def _strace() -> None:
    strace()


@pytest.mark.parametrize(("error", "words"), [("EIO", "Input/output error"), ("ENOSPC", "No space left on device")])
def test_after_a_failed_flush_nothing_is_acknowledged_by_that_process(tmp_path: Path, error: str, words: str) -> None:
    url = f"sqlite:///{tmp_path}/thresher.db"
    with Agent(url) as agent:
        pull = agent.do("ask")
        with Trace(agent.process.pid, tmp_path / "calls", f"--inject=fdatasync:error={error}:when=1") as trace:
            refused = agent.do(f"tell {pull} 1")
            assert f"StoreFailed storage '{tmp_path}/thresher.db': a write to the disk failed ({words})" in refused
            assert "check the disk and start again" in refused
            for line in (f"tell {pull} 1", "ask", f"tell {pull} 1"):
                assert agent.do(line) == refused, line
            agent.do("reopen")
            assert agent.do(f"tell {pull} 1") == refused
            injected = [line for line in trace.end() if "INJECTED" in line]
        assert len(injected) == 1
        assert "thresher.db-wal" in injected[0]
        assert agent.do("issued") == "1", "it may still be read"


def test_after_a_failed_first_flush_nothing_is_acknowledged_by_that_process(tmp_path: Path) -> None:
    """SQLite does the first flush of a connection, and reports that it failed."""
    with Agent(f"sqlite:///{tmp_path}/thresher.db") as agent:
        pull = agent.do("ask")
        agent.do("reopen")
        with Trace(agent.process.pid, tmp_path / "calls", "--inject=fdatasync:error=EIO:when=1"):
            refused = agent.do(f"tell {pull} 1")
            assert f"StoreFailed storage '{tmp_path}/thresher.db': a write to the disk failed (" in refused
            for line in (f"tell {pull} 1", "ask"):
                assert agent.do(line) == refused


def test_a_call_repeated_by_another_process_writes_what_the_first_could_not(tmp_path: Path) -> None:
    """After a failure the system considers the pages written, so a flush alone would write nothing."""
    url = f"sqlite:///{tmp_path}/thresher.db"
    with Agent(url) as agent:
        pull = agent.do("ask")
        with Trace(agent.process.pid, tmp_path / "calls", "--inject=fdatasync:error=EIO:when=1"):
            assert agent.do(f"tell {pull} 1").startswith("StoreFailed")
    with Agent(url) as idle, Agent(url) as agent:  # however many have the file open
        assert idle.do("issued") == "1"
        with Trace(agent.process.pid, tmp_path / "again", f"--trace=pwrite64,write,{SYNCS}") as trace:
            assert agent.do(f"tell {pull} 1") == "None"
            calls = trace.end()
    told = next(number for number, line in enumerate(calls) if '"None\\n"' in line or '"None"' in line)
    file = f"{tmp_path}/thresher.db>"
    written = [number for number, line in enumerate(calls[:told]) if "pwrite64" in line and file in line]
    synced = [number for number, line in enumerate(calls[:told]) if "fdatasync" in line and file in line]
    assert written
    assert synced
    assert written[-1] < synced[-1]
    study = thresher.open_study("s", storage=url)
    assert [event.kind for event in study.events()] == ["created", "asked", "told"]
    study.store.close()


def test_an_agent_that_writes_after_failed_frames_restarts_the_log(tmp_path: Path) -> None:
    """After a power cut SQLite reads the log up to the first frame that is not on the disk, and no further."""
    url = f"sqlite:///{tmp_path}/thresher.db"
    with Agent(url) as failed, Agent(url) as agent:
        pull = failed.do("ask")
        with Trace(failed.process.pid, tmp_path / "calls", "--inject=fdatasync:error=EIO:when=1"):
            assert failed.do(f"tell {pull} 1").startswith("StoreFailed")
        assert agent.do("ask") == "2"
        with Trace(agent.process.pid, tmp_path / "writes", "--trace=pwrite64") as trace:
            assert agent.do("ask") == "3"
            first = next(line for line in trace.end() if "thresher.db-wal" in line)
    assert first.rpartition(" = ")[0].rstrip(" )").endswith(", 0"), first  # what is written may hold anything


CREATE = """
import os, sys, thresher
try:
    study = thresher.create_study("s", arms=["a"], at_least=0.5, budget=9, storage=sys.argv[1])
    study.tell(study.ask(), 1)
except thresher.ThresherError as error:
    print(type(error).__name__, error)
else:
    print("acknowledged")
sys.stdout.flush()
os._exit(0)  # not closed: closing would flush again
"""


def test_a_store_that_could_not_be_written_completely_does_not_appear(tmp_path: Path) -> None:
    """Each flush in turn fails, from the first of creation to the last before the first reward is acknowledged."""
    failures = 0
    for number in range(1, 100):
        folder = tmp_path / str(number)
        folder.mkdir()
        url, calls = f"sqlite:///{folder}/thresher.db", tmp_path / "calls"
        inject = [
            "--seccomp-bpf",
            f"--trace={SYNCS}",
            f"--inject={SYNCS}:error=EIO:when={number}",
            "-o",
            str(calls),
            "-f",
            "-y",
        ]
        done = subprocess.run([strace(), *inject, sys.executable, "-c", CREATE, url], capture_output=True, text=True)
        injected = [line for line in calls.read_text().splitlines() if "INJECTED" in line]
        if not injected:
            break
        said = done.stdout.strip()
        assert done.returncode == 0, done.stderr
        if said == "acknowledged":  # SQLite may pass over a folder: we do not, and look at it ourselves
            assert all("fdatasync(" in line and f"<{folder}>" in line for line in injected), injected
            assert open_store(url).describe()["check"] == "sound"
        else:
            failures += 1
            assert "failed" in said or "fails" in said or "cannot" in said, said
            assert "\n" not in said
            with contextlib.suppress(thresher.StudyExists):
                again = thresher.create_study("s", arms=["a"], at_least=0.5, budget=9, storage=url)
                again.tell(again.ask() or 0, 1)
                again.store.close()
        left = {file.name for file in folder.iterdir()} - {f"thresher.db{end}" for end in ("", "-wal", "-shm", "-lock")}
        assert not left, said
    assert failures >= 5
    assert number < 99


def test_a_store_whose_name_may_vanish_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(handle: int) -> None:
        if os.fstat(handle).st_ino == tmp_path.stat().st_ino:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(thresher.errors.StoreFailed, match="Input/output error"):
        open_store(f"sqlite:///{tmp_path}/thresher.db").note("s", "agent", "command")
    assert [file.name for file in tmp_path.iterdir()] == ["thresher.db-lock"]
