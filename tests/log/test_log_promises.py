"""Small promises of the log: what is named, how a store is opened, and what is kept."""

import contextlib
import importlib.abc
import queue
import sqlite3
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

import thresher
from thresher.core.events import Event
from thresher.errors import Conflict, InvalidInput, StoreFailed
from thresher.log import postgres_schema
from thresher.log.journal import storable_journal_reason
from thresher.log.locks import LeaseKeeper
from thresher.log.reader import read_log_pages
from thresher.log.sqlite import SqliteStore
from thresher.log.store import START, MemoryStore, chained_in_store, open_store, store_chain_digest


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
    reading = read_log_pages(store, "s", size=2)
    assert len(next(reading)) == 2
    store.delete("s")
    if comes_back:
        a_study(store).ask_many(9)
    with pytest.raises(thresher.UnknownStudy, match="was deleted while it was read"):
        next(reading)


# -- opening a store -------------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("left", ["heads", "events"])
def test_a_name_of_which_anything_is_left_is_taken(left: str, tmp_path: Path) -> None:
    store = open_store(tmp_path / "s.db")
    for name in ("a", "b"):
        thresher.create_study(name, arms=["x", "y"], at_least=0.5, budget=40, storage=store)
    store.close()
    with contextlib.closing(sqlite3.connect(tmp_path / "s.db")) as connection, connection:
        if left == "events":
            connection.execute("DELETE FROM heads WHERE study = 'b'")
        else:
            connection.execute("UPDATE heads SET study = 'c' WHERE study = 'b'")
    store = open_store(tmp_path / "s.db")
    name = "b" if left == "events" else "c"
    with pytest.raises(Conflict, match="another agent wrote it first"):
        store.append(name, chained_in_store([Event(1, "created", key="k")]), before=START)
    store.close()


# -- waiting ---------------------------------------------------------------------------------------------------------


def test_a_store_may_be_closed_before_its_turn_is_over(postgres_url: str) -> None:
    store = open_store(postgres_url)
    with store.turn("s"):
        store.append("s", chained_in_store([Event(1, "created", key="k")]), before=START)
        store.close()
    assert store.studies() == ["s"]
    store.close()


def test_one_thread_renews_all_pulls_of_a_study() -> None:
    renewed: queue.SimpleQueue[list[int]] = queue.SimpleQueue()
    store: Any = SimpleNamespace(renew=lambda study, pulls, seconds: renewed.put(list(pulls)))
    keeper = LeaseKeeper(store, "s", 0.3)
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


@pytest.mark.parametrize("more", [{}, {"reason": "r"}])
@pytest.mark.parametrize("field", ["key", "agent"])
def test_a_text_with_a_nul_is_no_text_of_an_event(field: str, more: dict[str, Any]) -> None:
    fields = {"key": "k", "agent": "a", **more}
    assert len(store_chain_digest(START, Event(2, "asked", 1, 0, time=1.0, **fields))) == 16
    with pytest.raises(ValueError, match="a text holds a NUL"):
        store_chain_digest(START, Event(2, "asked", 1, 0, time=1.0, **fields | {field: "a\0b"}))


def test_an_event_without_a_digest_is_not_kept() -> None:
    store = MemoryStore()
    with pytest.raises(thresher.InvalidInput, match="has no digest"):
        store.append("s", [Event(1, "created")], before=START)
    assert store.studies() == []


def test_reasons_and_notes_are_kept_up_to_10000_characters() -> None:
    assert storable_journal_reason("x" * 20_000) == "x" * 10_000


@pytest.mark.parametrize("calls", [1, 2])
def test_what_comes_after_an_event_that_is_not_there_yet_is_all_after_it(calls: int) -> None:
    """Other agents write between the look for it and the reading."""

    class Growing(MemoryStore):
        """Others write to it after so many calls that found nothing new."""

        calls = 0

        def read(self, study: str, after: int = 0, limit: int | None = None) -> Any:
            return self.and_then(super().read(study, after, limit))

        def head(self, study: str) -> Any:
            return self.and_then(super().head(study))

        def and_then(self, found: Any) -> Any:
            self.calls -= 1
            if self.calls == 0:
                thresher.open_study("s", storage=self).ask_many(5)
            return found

    store = Growing()
    study = a_study(store)
    store.calls = calls
    assert [event.seq for event in study.events(3)] == [4, 5, 6]


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


def test_a_file_that_is_not_there_reads_as_an_empty_store_and_is_not_created(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "thresher.db")
    assert store.describe() == {"! file": f"{tmp_path}/thresher.db is not there"}
    assert (store.read("s"), store.head("s"), store.studies()) == ([], None, [])
    assert (store.expired("s"), store.notes("s")) == ([], {})
    store.delete("s")
    store.flush("s", Event(1, "created"))
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


def test_a_study_that_never_was_is_unknown_and_not_deleted() -> None:
    with pytest.raises(thresher.UnknownStudy, match="is not in this store; create it") as caught:
        thresher.open_study("s", storage=MemoryStore())
    assert type(caught.value) is thresher.UnknownStudy


def test_a_verdict_says_how_many_rewards_are_from_other_agents() -> None:
    store = MemoryStore()
    study, other = a_study(store), thresher.open_study("s", storage=store)
    pulls = study.ask_many(4)
    study.tell(pulls[0], 0.5)
    study.tell(pulls[1], 0.5)
    other.tell(pulls[2], 0.5)
    study.drop(pulls[3], reason="it broke", cause="lost")
    assert (study.verdict().others, other.verdict().others) == (1, 2)
