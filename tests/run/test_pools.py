"""How many pulls run at once, on which executors, and what is left of them."""

import asyncio
import multiprocessing
import threading
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from typing import Any

import pytest
from engines import WORKERS, evaluator, make, slowly

import thresher


def test_no_worker_process_is_left_behind() -> None:
    import multiprocessing

    thresher.run(make(), evaluator("processes"), executor="processes", workers=WORKERS)
    with pytest.raises(RuntimeError, match="stop here"):
        thresher.run(make(budget=10**6), evaluator("processes"), on_progress=_fail, executor="processes")
    assert [child for child in multiprocessing.active_children() if child.name == "thresher-worker"] == []


def _fail(progress: thresher.Progress) -> None:
    raise RuntimeError("stop here")


class Gauge:
    """Measures how many evaluations run at once; each waits until enough do."""

    def __init__(self, enough: int) -> None:
        self.now = self.most = 0
        self.lock = threading.Lock()
        self.full = threading.Event()
        self.enough = enough

    def __call__(self, pull: thresher.Pull) -> float:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
            if self.now >= self.enough:
                self.full.set()
        self.full.wait(60)
        with self.lock:
            self.now -= 1
        return 0.5


@pytest.mark.parametrize("workers", [1, 3, 16])
def test_as_many_workers_run_as_were_asked_for(workers: int) -> None:
    gauge = Gauge(workers)
    thresher.run(make(budget=50), gauge, workers=workers)
    assert gauge.most == workers


def test_sixty_four_coroutines_run_at_once_on_one_loop() -> None:
    now = most = 0
    threads = set()

    async def evaluate(pull: thresher.Pull) -> float:
        nonlocal now, most
        threads.add(threading.get_ident())
        now += 1
        most = max(most, now)
        while most < 64:
            await asyncio.sleep(0)
        now -= 1
        return 0.5

    thresher.run(make(budget=200), evaluate, workers=64)
    assert most == 64
    assert len(threads) == 1


def test_coroutines_respect_workers_whatever_is_in_flight() -> None:
    now = most = 0

    async def evaluate(pull: thresher.Pull) -> float:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.001)
        now -= 1
        return 0.5

    thresher.run(make(budget=100), evaluate, workers=3, in_flight=30)
    assert most == 3


def test_in_flight_may_exceed_the_workers() -> None:
    most = 0

    def look(progress: thresher.Progress) -> None:
        nonlocal most
        most = max(most, progress.pending)

    thresher.run(make(budget=100), slowly(0.01), workers=2, in_flight=20, on_progress=look)
    assert 2 < most <= 20


class Recording(Executor):
    """An executor that runs everything at once in the caller."""

    def __init__(self) -> None:
        self.submitted = 0

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> "Future[Any]":
        self.submitted += 1
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def test_any_executor_works() -> None:
    executor = Recording()
    assert thresher.run(make(), lambda pull: 0.5, executor=executor).told == 80
    assert executor.submitted == 80


def test_a_function_that_makes_executors_is_called_again_when_one_breaks() -> None:
    made = []

    def factory() -> Executor:
        made.append(ProcessPoolExecutor(2))
        return made[-1]

    study = make("a", "dies", "b", "c", budget=60)
    thresher.run(study, evaluator("processes"), executor=factory, workers=2)
    assert len(made) > 1


def test_an_executor_that_is_closed_leaves_nothing_pending() -> None:
    pool = ProcessPoolExecutor(2)
    pool.shutdown()
    study = make()
    with pytest.raises(thresher.CannotGoOn, match="shutdown"):
        thresher.run(study, evaluator("process-pool"), executor=pool)
    assert study.verdict().pending == 0


def test_a_pool_all_of_whose_threads_hang_ends_the_run() -> None:
    study = make("hangs", "x", budget=100, max_failures=None)
    with pytest.raises(thresher.CannotGoOn, match="hangs"):
        thresher.run(study, lambda pull: threading.Event().wait(30), timeout=0.1, executor=_pool())
    assert study.verdict().pending == 0


def _pool() -> Executor:
    """A pool of daemon threads, so that the test's own hung calls do not keep the interpreter alive."""
    from thresher.run.engines.local import Threads

    class Pool(Executor):
        _max_workers = WORKERS

        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> "Future[Any]":
            return Threads(lambda pull: fn(*args), 1).submit(args[0])

    return Pool()


def test_a_process_that_an_evaluator_forks_can_be_ended() -> None:
    forks = multiprocessing.get_context("fork")

    def child(began: Any) -> None:
        began.set()
        time.sleep(3600)

    def evaluate(pull: thresher.Pull) -> float:
        began = forks.Event()
        process = forks.Process(target=child, args=(began,))
        process.start()
        assert began.wait(60)
        process.terminate()
        process.join(60)
        return float(process.exitcode == -15)

    assert thresher.run(make("a", budget=2), evaluate, workers=1)["a"].mean == 1.0
