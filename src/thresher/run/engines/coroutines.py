"""Coroutines: on the caller's event loop, or on one of our own."""

import asyncio
import contextlib
import contextvars
import functools
import threading
from collections.abc import Collection
from concurrent.futures import Future
from typing import Any

from ...errors import CannotGoOn
from ...study import Pull
from ...text.logs import log
from ...text.phrasing import plural
from ..evaluators import Shared, shared_argument_async
from ..failures import wrapped_failure
from .local import Engine

WIND_UP = 3.0  # seconds in which a cancelled coroutine must end


class Coroutines(Engine):
    """Coroutines on an event loop that is already running. The caller waits for the tasks that `cancel_all` returns."""

    passed_on: tuple[type[BaseException], ...] = (KeyboardInterrupt,)  # these errors of evaluators also reach the loop
    grace = 0.05  # seconds after which a cancelled task is reported as a failure

    def __init__(self, evaluate: Any, workers: int, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(workers)
        self.evaluate, self._loop = evaluate, loop
        self._context = contextvars.copy_context()
        self._tasks: dict[Future[object], asyncio.Task[None]] = {}
        self._timers: dict[Future[object], asyncio.TimerHandle] = {}  # these will report cancelled tasks
        self._room = asyncio.Semaphore(workers)
        self._is_over = False

    @property
    def room(self) -> int:
        if self._loop.is_closed():
            raise CannotGoOn("arun", rule="its event loop was closed", remedy="cancel its task first")
        return super().room

    def submit(self, pull: Pull) -> "Future[object]":
        future: Future[object] = Future()
        self._loop.call_soon_threadsafe(self._begin, future, pull, context=self._context)
        return future

    def stop(self, future: "Future[object]") -> None:
        self._loop.call_soon_threadsafe(self._cancel, future)

    def close(self, *, wait: bool) -> None:
        with contextlib.suppress(RuntimeError):  # the loop was closed, and its tasks with it
            self._loop.call_soon_threadsafe(self.cancel_all)

    # -- in the loop's thread -----------------------------------------------------------------------------------

    def cancel_all(self) -> Collection["asyncio.Task[None]"]:
        """Begin no more evaluations, cancel the running ones, and return their tasks."""
        self._is_over = True
        while self._timers:
            self._timers.popitem()[1].cancel()
        for task in self._tasks.values():
            task.cancel()
        return list(self._tasks.values())

    def _begin(self, future: "Future[object]", pull: Pull) -> None:
        if not self._is_over:
            self._tasks[future] = task = self._loop.create_task(self._evaluate(future, pull))
            task.add_done_callback(functools.partial(self._ended, future))

    async def _evaluate(self, future: "Future[object]", pull: Pull) -> None:
        async with self._room:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(await self.evaluate(pull))
            except BaseException as error:
                is_passed_on = isinstance(error, self.passed_on)
                self._raised(future, error if is_passed_on else wrapped_failure(error))
                if is_passed_on:
                    raise

    def _raised(self, future: "Future[object]", error: BaseException) -> None:
        """Report an error to the run; that a task was cancelled, a moment later.

        If all tasks of the loop are being cancelled, the run learns of its own end first, and blames no arm.
        """
        if isinstance(error, asyncio.CancelledError) and self.grace and not self._is_over:
            self._timers[future] = self._loop.call_later(self.grace, self._tell_failure, future, error)
        else:
            future.set_exception(error)

    def _tell_failure(self, future: "Future[object]", error: BaseException) -> None:
        del self._timers[future]
        future.set_exception(error)

    def _ended(self, future: "Future[object]", task: "asyncio.Task[None]") -> None:
        del self._tasks[future]
        if not future.running():
            future.cancel()  # its task was cancelled before it began
        if not task.cancelled():
            task.exception()  # read it, so that asyncio does not log it

    def _cancel(self, future: "Future[object]") -> None:
        task = self._tasks.get(future)
        if task is not None:
            task.cancel()


class CoroutinesLoop(Coroutines):
    """Coroutines on an event loop of our own, in its own thread."""

    passed_on = ()
    grace = 0.0

    def __init__(self, evaluate: Any, workers: int, shared: Shared | None = None) -> None:
        super().__init__(evaluate, workers, asyncio.new_event_loop())
        self._shared = shared
        self._leave = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None
        self._hangs = False
        self._thread = threading.Thread(target=self._loop.run_forever, name="thresher-loop", daemon=True)
        self._thread.start()

    def prepare(self) -> None:
        if self._shared is not None:
            ready: Future[None] = Future()
            self._loop.call_soon_threadsafe(self._start_keeper, ready, context=self._context)
            try:
                ready.result()
            except BaseException:
                self._loop.call_soon_threadsafe(self._cancel_keeper)
                raise

    def close(self, *, wait: bool) -> None:
        """Cancel the evaluations. A coroutine that blocks the loop is left alone: its thread is a daemon."""
        try:
            asyncio.run_coroutine_threadsafe(self._wind_up(), self._loop).result(timeout=WIND_UP + 2)
        except TimeoutError:
            self._hangs = True

    def release(self) -> None:
        if self._hangs:
            if self._shared is not None:
                log.warning("shared: it was not cleaned up, because an evaluation blocks the event loop")
            return
        try:
            if self._keeper is not None:
                asyncio.run_coroutine_threadsafe(self._leave_keeper(self._keeper), self._loop).result()
        finally:
            asyncio.run_coroutine_threadsafe(self._end(), self._loop)
            self._thread.join(timeout=5)
            if not self._thread.is_alive():
                self._loop.close()

    # -- in the loop's thread -----------------------------------------------------------------------------------

    def _start_keeper(self, ready: "Future[None]") -> None:
        self._keeper = self._loop.create_task(self._keep(ready))

    async def _keep(self, ready: "Future[None]") -> None:
        try:
            async with shared_argument_async(self._shared) as self.evaluate.more:
                ready.set_result(None)
                await self._leave.wait()
        except BaseException as error:
            if not ready.done():
                ready.set_exception(error)

    def _cancel_keeper(self) -> None:
        if self._keeper is not None:
            self._keeper.cancel()

    async def _leave_keeper(self, keeper: "asyncio.Task[None]") -> None:
        self._leave.set()
        await asyncio.wait([keeper])

    async def _wind_up(self) -> None:
        if tasks := self.cancel_all():
            await asyncio.wait(tasks, timeout=WIND_UP)

    async def _end(self) -> None:
        self._cancel_keeper()  # if the clean-up was interrupted
        last = [self._loop.create_task(self._loop.shutdown_asyncgens()), *([self._keeper] if self._keeper else [])]
        await asyncio.wait(last, timeout=WIND_UP)
        self._loop.call_soon(self._loop.stop)


def log_left_coroutines(tasks: Collection["asyncio.Task[None]"]) -> None:
    """Log evaluations that did not end when they were cancelled."""
    if left := sum(not task.done() for task in tasks):
        log.warning(f"{plural(left, 'evaluation')} did not end within {WIND_UP:g} s of being cancelled")
