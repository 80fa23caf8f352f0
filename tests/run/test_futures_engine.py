"""Other people's executors: how large they are, what a broken one costs, and who shuts them down."""

import multiprocessing
import signal
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from typing import Any

import pytest

from thresher.errors import CannotGoOn
from thresher.run.engines import futures
from thresher.run.engines.futures import Adapter, _kill, _same, _size
from thresher.run.lost_workers import WorkerLost
from thresher.study import Pull


def pull(number: int) -> Pull:
    return Pull(number, "a", 1, {}, 7)


class Pool(Executor):
    """An executor that does what the test says."""

    def __init__(self, *, broken: bool = False, closed: bool = False) -> None:
        self._broken, self._closed = broken, closed
        self.futures: list[Future[Any]] = []
        self.shut: list[dict[str, Any]] = []

    def submit(self, function: Any, /, *args: Any, **given: Any) -> "Future[Any]":
        if self._broken:
            raise BrokenExecutor("it broke")
        if self._closed:
            raise RuntimeError("cannot schedule new futures after shutdown")
        self.futures.append(Future())
        self.futures[-1].set_running_or_notify_cancel()
        return self.futures[-1]

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self.shut.append({"wait": wait, "cancel_futures": cancel_futures})


class Older(Pool):
    """One whose queue cannot be cancelled."""

    def shutdown(self, wait: bool = True) -> None:  # type: ignore[override]
        self.shut.append({"wait": wait})


class OfProcesses(Pool):
    """One whose workers can be killed."""

    def __init__(self, *pids: int) -> None:
        super().__init__()
        self._processes = dict.fromkeys(pids)


@pytest.fixture
def killed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    found: list[int] = []

    def kill(pid: int, number: int) -> None:
        assert number == signal.SIGKILL
        found.append(pid)
        if pid == 1:
            raise ProcessLookupError

    monkeypatch.setattr(futures.os, "kill", kill)  # type: ignore[attr-defined]
    return found


def making(*pools: Pool) -> Any:
    left = iter(pools)
    return lambda: next(left)


def adapted(executor: Any, workers: int | None = None) -> Adapter:
    return Adapter(lambda _: 0.5, executor, workers, 8)


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ({}, None),
        ({"_max_workers": 3}, 3),
        ({"num_workers": 5}, 5),
        ({"_max_workers": 0, "num_workers": 5}, 5),
        ({"_max_workers": None}, None),
        ({"_max_workers": 1, "num_workers": 5}, 1),
        ({"_max_workers": "3"}, None),
    ],
)
def test_the_size_of_an_executor_is_found_if_it_says_it(sizes: dict[str, Any], expected: int | None) -> None:
    pool = Pool()
    vars(pool).update(sizes)
    assert _size(pool) == expected
    assert adapted(pool).workers == (expected or 8)
    assert adapted(pool, 2).workers == 2


def test_a_pool_that_is_broken_already_is_replaced_before_the_pull() -> None:
    broken, sound = Pool(broken=True), Pool()
    engine = adapted(making(broken, sound))
    future = engine.submit(pull(1))
    assert sound.futures == [future]
    assert broken.shut == [{"wait": False, "cancel_futures": False}], "it was ours"
    with pytest.raises(CannotGoOn, match="broke, and thresher cannot make another"):
        adapted(Pool(broken=True)).submit(pull(1))


def test_an_executor_that_was_shut_down_ends_the_run() -> None:
    with pytest.raises(CannotGoOn, match="after shutdown; pass one that is open"):
        adapted(Pool(closed=True)).submit(pull(1))


def test_the_pulls_of_a_broken_pool_are_lost_together_and_those_that_ended_are_not() -> None:
    first, second = Pool(), Pool()
    engine = adapted(making(first, second))
    futures = [engine.submit(pull(number)) for number in (1, 2, 3)]
    from thresher.run.engines.engine import outcome

    futures[2].set_result(outcome(lambda _: 0.25, pull(3)))
    for future in futures[:2]:
        future.set_exception(BrokenExecutor("a worker died"))
    for future in futures[:2]:
        with pytest.raises(WorkerLost, match="the pool broke: BrokenExecutor: a worker died") as caught:
            engine.result(future)
        assert caught.value.together == (pull(1), pull(2))
    assert engine.result(futures[2]) == 0.25
    assert len(first.shut) == 1, "it is replaced once"
    assert (engine._here, list(engine._lost)) == ({}, [futures[2]])
    assert engine.submit(pull(4)) in second.futures


def test_a_pull_that_hangs_in_a_pool_of_processes_costs_the_pool_and_blames_nobody(killed: list[int]) -> None:
    first, second = OfProcesses(1, 2), OfProcesses(3)
    engine = adapted(making(first, second))
    hangs, other = engine.submit(pull(1)), engine.submit(pull(2))
    engine.stop(hangs)
    assert (killed, engine._executor) == ([1, 2], second)
    other.set_exception(BrokenExecutor("killed"))
    with pytest.raises(WorkerLost) as caught:
        engine.result(other)
    assert caught.value.together == ()
    engine.stop(hangs)
    assert killed == [1, 2], "its pool was replaced"
    third = engine.submit(pull(3))
    third.set_exception(BrokenExecutor("by itself"))
    engine._make = making(OfProcesses())
    with pytest.raises(WorkerLost) as caught:
        engine.result(third)
    assert caught.value.together == (pull(3),)


def test_a_pull_that_has_not_begun_is_taken_back_without_losing_a_worker() -> None:
    pool = Pool()
    engine = adapted(pool, 2)
    waiting: Future[object] = Future()
    engine._here[waiting] = pull(1)
    engine.stop(waiting)
    assert (waiting.cancelled(), engine.workers) == (True, 2)


@pytest.mark.parametrize("wait", [True, False])
def test_only_what_we_made_is_shut_down_and_only_busy_processes_are_killed(wait: bool, killed: list[int]) -> None:
    users, ours, older = OfProcesses(5), OfProcesses(6), Older()
    adapted(users).close(wait=wait)
    adapted(making(ours)).close(wait=wait)
    adapted(making(older)).close(wait=wait)
    assert (users.shut, ours.shut) == ([], [{"wait": wait, "cancel_futures": True}])
    assert older.shut == [{"wait": wait}]
    assert killed == ([] if wait else [5, 6])


def test_a_users_pool_that_broke_is_not_shut_down_but_the_one_in_its_place_is(
    killed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    users, ours = OfProcesses(5), OfProcesses(6)
    monkeypatch.setattr(futures, "_same", lambda pool: ours)
    engine = adapted(users)
    engine.stop(engine.submit(pull(1)))
    engine.close(wait=True)
    assert (users.shut, len(ours.shut), killed) == ([], 1, [5])


def test_a_pool_without_processes_has_none_to_kill() -> None:
    pool = Pool()
    _kill(pool)
    pool._processes = None  # type: ignore[attr-defined]  # as in a standard pool that was shut down
    _kill(pool)


def test_a_pool_of_processes_is_replaced_by_one_with_its_settings() -> None:
    context = multiprocessing.get_context("spawn")
    pool: Any = ProcessPoolExecutor(3, mp_context=context, initializer=print, initargs=("x",), max_tasks_per_child=5)
    other = _same(pool)
    assert isinstance(other, ProcessPoolExecutor)
    settings = {"_max_workers": 3, "_mp_context": context, "_max_tasks_per_child": 5, "_initializer": print}
    assert vars(other).items() >= {**settings, "_initargs": ("x",)}.items()
