"""What runs on the workers and the scheduler of a Dask cluster, without one."""

import asyncio
import os
import signal
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from unconnected import NAME, pull

from thresher.run.engines import dask as remote


@pytest.fixture
def did(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What was done with the signals, the threads and the timers of a worker."""
    done: list[object] = []

    def begun(kind: str) -> Any:
        return lambda *args, **given: SimpleNamespace(start=lambda: done.append((kind, args, given)))

    real = {name: getattr(signal, name) for name in ("SIGINT", "SIG_IGN", "SIG_UNBLOCK")}
    fake = SimpleNamespace(
        signal=lambda *given: done.append(("signal", *given)),
        pthread_sigmask=lambda *given: done.append(("mask", *given)),
        **real,
    )
    monkeypatch.setattr(remote, "signal", fake)
    here = {name: getattr(threading, name) for name in ("current_thread", "main_thread")}
    monkeypatch.setattr(remote, "threading", SimpleNamespace(Thread=begun("thread"), Timer=begun("timer"), **here))
    return done


@pytest.mark.parametrize(("own", "in_main"), [(True, True), (True, False), (False, True)])
def test_only_workers_of_our_own_leave_ctrl_c_to_the_run(own: bool, in_main: bool, did: list[object]) -> None:
    plugin = remote.Evaluator(NAME, lambda _: 0.5, own=own)
    if in_main:
        plugin.setup(None)
    else:
        thread = threading.Thread(target=plugin.setup, args=(None,))
        thread.start()
        thread.join()
    expected = [("signal", signal.SIGINT, signal.SIG_IGN), ("mask", signal.SIG_UNBLOCK, {signal.SIGINT})]
    assert did == (expected if own and in_main else [])


def test_at_the_end_of_a_run_the_evaluators_processes_end_without_holding_up_the_worker(did: list[object]) -> None:
    class Resting:
        def __call__(self, one: object) -> float:
            return 0.5

        def rest(self) -> None: ...

    remote.Evaluator(NAME, lambda _: 0.5, own=False).teardown(None)
    assert did == []
    evaluate = Resting()
    remote.Evaluator(NAME, evaluate, own=False).teardown(None)
    assert did == [("thread", (), {"target": evaluate.rest, "name": "thresher-rest", "daemon": True})]


def test_a_worker_that_is_told_to_leave_answers_first(did: list[object]) -> None:
    remote.leave()
    assert did == [("timer", (0.05, os._exit, (1,)), {})]


@pytest.mark.parametrize("is_known", [True, False], ids=["a task", "a task that was forgotten"])
@pytest.mark.parametrize("may_begin", [True, False])
def test_a_worker_evaluates_only_what_it_may_begin(
    may_begin: bool, is_known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[object] = []

    async def mark(**given: Any) -> bool:
        return may_begin

    def evaluate(one: object) -> float:
        seen.append(one)
        raise ValueError("no")

    async def called() -> bytes:
        worker = SimpleNamespace(
            address="tcp://here",
            scheduler=SimpleNamespace(**{NAME: mark}),
            loop=SimpleNamespace(asyncio_loop=asyncio.get_running_loop()),
            plugins={NAME: SimpleNamespace(evaluate=evaluate)},
            state=SimpleNamespace(tasks={"key": task} if is_known else {}),
        )
        monkeypatch.setattr(remote, "get_worker", lambda: worker)
        return await asyncio.to_thread(remote.evaluate_once, NAME, "key", pull(1))

    task = SimpleNamespace(metadata={})
    data = asyncio.run(called())
    assert (data == remote.REFUSED) != may_begin
    assert seen == ([pull(1)] if may_begin else [])
    assert task.metadata == ({NAME: data} if may_begin and is_known else {})
    assert remote.still_running(["key"]) == []


# -- on the scheduler ------------------------------------------------------------------------------------------------


def test_a_scheduler_answers_the_run_once_its_plugin_has_started() -> None:
    scheduler = SimpleNamespace(handlers={}, tasks={"x": None}, workers={}, allowed_failures=3)
    marks = remote.Marks(NAME, "client", {})
    asyncio.run(marks.start(scheduler))
    answer = scheduler.handlers[NAME]
    assert answer(what="begin", key="x", worker="w1") is True
    assert answer(what="status") == {"workers": {}, "begun": {"x": "w1"}, "allowed": 3}
    answer(what="end")
    answer(what="end")
    assert scheduler.handlers == {}


@pytest.mark.parametrize(
    ("keys", "others"), [((), False), ((f"{NAME}-1",), False), ((f"{NAME}-1", "theirs"), True), (("theirs",), True)]
)
def test_a_worker_has_others_work_if_one_task_is_not_ours(keys: tuple[str, ...], others: bool) -> None:
    marks = remote.Marks(NAME, "client", {})
    processing = [SimpleNamespace(key=key) for key in keys]
    state = SimpleNamespace(nthreads=2, resources={}, nanny=None, processing=processing)
    marks._scheduler = SimpleNamespace(workers={"w1": state}, allowed_failures=0)
    assert marks.status()["workers"]["w1"] == (2, 2, False, others)


def test_what_died_is_forgotten_with_its_task_and_not_before() -> None:
    marks = remote.Marks(NAME, "client", {})
    sent: list[object] = []
    marks._scheduler = SimpleNamespace(tasks={"x": None, "y": None}, report=lambda *given, **_: sent.append(given))
    for key in ("x", "y"):
        marks.begin(key, "w1")
    message = {"action": "remove-worker", "worker": "w1", "processing-tasks": ["x", "y"], "expected": False}
    marks.log_event("all", message)
    marks.transition("x", "processing", "erred", metadata=None)
    assert marks.death("x") == ["x", "y"]
    marks.transition("x", "erred", "forgotten")
    assert (marks._begun, marks._died) == ({"y": "w1"}, {"y": ["x", "y"]})
    marks.transition("y", "processing", "erred", metadata={NAME: b"data"})
    assert sent == [], "only what is done has an outcome"
