"""Waiting in the caller's event loop: for threads, for tasks, and whatever is cancelled meanwhile."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from engines import make

import thresher
from thresher.errors import InvalidInput
from thresher.run.arun import Awaited, _all_done, _in_thread, _until_done
from thresher.run.engines.coroutines import Coroutines
from thresher.run.runner import Limits, Progress
from thresher.study import Pull

SECONDS = 20.0


def here(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a test in an event loop."""
    asyncio.run(asyncio.wait_for(main(), SECONDS))


async def half(_: Pull) -> float:
    await asyncio.sleep(0)
    return 0.5


def plain(_: Pull) -> float:
    return 0.5


@pytest.mark.parametrize(
    ("evaluate", "given", "words"),
    [
        (plain, {}, "evaluate .*: must be a coroutine function, because arun calls it in the event loop; write async"),
        (half, {"on_progress": half}, "on_progress .*: must be a plain function; let it call asyncio.create_task"),
        (half, {"workers": 0}, "workers 0"),
    ],
)
def test_what_cannot_be_awaited_is_refused(evaluate: Any, given: dict[str, Any], words: str) -> None:
    async def main() -> None:
        with pytest.raises(InvalidInput, match=words):
            await thresher.arun(study, evaluate, **given)

    study = make()
    here(main)
    assert len(study.events()) == 1


def test_a_job_in_a_thread_gives_its_answer_and_its_thread_is_over() -> None:
    async def main() -> None:
        threads: list[threading.Thread] = []

        def answer() -> str:
            threads.append(threading.current_thread())
            return "done"

        assert await _until_done(_in_thread(answer)) == "done"
        assert (threads[0].is_alive(), threads[0].daemon, threads[0].name) == (False, True, "thresher-arun")
        with pytest.raises(LookupError, match="no"):
            await _until_done(_in_thread(lambda: dict[str, str]()["no"]))

    here(main)


def test_a_job_whose_loop_was_closed_ends_quietly() -> None:
    go = threading.Event()

    async def main() -> None:
        _in_thread(lambda: go.wait(SECONDS))

    before = set(threading.enumerate())
    asyncio.run(main())
    (thread,) = [each for each in threading.enumerate() if each.name == "thresher-arun" and each not in before]
    go.set()
    thread.join(SECONDS)
    assert not thread.is_alive()


def test_a_cancellation_is_raised_once_the_job_is_done() -> None:
    async def main() -> None:
        go = threading.Event()
        job = _in_thread(lambda: go.wait(SECONDS))
        waiting = asyncio.create_task(_until_done(job))
        await asyncio.sleep(0)
        waiting.cancel("enough")
        for _ in range(5):
            await asyncio.sleep(0)
        assert not waiting.done()
        go.set()
        with pytest.raises(asyncio.CancelledError, match="enough"):
            await waiting
        assert job.result() is True

    here(main)


def test_all_are_waited_for_whatever_is_cancelled_and_each_cancellation_is_dealt_with() -> None:
    async def main() -> None:
        first, second, calls = asyncio.Event(), asyncio.Event(), list[int]()
        jobs = [asyncio.ensure_future(event.wait()) for event in (first, second)]
        waiting = asyncio.create_task(_all_done(jobs, on_cancel=lambda: calls.append(1)))
        for number in (1, 2):
            await asyncio.sleep(0)
            waiting.cancel(f"number {number}")
            for _ in range(5):
                await asyncio.sleep(0)
            assert len(calls) == number
        first.set()
        await asyncio.sleep(0)
        assert not waiting.done()
        second.set()
        assert str(await waiting) == "number 2"
        assert await _all_done([]) is None

    here(main)


def test_what_takes_too_long_is_not_waited_for() -> None:
    async def main() -> None:
        never = asyncio.ensure_future(asyncio.Event().wait())
        clock = asyncio.get_running_loop().time
        before = clock()
        assert await _all_done([never], timeout=0.05) is None
        assert 0.05 <= clock() - before < SECONDS
        assert await _all_done([never], timeout=0.0) is None
        never.cancel()

    here(main)


def test_the_error_of_a_report_ends_the_run_and_nothing_is_reported_after_it() -> None:
    async def main() -> None:
        seen: list[Progress] = []

        def report(progress: Progress) -> None:
            seen.append(progress)
            raise LookupError("no more")

        study = make(budget=10**6)
        run = Awaited(study, Coroutines(half, 2, asyncio.get_running_loop()), Limits(), report)
        with pytest.raises(LookupError, match="no more"):
            await run.run()
        run._report(seen[0])
        assert (len(seen), study.verdict().pending) == (1, 0)

    here(main)


def test_a_run_that_is_cancelled_raises_that_unless_a_report_failed_before() -> None:
    async def main() -> None:
        study = make(budget=10**6)
        run = Awaited(study, Coroutines(half, 2, asyncio.get_running_loop()), Limits(), None)
        assert run._runner._meter.tell is None
        run._report(Progress(0, 0, 0, 0, 0.0, None))  # nobody wants it
        task = asyncio.create_task(run.run())
        while study.verdict().told < 4:
            await asyncio.sleep(0)
        task.cancel("enough")
        with pytest.raises(asyncio.CancelledError, match="enough"):
            await task
        assert study.verdict().pending == 0

    here(main)
