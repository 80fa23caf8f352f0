"""How many pulls run at once, on which executors, and what is left of them."""

import collections
import contextlib
import functools
import multiprocessing
import os
import signal
import threading
import time
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from engines import TIMEOUT, WORKERS, Clock, calls, causes, evaluator, make, slowly

import thresher
from thresher.run import engines as engines_of_runs


def test_no_worker_process_is_left_behind() -> None:
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


def test_in_flight_may_exceed_the_workers() -> None:
    most = 0

    def look(progress: thresher.Progress) -> None:
        nonlocal most
        most = max(most, progress.pending)

    thresher.run(make(budget=100), slowly(0.01), workers=2, in_flight=20, on_progress=look)
    assert 2 < most <= 20


# -- other people's executors -----------------------------------------------------------------------------------------


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


class Sized(ThreadPoolExecutor):
    """One that tells its size, as mpi4py's do."""

    num_workers = 3


@pytest.mark.parametrize(("kind", "workers", "expected"), [(Sized, None, 3), (Sized, 2, 2), (ThreadPoolExecutor, 4, 4)])
def test_an_executor_has_the_workers_that_the_user_or_it_says(
    kind: type[ThreadPoolExecutor], workers: int | None, expected: int
) -> None:
    gauge = Gauge(expected)
    with kind(8) as pool:
        thresher.run(make(budget=40), gauge, executor=pool, workers=workers)
    assert gauge.most == expected


def test_an_executor_that_does_not_say_has_as_many_workers_as_there_are_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines_of_runs, "available_cores", lambda: 3)
    gauge = Gauge(3)
    with ThreadPoolExecutor(8) as pool:
        thresher.run(make(budget=40), gauge, executor=pool)
    assert gauge.most == 3


def test_what_makes_no_executor_is_refused() -> None:
    with pytest.raises(thresher.InvalidInput, match=r"made 5, which is not a concurrent\.futures\.Executor"):
        thresher.run(make(), lambda pull: 0.5, executor=lambda: 5)  # type: ignore[arg-type, return-value]


def test_a_function_that_makes_executors_is_called_again_when_one_breaks(tmp_path: Path) -> None:
    made = []

    def factory() -> Executor:
        made.append(ProcessPoolExecutor(2))
        return made[-1]

    study = make("a", "dies", "b", "c", budget=60)
    thresher.run(study, evaluator("processes", tmp_path), executor=factory, workers=2)
    assert len(made) > 1
    assert all(thresher_ended(pool) for pool in made)
    assert_nothing_that_began_is_free(study, tmp_path)


def thresher_ended(pool: Executor) -> bool:
    """Whether a pool was shut down, or broke."""
    try:
        pool.submit(int)
    except RuntimeError:  # as `BrokenExecutor` is
        return True
    return False


def assert_nothing_that_began_is_free(study: thresher.Study, folder: Path) -> None:
    """A pull that began is told or charged: only those that never began are dropped as cancelled."""
    began = {pull for pull, _ in calls(folder)}
    cancelled = {event.pull for event in study.events() if event.cause == "cancelled"}
    assert not began & cancelled
    assert study.verdict().pending == 0


def test_a_pool_that_breaks_and_cannot_be_made_again_ends_the_run_and_its_pulls_are_charged(tmp_path: Path) -> None:
    study = make("a", "dies", budget=60)
    words = "broke: one of its workers died; pass a function that makes one, and makes another"
    for in_flight in (None, 20):
        with ProcessPoolExecutor(2) as pool, pytest.raises(thresher.CannotGoOn, match=words):
            thresher.run(study, evaluator("processes", tmp_path), executor=pool, workers=2, in_flight=in_flight)
    assert "lost" not in causes(study), "each is judged, as if the run went on"
    assert_nothing_that_began_is_free(study, tmp_path)


class Breaks(Executor):
    """Breaks when it gets its fourth pull. Then the others are lost, one with each report."""

    def __init__(self) -> None:
        self._taken: list[Future[Any]] = []
        self._broken = False

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> "Future[Any]":
        if len(self._taken) == 3:
            self._broken = True
            raise BrokenExecutor("it broke")
        self._taken.append(Future())
        self._taken[-1].set_running_or_notify_cancel()
        return self._taken[-1]

    def lose(self, progress: thresher.Progress) -> None:
        lost = [future for future in self._taken if not future.done()]
        if self._broken and lost:
            lost[0].set_exception(BrokenExecutor("it broke"))


@pytest.mark.parametrize("error", [StopIteration, thresher.CannotGoOn])
def test_before_a_run_ends_all_pulls_of_its_broken_pool_are_judged(error: type[Exception]) -> None:
    """Only pulls that never began are free."""
    study, pool = make("a", "b", budget=40, max_failures=None), Breaks()
    executor: Any = functools.partial(next, iter([pool])) if error is StopIteration else pool
    with pytest.raises(error):
        thresher.run(study, lambda pull: 0.5, executor=executor, workers=8, on_progress=pool.lose)
    dropped = {event.pull: event.cause for event in study.events() if event.kind == "dropped"}
    assert dropped == {pull: "broken-pool" if pull <= 3 else "cancelled" for pull in range(1, 9)}


@pytest.mark.parametrize("made", [0, 1])
def test_a_case_that_breaks_pools_is_not_tried_until_it_returns(made: int, tmp_path: Path) -> None:
    """Its outcome may be what ends them. Otherwise only good outcomes would count."""
    study = thresher.create_study("s", arms=["dies"], cases=4, at_least=0.5, max_failures=None, seed=0)
    for _ in range(12):
        pools = [ProcessPoolExecutor(2) for _ in range(1 + made)]
        with contextlib.suppress(thresher.CannotGoOn, StopIteration):
            executor = functools.partial(next, iter(pools)) if made else pools[0]
            thresher.run(study, evaluator("processes", tmp_path), executor=executor, workers=2)
        for pool in pools:
            pool.shutdown()
    tries = collections.Counter(row.case for row in study.pulls() if row.id in dict(calls(tmp_path)))
    assert study.done
    assert len(tries) == 4
    assert max(tries.values()) <= 2


def test_an_executor_that_is_closed_leaves_nothing_pending() -> None:
    pool = ProcessPoolExecutor(2)
    pool.shutdown()
    study = make()
    with pytest.raises(thresher.CannotGoOn, match="shutdown"):
        thresher.run(study, evaluator("process-pool"), executor=pool)
    assert study.verdict().pending == 0


def test_a_worker_that_hung_is_used_again_when_its_call_returns(caplog: pytest.LogCaptureFixture) -> None:
    both, release = Gauge(2), threading.Event()

    def evaluate(pull: thresher.Pull) -> float:
        if pull.arm == "first-hangs" and pull.number == 1:
            release.wait(60)
            return 0.5
        return both(pull) if release.is_set() else 0.5

    def go_on(progress: thresher.Progress) -> None:
        if causes(study):
            release.set()

    study = make("a", "first-hangs", budget=200, max_failures=None)
    with ThreadPoolExecutor(2) as pool:
        settings: dict[str, Any] = {"timeout": 2.0, "on_progress": go_on}
        verdict = thresher.run(study, slowed(evaluate), executor=pool, workers=2, **settings)
    assert both.most == 2
    assert (verdict.told, set(causes(study))) == (200, {"failed"}), "its late reward is kept"
    words = "a pull that timed out keeps its worker until it returns or the worker is restarted; the run goes on"
    assert caplog.text.count(words) == 1


def slowed(evaluate: Any) -> Any:
    """So that the run reports progress in between."""

    def slow(pull: thresher.Pull) -> float:
        time.sleep(0.03)
        return evaluate(pull)  # type: ignore[no-any-return]

    return slow


def test_a_pool_all_of_whose_threads_hang_ends_the_run() -> None:
    study, release = make("hangs", "x", budget=100, max_failures=None), threading.Event()
    with ThreadPoolExecutor(2) as pool:
        with pytest.raises(thresher.CannotGoOn, match="each of its workers hangs in a pull that timed out"):
            thresher.run(study, lambda pull: release.wait(60), timeout=0.1, executor=pool, workers=2)
        release.set()
    assert study.verdict().pending == 0


class Eager(Executor):
    """One thread, but all that wait for it are said to run, as pools of processes say of some."""

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(1)

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        self.pool.submit(lambda: future.set_result(fn(*args, **kwargs)))
        return future


def test_a_pull_that_waits_in_an_executor_is_not_timed(clock: Clock) -> None:
    def takes_long(pull: thresher.Pull) -> float:
        time.sleep(0.005)
        clock.ahead += TIMEOUT / 2
        return 0.5

    study, executor = make("a", budget=20), Eager()
    thresher.run(study, takes_long, executor=executor, workers=1, in_flight=20, timeout=TIMEOUT)
    executor.pool.shutdown()
    assert (study.verdict().told, causes(study)) == (20, [])


@pytest.mark.parametrize("way", ["kill_workers", "shutdown"])
def test_busy_processes_of_a_pool_that_we_made_are_killed_if_it_has_a_way(way: str) -> None:
    """Python's has one from 3.14; loky's is an argument of ``shutdown``."""
    did: list[str] = []
    release = threading.Event()

    class Pool(ThreadPoolExecutor):
        def shutdown(self, wait: bool = True, *, cancel_futures: bool = False, kill_workers: bool = False) -> None:
            did.append(f"shutdown {wait} {kill_workers}")
            super().shutdown(wait=wait, cancel_futures=cancel_futures)

    class Killing(Pool):
        def kill_workers(self) -> None:
            did.append("killed")

    def stop_once_begun(progress: thresher.Progress) -> None:
        raise RuntimeError("stop here")

    kind = Killing if way == "kill_workers" else Pool
    settings: dict[str, Any] = {"workers": 1, "on_progress": stop_once_begun, "executor": lambda: kind(1)}
    with pytest.raises(RuntimeError, match="stop here"):
        thresher.run(make(), lambda pull: release.wait(60), **settings)
    release.set()
    assert did == (["killed"] if way == "kill_workers" else ["shutdown False True"])


# -- processes of our own ---------------------------------------------------------------------------------------------


def _ends(pull: thresher.Pull) -> float:
    if pull.arm == "exits":
        os._exit(5)
    if pull.arm == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if pull.arm == "nameless":
        signal.signal(signal.SIGRTMIN + 5, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGRTMIN + 5)
        time.sleep(60)
    return 0.5


@pytest.mark.usefixtures("no_outage")
def test_how_a_process_ended_is_told() -> None:
    ends = {
        "exits": "its process exited with 5",
        "dies": "its process was ended by SIGKILL",
        "nameless": f"its process was ended by signal {signal.SIGRTMIN + 5}",
    }
    verdict = thresher.run(make("a", *ends, budget=40), _ends, executor="processes", workers=2)
    assert {arm: words in (verdict[arm].reason or "") for arm, words in ends.items()} == dict.fromkeys(ends, True)
    assert (verdict.retired, verdict["a"].failures) == ([*ends], 0)


class BusyAtFirst:
    """Its process is idle for two seconds."""

    def __init__(self, folder: Path) -> None:
        self.busy = folder / "busy"

    def __call__(self, pull: thresher.Pull) -> float:
        if not self.busy.exists():
            self.busy.write_text(str(os.getpid()))
            raise thresher.Busy(after=2.0)
        return float(os.getpid())


def test_the_death_of_an_idle_process_costs_no_pull(tmp_path: Path) -> None:
    evaluate, killed = BusyAtFirst(tmp_path), list[int]()

    def kill_the_idle_one(progress: thresher.Progress) -> None:
        if not killed and evaluate.busy.exists() and time.time() - evaluate.busy.stat().st_mtime > 0.5:
            (worker,) = (child for child in multiprocessing.active_children() if child.name == "thresher-worker")
            worker.kill()
            worker.join()
            killed.append(worker.pid or 0)

    study = make("a", budget=2, bounds=(0, 10**7))
    settings: dict[str, Any] = {"workers": 1, "in_flight": 1, "on_progress": kill_the_idle_one}
    assert thresher.run(study, evaluate, executor="processes", **settings).told == 2
    assert killed == [int(evaluate.busy.read_text())]
    assert killed[0] not in [event.reward for event in study.events()]


class DiesBeforeItsChild:
    """Its child keeps the pipe of the worker open."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, pull: thresher.Pull) -> float:
        if pull.arm != "dies":
            return 0.5
        if child := os.fork():
            (self._folder / f"{child}").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(600)
        os._exit(0)


def test_the_death_of_a_process_is_noticed_though_its_child_lives(tmp_path: Path) -> None:
    try:
        study = make("a", "dies", budget=20, max_failures=1)
        verdict = thresher.run(study, DiesBeforeItsChild(tmp_path), executor="processes", workers=2)
        assert "its process was ended by SIGKILL" in (verdict["dies"].reason or "")
    finally:
        for child in tmp_path.iterdir():
            os.kill(int(child.name), signal.SIGKILL)


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
