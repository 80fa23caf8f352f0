"""Units of the engine for Dask, without a cluster."""

import asyncio
import contextlib
from collections import defaultdict
from concurrent.futures import CancelledError, Future
from types import SimpleNamespace
from typing import Any

import pytest
from distributed import KilledWorker

from thresher.errors import CannotGoOn
from thresher.run.engines import dask as remote
from thresher.run.engines.dask import Dask
from thresher.run.engines.engine import opened, outcome
from thresher.run.lost_workers import WorkerLost
from thresher.study import Pull

PULL = Pull(1, "a", 1, {}, 7)


def a_dask(**given: Any) -> Any:
    """An engine that is connected to nothing."""
    engine = Dask.__new__(Dask)
    engine._keys, engine._pulls, engine._given_up, engine._arrived = {}, {"key": PULL}, set(), {}
    engine._failed, engine._own, engine._most, engine._needed, engine._name = None, None, None, {}, "thresher-1"
    engine._hung, engine._looking, engine._room = defaultdict(set), Future(), contextlib.nullcontext()
    for name, value in given.items():
        setattr(engine, name, value)
    return engine


def test_a_worker_sends_its_outcome_with_the_message_that_the_task_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    task = SimpleNamespace(metadata={})

    async def mark(**given: Any) -> bool:
        return given == {"what": "begin", "key": "key", "worker": "tcp://here"}

    def evaluate(pull: Pull) -> float:
        assert remote.still_running(["key", "other"]) == ["key"]
        return 0.25

    async def called() -> bytes:
        worker = SimpleNamespace(
            address="tcp://here",
            scheduler=SimpleNamespace(**{"thresher-1": mark}),
            loop=SimpleNamespace(asyncio_loop=asyncio.get_running_loop()),
            plugins={"thresher-1": SimpleNamespace(evaluate=evaluate)},
            state=SimpleNamespace(tasks={"key": task}),
        )
        monkeypatch.setattr(remote, "get_worker", lambda: worker)
        return await asyncio.to_thread(remote.evaluate_once, "thresher-1", "key", PULL)

    data = asyncio.run(called())
    assert opened(data) == 0.25
    assert task.metadata == {"thresher-1": data}
    assert remote.still_running(["key"]) == []


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
        asyncio.run(engine._evaluate("key", PULL))
    assert released == [True]


def test_an_outcome_that_arrived_is_the_pulls() -> None:
    async def exception() -> None:
        engine._arrive((0.0, ["key", data]))

    data = outcome(lambda _: 0.75, PULL)
    task = SimpleNamespace(exception=exception, release=lambda: None)
    engine = a_dask(client=SimpleNamespace(submit=lambda *_, **__: task))
    future: Future[object] = Future()
    engine._keys[future] = "key"
    future.set_result(asyncio.run(engine._evaluate("key", PULL)))
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
        if function is remote.leave:
            left.append(workers)
        return {"w": ["key"]}

    engine = a_dask(_status={"workers": {"w": (threads, slots, nanny, others_work)}}, client=SimpleNamespace(run=run))
    engine._hung["w"] = {"key", "it came back"}
    assert asyncio.run(engine._free_hung_workers(closing=closing)) == ({"w"} if leaves else set())
    assert left == ([["w"]] if leaves else [])
    assert engine._hung == ({} if leaves else {"w": {"key"}})


def test_a_question_to_a_scheduler_that_is_gone_is_cancelled() -> None:
    ended: list[str] = []

    async def never(what: str) -> None:
        client.status = "closed"
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(what)

    async def asked() -> None:
        with pytest.raises(CannotGoOn, match="the connection to the Dask scheduler was lost"):
            await engine._question("status")
        await asyncio.sleep(0)
        assert ended == ["status"]

    client = SimpleNamespace(status="running", scheduler=SimpleNamespace(**{"thresher-1": never}))
    engine = a_dask(client=client)
    asyncio.run(asked())


# -- on the scheduler ------------------------------------------------------------------------------------------------


def some_marks(**scheduler: Any) -> remote.Marks:
    marks = remote.Marks("thresher-1", "client", {"GPU": 1.0})
    marks._scheduler = SimpleNamespace(**{"handlers": {}, "tasks": dict.fromkeys(("x", "y", "z"))} | scheduler)
    return marks


def removed(worker: str, *keys: str, expected: bool) -> dict[str, Any]:
    return {"action": "remove-worker", "worker": worker, "processing-tasks": list(keys), "expected": expected}


def test_the_pulls_that_a_dead_worker_had_begun_died_together() -> None:
    marks = some_marks()
    for key, worker in [("x", "w1"), ("y", "w1"), ("z", "w2")]:
        assert marks.answer("begin", key=key, worker=worker)
    marks.log_event("all", {"action": "add-worker"})
    marks.log_event("other", removed("w2", "z", expected=False))
    assert [marks.death(key) for key in ("x", "z", "never begun")] == [[], [], None]
    marks.log_event("all", removed("w1", "x", "y", "z", "never begun", expected=False))
    assert [marks.death(key) for key in ("x", "y", "z")] == [["x", "y"], ["x", "y"], []]
    marks.log_event("all", removed("w2", "z", expected=True))
    assert marks.death("z") == [], "it was told to leave: nobody is to blame"


def test_an_outcome_is_sent_when_a_pull_is_done_and_its_mark_is_forgotten_with_it() -> None:
    sent: list[Any] = []
    marks = some_marks(report=lambda event, client: sent.append((event["topic"], event["event"][1], client)))
    assert marks.begin("x", "w1")
    assert marks.forbid(["x", "y"]) == ["y"]
    marks.transition("x", "processing", "memory", metadata={"thresher-1": b"data"})
    marks.transition("z", "processing", "memory")
    assert sent == [("thresher-1", ["x", b"data"], "client")]
    for key in ("x", "y", "z"):
        marks.transition(key, "memory", "forgotten")
    assert marks._begun == {"y": ""}, "a worker may still have it"


def test_a_run_whose_client_is_gone_leaves_nothing_on_the_scheduler() -> None:
    async def unregister(comm: Any, name: str) -> None:
        gone.append(name)

    async def lost() -> None:
        await marks.start(marks._scheduler)
        assert marks._scheduler.handlers == {"thresher-1": marks.answer}
        marks.remove_client(marks._scheduler, "another client")
        assert marks._scheduler.plugins == {"thresher-1": marks}
        marks.remove_client(marks._scheduler, "client")
        await marks._unregistering

    gone: list[str] = []
    marks = some_marks(plugins={}, unregister_worker_plugin=unregister)
    marks._scheduler.plugins["thresher-1"] = marks
    asyncio.run(lost())
    assert (marks._scheduler.handlers, marks._scheduler.plugins, gone) == ({}, {}, ["thresher-1"])


def test_the_status_of_a_scheduler() -> None:
    def worker(gpus: float, nanny: str | None, *keys: Any) -> Any:
        processing = [SimpleNamespace(key=key) for key in keys]
        return SimpleNamespace(nthreads=4, resources={"GPU": gpus}, nanny=nanny, processing=processing)

    workers = {"w1": worker(2.0, "n", "thresher-1-5-1"), "w2": worker(9.0, None, ("thresher-1", 0))}
    status = some_marks(workers=workers, allowed_failures=3).status()
    assert status["workers"] == {"w1": (4, 2, True, False), "w2": (4, 4, False, True)}
    assert status["allowed"] == 3
    engine = a_dask()
    engine._hung |= {"w1": {"key"}, "left": {"other"}}
    engine._see(status)
    assert engine.workers == 5
    engine._most = 4
    engine._see(status)
    assert engine.workers == 4
    engine._hung["w2"] = set("abcdefgh")
    engine._see(status)
    assert engine.workers == 0


# -- deaths ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["killed", "refused"])
@pytest.mark.parametrize(
    ("together", "blamed"), [(["key"], [PULL]), (["key", "of another run"], [PULL]), ([], []), (None, None)]
)
def test_a_pull_that_died_is_lost_with_the_others_unless_it_never_began(
    how: str, together: list[str] | None, blamed: list[Pull] | None
) -> None:
    async def exception() -> Exception | None:
        worker = SimpleNamespace(address="tcp://w")
        return KilledWorker("key", worker, 0) if how == "killed" else None

    async def result() -> bytes:
        return remote.REFUSED

    async def question(what: str, key: str) -> list[str] | None:
        assert (what, key) == ("death", "key")
        return together

    task = SimpleNamespace(exception=exception, result=result, release=lambda: None)
    engine = a_dask(client=SimpleNamespace(submit=lambda *_, **__: task, status="running"), _question=question)
    if blamed is None:
        engine._given_up.add("key")  # a worker refuses a pull that never began only if it was taken back
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(engine._evaluate("key", PULL))
        return
    with pytest.raises(
        WorkerLost, match="its worker tcp://w died" if how == "killed" else "its worker was lost"
    ) as caught:
        asyncio.run(engine._evaluate("key", PULL))
    assert caught.value.together == blamed


def test_our_own_cluster_gets_another_worker_if_one_stays_away() -> None:
    scaled: list[int] = []
    own = SimpleNamespace(worker_spec={0: None, 1: None}, scale=scaled.append)
    engine = a_dask(_own=own, _missing=0.0, _status={"workers": {"w1": None}})
    for _ in range(79):
        asyncio.run(engine._fill_up())
    assert scaled == []
    asyncio.run(engine._fill_up())
    assert scaled == [2], "after 20 s"
    asyncio.run(engine._fill_up())
    engine._status["workers"]["w2"] = None
    asyncio.run(engine._fill_up())
    assert (scaled, engine._missing) == ([2], 0.0)
