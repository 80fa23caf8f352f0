"""SQLite files on disks that are full, read-only or broken: nothing that was acknowledged is lost."""

import contextlib
import errno
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import apsw
import pytest
import storm
from sqlite_files import filled, make

import thresher
from thresher.core.events import Event
from thresher.errors import StoreFailed
from thresher.log import sqlite, sqlite_file
from thresher.log.store import open_store

LAST = Event(1, "created")  # SQLite brings all that was written to the disk


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of six megabytes, if we may mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if (
        os.geteuid()
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(folder)], capture_output=True
        ).returncode
    ):
        pytest.skip("only root can mount a disk")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_loses_nothing_that_was_acknowledged(small_disk: Path) -> None:
    study = make(small_disk / "thresher.db")
    acknowledged: dict[int, float] = {}

    def fill() -> None:
        while pull := study.ask():
            study.tell(pull, pull.seed / 2**32, note="x" * 900)  # so that it is soon full
            acknowledged[pull.id] = pull.seed / 2**32

    with pytest.raises(StoreFailed, match="disk") as caught:
        fill()
    assert "\n" not in str(caught.value)
    assert len(acknowledged) > 100
    whole = shutil.copytree(small_disk, small_disk.parent / "copy")  # with room again
    again = thresher.open_study("s", storage=f"sqlite:///{whole}/thresher.db")
    told = {event.pull: event.reward for event in again.events() if event.kind == "told"}
    assert acknowledged.items() <= told.items()
    assert len(told) <= len(acknowledged) + 1
    assert again.ask()
    for each in (study, again):
        each.store.close()


def test_a_study_on_a_read_only_disk_can_be_read(small_disk: Path) -> None:
    filled(small_disk / "thresher.db")
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    study = thresher.open_study("s", storage=f"sqlite:///{small_disk}/thresher.db")
    assert study.verdict().issued == 200
    with pytest.raises(StoreFailed, match="is read-only"):
        study.ask()
    study.store.close()


WRITE_TO_THE_LIMIT = """
import resource, sys, thresher
study = thresher.create_study("s", arms=["a"], at_least=0.5, budget=10**6, storage=sys.argv[1], confidence=None)
resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, 2_000_000))
try:
    while True:
        pull = study.ask()
        study.tell(pull, 1)
        print(pull.id, flush=True)
except thresher.ThresherError as error:
    print(error, file=sys.stderr)
"""


def test_a_file_that_may_not_grow_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/thresher.db"
    done = subprocess.run([sys.executable, "-c", WRITE_TO_THE_LIMIT, url], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert len(done.stderr.splitlines()) == 1
    assert "disk" in done.stderr
    study = thresher.open_study("s", storage=url)
    told = {event.pull for event in study.events() if event.kind == "told"}
    assert {int(line) for line in done.stdout.split()} <= told
    assert len(told) > 50
    study.store.close()


READ_ONLY = """
import sys, thresher
try:
    study = thresher.open_study("s", storage=sys.argv[1])
    print(study.verdict().issued)
    study.ask()
except thresher.ThresherError as error:
    print(error, file=sys.stderr)
"""


def test_a_read_only_file_says_so_and_can_still_be_read(tmp_path: Path) -> None:
    path = filled(tmp_path / "thresher.db")
    study = thresher.open_study("s", storage=f"sqlite:///{path}")  # its -shm lets others read
    study.ask()
    for file in tmp_path.iterdir():
        file.chmod(0o400)
    done = without_power_over_modes(READ_ONLY, f"sqlite:///{path}")
    assert done.stdout == "201\n", done.stderr
    assert "is read-only; make the file, those that belong to it and their folder writable" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    study.store.close()


def without_power_over_modes(script: str, *args: str) -> "subprocess.CompletedProcess[str]":
    """Run a script as a user to whom file modes apply: root may write everything, unless it drops that right."""
    argv = [sys.executable, "-c", script, *args]
    if not os.geteuid():
        if not shutil.which("setpriv"):
            pytest.skip("no setpriv to give up root's powers with")
        argv = ["setpriv", "--bounding-set=-dac_override", "--inh-caps=-dac_override", *argv]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60)


# -- flushes ---------------------------------------------------------------------------------------------------------


def test_a_failed_flush_is_reported_and_nothing_is_acknowledged_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = make(tmp_path / "thresher.db")
    store = study.store
    pulls = study.ask_many(3)
    with monkeypatch.context() as broken:
        broken.setattr(os, "fdatasync", fails)
        with pytest.raises(StoreFailed, match=r"a write to the disk failed .*what was told since may be lost"):
            study.tell(pulls[0], 0.5)
    with pytest.raises(StoreFailed, match="a write to the disk failed"):
        study.tell(pulls[1], 0.5)
    (tmp_path / "thresher.db-wal").unlink()
    with pytest.raises(StoreFailed, match="a write to the disk failed"):
        store.flush("s", LAST)  # the first failure is the one to know about
    store.close()


def test_a_failure_is_reported_to_all_threads_that_flush(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system reports it once: a second flush at the same time would succeed."""
    study = make(tmp_path / "thresher.db")
    store = study.store
    study.ask()
    began, go_on, handles = threading.Event(), threading.Event(), list[int]()

    def fails_once(handle: int) -> None:
        handles.append(handle)
        if len(handles) == 1:
            began.set()
            go_on.wait(30)
            fails(handle)

    monkeypatch.setattr(os, "fdatasync", fails_once)
    with ThreadPoolExecutor(2) as pool:
        flushes = [pool.submit(store.flush, "s", LAST)]
        assert began.wait(30)
        flushes.append(pool.submit(store.flush, "s", LAST))
        assert not flushes[1].done(), "it waits for the first"
        go_on.set()
        for flush in flushes:
            with pytest.raises(StoreFailed, match="a write to the disk failed"):
                flush.result(30)
    assert len(handles) == 1
    store.close()


def test_a_failed_first_flush_is_reported_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = thresher.open_study("s", storage=filled(tmp_path / "thresher.db"))
    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", fails)
        with pytest.raises(StoreFailed, match="a write to the disk failed"):
            study.ask()
    with pytest.raises(StoreFailed, match="a write to the disk failed"):
        study.ask()
    study.store.close()


def fails(_: object) -> None:
    raise OSError(errno.EIO, "Input/output error")


def test_an_agent_copies_what_it_found_in_the_log_before_it_acknowledges_anything(tmp_path: Path) -> None:
    """The log may hold frames of another agent that never reached the disk."""
    file = tmp_path / "thresher.db"
    first = make(file)
    first.ask_many(30)
    before = file.stat().st_mtime_ns
    study = thresher.open_study("s", storage=file)
    assert file.stat().st_mtime_ns == before
    study.ask()
    copied = file.stat().st_mtime_ns
    assert copied > before
    study.ask()
    assert file.stat().st_mtime_ns == copied, "once is enough"
    for agent in (first, study):
        agent.store.close()


def test_a_reader_that_hangs_delays_the_first_flush_but_not_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was written is on the disk all the same, and the log is copied when the reader is gone."""
    monkeypatch.setattr(sqlite, "TURN", 0.5)
    monkeypatch.setattr(sqlite_file, "BUSY_WITHOUT_TURN", 1.0)
    file, flushed, fdatasync = tmp_path / "thresher.db", list[None](), os.fdatasync
    first = make(file)
    first.ask_many(3)
    with contextlib.closing(apsw.Connection(str(file))) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM events").fetchall()  # it reads from the write-ahead log
        study, began = thresher.open_study("s", storage=file), time.monotonic()
        monkeypatch.setattr(os, "fdatasync", lambda handle: flushed.append(fdatasync(handle)))
        assert study.ask() is not None
        assert 0.5 <= time.monotonic() - began < 30.0, "not a minute, as for a writer"
        flushed.clear()
        began = time.monotonic()
        assert study.ask() is not None
        assert (len(flushed), time.monotonic() - began < 0.5) == (1, True), "it is not waited for again at once"

    def is_copied() -> bool:
        flushed.clear()
        return study.ask() is not None and not flushed

    storm.until(is_copied, 60)
    size = (tmp_path / "thresher.db-wal").stat().st_size
    study.ask()
    assert (tmp_path / "thresher.db-wal").stat().st_size == size, "and begins again"
    for agent in (first, study):
        agent.store.close()


def test_a_file_that_is_replaced_before_the_first_flush_is_noticed_by_it(tmp_path: Path) -> None:
    file = filled(tmp_path / "thresher.db")
    store = open_store(f"sqlite:///{file}?durability=normal")
    assert store.studies() == ["s"]
    (tmp_path / "copy").write_bytes(file.read_bytes())
    (tmp_path / "copy").rename(file)
    with pytest.raises(StoreFailed, match="was deleted or replaced while it was in use"):
        store.flush("s", LAST)
    store.close()


def test_a_store_without_a_write_ahead_log_gets_one(tmp_path: Path) -> None:
    """Another program may have switched it off."""
    file = filled(tmp_path / "thresher.db")
    with contextlib.closing(apsw.Connection(str(file))) as connection:
        assert connection.pragma("journal_mode", "delete") == "delete"
    study = thresher.open_study("s", storage=file)
    assert study.ask() is not None
    assert (tmp_path / "thresher.db-wal").exists()
    study.store.close()
