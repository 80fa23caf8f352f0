"""How the engine for Dask leaves a cluster in which pulls hang, without a cluster."""

import asyncio
import contextlib
from types import SimpleNamespace
from typing import Any

from thresher.run.engines import dask as remote
from thresher.run.engines.dask import Dask


class Nanny:
    """What keeps a worker of our own cluster alive."""

    def __init__(self, address: str) -> None:
        self.worker_address, self.restarts = address, True

    def close_gracefully(self) -> None:
        self.restarts = False


def test_hung_workers_of_our_own_cluster_end_at_once_and_are_not_started_again() -> None:
    done: list[str] = []
    nannies = {0: Nanny("hung"), 1: Nanny("free")}

    async def run(function: Any, *, workers: list[str]) -> None:
        done.append(f"{function.__name__} {workers} {nannies[0].restarts}")

    engine = Dask.__new__(Dask)
    engine.client = SimpleNamespace(run=run, status="running", sync=lambda call: asyncio.run(call()))
    engine._own, engine._hung = SimpleNamespace(workers=nannies), {"hung": {"key"}, "gone": {"other"}}  # type: ignore[assignment]
    engine._closing = contextlib.ExitStack()
    engine._closing.callback(done.append, "the cluster closes")
    engine.close(wait=False)
    assert done == [f"{remote.leave.__name__} ['hung'] False", "the cluster closes"]
    assert nannies[1].restarts
