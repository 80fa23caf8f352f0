"""`thresher.arun`: the loop of `run` in a thread, and evaluations in the caller's event loop."""

import asyncio
import contextlib
import functools
import threading
from collections.abc import Awaitable, Callable, Collection
from typing import Any, TypeVar

from ..core.named_arguments import named_arguments
from ..core.verdict import Verdict
from ..errors import InvalidInput
from ..study import Study, peek_study
from .engines import check_engine_evaluator
from .engines.coroutines import WIND_UP, Coroutines, log_left_coroutines
from .evaluators import Sharing, WrappedCoroutine, is_coroutine_evaluator, shared_argument_async, shared_by_evaluators
from .loop import Limits, Progress, Runner, check_run_loop_study

OnProgress = Callable[[Progress], object]
Result = TypeVar("Result")


@named_arguments
async def arun(
    study: Study,
    evaluate: Callable[..., Awaitable[object]],
    *,
    workers: int = 16,
    in_flight: int | None = None,
    timeout: float | None = None,
    seconds: float | None = None,
    on_progress: OnProgress | None = None,
    give_up: float = 600.0,
    shared: Sharing | None = None,
) -> Verdict:
    """Do what `run` does, in the event loop that awaits it and with its clients: in a server, in a notebook.

    The arguments:
        study: what `create_study` or `open_study` gave.
        evaluate: a coroutine function that takes a `Pull` and returns a number or a bool, or raises. It runs in this
            event loop, in tasks with a copy of the caller's context variables.
        workers: how many at once.
        in_flight: as in `run`, and so are the next three.
        timeout: seconds for one evaluation, which is then cancelled.
        seconds: issue no more pulls after this many seconds.
        on_progress: a plain function, called in this event loop with a `Progress`, at most ten times a second.
        give_up: seconds of an outage after which `CannotGoOn` is raised, as in `run`.
        shared: what evaluators share, as in `run`: an async context manager, a context manager or a pair of functions
            or coroutine functions.

    Decisions and writes to the store are made in a thread, so they do not block the event loop.

    When the task that awaits it is cancelled, no more pulls are issued, running evaluations are cancelled, and
    ``CancelledError`` is raised once no pull is pending: pulls that had begun are dropped as lost. An evaluation that
    does not end within 3 seconds is left behind. `arun` handles no signals: ``asyncio.run`` turns Ctrl-C into a
    cancellation.

    >>> import asyncio, thresher
    >>> async def main():
    ...     study = thresher.create_study("dice", arms=["d4", "d8"], at_least=3, bounds=(1, 8), budget=400, seed=0)
    ...     client = {"d4": 4, "d8": 8}  # in real life, an httpx.AsyncClient() of this event loop
    ...     async def roll(pull):
    ...         await asyncio.sleep(0)
    ...         return pull.seed % client[pull.arm] + 1
    ...     return await thresher.arun(study, roll, workers=64)
    >>> asyncio.run(main()).reached
    ['d8']
    """
    limits = Limits(in_flight=in_flight, timeout=timeout, seconds=seconds, give_up=give_up)
    check_run_loop_study(study, "arun")
    _check(evaluate, workers, on_progress)
    sharing = shared_by_evaluators(shared, awaits=True)
    await _until_done(_in_thread(lambda: peek_study(study, lambda ledger: ledger.seq)))  # before anything is set up
    wrapped = WrappedCoroutine(evaluate)
    async with shared_argument_async(sharing) as wrapped.more:
        return await AsyncRun(
            study, Coroutines(wrapped, workers, asyncio.get_running_loop()), limits, on_progress
        ).run()


def _check(evaluate: object, workers: int, on_progress: object) -> None:
    check_engine_evaluator(evaluate, workers)
    if not is_coroutine_evaluator(evaluate):
        rule = "must be a coroutine function, because arun calls it in the event loop"
        raise InvalidInput("evaluate", evaluate, rule, "write async def, or use thresher.run in a thread")
    if is_coroutine_evaluator(on_progress):
        raise InvalidInput("on_progress", on_progress, "must be a plain function", "let it call asyncio.create_task")


class AsyncRun:
    """One run, as the caller's event loop sees it."""

    def __init__(self, study: Study, engine: Coroutines, limits: Limits, on_progress: OnProgress | None) -> None:
        self._study, self._engine, self._on_progress = study, engine, on_progress
        self._loop = asyncio.get_running_loop()
        self._runner = Runner(study, engine, limits, None if on_progress is None else self._send)
        self._progress_error: Exception | None = None  # on_progress raised this

    async def run(self) -> Verdict:
        """Run. A cancellation does not interrupt the steps: it is remembered, and raised at the end."""
        running = _in_thread(self._work)
        cancelled = await _all_done([running], on_cancel=self._stop)
        tasks = self._engine.cancel_all()
        cancelled = await _all_done(tasks, timeout=WIND_UP) or cancelled
        log_left_coroutines(tasks)
        verdict = running.result()
        if self._progress_error is not None:
            raise self._progress_error
        if cancelled is not None:
            raise cancelled
        return verdict

    def _work(self) -> Verdict:
        self._runner.run()
        return self._study.verdict()

    def _stop(self) -> None:
        """End the run. The runner learns it first, so it drops the cancelled pulls as lost and not as failed."""
        self._runner.stop()
        self._engine.cancel_all()

    def _send(self, progress: Progress) -> None:
        self._loop.call_soon_threadsafe(self._report, progress)

    def _report(self, progress: Progress) -> None:
        if self._on_progress is not None and self._progress_error is None:
            try:
                self._on_progress(progress)
            except Exception as error:  # this ends the run, as in `run`
                self._progress_error = error
                self._stop()


def _in_thread(job: Callable[[], Result]) -> "asyncio.Future[Result]":
    """Do a job in a thread of its own, because evaluations may use all threads of the loop's executor."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Result] = loop.create_future()

    def settle(set_done: Callable[[], None]) -> None:
        thread.join()  # it has nothing left to do
        set_done()

    def work() -> None:
        try:
            set_done = functools.partial(done.set_result, job())
        except BaseException as error:
            set_done = functools.partial(done.set_exception, error)
        with contextlib.suppress(RuntimeError):  # the loop was closed: nobody waits
            loop.call_soon_threadsafe(settle, set_done)

    thread = threading.Thread(target=work, name="thresher-arun", daemon=True)
    thread.start()
    return done


async def _until_done(job: "asyncio.Future[Result]") -> Result:
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
