"""Fixtures that all tests share."""

from collections.abc import Iterator
from importlib.util import find_spec

import engines
import pytest

# tests of an extra that is not installed are skipped
collect_ignore = [
    folder for folder, library in {"lab": "numba", "paper": "numba", "web": "fastapi"}.items() if not find_spec(library)
]
pytest_plugins = ["clusters", "postgres", "stores"]


@pytest.fixture(scope="session", autouse=True)
def _release_hung_threads() -> Iterator[None]:
    yield
    engines.RELEASE.set()
