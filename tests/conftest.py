"""Fixtures that all tests share, and which tests share a process."""

import signal
from collections.abc import Iterator
from importlib.util import find_spec

import engines
import pytest
from hypothesis import settings

# tests of an extra that is not installed are skipped
collect_ignore = [
    folder for folder, library in {"lab": "numba", "paper": "numba", "web": "fastapi"}.items() if not find_spec(library)
]
pytest_plugins = ["clusters", "postgres", "stores"]
settings.register_profile("thresher", deadline=None)  # a loaded machine is slow, not wrong
settings.load_profile("thresher")
LONGEST_FIRST = ("run", "web", "cli", "lab", "log", "paper")  # folders

# Under nohup or in the background, the programs that tests start would ignore these.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Under `--dist loadgroup`, the tests of a file share a process, and so do those of a cluster: it starts once.

    Long files come first, so that at the end no process is left alone with one.
    """
    items.sort(key=lambda item: [folder not in item.path.parts for folder in LONGEST_FIRST])
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_cluster(item) or item.path.stem))


def _cluster(item: pytest.Item) -> str | None:
    fixtures, given = getattr(item, "fixturenames", ()), getattr(getattr(item, "callspec", None), "params", {})
    for engine, fixture in {"dask": "dask_client", "ray": "ray_here"}.items():
        if fixture in fixtures or ("place" in fixtures and given.get("engine") == engine):
            return engine
    return None


@pytest.fixture(scope="session", autouse=True)
def _release_hung_threads() -> Iterator[None]:
    yield
    engines.RELEASE.set()
