"""What all tests share."""

from collections.abc import Iterator
from importlib.util import find_spec

import engines
import pytest

collect_ignore = [] if find_spec("numba") else ["lab"]  # without the extra there is no laboratory to test
pytest_plugins = ["postgres", "stores"]


@pytest.fixture(scope="session", autouse=True)
def _release_hung_threads() -> Iterator[None]:
    yield
    engines.RELEASE.set()
