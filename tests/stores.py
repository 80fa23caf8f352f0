"""Every kind of store, for the promises that all of them make."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from thresher.log.store import Store
from thresher.log.stores import open_store


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a durable store that does not exist yet."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/thresher.db"
    found: str = request.getfixturevalue("postgres_url")
    return found


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "postgres":
        opened = open_store(str(request.getfixturevalue("postgres_url")))
    else:
        opened = open_store("memory" if request.param == "memory" else f"sqlite:///{tmp_path}/thresher.db")
    yield opened
    opened.close()
