"""Small promises of the log: what is named, how long is waited, and what is kept."""

import os
import queue
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import apsw
import psycopg
import pytest

import thresher
from thresher.core.events import Event
from thresher.log import locks, postgres_schema, sqlite_waiting
from thresher.log.chain import chained
from thresher.log.journal import plain
from thresher.log.leases import Keeper
from thresher.log.reader import pages
from thresher.log.sqlite import SqliteStore
from thresher.log.sqlite_file import explanation
from thresher.log.store import MemoryStore, open_store


def a_study(store: Any, name: str = "s") -> thresher.Study:
    return thresher.create_study(name, arms=["a", "b"], at_least=0.5, budget=40, storage=store)


# -- what is named ---------------------------------------------------------------------------------------------------


def test_damaged_tables_name_the_study_that_was_read_if_it_was_one(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(postgres_url)
    a_study(store)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(
            "CREATE FUNCTION broken() RETURNS text LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE EXCEPTION USING ERRCODE = 'data_corrupted'; END $$"
        )
    monkeypatch.setattr(postgres_schema, "NAMES", "SELECT broken()")
    monkeypatch.setattr(postgres_schema, "HEAD", "SELECT broken(), %s::text")
    with pytest.raises(thresher.DamagedStudy, match=r"^study: cannot be read: .* is damaged"):
        store.studies()
    with pytest.raises(thresher.DamagedStudy, match=r"^study 's': cannot be read: .* is damaged"):
        store.head("s")
    store.close()


@pytest.mark.parametrize(
    ("version", "is_safe"), [("3.51.2", False), ("3.51.3", True), ("3.52.0", True), ("3.50.9", False)]
)
def test_an_sqlite_that_may_corrupt_files_is_reported(
    version: str, is_safe: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore(tmp_path / "thresher.db")
    a_study(store)
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: version)
    assert ("! version" not in store.describe()) == is_safe
    store.close()


class Tampered(MemoryStore):
    """A store one of whose events has another digest."""

    def __init__(self) -> None:
        super().__init__()
        self.digest: bytes | None = b""  # in place of that of event 2; empty: it is as it was written

    def read(self, *args: Any, **options: Any) -> list[Event]:
        found = super().read(*args, **options)
        changed = self.digest != b""
        return [event._replace(digest=self.digest) if changed and event.seq == 2 else event for event in found]


@pytest.mark.parametrize("digest", [None, b"another digest!!"])
def test_a_digest_that_is_not_the_one_that_was_written_is_damage(digest: bytes | None) -> None:
    store = Tampered()
    study = a_study(store)
    study.ask_many(3)
    assert len(thresher.open_study("s", storage=store).events()) == 4
    store.digest = digest
    with pytest.raises(thresher.DamagedStudy, match="event 2: does not match its digest"):
        thresher.open_study("s", storage=store)


@pytest.mark.parametrize("comes_back", [False, True])
def test_a_study_that_is_deleted_while_it_is_read_is_not_called_damaged(comes_back: bool) -> None:
    store = MemoryStore()
    a_study(store).ask_many(3)
    reading = pages(store, "s", size=2)
    assert len(next(reading)) == 2
    store.delete("s")
    if comes_back:
        a_study(store).ask_many(9)
    with pytest.raises(thresher.UnknownStudy, match="was deleted or renamed while it was read"):
        next(reading)


@pytest.mark.parametrize(("free", "words"), [(65_535, "the disk is full"), (65_536, "the disk fails or is full")])
def test_a_full_disk_is_named(free: int, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_bavail=free, f_frsize=1))
    assert explanation(tmp_path / "thresher.db", apsw.IOError()).rule.endswith(words)


# -- waiting ---------------------------------------------------------------------------------------------------------


def test_every_wait_for_a_writer_has_its_whole_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_waiting, "BUSY", 0.1)
    tries_again = sqlite_waiting.BusyHandler(tmp_path / "thresher.db")
    assert tries_again(0)
    time.sleep(0.15)
    assert not tries_again(1), "the same wait"
    assert tries_again(0), "another one"


def test_a_store_may_be_closed_before_its_turn_is_over(postgres_url: str) -> None:
    store = open_store(postgres_url)
    with store.turn("s"):
        store.append("s", chained([Event(1, "created", key="k")]))
        store.close()
    assert store.studies() == ["s"]
    store.close()


def test_one_thread_renews_all_pulls_of_a_study() -> None:
    renewed: queue.SimpleQueue[list[int]] = queue.SimpleQueue()
    store: Any = SimpleNamespace(renew=lambda study, pulls, seconds: renewed.put(list(pulls)))
    keeper = Keeper(store, "s", 0.3)
    before = {*threading.enumerate()}  # a thread of another test may be about to end
    for pull in (1, 2, 3):
        keeper.hold([pull])
    assert len({*threading.enumerate()} - before) == 1
    assert renewed.get(timeout=10) == [1, 2, 3]
    keeper.let_go(2)
    assert keeper.held == [1, 3]
    keeper.let_go_of_all()
    assert not keeper.beat()


# -- what is kept ----------------------------------------------------------------------------------------------------


def test_reasons_and_notes_are_kept_up_to_10000_characters() -> None:
    assert plain("x" * 20_000) == "x" * 10_000


def test_what_comes_after_an_event_that_is_not_there_yet_is_all_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other agents write between the look for it and the reading."""
    store = MemoryStore()
    study = a_study(store)
    journal = study._journal
    peek: Callable[..., Any] = journal.peek

    def and_others_write(reader: Any) -> Any:
        found = peek(reader)
        thresher.open_study("s", storage=store).ask_many(5)
        return found

    monkeypatch.setattr(journal, "peek", and_others_write)
    assert [event.seq for page in journal.pages(3) for event in page] == [4, 5, 6]


def test_a_file_that_is_not_there_reads_as_an_empty_store_and_is_not_created(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "thresher.db")
    assert store.describe() == {"! file": f"{tmp_path}/thresher.db is not there"}
    assert (store.read("s"), store.head("s"), store.studies()) == ([], None, [])
    assert (store.expired("s"), store.notes("s")) == ([], {})
    store.delete("s")
    store.flush()
    assert list(tmp_path.iterdir()) == []


def test_a_log_is_left_to_the_file_that_replaced_ours(tmp_path: Path) -> None:
    file = tmp_path / "thresher.db"
    store = SqliteStore(file)
    study = a_study(store)
    study.ask_many(3)
    (tmp_path / "copy").write_bytes(file.read_bytes())
    (tmp_path / "copy").rename(file)
    with pytest.raises(thresher.StoreFailed, match="was deleted or replaced while it was in use"):
        study.ask()
    store.close()
    assert (tmp_path / "thresher.db-wal").stat().st_size > 0
    assert len(thresher.open_study("s", storage=file).events()) >= 4


def test_a_connection_that_must_leave_its_log_alone_does_not_copy_it_when_it_is_closed(tmp_path: Path) -> None:
    for left_alone in (False, True):
        store = SqliteStore(tmp_path / f"{left_alone}.db")
        a_study(store).ask_many(3)
        if left_alone:
            assert store._session is not None
            store._session._leave_alone()
        store.close()
        assert (tmp_path / f"{left_alone}.db-wal").exists() == left_alone


def test_a_forked_child_leaves_the_connection_of_its_parent_alone(tmp_path: Path) -> None:
    """It may be open still, if an interrupt ended the preparations of the fork."""
    store = SqliteStore(tmp_path / "thresher.db")
    a_study(store)
    session = store._session
    assert session is not None
    store._open_file.begin_in_child()
    assert store._session is None
    assert locks._PARENTS.pop() is session
    assert session.connection.in_transaction is False, "it is open"
    session.close()


def test_there_is_nothing_to_flush_at_first(postgres_url: str) -> None:
    store = open_store(postgres_url)
    store.flush()
    assert store.studies() == []
    store.close()
