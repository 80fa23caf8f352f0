"""Every kind of store, for the promises that all of them make."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from thresher.log.store import MemoryStore, Store, open_store


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


class CountingStore(MemoryStore):
    """Counts what is read."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[str] = []

    def read(self, *args: Any, **options: Any) -> Any:
        self.reads.append("read")
        return super().read(*args, **options)

    def head(self, study: str) -> Any:
        self.reads.append("head")
        return super().head(study)

    def expired(self, study: str) -> list[int]:
        self.reads.append("expired")
        return super().expired(study)
