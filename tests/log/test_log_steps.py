"""Steps of the stores that only races and interrupts show, one at a time."""

import contextlib
import fcntl
import importlib.abc
import os
import sqlite3
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import apsw
import pytest
from engines import until

import thresher
from thresher.core.events import Event
from thresher.errors import Conflict, InvalidInput, StoreFailed
from thresher.log import locks, sqlite_session
from thresher.log.chain import chained
from thresher.log.locks import FileLock
from thresher.log.sqlite import SqliteStore
from thresher.log.store import open_store


@pytest.fixture(autouse=True)
def _no_hurry_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "_hurry_until", 0.0)


# -- PostgreSQL ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("storage", "shown"),
    [
        ("mysql://me:hunter2@host/db", "mysql://me:***@host/db"),
        ("me:hunter2@host/db", r"\*\*\*@host/db"),
        ("mysql://host/db", "mysql://host/db"),
        ("host=db user=me password=hunter2 dbname=x", r"password=\*\*\*"),
    ],
)
def test_an_unknown_store_is_named_without_its_password(storage: str, shown: str) -> None:
    with pytest.raises(InvalidInput, match=shown.replace("***", r"\*\*\*") if "://" in storage else shown) as caught:
        open_store(storage)
    assert "hunter2" not in str(caught.value)
    assert "is not a store that this version knows" in str(caught.value)


def test_a_driver_that_cannot_be_imported_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    """psycopg without libpq is installed, and raises an ImportError without a name."""

    class Refusing(importlib.abc.MetaPathFinder):
        def find_spec(self, name: str, *_: object) -> None:
            if name == "thresher.log.postgres":
                raise ImportError("no pq wrapper available")

    monkeypatch.delitem(sys.modules, "thresher.log.postgres", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Refusing(), *sys.meta_path])
    with pytest.raises(StoreFailed, match=r"cannot be imported \(ImportError: no pq wrapper available\); pip"):
        open_store("postgresql://me@nowhere/db")


def test_a_file_without_a_scheme_is_told_what_to_write() -> None:
    with pytest.raises(InvalidInput, match=r"storage 'mine\.db': .*; write sqlite:///mine\.db for a file, or use"):
        open_store("mine.db")


# -- SQLite ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("left", ["heads", "events"])
def test_a_name_of_which_anything_is_left_is_taken(left: str, tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "s.db")
    for name in ("a", "b"):
        thresher.create_study(name, arms=["x", "y"], at_least=0.5, budget=40, storage=store)
    store.close()
    with contextlib.closing(sqlite3.connect(tmp_path / "s.db")) as connection, connection:
        if left == "events":
            connection.execute("DELETE FROM heads WHERE study = 'b'")
        else:
            connection.execute("UPDATE heads SET study = 'c' WHERE study = 'b'")
    store = SqliteStore(tmp_path / "s.db")
    name = "b" if left == "events" else "c"
    with pytest.raises(thresher.ThresherError, match="already"):
        store.rename("a", name)
    with pytest.raises(Conflict, match="another agent wrote it first"):
        store.append(name, chained([Event(1, "created", key="k")]))
    store.close()


def test_a_closed_store_keeps_no_handle_of_its_lock(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "s.db")
    study = thresher.create_study("a", arms=["x", "y"], at_least=0.5, budget=40, storage=store)
    study.ask()
    assert store._turns._spare
    store.close()
    assert store._turns._spare == []


def test_a_copy_that_a_reader_holds_up_is_tried_again_later(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    synced: list[object] = []
    now = SimpleNamespace(monotonic=lambda: 100.0)
    monkeypatch.setattr(sqlite_session, "time", now)
    monkeypatch.setattr(sqlite_session, "sync_folder", synced.append)
    monkeypatch.setattr(sqlite_session, "os", SimpleNamespace(fdatasync=synced.append))
    session: Any = sqlite_session.Session.__new__(sqlite_session.Session)
    copies: list[int] = []
    session._handle, session._syncs, session.is_settled, session._next_try = 7, True, False, 0.0
    session._path, session._copy, session.check = tmp_path / "s.db", lambda: copies.append(1), lambda: None
    for _ in range(2):
        session.flush()
    assert (len(copies), synced) == (1, [tmp_path, 7, 7]), "what was written is on the disk all the same"
    now.monotonic = lambda: 100.0 + locks.BUSY_WITHOUT_TURN
    session._copy = lambda: setattr(session, "is_settled", True)
    session.flush()
    assert (session.is_settled, synced[3:]) == (True, [tmp_path])


def test_a_reader_that_hangs_delays_the_first_flush_but_not_for_long(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sqlite_session, "TURN", 0.2)
    first, second = SqliteStore(tmp_path / "s.db"), SqliteStore(tmp_path / "s.db")
    thresher.create_study("s", arms=["x", "y"], at_least=0.5, budget=40, storage=first).ask_many(3)
    with contextlib.closing(apsw.Connection(str(tmp_path / "s.db"))) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM events").fetchall()  # it reads from the write-ahead log
        study, began = thresher.open_study("s", storage=second), time.monotonic()
        assert study.ask() is not None
        assert 0.2 <= time.monotonic() - began < 30.0, "not a minute, as for a writer"
        assert second._session is not None
        assert not second._session.is_settled
    second._session._next_try = 0.0  # later
    assert study.ask() is not None
    assert second._session.is_settled
    first.close()
    second.close()


# -- locks -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_lock_that_comes_at_the_last_moment_is_held_or_released(
    interrupted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread that waits for it has it, but nobody has looked yet when the time is over, or Ctrl-C comes."""
    lock = FileLock(tmp_path / "lock")
    with lock.turn():
        pass
    childs = os.dup(lock._spare[0])  # of a process forked before: it may keep the lock
    with (tmp_path / "lock").open("w") as holder, (tmp_path / "lock").open("w") as other:
        fcntl.flock(holder, fcntl.LOCK_EX)

        def it_comes(*_: object) -> float:
            handles = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
            fcntl.flock(holder, fcntl.LOCK_UN)
            until(lambda: len(os.listdir("/proc/self/fd")) < handles, "the lock")  # noqa: PTH208 - of the thread's own
            if interrupted:
                raise KeyboardInterrupt
            return 0.0

        monkeypatch.setattr(locks.Patience, "next_slice", it_comes)
        with contextlib.suppress(KeyboardInterrupt), lock.turn() as held:
            assert (held, interrupted) == (True, False)
            with pytest.raises(BlockingIOError):
                fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert locks.in_a_hurry() == interrupted
    os.close(childs)
    lock.close()


@pytest.mark.parametrize("call", ["os.dup", "threading.Thread.start"])
def test_a_process_without_handles_or_threads_left_goes_on_without_its_turn(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OSError("too many open files") if call == "os.dup" else RuntimeError("can't start new thread")

    lock = FileLock(tmp_path / "lock")
    with (tmp_path / "lock").open("w") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        handles = len(list(Path("/proc/self/fd").iterdir()))
        monkeypatch.setattr(call, fails)
        with lock.turn() as held:
            assert not held
        assert len(list(Path("/proc/self/fd").iterdir())) == handles


def test_a_forked_child_and_its_parent_never_have_the_lock_at_the_same_time(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    with lock.turn() as held:
        assert held
    parents = os.dup(lock._spare[0])  # after a fork, both have the same open file
    lock._begin_in_child()  # as if this process had been forked
    with lock.turn() as held:
        assert held
        with pytest.raises(BlockingIOError):
            fcntl.flock(parents, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(parents)
    lock.close()
