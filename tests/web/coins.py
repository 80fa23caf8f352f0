"""An application with a study of two coins, and functions that call its interface."""

import pytest
from asgi import BEARER, Reply, request, server

from thresher.log.store import MemoryStore
from thresher.web.request_checks import CheckedApp

COINS = {"name": "coins", "arms": ["fair", "loaded"], "at_least": 0.6, "budget": 40, "confidence": None}


@pytest.fixture(name="store")
def a_store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture(name="app")
def coins_app(store: MemoryStore) -> CheckedApp:
    app = server(store)
    assert post(app, "", COINS).status == 201
    return app


def post(app: CheckedApp, path: str, data: object = None, **headers: str) -> Reply:
    return request(app, "POST", f"/api/studies{path}", headers={**BEARER, **headers}, json_body=data)


def get(app: CheckedApp, path: str) -> Reply:
    return request(app, "GET", f"/api/studies{path}", headers=BEARER)
