"""Units of the stores: locks, turns, flushes and files."""

import errno
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import apsw
import pytest

import thresher
from thresher.log.journal import Journal
from thresher.log.sqlite import SqliteStore
from thresher.log.store import MemoryStore


def a_study(store: Any) -> thresher.Study:
    return thresher.create_study("s", arms=["a", "b"], at_least=0.5, budget=400, storage=store)


# -- the disk --------------------------------------------------------------------------------------------------------


def test_a_failed_flush_is_reported_and_nothing_is_acknowledged_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore(tmp_path / "thresher.db")
    study = a_study(store)
    pulls = study.ask_many(3)
    with monkeypatch.context() as broken:
        broken.setattr(os, "fdatasync", _fails)
        with pytest.raises(thresher.StoreFailed, match=r"a write to the disk failed .*what was told since may be lost"):
            study.tell(pulls[0], 0.5)
    with pytest.raises(thresher.StoreFailed, match="a write to the disk failed"):
        study.tell(pulls[1], 0.5)
    (tmp_path / "thresher.db-wal").unlink()
    assert store._session is not None
    with pytest.raises(thresher.StoreFailed, match="was deleted or replaced"):
        store._session.check()
    with pytest.raises(thresher.StoreFailed, match="a write to the disk failed"):
        store.flush()  # the first failure is the one to know about
    store.close()


def test_a_failure_is_reported_to_all_threads_that_flush(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system reports it once: a second flush at the same time would succeed."""
    store = SqliteStore(tmp_path / "thresher.db")
    a_study(store).ask()
    began, go_on, handles = threading.Event(), threading.Event(), list[int]()

    def fails_once(handle: int) -> None:
        handles.append(handle)
        if len(handles) == 1:
            began.set()
            go_on.wait(30)
            _fails(handle)

    monkeypatch.setattr(os, "fdatasync", fails_once)
    with ThreadPoolExecutor(2) as pool:
        flushes = [pool.submit(store.flush)]
        assert began.wait(30)
        flushes.append(pool.submit(store.flush))
        time.sleep(0.1)  # the second waits for the first
        go_on.set()
        for flush in flushes:
            with pytest.raises(thresher.StoreFailed, match="a write to the disk failed"):
                flush.result(30)
    assert len(handles) == 1
    store.close()


def test_a_failed_first_flush_is_reported_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a_study(SqliteStore(tmp_path / "thresher.db")).store.close()
    store = SqliteStore(tmp_path / "thresher.db")
    study = thresher.open_study("s", storage=store)
    monkeypatch.setattr("thresher.log.sqlite_session.sync_folder", _fails)
    with pytest.raises(thresher.StoreFailed, match="a write to the disk failed"):
        study.ask()
    store.close()


def _fails(_: object) -> None:
    raise OSError(errno.EIO, "Input/output error")


def test_an_agent_copies_what_it_found_in_the_log_before_it_acknowledges_anything(tmp_path: Path) -> None:
    """The log may hold frames of another agent that never reached the disk."""
    file = tmp_path / "thresher.db"
    first, second = SqliteStore(file), SqliteStore(file)
    a_study(first).ask_many(30)
    before = file.stat().st_mtime_ns
    study = thresher.open_study("s", storage=second)
    assert file.stat().st_mtime_ns == before
    study.ask()
    copied = file.stat().st_mtime_ns
    assert copied > before
    study.ask()
    assert file.stat().st_mtime_ns == copied, "once is enough"
    first.close()
    second.close()


def test_a_file_that_is_replaced_before_the_first_flush_is_noticed_by_it(tmp_path: Path) -> None:
    file = tmp_path / "thresher.db"
    a_study(SqliteStore(file)).store.close()
    store = SqliteStore(file, durability="normal")
    assert store.studies() == ["s"]
    assert store._session is not None
    (tmp_path / "copy").write_bytes(file.read_bytes())
    (tmp_path / "copy").rename(file)
    with pytest.raises(thresher.StoreFailed, match="was deleted or replaced while it was in use"):
        store._session.flush()
    store.close()


def test_without_a_write_ahead_log_sqlite_waits_for_the_disk_itself(tmp_path: Path) -> None:
    file = tmp_path / "thresher.db"
    a_study(SqliteStore(file)).store.close()

    def switch(mode: str) -> None:
        other = apsw.Connection(str(file))
        assert other.pragma("journal_mode", mode) == mode
        other.close()

    switch("delete")
    store = SqliteStore(file)
    study = thresher.open_study("s", storage=store)
    assert study.ask() is not None
    session = store._session
    assert session is not None
    assert (session.connection.pragma("synchronous"), session.is_settled) == (2, False), "FULL"
    switch("wal")
    assert study.ask() is not None
    assert session.is_settled, "it found the log"
    (tmp_path / "thresher.db-wal").unlink()
    with pytest.raises(thresher.StoreFailed, match="was deleted or replaced while in use"):
        study.ask()
    store.close()


def test_a_folder_is_not_a_store(tmp_path: Path) -> None:
    with pytest.raises(thresher.StoreFailed, match="is not a file; name another"):
        SqliteStore(tmp_path).studies()


# -- studies ---------------------------------------------------------------------------------------------------------


def test_a_study_that_never_was_is_unknown_and_not_deleted() -> None:
    with pytest.raises(thresher.UnknownStudy, match="is not in this store; create it") as caught:
        Journal("s", MemoryStore())
    assert type(caught.value) is thresher.UnknownStudy


def test_a_verdict_says_how_many_rewards_are_from_other_agents() -> None:
    store = MemoryStore()
    study, other = a_study(store), thresher.open_study("s", storage=store)
    pulls = study.ask_many(4)
    study.tell(pulls[0], 0.5)
    study.tell(pulls[1], 0.5)
    other.tell(pulls[2], 0.5)
    study.drop(pulls[3], reason="it broke")
    assert (study.verdict().others, other.verdict().others) == (1, 2)
