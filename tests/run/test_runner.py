"""What `thresher.run` promises on every engine."""

import asyncio
import itertools
import math
import multiprocessing
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from typing import Any

import pytest
from engines import WORKERS, causes, evaluator, make

import thresher


def slowly(seconds: float) -> Callable[[thresher.Pull], float]:
    def evaluate(pull: thresher.Pull) -> float:
        time.sleep(seconds)
        return 0.5

    return evaluate


def test_no_worker_process_is_left_behind() -> None:
    import multiprocessing

    thresher.run(make(), evaluator("processes"), executor="processes", workers=WORKERS)
    with pytest.raises(RuntimeError, match="stop here"):
        thresher.run(make(budget=10**6), evaluator("processes"), on_progress=_fail, executor="processes")
    assert [child for child in multiprocessing.active_children() if child.name == "thresher-worker"] == []


def _fail(progress: thresher.Progress) -> None:
    raise RuntimeError("stop here")


# -- how many at once ---------------------------------------------------------------------------------------------


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


def test_in_flight_may_exceed_the_workers() -> None:
    most = 0

    def look(progress: thresher.Progress) -> None:
        nonlocal most
        most = max(most, progress.pending)

    thresher.run(make(budget=100), slowly(0.01), workers=2, in_flight=20, on_progress=look)
    assert 2 < most <= 20


# -- attempts, time, progress -------------------------------------------------------------------------------------


def test_a_failing_evaluation_is_repeated_with_the_same_seed_if_attempts_say_so() -> None:
    calls: dict[int, list[int]] = {}

    def flaky(pull: thresher.Pull) -> float:
        calls.setdefault(pull.id, []).append(pull.seed)
        if len(calls[pull.id]) < 3:
            raise ConnectionError
        return 0.5

    study = make(budget=30)
    verdict = thresher.run(study, flaky, workers=3, attempts=3)
    assert verdict.told == 30
    assert causes(study) == []
    assert all(len(seeds) == 3 and len(set(seeds)) == 1 for seeds in calls.values())


def test_after_its_seconds_a_run_issues_no_more_pulls() -> None:
    study = make(budget=10**6)
    verdict = thresher.run(study, slowly(0.01), workers=4, seconds=0.3)
    assert verdict.pending == 0
    assert verdict.issued < 10**6
    assert causes(study) == ["cancelled"] * (verdict.issued - verdict.told), "what had begun was waited for"
    assert not verdict.done


@pytest.mark.alone
def test_progress_is_reported_at_most_ten_times_a_second_and_at_the_end() -> None:
    seen: list[tuple[float, thresher.Progress]] = []
    study = make(budget=60)
    thresher.run(study, slowly(0.02), workers=2, on_progress=lambda p: seen.append((time.monotonic(), p)))
    times = [when for when, _ in seen]
    assert len(seen) >= 3
    assert all(later - earlier > 0.09 for earlier, later in itertools.pairwise(times[:-1]))
    last = seen[-1][1]
    assert (last.issued, last.told, last.pending, last.settled) == (60, 60, 0, 0)
    assert any(p.rate > 0 and p.seconds_left is not None for _, p in seen)


def test_a_run_continues_where_the_last_one_stopped() -> None:
    study = make(budget=10)
    assert thresher.run(study, lambda pull: 0.5).done
    study.extend(budget=30)
    assert thresher.run(study, lambda pull: 0.5).told == 30


def test_a_late_reward_of_a_thread_that_was_given_up_is_kept() -> None:
    released = threading.Event()

    def evaluate(pull: thresher.Pull) -> float:
        if pull.id == 1:
            released.wait(60)
        elif any(event.kind == "dropped" for event in study.events()):
            released.set()
        else:
            time.sleep(0.01)
        return 0.5

    study = make(budget=400)
    verdict = thresher.run(study, evaluate, workers=2, timeout=0.5)
    assert 1 in [event.pull for event in study.events() if event.late]
    assert verdict.told + len(causes(study)) - sum(bool(event.late) for event in study.events()) == 400


@pytest.mark.alone
def test_rewards_that_come_shortly_after_their_timeout_do_not_end_the_run() -> None:
    def evaluate(pull: thresher.Pull) -> float:
        time.sleep(0.3 if pull.id % 3 == 0 else 0.0)
        return 0.5

    study = make(budget=40, max_failures=None)
    verdict = thresher.run(study, evaluate, workers=4, timeout=0.15)
    assert verdict.pending == 0
    assert verdict.told >= 20


def test_a_failed_attempt_is_charged_when_the_run_ends_before_the_next() -> None:
    def evaluate(pull: thresher.Pull) -> float:
        if pull.id in tried:
            raise thresher.Busy(after=3600)
        tried.add(pull.id)
        raise ValueError("bad luck")

    tried: set[int] = set()
    study = make(budget=4)
    thresher.run(study, evaluate, workers=4, attempts=2, seconds=2.0)
    assert causes(study) == ["lost"] * 4


def test_after_its_seconds_a_run_withdraws_waiting_pulls() -> None:
    began = []

    def evaluate(pull: thresher.Pull) -> float:
        began.append(pull.id)
        time.sleep(1.0)
        return 0.5

    study = make(budget=100)
    verdict = thresher.run(study, evaluate, workers=1, in_flight=10, seconds=0.5)
    assert len(began) <= 1, "a busy machine may have begun none"
    assert verdict.issued == 10
    assert causes(study) == ["cancelled"] * (10 - len(began))


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


def test_an_arm_that_kills_its_process_is_retired_with_more_attempts_too() -> None:
    study = make("a", "dies", budget=400)
    verdict = thresher.run(study, evaluator("processes"), executor="processes", workers=2, attempts=2)
    assert verdict.retired == ["dies"]


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


def test_an_executor_that_is_closed_leaves_nothing_pending() -> None:
    pool = ProcessPoolExecutor(2)
    pool.shutdown()
    study = make()
    with pytest.raises(thresher.CannotGoOn, match="shutdown"):
        thresher.run(study, evaluator("process-pool"), executor=pool)
    assert study.verdict().pending == 0


# -- outages ------------------------------------------------------------------------------------------------------


def test_an_outage_is_not_a_failure_of_the_arms(caplog: pytest.LogCaptureFixture) -> None:
    state = {"results": 0}

    def evaluate(pull: thresher.Pull) -> float:
        state["results"] += 1
        if 10 < state["results"] <= 20:
            raise ConnectionError("no route to host")
        return 0.5

    study = make("a", "b", "c", budget=60, max_failures=1)
    began = time.monotonic()
    verdict = thresher.run(study, evaluate, workers=4)
    assert verdict.done
    assert verdict.retired == []
    assert set(causes(study)) == {"outage"}
    assert time.monotonic() - began > 1  # it waited before it tried again
    assert "the last 8 evaluations all failed, the last with: ConnectionError: no route to host" in caplog.text
    assert "the outage is over" in caplog.text


def test_an_outage_that_does_not_end_ends_the_run_and_retires_no_arm() -> None:
    study = make("a", "b", "c", budget=1000, max_failures=1)

    def evaluate(pull: thresher.Pull) -> float:
        raise ConnectionError("no route to host")

    with pytest.raises(thresher.CannotGoOn, match=r"failed for 1.5 s.*no route to host.*no arm was retired"):
        thresher.run(study, evaluate, workers=2, give_up=1.5)
    verdict = study.verdict()
    assert verdict.retired == []
    assert verdict.pending == 0
    assert 8 <= verdict.issued < 20


def test_failures_of_a_single_arm_are_not_an_outage() -> None:
    def evaluate(pull: thresher.Pull) -> float:
        if pull.arm == "a":
            raise ValueError("broken")
        return 0.5

    study = make("a", "b", budget=60)
    assert thresher.run(study, evaluate, workers=1).retired == ["a"]


def test_the_last_arm_is_retired_by_its_own_failures() -> None:
    study = make("a", budget=60)
    calls = []

    def evaluate(pull: thresher.Pull) -> float:
        calls.append(pull.id)
        if len(calls) == 1:
            return 0.5
        raise ValueError("broken")

    verdict = thresher.run(study, evaluate, workers=1)
    assert verdict.retired == ["a"]
    assert len(calls) == 4


# -- bad input ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"workers": 0}, "workers 0"),
        ({"workers": 2.5}, "workers 2.5"),
        ({"timeout": 0}, "timeout 0"),
        ({"timeout": math.nan}, "timeout nan"),
        ({"seconds": -1}, "seconds -1"),
        ({"in_flight": 0}, "in_flight 0"),
        ({"attempts": 0}, "attempts 0"),
        ({"give_up": "soon"}, "give_up 'soon'"),
        ({"executor": "cloud"}, "executor 'cloud'"),
        ({"executor": 3}, "executor 3"),
    ],
)
def test_bad_settings_are_refused_before_anything_runs(given: dict[str, Any], words: str) -> None:
    study = make()
    with pytest.raises(thresher.InvalidInput, match=words):
        thresher.run(study, lambda pull: 0.5, **given)
    assert len(study.events()) == 1


def test_an_evaluator_must_be_callable() -> None:
    with pytest.raises(thresher.InvalidInput, match=r"evaluate 0\.5"):
        thresher.run(make(), 0.5)  # type: ignore[arg-type]


def test_a_pool_all_of_whose_threads_hang_ends_the_run() -> None:
    study = make("hangs", "x", budget=100, max_failures=None)
    with pytest.raises(thresher.CannotGoOn, match="hangs"):
        thresher.run(study, lambda pull: threading.Event().wait(30), timeout=0.1, executor=_pool())
    assert study.verdict().pending == 0


def _pool() -> Executor:
    """A pool of daemon threads, so that the test's own hung calls do not keep the interpreter alive."""
    from thresher.run.engines.threads import Threads

    class Pool(Executor):
        _max_workers = WORKERS

        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> "Future[Any]":
            return Threads(lambda pull: fn(*args), 1).submit(args[0])

    return Pool()
