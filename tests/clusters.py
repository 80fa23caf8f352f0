"""Which tests share a process, and what they share there: clusters and a browser.

These end after the last test in a row that uses them.
"""

import functools
import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import engines
import pytest

from thresher.run import loop

LONGEST_FIRST = ("lab", "paper", "run", "web", "cli", "log")  # folders
TOGETHER = {"test_inspect_resumed": "test_inspect", "test_digits": "test_classifiers"}  # files that import slowly
COMPILED = ("lab", "paper")  # folders of tests that compile loops
STARTED: dict[str, tuple[ExitStack, Any]] = {}


def started(engine: str) -> Any:
    """What the context manager of the cluster or browser gives; it is started now if it is not running."""
    if engine not in STARTED:
        stack = ExitStack()
        STARTED[engine] = stack, stack.enter_context(_new(engine))
    return STARTED[engine][1]


def _new(engine: str) -> Any:
    if engine == "site":
        from browser import shared_site  # beside the tests that use it

        return shared_site()
    return engines.ray_cluster() if engine == "ray" else engines.dask_cluster(resources=engines.RESOURCES)


def end(engine: str) -> None:
    """End it, if it is running.

    Even idle, a cluster's processes take a tenth of a core. While Playwright drives a browser, no test can run a loop.
    """
    if engine in STARTED:
        STARTED.pop(engine)[0].close()


@pytest.fixture
def dask_client() -> Any:
    return started("dask")


@pytest.fixture
def ray_here() -> None:
    started("ray")


@pytest.fixture(scope="module")
def site() -> Any:
    """A server of the page and a browser that may enter: `browser.Site`. In a file that uses it, all tests do."""
    return started("site")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> engines.Clock:
    """The time of the test's runs."""
    clock = engines.Clock()
    monkeypatch.setattr(loop, "time", clock)
    return clock


@pytest.fixture
def no_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Failures in a row are failures of their arms. An outage, of which many arms that fail may make one, waits."""
    monkeypatch.setattr(loop, "WINDOW", 10**6)


@pytest.fixture
def where(engine: str, request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """The arguments with which `run` uses that engine. An actor of Ray starts slowly, and few tests need two."""
    if engine == "dask":
        yield {"executor": request.getfixturevalue("dask_client")}
    elif engine == "ray":
        request.getfixturevalue("ray_here")
        yield {"executor": "ray", "workers": 2 if request.node.get_closest_marker("hangs") else 1}
    elif engine == "thread-pool":
        with ThreadPoolExecutor(engines.WORKERS) as pool:
            yield {"executor": pool, "workers": engines.WORKERS}
            engines.RELEASE.set()
        engines.RELEASE.clear()
    elif engine in ("process-pool", "loky"):
        others = set(multiprocessing.active_children())
        yield {"executor": functools.partial(engines.pool, engine), "workers": engines.POOL}
        if engine == "process-pool":  # loky kills its own
            for process in set(multiprocessing.active_children()) - others:
                process.kill()
    elif engine == "arun":
        yield {"workers": engines.WORKERS}
    else:
        yield {"workers": engines.WORKERS, "executor": None if engine == "asyncio" else engine}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Under `--dist loadgroup`, the tests of a file share a process, and so do those of Ray, of Dask and of the
    browser, files that import the same large library, and those that compile.

    So each of these clusters starts once, and the browser. Tests that leave hung workers in a cluster are dealt out one
    by one: on a busy machine, a run was seen to wait forever in a cluster where a hung worker of an earlier test was
    being replaced.
    Long files come first, so that at the end no process is left alone with one.
    """
    items.sort(key=lambda item: [folder not in item.path.parts for folder in LONGEST_FIRST])
    for item in items:
        if not _hangs(item) and getattr(item.config.option, "loadgroup", False):
            _name_group(item, _group(item))


def _group(item: pytest.Item) -> str:
    """The tests that share its process. Each process that compiles a loop compiles what all loops call first."""
    is_compiled = item.path.parent.name in COMPILED or item.path.stem == "test_adversaries"
    return _cluster(item) or ("compiled" if is_compiled else TOGETHER.get(item.path.stem, item.path.stem))


def _name_group(item: Any, group: str) -> None:
    """xdist reads the group from the end of a test's id. Its own marker sets what pytest 9.2 no longer reads."""
    if hasattr(item, "_id"):
        item._id = type(item._id).parse(f"{item.nodeid}@{group}")
    else:
        item.add_marker(pytest.mark.xdist_group(group))


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """End a cluster that the next test does not use, or must not."""
    engine = _cluster(item)
    if engine and (nextitem is None or _cluster(nextitem) != engine or _hangs(item)):
        end(engine)


def _hangs(item: pytest.Item) -> bool:
    """Whether the test leaves hung workers in a cluster of Dask; Ray's are ended with the run."""
    return _cluster(item) == "dask" and item.get_closest_marker("hangs") is not None


def _cluster(item: pytest.Item) -> str | None:
    fixtures, given = getattr(item, "fixturenames", ()), getattr(getattr(item, "callspec", None), "params", {})
    for engine, fixture in {"dask": "dask_client", "ray": "ray_here", "site": "site"}.items():
        if fixture in fixtures or ("where" in fixtures and given.get("engine") == engine):
            return engine
    return None
