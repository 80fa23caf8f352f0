"""Coroutines as an engine, one step at a time: on the caller's loop, and on a loop of their own."""

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any

import pytest

from thresher.errors import CannotGoOn
from thresher.run.engines import coroutines
from thresher.run.engines.coroutines import Coroutines, Loop, log_left
from thresher.run.evaluators import Shared, WrappedCoroutine
from thresher.study import Pull

SECONDS = 20.0
WHO: contextvars.ContextVar[str] = contextvars.ContextVar("WHO", default="nobody")


def pull(number: int) -> Pull:
    return Pull(number, "a", 1, {}, 7)


def here(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a test in an event loop."""
    asyncio.run(asyncio.wait_for(main(), SECONDS))


async def result(future: "Future[object]") -> object:
    return await asyncio.wait_for(asyncio.wrap_future(future), SECONDS)


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


class Held:
    """Evaluations that wait until the test lets them end."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.release = asyncio.Event()

    async def __call__(self, one: Pull) -> float:
        self.begun.append(one.id)
        await self.release.wait()
        return one.id / 8


# -- on the caller's loop --------------------------------------------------------------------------------------------


def test_as_many_run_at_once_as_there_are_workers_in_the_callers_context() -> None:
    async def main() -> None:
        async def evaluate(one: Pull) -> str:
            await held(one)
            return WHO.get()

        WHO.set("caller")
        held = Held()
        engine = Coroutines(evaluate, 2, asyncio.get_running_loop())
        WHO.set("later")
        assert engine.room == engine.workers == 2
        futures = [engine.submit(pull(number)) for number in (1, 2, 3)]
        await turns()
        assert (held.begun, [engine.began(each) for each in futures]) == ([1, 2], [True, True, False])
        held.release.set()
        assert [await result(each) for each in futures] == ["caller"] * 3
        await turns()
        assert engine._tasks == {}

    here(main)


def test_a_pull_that_was_taken_back_is_not_evaluated() -> None:
    async def main() -> None:
        held = Held()
        engine = Coroutines(held, 1, asyncio.get_running_loop())
        first, second, third = (engine.submit(pull(number)) for number in (1, 2, 3))
        await turns()
        assert engine.take_back([first, second]) == {second}
        held.release.set()
        assert [await result(first), await result(third)] == [0.125, 0.375]
        assert held.begun == [1, 3]

    here(main)


def test_an_evaluation_that_is_stopped_fails_a_moment_later() -> None:
    async def main() -> None:
        held = Held()
        engine = Coroutines(held, 1, asyncio.get_running_loop())
        engine.grace = 0.1
        future = engine.submit(pull(1))
        await turns()
        before = asyncio.get_running_loop().time()
        engine.stop(future)
        with pytest.raises(asyncio.CancelledError):
            await result(future)
        assert asyncio.get_running_loop().time() - before >= 0.1, "if the run ends meanwhile, no arm is to blame"
        assert isinstance(future.exception(), asyncio.CancelledError)
        assert (engine._timers, engine._tasks) == ({}, {})
        engine.stop(future)
        await turns()

    here(main)


def test_a_run_that_ends_within_that_moment_is_not_told() -> None:
    async def main() -> None:
        held = Held()
        engine = Coroutines(held, 2, asyncio.get_running_loop())
        engine.grace = SECONDS
        stopped, runs = engine.submit(pull(1)), engine.submit(pull(2))
        await turns()
        engine.stop(stopped)
        await turns()
        (timer,) = engine._timers.values()
        tasks = engine.cancel_all()
        assert (len(tasks), engine._timers, timer.cancelled()) == (1, {}, True)
        await asyncio.wait(tasks)
        assert isinstance(runs.exception(0), asyncio.CancelledError), "at once: the run is over"
        assert not stopped.done()
        third = engine.submit(pull(3))
        await turns()
        assert (held.begun, third.running(), engine.cancel_all()) == ([1, 2], False, [])

    here(main)


def test_a_task_that_is_cancelled_before_it_begins_is_a_pull_that_never_began() -> None:
    async def main() -> None:
        held = Held()
        engine = Coroutines(held, 1, asyncio.get_running_loop())
        _, waits = engine.submit(pull(1)), engine.submit(pull(2))
        await turns()
        engine._tasks[waits].cancel()
        await turns()
        assert waits.cancelled()
        await asyncio.wait(engine.cancel_all())

    here(main)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_what_an_evaluation_raises_is_told_and_only_ctrl_c_goes_on_to_the_loop(error: type[BaseException]) -> None:
    async def evaluate(_: Pull) -> float:
        raise error("now")

    seen: list[Any] = []

    async def main() -> None:
        engine = Coroutines(evaluate, 1, asyncio.get_running_loop())
        seen.append(engine.submit(pull(1)))
        with pytest.raises(error, match="now"):
            await result(seen[0])

    if error is KeyboardInterrupt:
        with pytest.raises(KeyboardInterrupt):
            asyncio.run(main())
    else:
        asyncio.run(main())
    assert isinstance(seen[0].exception(0), error)


def test_a_loop_that_was_closed_ends_the_run() -> None:
    loop = asyncio.new_event_loop()
    engine = Coroutines(Held(), 1, loop)
    loop.close()
    with pytest.raises(CannotGoOn, match="its event loop was closed; cancel its task first"):
        _ = engine.room
    engine.close(wait=True)


def test_closing_it_cancels_what_runs() -> None:
    async def main() -> None:
        held = Held()
        engine = Coroutines(held, 1, asyncio.get_running_loop())
        future = engine.submit(pull(1))
        await turns()
        engine.close(wait=False)
        with pytest.raises(asyncio.CancelledError):
            await result(future)
        assert engine._is_over

    here(main)


def test_evaluations_that_do_not_end_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        tasks = [asyncio.create_task(asyncio.sleep(seconds)) for seconds in (0, 60, 60)]
        await turns()
        log_left(tasks)
        assert "2 evaluations did not end within 3 s of being cancelled" in caplog.text
        caplog.clear()
        log_left(tasks[:1])
        assert caplog.text == ""
        for task in tasks:
            task.cancel()

    here(main)


# -- on a loop of their own ------------------------------------------------------------------------------------------


async def half(_: Pull, *more: object) -> object:
    await asyncio.sleep(0)
    return (WHO.get(), *more)


def test_a_loop_of_their_own_ends_with_the_run() -> None:
    engine = Loop(WrappedCoroutine(half), 2)
    engine.prepare()
    assert engine.submit(pull(1)).result(SECONDS) == ("nobody",)
    assert engine._thread.daemon
    engine.close(wait=True)
    engine.release()
    assert (engine._thread.is_alive(), engine._loop.is_closed()) == (False, True)


def test_what_is_shared_is_set_up_in_the_callers_context_and_cleaned_up_at_the_end() -> None:
    did: list[object] = []
    token = WHO.set("caller")
    engine = Loop(WrappedCoroutine(half), 2, Shared(WHO.get, did.append, is_pair=True))
    WHO.reset(token)
    engine.prepare()
    assert engine.submit(pull(1)).result(SECONDS) == ("caller", "caller")
    engine.close(wait=True)
    assert did == []
    engine.release()
    assert did == ["caller"]
    assert engine._loop.is_closed()


def test_a_set_up_that_fails_is_told_and_leaves_no_loop_behind() -> None:
    def fail() -> None:
        raise LookupError("no such database")

    engine = Loop(WrappedCoroutine(half), 2, Shared(fail, print, is_pair=True))
    with pytest.raises(CannotGoOn, match="its set-up failed: LookupError: no such database"):
        engine.prepare()
    engine.close(wait=True)
    engine.release()
    assert (engine._thread.is_alive(), engine._loop.is_closed()) == (False, True)


def test_what_runs_at_the_end_is_cancelled_and_waited_for() -> None:
    cleaned: list[int] = []

    async def evaluate(one: Pull) -> float:
        try:
            began.set()
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            cleaned.append(one.id)
        return 0.5

    began = threading.Event()
    engine = Loop(WrappedCoroutine(evaluate), 1)
    future = engine.submit(pull(1))
    assert began.wait(SECONDS)
    engine.close(wait=False)
    assert (cleaned, type(future.exception(0))) == ([1], asyncio.CancelledError)
    engine.release()


@pytest.mark.parametrize("is_shared", [True, False])
def test_a_coroutine_that_blocks_the_loop_is_left_alone_and_mentioned(
    is_shared: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def evaluate(_: Pull, *more: object) -> float:
        began.set()
        go.wait(SECONDS)
        return 0.5

    monkeypatch.setattr(coroutines, "WIND_UP", -1.95)
    began, go = threading.Event(), threading.Event()
    engine = Loop(WrappedCoroutine(evaluate), 1, Shared(dict, print, is_pair=True) if is_shared else None)
    engine.prepare()
    engine.submit(pull(1))
    assert began.wait(SECONDS)
    engine.close(wait=False)
    engine.release()
    words = "shared: it was not cleaned up, because an evaluation blocks the event loop"
    assert (words in caplog.text) == is_shared
    assert engine._thread.is_alive()
    go.set()
    monkeypatch.undo()
    engine._hangs = False
    engine.release()
    assert not engine._thread.is_alive()
