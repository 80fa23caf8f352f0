"""The parts of the engine for Dask, without a cluster."""

import asyncio
from collections import defaultdict
from concurrent.futures import CancelledError, Future
from types import SimpleNamespace
from typing import Any

import pytest

from thresher.errors import CannotGoOn
from thresher.run.engines import WorkerLost
from thresher.run.engines import dask_parts as parts
from thresher.run.engines.dask import Dask
from thresher.run.engines.outcome import opened, outcome
from thresher.study import Pull

PULL = Pull(1, "a", 1, {}, 7)


def a_dask(**given: Any) -> Any:
    """An engine that is connected to nothing."""
    engine = Dask.__new__(Dask)
    engine._keys, engine._pulls, engine._given_up, engine._arrived = {}, {"key": PULL}, set(), {}
    engine._failed, engine._own, engine._most, engine._needed, engine._name = None, None, None, {}, "thresher-1"
    engine._hung, engine._looking = defaultdict(set), Future()
    for name, value in given.items():
        setattr(engine, name, value)
    return engine


def test_a_worker_sends_its_outcome_with_the_message_that_the_task_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    task = SimpleNamespace(metadata={})

    async def mark(**given: Any) -> bool:
        return given == {"what": "begin", "key": "key", "worker": "tcp://here"}

    def evaluate(pull: Pull) -> float:
        assert parts.still_running(["key", "other"]) == ["key"]
        return 0.25

    async def called() -> bytes:
        worker = SimpleNamespace(
            address="tcp://here",
            scheduler=SimpleNamespace(**{"thresher-1": mark}),
            loop=SimpleNamespace(asyncio_loop=asyncio.get_running_loop()),
            plugins={"thresher-1": SimpleNamespace(evaluate=evaluate)},
            state=SimpleNamespace(tasks={"key": task}),
        )
        monkeypatch.setattr(parts, "get_worker", lambda: worker)
        return await asyncio.to_thread(parts.evaluate_once, "thresher-1", "key", PULL)

    data = asyncio.run(called())
    assert opened(data) == 0.25
    assert task.metadata == {"thresher-1": data}
    assert parts.still_running(["key"]) == []


def test_a_pull_that_is_given_up_no_longer_waits_on_the_scheduler() -> None:
    future: Future[object] = Future()
    engine = a_dask(_keys={future: "key"})
    engine._give_up(future)
    assert future.cancelled()
    assert (engine._keys, engine._pulls, engine._given_up) == ({}, {}, {"key"})


@pytest.mark.parametrize(
    ("raised", "status", "expected", "words"),
    [
        (CancelledError(), "running", WorkerLost, "its task was cancelled on the scheduler"),
        (
            CancelledError(),
            "closed",
            CannotGoOn,
            "the connection to the Dask scheduler was lost; the study is as it was",
        ),
        (OSError("reset"), "running", WorkerLost, "its worker lost its connection: "),
        (OSError("reset"), "closed", CannotGoOn, "tcp://scheduler.*the connection to the Dask scheduler was lost"),
    ],
)
def test_what_a_lost_task_means(raised: Exception, status: str, expected: type[Exception], words: str) -> None:
    released = []

    async def exception() -> None:
        raise raised

    task = SimpleNamespace(exception=exception, release=lambda: released.append(True))
    scheduler = SimpleNamespace(address="tcp://scheduler")
    engine = a_dask(client=SimpleNamespace(submit=lambda *_, **__: task, status=status, scheduler=scheduler))
    with pytest.raises(expected, match=words):
        asyncio.run(engine._evaluate_there("key", PULL))
    assert released == [True]


def test_an_outcome_that_arrived_is_the_pulls() -> None:
    async def exception() -> None:
        engine._arrive((0.0, ["key", data]))

    data = outcome(lambda _: 0.75, PULL)
    task = SimpleNamespace(exception=exception, release=lambda: None)
    engine = a_dask(client=SimpleNamespace(submit=lambda *_, **__: task))
    future: Future[object] = Future()
    engine._keys[future] = "key"
    future.set_result(asyncio.run(engine._evaluate_there("key", PULL)))
    assert engine.result(future) == 0.75
    assert (engine._keys, engine._pulls, engine._arrived) == ({}, {}, {})


@pytest.mark.parametrize(
    ("workers", "own", "most", "room"), [(0, None, None, 1), (0, object(), None, 0), (4, None, 4, 4), (4, None, 8, 5)]
)
def test_as_many_pulls_are_pending_as_keep_the_cluster_busy(workers: int, own: Any, most: Any, room: int) -> None:
    assert a_dask(workers=workers, _own=own, _most=most).room == room


@pytest.mark.parametrize(
    ("threads", "slots", "nanny", "others_work", "closing", "leaves"),
    [
        (1, 1, True, True, False, True),  # all of its threads hang
        (2, 1, True, False, False, True),  # what the pulls need is taken, and nobody else needs the worker
        (2, 1, True, True, False, False),
        (2, 2, True, False, False, False),  # another thread is free
        (2, 2, True, False, True, True),
        (2, 2, True, True, True, False),
        (1, 1, False, False, True, False),  # nobody would start it again
    ],
)
def test_a_worker_with_hung_pulls_is_ended_only_if_that_harms_nobody(
    threads: int, slots: int, nanny: bool, others_work: bool, closing: bool, leaves: bool
) -> None:
    left = []

    async def run(function: Any, *args: Any, workers: list[str]) -> dict[str, list[str]]:
        if function is parts.leave:
            left.append(workers)
        return {"w": ["key"]}

    engine = a_dask(_status={"workers": {"w": (threads, slots, nanny, others_work)}}, client=SimpleNamespace(run=run))
    engine._hung["w"] = {"key", "it came back"}
    assert asyncio.run(engine._free_hung_workers(closing=closing)) == ({"w"} if leaves else set())
    assert left == ([["w"]] if leaves else [])
    assert engine._hung == ({} if leaves else {"w": {"key"}})
