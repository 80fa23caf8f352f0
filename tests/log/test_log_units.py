"""Units of the log that interrupts and forks meet, one at a time."""

import errno
import fcntl
import os
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import thresher
from thresher.core.events import Event
from thresher.log import locks, sqlite_file
from thresher.log.chain import START, link
from thresher.log.locks import FileLock
from thresher.log.sqlite import SqliteStore
from thresher.log.store import MemoryStore


def a_study(store: Any) -> thresher.Study:
    return thresher.create_study("s", arms=["a", "b"], at_least=0.5, budget=400, storage=store)


@pytest.fixture(autouse=True)
def _no_hurry_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "_hurry_until", 0.0)


def _interrupted(*_: Any, **__: Any) -> Any:
    raise KeyboardInterrupt


# -- events ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("more", [{}, {"reason": "r"}])
@pytest.mark.parametrize("field", ["key", "agent"])
def test_a_text_with_a_nul_is_no_text_of_an_event(field: str, more: dict[str, Any]) -> None:
    fields = {"key": "k", "agent": "a", **more}
    assert len(link(START, Event(2, "asked", 1, 0, time=1.0, **fields))) == 16
    with pytest.raises(ValueError, match="a text holds a NUL"):
        link(START, Event(2, "asked", 1, 0, time=1.0, **fields | {field: "a\0b"}))


def test_an_event_without_a_digest_is_not_kept() -> None:
    store = MemoryStore()
    with pytest.raises(thresher.InvalidInput, match="has no digest"):
        store.append("s", [Event(1, "created")])
    assert store.studies() == []


# -- interrupts ------------------------------------------------------------------------------------------------------


def test_a_wait_that_is_interrupted_is_not_begun_again(monkeypatch: pytest.MonkeyPatch) -> None:
    assert locks.Patience(5.0).pause(0.001, str)
    monkeypatch.setattr(time, "sleep", _interrupted)
    with pytest.raises(KeyboardInterrupt):
        locks.Patience(5.0).pause(0.001, str)
    assert locks.in_a_hurry()
    assert not locks.Patience(5.0).pause(0.001, str), "at once"


def test_an_interrupted_turn_leaves_no_lock_and_no_open_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock, before = FileLock(tmp_path / "lock"), len(list(Path("/proc/self/fd").iterdir()))
    monkeypatch.setattr(locks, "_acquired_soon", _interrupted)
    with pytest.raises(KeyboardInterrupt), lock.turn():
        raise AssertionError("it was interrupted")
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_lock_that_comes_after_an_interrupt_is_released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = FileLock(tmp_path / "lock")
    with lock.turn():
        pass
    childs = os.dup(lock._spare[0])  # of a process forked before: it may keep the lock
    with (tmp_path / "lock").open("w") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        threads = set(threading.enumerate())
        with monkeypatch.context() as context:
            context.setattr(locks.Patience, "next_slice", _interrupted)
            with pytest.raises(KeyboardInterrupt), lock.turn():
                raise AssertionError("it was interrupted")
        (waiter,) = set(threading.enumerate()) - threads
    waiter.join(10)
    assert not waiter.is_alive()
    with (tmp_path / "lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(childs)


# -- forks -----------------------------------------------------------------------------------------------------------


def test_a_forked_child_writes_under_its_own_name_and_reads_again_what_was_half_read() -> None:
    journal = a_study(MemoryStore())._journal
    nonce, ledger = journal._nonce, journal._ledger
    journal._forked()
    assert (journal._nonce != nonce, journal._ledger is ledger) == (True, True)
    holding, let_go = threading.Event(), threading.Event()

    def hold(lock: Any) -> None:
        with lock:
            holding.set()
            let_go.wait(10)

    thread = threading.Thread(target=hold, args=(journal._lock,))
    thread.start()
    holding.wait(10)
    journal._forked()
    assert journal._ledger is None
    assert journal.peek(lambda newest: newest.seq) == 1, "its lock is another one"
    let_go.set()
    thread.join()


def test_a_forked_child_does_not_use_its_parents_lock(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    with lock.turn():
        lock._spare.append(os.dup(1))  # a handle of the parent that is not in use
        lock._begin_in_child()  # as if this process had been forked meanwhile
        assert lock._spare == []
        with lock.turn(0.1) as held:
            assert not held, "the parent has it"
    lock.close()


# -- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "works"), [(errno.EPERM, True), (errno.ENOTSUP, True), (errno.EIO, False)])
def test_a_store_is_created_where_there_are_no_hard_links(
    number: int, works: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link_fails(*_: Any) -> None:
        raise OSError(number, "no links")

    monkeypatch.setattr(os, "link", link_fails)
    store = SqliteStore(tmp_path / "thresher.db")
    if works:
        assert a_study(store).ask() is not None
    else:
        with pytest.raises(thresher.StoreFailed, match="no links"):
            a_study(store)
    store.close()
    assert (tmp_path / "thresher.db").exists() == works
    assert not [file for file in tmp_path.iterdir() if "-new-" in file.name]


def test_what_others_wrote_is_folded_in_without_reading_the_log_again(monkeypatch: pytest.MonkeyPatch) -> None:
    store, after = MemoryStore(), list[int]()
    mine = thresher.create_study("s", arms=["a", "b"], at_least=0.5, budget=40, storage=store)
    others = thresher.open_study("s", storage=store)
    read = store.read

    def noted(study: str, last: int = 0, limit: int | None = None) -> Any:
        after.append(last)
        return read(study, last, limit)

    monkeypatch.setattr(store, "read", noted)
    for told in range(1, 4):
        others.tell(others.ask() or 0, 1)
        after.clear()
        assert mine.verdict().told == mine.verdict().told == told
        assert after
        assert min(after) >= 2 * told - 1


def test_a_disk_is_full_if_it_has_less_room_than_an_error_needs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for blocks, is_full in ((15, True), (16, False), (17, False)):
        found = SimpleNamespace(f_bavail=blocks, f_frsize=4096)
        monkeypatch.setattr(os, "statvfs", lambda folder, found=found: found if folder == tmp_path else None)
        assert sqlite_file._is_full(tmp_path / "s.db") == is_full
    monkeypatch.undo()
    assert not sqlite_file._is_full(tmp_path / "no" / "such" / "s.db"), "nobody knows"
