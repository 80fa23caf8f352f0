"""Clusters for the tests, each started once per session."""

from collections.abc import Iterator
from typing import Any

import engines
import pytest


@pytest.fixture(scope="session")
def dask_client() -> Iterator[Any]:
    with engines.dask_cluster() as client:
        yield client


@pytest.fixture(scope="session")
def ray_here() -> Iterator[None]:
    with engines.ray_cluster():
        yield


@pytest.fixture
def place(engine: str, request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """The arguments with which `run` uses that engine."""
    if engine == "dask":
        yield {"executor": request.getfixturevalue("dask_client")}
    elif engine == "ray":
        request.getfixturevalue("ray_here")
        yield {"executor": "ray", "workers": 2}
    elif engine in ("thread-pool", "process-pool", "loky"):
        pool = engines.pool(engine)
        yield {"executor": pool}
        pool.shutdown(wait=False)
    else:
        yield {"workers": engines.WORKERS, "executor": None if engine == "asyncio" else engine}
