"""Requests straight into the application, with exactly the bytes that a test chooses: no client normalises them."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest

import thresher
from thresher.log.store import MemoryStore, Store
from thresher.web.request_checks import CheckedApp, RequestAccess
from thresher.web.served_studies import ServedStudies
from thresher.web.server import create_app

TOKEN, WRITE_TOKEN = "a-token-for-tests", "a-token-that-writes"
HOST = "127.0.0.1:8765"
HOSTS = {HOST, "localhost:8765"}
BEARER = {"authorization": f"Bearer {WRITE_TOKEN}"}
READER = {"authorization": f"Bearer {TOKEN}"}


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def data(self) -> Any:
        return json.loads(self.body)


def server(store: Store | None = None, *, write: bool = True, reader: Store | None = None) -> CheckedApp:
    served = ServedStudies(store or MemoryStore(), reader)
    return create_app(served, RequestAccess(TOKEN, HOSTS, WRITE_TOKEN if write else None))


@pytest.fixture(name="app", scope="module")
def an_app() -> CheckedApp:
    """The application with a study of two arms."""
    store = MemoryStore()
    thresher.create_study("coins", arms=["a", "b"], at_least=0.5, budget=20, storage=store)
    return server(store)


def request(
    app: CheckedApp,
    method: str,
    target: str,
    *,
    headers: dict[str, str] | None = None,
    host: str | None = HOST,
    body: bytes | list[bytes] = b"",
    json_body: object = None,
    client: str = "127.0.0.1",
    more: Sequence[tuple[str, str]] = (),
) -> Reply:
    """One request; ``target`` is sent as it is. ``more`` are headers that may repeat others."""
    fields = dict(headers or {})
    if json_body is not None:
        body = json.dumps(json_body).encode()
        fields.setdefault("content-type", "application/json")
    parts = body if isinstance(body, list) else [body]
    if isinstance(body, list):
        fields.setdefault("transfer-encoding", "chunked")
    elif body:
        fields.setdefault("content-length", str(len(body)))
    pairs = [(name.lower().encode(), value.encode("latin-1")) for name, value in (*fields.items(), *more)]
    if host is not None:
        pairs.append((b"host", host.encode("latin-1")))
    path, _, query = target.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": pairs,
        "client": (client, 5000),
        "server": ("127.0.0.1", 8765),
    }
    sent: list[Any] = []
    waiting = [
        {"type": "http.request", "body": part, "more_body": at < len(parts) - 1} for at, part in enumerate(parts)
    ]

    async def receive() -> Any:
        if waiting:
            return waiting.pop(0)
        await asyncio.sleep(3600)  # the client stays
        raise AssertionError

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(asyncio.wait_for(app(scope, receive, send), 60))  # a reply that does not end is a failure
    start = sent[0]
    shown = {name.decode().lower(): value.decode("latin-1") for name, value in start["headers"]}
    return Reply(start["status"], shown, b"".join(message.get("body", b"") for message in sent[1:]))
