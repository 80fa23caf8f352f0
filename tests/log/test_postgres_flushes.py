"""PostgreSQL: what is acknowledged was flushed by its own call, and an interrupted turn leaves no lock behind."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from logs import append

import thresher
from thresher.core.events import Event
from thresher.errors import Interrupted
from thresher.log import postgres_schema as schema
from thresher.log.postgres import PostgresStore
from thresher.log.store import open_store


@pytest.fixture
def store(postgres_url: str) -> Iterator[PostgresStore]:
    store = open_store(postgres_url)
    assert isinstance(store, PostgresStore)
    yield store
    store.close()


class Flushes:
    """Counts the commits of a store that wait for the disk."""

    def __init__(self, store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        store.studies()  # so that it is connected
        session: Any = store._connection
        execute = session.execute

        def counted(query: Any, *args: Any, **kwargs: Any) -> Any:
            self.count += query in (schema.FLUSH, schema.END_TURN_AND_FLUSH)
            return execute(query, *args, **kwargs)

        monkeypatch.setattr(session, "execute", counted)


def test_an_append_in_its_turn_is_flushed_once(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    flushes = Flushes(store, monkeypatch)
    with store.turn("s"):
        append(store, "s", [Event(1, "created")])
    store.flush()
    assert flushes.count == 1


def test_an_earlier_flush_does_not_cover_this_call(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn that writes nothing may acknowledge what it found: another session may not have flushed that yet."""
    with store.turn("s"):
        append(store, "s", [Event(1, "created")])  # flushed with the end of its turn; its own flush never comes
    assert store._is_flushed
    flushes = Flushes(store, monkeypatch)
    with store.turn("s"):
        assert store.read("s")
    store.flush()
    assert flushes.count == 1


def test_a_repeated_tell_waits_for_the_disk(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    study = thresher.create_study("s", arms=["a"], at_least=0.5, budget=9, storage=postgres_url)
    pull = study.ask() or pytest.fail("no pull")
    study.tell(pull, 1)
    assert isinstance(study.store, PostgresStore)
    flushes = Flushes(study.store, monkeypatch)
    study.tell(pull, 1)
    assert flushes.count == 1
    study.store.close()


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_a_turn_interrupted_after_it_was_acquired_leaves_no_lock(
    postgres_url: str, store: PostgresStore, monkeypatch: pytest.MonkeyPatch, interrupt: type[BaseException]
) -> None:
    """The session owns the lock, and the turn would never end: so the session ends."""
    store.studies()
    session: Any = store._connection
    execute = session.execute

    def interrupted(query: Any, *args: Any, **kwargs: Any) -> Any:
        found = execute(query, *args, **kwargs)
        if query == schema.TURN:  # the server has given it to us; Ctrl-C comes before we know
            raise interrupt
        return found

    monkeypatch.setattr(session, "execute", interrupted)
    with pytest.raises(interrupt), store.turn("s"):
        pytest.fail("the turn began")
    assert session.closed
    with psycopg.connect(postgres_url, autocommit=True) as other:
        for _ in range(100):  # the server notices that a session has ended a moment later
            if other.execute(schema.TRY_TURN, ("s",)).fetchone() == (True,):
                break
            other.execute("SELECT pg_sleep(0.02)")
        else:
            pytest.fail("the lock is still held")
    assert store.studies() == [], "and it continues with another session"


def test_a_study_is_flushed_again_if_the_answer_to_its_creation_is_lost(
    postgres_url: str, store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event is there after reconnecting, but the session that wrote it may never have waited for the disk."""
    flush, waited = PostgresStore.flush, []

    def counted(self: PostgresStore) -> None:
        waited.append(not self._is_flushed)
        flush(self)

    def lose(turn: object, connection: "psycopg.Connection[Any]") -> None:
        monkeypatch.undo()
        monkeypatch.setattr(PostgresStore, "flush", counted)
        connection.close()
        connection.execute("SELECT 1")

    monkeypatch.setattr(store, "_end", lose)
    study = thresher.create_study("s", arms=["a"], at_least=0.5, budget=9, storage=store)
    assert waited == [True, True], "the first finds that the session is gone, the second waits for the disk"
    assert [event.kind for event in store.read("s")] == ["created"]
    monkeypatch.undo()
    assert study.ask()


def test_a_study_whose_creation_was_lost_with_the_server_is_not_acknowledged(
    postgres_url: str, store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose(turn: object, connection: "psycopg.Connection[Any]") -> None:
        monkeypatch.undo()
        connection.close()
        with psycopg.connect(postgres_url, autocommit=True) as crash:  # which had not reached the disk
            crash.execute("DELETE FROM thresher_heads; DELETE FROM thresher_events")
        connection.execute("SELECT 1")

    monkeypatch.setattr(store, "_end", lose)
    with pytest.raises(Interrupted):
        thresher.create_study("s", arms=["a"], at_least=0.5, budget=9, storage=store)
    assert store.studies() == []
