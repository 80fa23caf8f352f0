"""A cancelled `arun` leaves nothing behind, whenever it is cancelled and whatever the evaluators do."""

import asyncio
import contextlib
import signal
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from engines import PLENTY, make, until

import thresher
from thresher.run import arun as awaiting
from thresher.run.engines import coroutines
from thresher.study import Pull

FOREVER = 3600.0


class Evaluator:
    """Takes three steps. At a given step, counted over all pulls, it calls ``at_step``."""

    def __init__(self, step: int, at_step: Callable[[], object]) -> None:
        self.begun: set[int] = set()
        self._left, self._at_step = step, at_step

    async def __call__(self, pull: Pull) -> float:
        self.begun.add(pull.id)
        for _ in range(3):
            self._left -= 1
            if self._left == 0:
                self._at_step()
            await asyncio.sleep(0)
        return pull.seed / 2**32


def fates_of(study: thresher.Study) -> dict[int, str]:
    """By pull: told, or why it was dropped."""
    ended = (event for event in study.events() if event.kind in ("told", "dropped"))
    return {event.pull or 0: event.cause or "told" for event in ended}


def check(study: thresher.Study, begun: set[int], threads: set[threading.Thread]) -> None:
    """Nothing is pending, every pull that began is told or lost, and no task and no thread is left."""
    assert study.pending() == []
    fates = fates_of(study)
    assert begun == {pull for pull, fate in fates.items() if fate != "cancelled"}
    assert set(fates.values()) <= {"told", "lost", "cancelled"}
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert set(threading.enumerate()) <= threads
    assert thresher.verify(study.events()).sound


@pytest.mark.parametrize("again", [None, 0, 1, 2])
def test_it_may_be_cancelled_at_every_step(again: int | None) -> None:
    """Once, or twice with a few turns of the loop in between."""

    async def cancelled_at(step: int) -> None:
        study, threads = make(budget=60), set(threading.enumerate())
        evaluate = Evaluator(step, lambda: task.cancel("enough"))
        task = asyncio.create_task(thresher.arun(study, evaluate, workers=3, in_flight=5))
        if again is not None:
            while not task.cancelling() and not task.done():
                await asyncio.sleep(0)
            for _ in range(again):
                await asyncio.sleep(0)
            task.cancel("more than enough")
        with pytest.raises(asyncio.CancelledError, match="enough"):
            await task
        check(study, evaluate.begun, threads)

    async def main() -> None:
        for step in range(1, 60, 4):
            await cancelled_at(step)

    asyncio.run(main())


def test_it_may_be_cancelled_in_every_turn_of_the_loop_before_the_first_evaluation_ends() -> None:
    async def main() -> None:
        for turns in range(12):
            study, threads = make(budget=60), set(threading.enumerate())
            evaluate = Evaluator(0, lambda: None)
            task = asyncio.create_task(thresher.arun(study, evaluate, workers=3, in_flight=5))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            check(study, evaluate.begun, threads)

    asyncio.run(main())


def test_a_timeout_around_it_is_a_timeout() -> None:
    async def main() -> None:
        study = make(budget=60)

        async def begins(pull: Pull) -> float:
            if limit.when() is None:
                limit.reschedule(asyncio.get_running_loop().time())
            return await _never_ends(pull)

        with pytest.raises(TimeoutError):
            async with asyncio.timeout(None) as limit:
                await thresher.arun(study, begins)
        assert study.pending() == []
        assert {"lost"} <= set(fates_of(study).values()) <= {"lost", "cancelled"}

    asyncio.run(main())


def test_the_other_run_of_a_cancelled_one_goes_on() -> None:
    async def half(pull: Pull) -> float:
        await asyncio.sleep(0)
        return 0.5

    async def main() -> None:
        study = make(budget=100)
        first = asyncio.create_task(thresher.arun(study, _never_ends, workers=4))
        while len(study.pending()) < 4:
            await asyncio.sleep(0.001)
        second = asyncio.create_task(thresher.arun(study, half, workers=4))
        assert (await second).told == 96
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert study.pending() == []

    asyncio.run(main())


async def _never_ends(pull: Pull) -> float:
    await asyncio.sleep(FOREVER)
    return 0.5


async def _swallows(pull: Pull) -> float:
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.sleep(FOREVER)
    return 1.0


async def _never_leaves(pull: Pull) -> float:
    while not _LET_GO.is_set():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0.01)
    return 1.0


_LET_GO = threading.Event()


@pytest.mark.parametrize("evaluate", [_swallows, _never_leaves])
def test_an_evaluator_that_ignores_it_does_not_hold_it_up_and_its_reward_does_not_count(
    evaluate: Callable[[Pull], Awaitable[float]], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(awaiting, "WIND_UP", 0.1)
    monkeypatch.setattr(coroutines, "WIND_UP", 0.1)
    _LET_GO.clear()

    async def main() -> None:
        study = make(budget=60)
        task = asyncio.create_task(thresher.arun(study, evaluate, workers=4))
        while len(study.pending()) < 4:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        _LET_GO.set()
        assert study.pending() == []
        assert list(fates_of(study).values()) == ["lost"] * 4
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0.001)
        assert [row.reward for row in study.pulls()] == [None] * 4

    asyncio.run(main())
    left = "4 evaluations did not end within 0.1 s of being cancelled"
    assert (left in caplog.text) == (evaluate is _never_leaves)


def test_a_run_that_is_still_going_when_its_loop_ends_is_cancelled() -> None:
    """As ``asyncio.run`` does it: it cancels all tasks at once, those of the evaluations too."""
    study = make(budget=60)
    evaluate = Evaluator(0, lambda: None)

    async def main() -> None:
        tasks.append(asyncio.create_task(thresher.arun(study, evaluate, workers=4)))
        while len(evaluate.begun) < 4:
            await asyncio.sleep(0)

    tasks: list[asyncio.Task[thresher.Verdict]] = []
    asyncio.run(main())
    assert tasks[0].cancelled()
    assert study.pending() == []
    fates = fates_of(study)
    assert {fates[pull] for pull in evaluate.begun} <= {"told", "lost"}


SCRIPT = """
import asyncio, sys, thresher
from pathlib import Path
async def evaluate(pull):
    Path(sys.argv[2], f"began-{pull.id}").touch()
    await asyncio.sleep(3600)
async def main():
    study = thresher.create_study("s", arms=["a", "b"], at_least=0.5, budget=50, storage=sys.argv[1])
    try:
        await thresher.arun(study, evaluate, workers=3)
    finally:
        print(len(study.pending()), [event.cause for event in study.events() if event.kind == "dropped"], flush=True)
try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("interrupted")
"""


def test_ctrl_c_does_what_it_does_in_asyncio(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", SCRIPT, f"sqlite:///{tmp_path}/s.db", str(tmp_path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        try:
            while len(list(tmp_path.glob("began-*"))) < 3:
                assert process.poll() is None
            process.send_signal(signal.SIGINT)
            said, _ = process.communicate(timeout=60)
        finally:
            process.kill()
    assert said == "0 ['lost', 'lost', 'lost']\ninterrupted\n"


def test_an_evaluator_that_always_cancels_itself_fails_and_the_run_ends() -> None:
    async def evaluate(pull: Pull) -> float:
        if pull.arm == "cancels":
            task = asyncio.current_task()
            assert task
            task.cancel()
            await asyncio.sleep(0)
        return 0.5

    verdict = asyncio.run(thresher.arun(make("a", "cancels", "b", budget=PLENTY), evaluate, workers=4))
    assert verdict.retired == ["cancels"]


def test_a_task_that_is_cancelled_before_it_begins_is_not_waited_for() -> None:
    """By an evaluator that cancels all others."""
    begun: list[int] = []

    async def evaluate(pull: Pull) -> float:
        begun.append(pull.id)
        if pull.id == 1:
            while len(asyncio.all_tasks()) < 11:
                await asyncio.sleep(0)
            for task in asyncio.all_tasks() - {asyncio.current_task(), *callers}:
                task.cancel()
        return 0.5

    async def main() -> None:
        callers.append(asyncio.current_task())
        study = make(budget=20)
        await thresher.arun(study, evaluate, workers=1, in_flight=10)
        fates = fates_of(study)
        assert len(fates) == 20
        assert sorted(begun) == [pull for pull, fate in sorted(fates.items()) if fate == "told"]
        assert set(fates.values()) == {"told", "cancelled"}

    callers: list[asyncio.Task[None] | None] = []
    asyncio.run(main())


def test_a_loop_that_is_closed_without_cancelling_leaves_nothing_pending() -> None:
    study, threads = make(), set(threading.enumerate())
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda *_: None)  # asyncio complains about the task
    task = loop.create_task(thresher.arun(study, _never_ends, workers=4))
    while len(study.pending()) < 4:
        loop.run_until_complete(asyncio.sleep(0.001))
    loop.close()
    until(lambda: set(threading.enumerate()) <= threads, "the end of the run")
    assert set(fates_of(study).values()) <= {"lost", "cancelled"}
    assert study.pending() == []
    assert not task.done()
