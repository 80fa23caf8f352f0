"""The server's studies: damaged ones, forgotten ones, who reads and who writes, and under which name."""

import asyncio
import os
import time
from typing import Any, cast

import pytest
from asgi import BEARER, request, server
from coins import COINS, get, post
from logs import append

import thresher
from thresher.core.events import Event
from thresher.errors import DamagedStudy
from thresher.log.store import MemoryStore
from thresher.web.request_checks import CheckedApp
from thresher.web.served_studies import ServedStudies


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def app(store: MemoryStore) -> CheckedApp:
    app = server(store)
    assert post(app, "", COINS).status == 201
    return app


def test_a_damaged_log_is_reported_and_affects_no_other_study(app: CheckedApp, store: MemoryStore) -> None:
    post(app, "", {**COINS, "name": "broken"})
    append(store, "broken", [Event(2, "told", pull=7, arm=0, reward=1.0, key="x")])
    for path in ("/broken", "/broken/arms", "/broken/verdict", "/broken/arms/fair", "/broken/stream"):
        reply = get(app, path)
        assert (reply.status, reply.data["value"]) == (500, "broken"), path
        assert "is damaged, event 2" in reply.data["rule"]
        assert "thresher verify" in reply.data["remedy"]
    page = request(app, "GET", "/study/broken/arm/fair", headers={**BEARER, "accept": "text/html"})
    assert (page.status, b"is damaged, event 2" in page.body) == (500, True)
    assert get(app, "/coins").status == 200


def test_a_damaged_study_is_never_reported_as_temporary(app: CheckedApp, store: MemoryStore) -> None:
    post(app, "", {**COINS, "name": "broken"})
    append(store, "broken", [Event(2, "told", pull=7, arm=0, reward=1.0, key="x")])
    for path, data in {"/ask": {}, "/tell": {"pull": 1, "reward": 1}, "/extend": {"budget": 50}}.items():
        reply = post(app, f"/broken{path}", data)
        assert (reply.status, reply.data["value"], "event 2" in reply.data["rule"]) == (500, "broken", True), path
        assert "thresher verify" in reply.data["remedy"]
        assert "retry-after" not in reply.headers


def test_a_damaged_file_is_not_named_to_clients(
    app: CheckedApp, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*_: object) -> list[Event]:
        raise DamagedStudy("study", "coins", "cannot be read: /secret/place.db is damaged")

    for reader in ("read", "head"):
        monkeypatch.setattr(store, reader, read)
    for reply in (get(app, "/coins"), post(app, "/coins/ask")):
        assert (reply.status, b"secret" in reply.body) == (500, False)


@pytest.mark.parametrize("name", ["trainer 7", "été 漢字", "x" * 100])
def test_the_log_says_which_agent_asked_and_told(app: CheckedApp, name: str) -> None:
    headers = {"thresher-agent": name.encode().decode("latin-1")}
    post(app, "/coins/ask", {"n": 3}, **headers)
    post(app, "/coins/tell", {"pull": 1, "reward": 1}, **headers)
    post(app, "/coins/drop", {"pulls": [2]}, **headers)
    post(app, "/coins/extend", {"budget": 50}, **headers)
    events = get(app, "/coins/events").data["events"]
    assert {event["agent"] for event in events[1:]} == {f"http:{name}"}
    post(app, "/coins/ask")
    last = get(app, "/coins/events").data["events"][-1]
    assert last["agent"] == f"{os.uname().nodename}:{os.getpid()}"  # without a name: the server's own


@pytest.mark.parametrize("name", ["", "x" * 101, "a\tb", "\x7f", "\xff", "\u200b".encode().decode("latin-1")])
def test_names_of_agents_are_checked(app: CheckedApp, name: str) -> None:
    reply = post(app, "/coins/ask", {}, **{"thresher-agent": name})
    assert (reply.status, reply.data["error"]) == (422, "Thresher-Agent")
    assert get(app, "/coins").data["issued"] == 0


def test_readers_neither_write_nor_touch_the_store_of_the_writers(store: MemoryStore) -> None:
    class Untouched:
        def __getattr__(self, name: str) -> object:
            raise AssertionError(name)

    class ReadOnly(MemoryStore):
        def append(self, *_: Any, **__: Any) -> Any:
            raise AssertionError

        turn = renew = flush = append

    thresher.create_study("coins", arms=["a", "b"], at_least=0.5, storage=store)
    reader = ReadOnly()
    reader.logs = store.logs
    app = server(cast(MemoryStore, Untouched()), reader=reader)
    for path in ("", "/coins", "/coins/verdict", "/coins/events", "/coins/arms", "/coins/arms/a"):
        assert get(app, path).status == 200, path
    for path in ("/", "/study/coins", "/study/coins/arm/a", "/docs", "/healthz"):
        assert request(app, "GET", path, headers=BEARER).status == 200, path


def test_studies_that_were_deleted_or_not_requested_for_long_are_forgotten(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = ServedStudies(store)
    names = ["deleted", "old", "watched", "new"]
    for name in names:
        thresher.create_study(name, arms=["a"], at_least=0.5, storage=store)
    now = time.monotonic()

    async def day() -> None:
        viewer = served.event_stream("watched").view(1)
        await anext(viewer)
        for name in names[:3]:
            served.live_study(name)
            served.writable_study(name)
        store.delete("deleted")
        await served.tidy()
        assert [name for name in names if served.known_study(name)] == ["old", "watched"]
        monkeypatch.setattr("thresher.web.served_studies.time.monotonic", lambda: now + 3700)
        served.live_study("new")
        await served.tidy()
        assert [name for name in names if served.known_study(name)] == ["watched", "new"]
        await viewer.aclose()

    asyncio.run(day())
    assert served.live_study("old").follower.seq == 1  # and read again when somebody asks
