"""A run inside the caller's event loop: the loop of `run` in a thread, and the evaluations in the caller's loop."""

import asyncio
import contextlib
import functools
import threading
from collections.abc import Awaitable, Callable, Collection
from typing import Any, TypeVar

from ..core.verdict import Verdict
from ..errors import InvalidInput
from ..study import Study, peek
from .engines import check_evaluator
from .engines.coroutines import WIND_UP, Coroutines, log_left
from .loop import Runner
from .progress import Progress
from .runner import Limits
from .shared import Sharing, awaited, checked
from .wrapped import WrappedCoroutine, is_coroutine

Tell = Callable[[Progress], object]
Answer = TypeVar("Answer")


async def run_here(
    study: Study,
    evaluate: Callable[..., Awaitable[object]],
    limits: Limits,
    *,
    workers: int,
    on_progress: Tell | None,
    shared: Sharing | None,
) -> Verdict:
    """The same as `thresher.arun`, which documents the arguments."""
    _check(evaluate, workers, on_progress)
    sharing = checked(shared, awaits=True)
    await _until_done(_in_thread(lambda: peek(study, lambda ledger: ledger.seq)))  # before anything is set up
    wrapped = WrappedCoroutine(evaluate)
    async with awaited(sharing) as wrapped.more:
        return await Awaited(study, Coroutines(wrapped, workers, asyncio.get_running_loop()), limits, on_progress).run()


def _check(evaluate: object, workers: int, on_progress: object) -> None:
    check_evaluator(evaluate, workers)
    if not is_coroutine(evaluate):
        rule = "must be a coroutine function, because arun calls it in the event loop"
        raise InvalidInput("evaluate", evaluate, rule, "write async def, or use thresher.run in a thread")
    if is_coroutine(on_progress):
        raise InvalidInput("on_progress", on_progress, "must be a plain function", "let it call asyncio.create_task")


class Awaited:
    """One run, seen from the caller's loop."""

    def __init__(self, study: Study, engine: Coroutines, limits: Limits, on_progress: Tell | None) -> None:
        self._study, self._engine, self._on_progress = study, engine, on_progress
        self._loop = asyncio.get_running_loop()
        self._runner = Runner(study, engine, limits, None if on_progress is None else self._send)
        self._refused: Exception | None = None  # what on_progress raised

    async def run(self) -> Verdict:
        """Nothing can interrupt it between its steps: a cancellation is remembered and raised at the end."""
        running = _in_thread(self._work)
        cancelled = await _all_done([running], on_cancel=self._stop)
        tasks = self._engine.cancel_all()
        cancelled = await _all_done(tasks, timeout=WIND_UP) or cancelled
        log_left(tasks)
        verdict = running.result()
        if self._refused is not None:
            raise self._refused
        if cancelled is not None:
            raise cancelled
        return verdict

    def _work(self) -> Verdict:
        self._runner.run()
        return self._study.verdict()

    def _stop(self) -> None:
        """The runner hears of it first, so it drops what is cancelled as lost, not as failed."""
        self._runner.stop()
        self._engine.cancel_all()

    def _send(self, progress: Progress) -> None:
        self._loop.call_soon_threadsafe(self._report, progress)

    def _report(self, progress: Progress) -> None:
        if self._on_progress is not None and self._refused is None:
            try:
                self._on_progress(progress)
            except Exception as error:  # it ends the run, as in `run`
                self._refused = error
                self._stop()


def _in_thread(job: Callable[[], Answer]) -> "asyncio.Future[Answer]":
    """Do a job in a thread of its own: those of the loop's executor may all be busy with evaluations."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Answer] = loop.create_future()

    def settle(ending: Callable[[], None]) -> None:
        thread.join()  # it has nothing left to do
        ending()

    def work() -> None:
        try:
            ending = functools.partial(done.set_result, job())
        except BaseException as error:
            ending = functools.partial(done.set_exception, error)
        with contextlib.suppress(RuntimeError):  # the loop was closed: nobody waits
            loop.call_soon_threadsafe(settle, ending)

    thread = threading.Thread(target=work, name="thresher-arun", daemon=True)
    thread.start()
    return done


async def _until_done(job: "asyncio.Future[Answer]") -> Answer:
    cancelled = await _all_done([job])
    if cancelled is not None:
        raise cancelled
    return job.result()


async def _all_done(
    jobs: Collection["asyncio.Future[Any]"],
    *,
    on_cancel: Callable[[], object] = lambda: None,
    timeout: float | None = None,
) -> asyncio.CancelledError | None:
    """Wait until all are done or the time is over. Returns a cancellation, for the caller to raise."""
    cancelled, clock = None, asyncio.get_running_loop().time
    end = None if timeout is None else clock() + timeout
    while left := [job for job in jobs if not job.done()]:
        seconds = None if end is None else end - clock()
        if seconds is not None and seconds <= 0:
            break
        try:
            await asyncio.wait(left, timeout=seconds)
        except asyncio.CancelledError as error:
            cancelled = error
            on_cancel()
    return cancelled
