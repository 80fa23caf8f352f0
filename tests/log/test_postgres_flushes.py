"""PostgreSQL: what is acknowledged survives a crash of the server, and an interrupted turn leaves no lock behind."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from logs import append
from postgres import Server, at_statement, in_schema, leave_unflushed

import thresher
from thresher.core.events import Event
from thresher.errors import Interrupted
from thresher.log import postgres_schema as schema
from thresher.log.store import Store, open_store

COUNTER = itertools.count(1)
Crash = Callable[[], list[str]]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One that brings nothing to its disk of its own accord: for ten seconds, a crash loses what nobody waited for."""
    server = Server()
    with psycopg.connect(server.url, autocommit=True) as session:
        session.execute("ALTER SYSTEM SET wal_writer_delay = '10s'")
    server.stop_at_once()
    server.start()
    yield server
    server.close()


@pytest.fixture
def url(server: Server) -> str:
    name = f"t{next(COUNTER)}"
    with psycopg.connect(server.url, autocommit=True) as session:
        session.execute(f"CREATE SCHEMA {name}")
    return in_schema(server.url, name)


@pytest.fixture
def crash(server: Server, url: str) -> Crash:
    """Crashes the server, and returns the kinds of the events of study s that are left."""

    def crashed() -> list[str]:
        server.stop_at_once()
        server.start()
        store = open_store(url)
        found: list[str] = [event.kind for event in store.read("s")]
        store.close()
        return found

    return crashed


@pytest.fixture
def store(postgres_url: str) -> Iterator[Store]:
    store = open_store(postgres_url)
    yield store
    store.close()


def a_study(storage: Any) -> thresher.Study:
    return thresher.create_study("s", arms=["a"], at_least=0.5, budget=9, storage=storage)


def test_what_is_acknowledged_survives_a_crash(url: str, crash: Crash) -> None:
    study = a_study(url)
    study.tell(study.ask() or 0, 1)
    assert crash() == ["created", "asked", "told"]
    assert study.ask(), "it connects again"
    assert crash() == ["created", "asked", "told", "asked"]


def test_a_repeated_tell_is_acknowledged_when_the_first_one_is_on_the_disk(
    url: str, crash: Crash, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent that told it first may have died before it waited for the disk."""
    study, dies = a_study(url), open_store(url)
    pull = study.ask() or pytest.fail("no pull")
    leave_unflushed(monkeypatch)
    append(dies, "s", [Event(3, "told", pull.id, 0, 1.0)])
    study.tell(pull, 1)
    assert crash() == ["created", "asked", "told"]


def test_an_earlier_flush_does_not_cover_what_a_later_turn_finds(
    url: str, crash: Crash, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, dies = open_store(url), open_store(url)
    with store.turn("s"):
        append(store, "s", [Event(1, "created")])
    leave_unflushed(monkeypatch)
    (last,) = append(dies, "s", [Event(2, "asked", 1, 0)])
    with store.turn("s"):
        assert len(store.read("s")) == 2
    store.flush("s", last)
    assert crash() == ["created", "asked"]


def lose_the_answer(monkeypatch: pytest.MonkeyPatch, then: Callable[[], object]) -> None:
    """Lose the connection right after the next events were committed."""
    written: list[object] = []

    def write(_: object, go_on: Callable[[], Any]) -> Any:
        written.append(go_on())
        return written[-1]

    def commit(session: "psycopg.Connection[Any]", go_on: Callable[[], Any]) -> Any:
        done = go_on()
        if not written:
            return done
        monkeypatch.undo()
        session.close()
        then()
        raise psycopg.OperationalError("the connection is lost")

    at_statement("INSERT INTO thresher_events", write, monkeypatch)
    at_statement("COMMIT", commit, monkeypatch)


@pytest.mark.parametrize("call", ["create", "tell"])
def test_a_call_whose_answer_was_lost_is_acknowledged_when_it_is_on_the_disk(
    url: str, crash: Crash, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if call == "create":
        lose_the_answer(monkeypatch, lambda: None)
        a_study(url)
        assert crash() == ["created"]
    else:
        study = a_study(url)
        pull = study.ask() or pytest.fail("no pull")
        lose_the_answer(monkeypatch, lambda: None)
        study.tell(pull, 1)
        assert crash() == ["created", "asked", "told"], "once"


def test_a_study_whose_creation_was_lost_with_the_server_is_not_acknowledged(
    postgres_url: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash() -> None:
        with psycopg.connect(postgres_url, autocommit=True) as session:
            session.execute("DELETE FROM thresher_heads; DELETE FROM thresher_events")

    lose_the_answer(monkeypatch, crash)
    with pytest.raises(Interrupted):
        a_study(store)
    assert store.studies() == []


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_a_turn_interrupted_after_it_was_acquired_leaves_no_lock(
    postgres_url: str, store: Store, interrupt: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session owns the lock, and the turn would never end: so the session ends."""

    def interrupted(_: object, go_on: Callable[[], Any]) -> Any:
        go_on()  # the server has given it to us; Ctrl-C comes before we know
        monkeypatch.undo()
        raise interrupt

    at_statement(schema.TURN, interrupted, monkeypatch)
    with pytest.raises(interrupt), store.turn("s"):
        pytest.fail("the turn began")
    with psycopg.connect(postgres_url, autocommit=True) as other:
        for _ in range(100):  # the server notices that a session has ended a moment later
            if other.execute(schema.turn_statement(other, "s", schema.TRY_TURN)).fetchone() == (True,):
                break
            other.execute("SELECT pg_sleep(0.02)")
        else:
            pytest.fail("the lock is still held")
    assert store.studies() == [], "and it continues with another session"
