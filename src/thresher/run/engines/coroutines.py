"""Coroutines."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future

from ...study import Pull
from .engine import Engine, as_the_evaluators


class Loop(Engine):
    """Coroutines on one event loop, in its own thread."""

    def __init__(self, evaluate: Callable[[Pull], Awaitable[object]], workers: int) -> None:
        super().__init__(workers)
        self.evaluate = evaluate
        self._tasks: dict[Future[object], asyncio.Task[None]] = {}
        self._room = asyncio.Semaphore(workers)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="thresher-loop", daemon=True)
        self._thread.start()

    def submit(self, pull: Pull) -> "Future[object]":
        future: Future[object] = Future()
        self._loop.call_soon_threadsafe(self._begin, future, pull)
        return future

    def stop(self, future: "Future[object]") -> None:
        self._loop.call_soon_threadsafe(self._cancel, future)

    def close(self, *, wait: bool) -> None:
        asyncio.run_coroutine_threadsafe(self._wind_up(), self._loop)
        self._thread.join(timeout=5)
        if not self._thread.is_alive():
            self._loop.close()

    def _begin(self, future: "Future[object]", pull: Pull) -> None:
        self._tasks[future] = self._loop.create_task(self._evaluate(future, pull))

    async def _evaluate(self, future: "Future[object]", pull: Pull) -> None:
        try:
            async with self._room:
                if not future.set_running_or_notify_cancel():
                    return
                future.set_result(await self.evaluate(pull))
        except BaseException as error:
            if not future.cancelled():
                future.set_exception(as_the_evaluators(error))
        finally:
            self._tasks.pop(future, None)

    def _cancel(self, future: "Future[object]") -> None:
        task = self._tasks.get(future)
        if task is not None:
            task.cancel()

    async def _wind_up(self) -> None:
        others = list(self._tasks.values())
        for task in others:
            task.cancel()
        await asyncio.wait([*others, asyncio.create_task(self._loop.shutdown_asyncgens())], timeout=3)
        self._loop.call_soon(self._loop.stop)
