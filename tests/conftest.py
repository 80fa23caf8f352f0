"""What all tests share."""

from collections.abc import Iterator

import engines
import pytest


@pytest.fixture(scope="session", autouse=True)
def _release_hung_threads() -> Iterator[None]:
    yield
    engines.RELEASE.set()
