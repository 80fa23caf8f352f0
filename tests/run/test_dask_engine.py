"""The engine for Dask with a client that is connected to nothing: what it sets up, follows, gives up and cleans up."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from engines import until
from unconnected import NAME, Client, Scheduler, pull

from thresher.errors import CannotGoOn, InvalidInput
from thresher.run.engines import dask as engines_dask
from thresher.run.engines import dask as remote
from thresher.run.engines.dask import Dask

Make = Callable[..., Any]


@pytest.fixture
def scheduler() -> Scheduler:
    return Scheduler()


@pytest.fixture
def client(scheduler: Scheduler) -> Iterator[Client]:
    found = Client(scheduler)
    yield found
    found.close()


@pytest.fixture
def make(client: Client, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    made: list[Dask] = []
    monkeypatch.setattr(engines_dask, "secrets", SimpleNamespace(token_hex=lambda size: "01" + "02" * (size - 3)))
    monkeypatch.setattr(engines_dask, "LOOK", 0.01)

    def start(workers: int | None = None, own: Any = None, **needed: float) -> Dask:
        connected: list[object] = []

        def connect(executor: object, size: int, closing: Any) -> tuple[Client, Any]:
            connected.append((executor, size))
            closing.callback(client._scheduler.did.append, "closed")
            return client, own

        monkeypatch.setattr(engines_dask, "connected", connect)
        engine = Dask(lambda _: 0.5, "executor", workers, 7, needed)
        assert connected == [("executor", workers or 7)]
        made.append(engine)
        return engine

    yield start
    for engine in made:
        engine._looking.cancel()


REMOVED = [("unsubscribe", NAME), ("remove evaluator", NAME), ("remove marks", NAME), "closed"]


def test_a_run_sets_up_its_plugins_and_removes_them_at_the_end(make: Make, scheduler: Scheduler) -> None:
    engine = make(GPU=1.0)
    assert scheduler.did == [("subscribe", NAME), ("Marks", NAME), ("Evaluator", NAME)]
    assert (engine.workers, engine.sought) == (2, "worker with GPU 1")
    engine.close(wait=True)
    assert engine._looking.cancelled()
    assert scheduler.did[3:] == REMOVED
    assert "end" in scheduler.asked


def test_a_scheduler_that_is_gone_is_not_cleaned_up(make: Make, scheduler: Scheduler, client: Client) -> None:
    engine = make()
    client.status = "closed"
    engine.close(wait=True)
    assert scheduler.did[3:] == ["closed"]


def test_a_clean_up_that_fails_does_not_keep_the_others_from_happening(
    make: Make, scheduler: Scheduler, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(name: str) -> None:
        raise OSError("reset")

    monkeypatch.setattr(client, "unregister_worker_plugin", fails)
    make().close(wait=True)
    assert scheduler.did[3:] == [REMOVED[0], *REMOVED[2:]]


def test_an_evaluator_that_a_cluster_cannot_take_ends_the_run_and_leaves_nothing(
    make: Make, scheduler: Scheduler, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(plugin: Any, name: str) -> None:
        raise ImportError("No module named 'mine'")

    monkeypatch.setattr(client, "register_plugin", refuse)
    words = (
        "cannot take the evaluator: .*No module named 'mine'; thresher, and what the evaluator uses, must be installed"
    )
    with pytest.raises(CannotGoOn, match=words):
        make()
    assert scheduler.did[1:] == REMOVED


def test_workers_of_our_own_have_no_resources() -> None:
    with pytest.raises(InvalidInput, match="workers that thresher starts have none; start some with: dask worker"):
        Dask(lambda _: 0.5, "dask", None, 1, {"GPU": 1.0})


@pytest.mark.parametrize("allowed", [0, 3])
def test_it_says_how_often_a_scheduler_would_run_a_task(
    make: Make, scheduler: Scheduler, allowed: int, caplog: pytest.LogCaptureFixture
) -> None:
    scheduler.allowed = allowed
    make()
    words = "a task whose worker died up to 4 times (its allowed-failures is 3); thresher lets each pull begin once"
    assert (words in caplog.text) == (allowed == 3)


@pytest.mark.parametrize(("own", "workers", "expected"), [(None, 1, 1), (None, None, 2), (True, 1, 2), (None, 5, 2)])
def test_a_users_cluster_is_used_up_to_the_workers_asked_for(
    make: Make, own: Any, workers: int | None, expected: int
) -> None:
    cluster = SimpleNamespace(worker_spec={0: None}) if own else None
    engine = make(workers, own=cluster)
    assert engine.workers == expected
    assert engine._most == (None if own else workers)


def test_the_cluster_is_followed_as_it_grows_and_until_it_is_lost(
    make: Make, scheduler: Scheduler, client: Client
) -> None:
    engine = make()
    scheduler.workers["w2"] = (3, 3, False, False)
    until(lambda: engine.workers == 5, "the larger cluster")
    assert engine.room == 6
    client.status = "closed"
    until(lambda: engine._failed is not None, "the loss")
    with pytest.raises(
        CannotGoOn, match=r"tcp://scheduler.*the connection to the Dask scheduler was lost; the study is"
    ):
        _ = engine.room
    until(engine._looking.done, "the end of the looks")


def test_a_pull_is_a_task_of_its_own_that_dask_does_not_repeat(make: Make, client: Client) -> None:
    engine = make(GPU=1.0)
    first, second = engine.submit(pull(1)), engine.submit(pull(1))
    keys = [f"{NAME}-1-1", f"{NAME}-1-2"]
    until(lambda: list(client.tasks) == keys, "both tasks")
    task = client.tasks[keys[0]]
    assert task.args == (NAME, keys[0], pull(1))
    assert task.given == {"pure": False, "retries": 0, "resources": {"GPU": 1.0}}
    client.end(keys[1], 0.75)
    client.end(keys[0], 0.25)
    assert [engine.result(each) for each in (first, second) if each.result(20)] == [0.25, 0.75]
    assert (engine._keys, engine._pulls) == ({}, {})


def test_without_resources_a_task_names_none_and_more_than_the_workers_wait_here(make: Make, client: Client) -> None:
    engine = make(1)
    futures = [engine.submit(pull(number)) for number in (1, 2)]
    until(lambda: len(client.tasks) == 1, "the first task")
    (key,) = client.tasks
    assert client.tasks[key].given["resources"] is None
    client.end(key, 0.5)
    until(lambda: len(client.tasks) == 2, "the second task")
    assert engine.result(futures[0]) == 0.5


def test_a_pull_began_when_the_scheduler_says_so(make: Make, scheduler: Scheduler) -> None:
    engine = make()
    future = engine.submit(pull(1))
    assert not engine.began(future)
    scheduler.begun[f"{NAME}-1-1"] = "w1"
    until(lambda: engine.began(future), "the begin")


def test_only_pulls_that_have_not_begun_are_taken_back(make: Make, scheduler: Scheduler, client: Client) -> None:
    engine = make()
    begun, waits, unknown = engine.submit(pull(1)), engine.submit(pull(2)), Future[object]()
    scheduler.begun[f"{NAME}-1-1"] = "w1"
    assert engine.take_back([begun, waits, unknown]) == {waits}
    assert engine.began(begun)
    assert (waits.cancelled(), begun.cancelled()) == (True, False)
    client.status = "closed"
    assert engine.take_back([begun]) == set(), "nobody knows"


def test_a_scheduler_that_does_not_answer_gives_nothing_back(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = make()
    future = engine.submit(pull(1))

    def ask(what: str, **given: Any) -> Any:
        raise OSError("reset")

    monkeypatch.setattr(engine, "_ask", ask)
    assert engine.take_back([future]) == set()
    assert not future.cancelled()


def test_a_pull_that_is_given_up_hangs_where_it_began(make: Make, scheduler: Scheduler) -> None:
    engine = make()
    begun, waits = engine.submit(pull(1)), engine.submit(pull(2))
    scheduler.begun[f"{NAME}-1-1"] = "w1"
    until(lambda: engine.began(begun), "the begin")
    engine._looking.cancel()
    engine.abandon([begun, waits])
    assert (engine._hung, engine._keys) == ({"w1": {f"{NAME}-1-1"}}, {})
    assert begun.cancelled()
    assert waits.cancelled()


@pytest.mark.parametrize("leaves", [True, False])
def test_a_worker_that_hangs_is_ended_at_the_end_and_waited_for(
    make: Make, scheduler: Scheduler, client: Client, leaves: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run(function: Any, *args: Any, workers: list[str]) -> dict[str, list[str]]:
        if function is remote.leave:
            left.append(len(scheduler.asked))
            if leaves:
                asyncio.get_running_loop().call_later(0.06, scheduler.workers.clear)
        return {"w1": ["key"]}

    left: list[int] = []
    monkeypatch.setattr(engines_dask, "PATIENCE", 20.0 if leaves else 0.2)
    client.run = run  # type: ignore[attr-defined]
    engine = make()
    engine._looking.cancel()
    engine.close(wait=True)
    assert left == [], "nothing hangs"
    engine._hung["w1"] = {"key"}
    engine.close(wait=False)
    assert len(left) == 1
    assert (scheduler.workers == {}) == leaves
    assert (engine.workers == 0) == leaves, "the next run does not find it"


@pytest.mark.parametrize("answers", [True, False])
def test_hung_workers_of_our_own_cluster_are_ended_for_good(
    make: Make, scheduler: Scheduler, client: Client, answers: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run(function: Any, *, workers: list[str]) -> None:
        assert function is remote.leave
        left.append(workers)
        if not answers:
            await asyncio.sleep(60)

    left, ended = list[object](), list[str]()
    nannies = {
        number: SimpleNamespace(worker_address=address, close_gracefully=lambda address=address: ended.append(address))
        for number, address in enumerate(("w1", "w2"))
    }
    client.run = run  # type: ignore[attr-defined]
    engine = make(own=SimpleNamespace(worker_spec={0: None}, workers=nannies))
    engine._looking.cancel()
    engine._hung |= {"w1": {"key"}, "gone": {"other"}}
    engine.close(wait=False)
    assert (ended, left) == (["w1"], [["w1"]])
    assert scheduler.did[-1] == "closed"
    engine._hung = {"gone": {"other"}}
    engine.close(wait=False)
    assert len(left) == 1, "nothing of ours hangs"
