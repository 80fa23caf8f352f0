"""Engines: where pulls are evaluated. Every kind of place is brought to one shape, that of ``concurrent.futures``.

No code outside this file asks what kind of executor it has.
"""

import asyncio
import concurrent.futures as futures
import functools
import inspect
import os
import queue
import threading
import weakref
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from typing import Any, Protocol

from . import checks
from .errors import CannotGoOn, InvalidInput
from .processes import Process
from .study import Pull

Evaluate = Callable[[Pull], object]
Place = Executor | Callable[[], Executor] | str | None


class Engine(Protocol):
    """What the runner needs: futures that say when they run and when they are done."""

    @property
    def workers(self) -> int:
        """How many pulls it evaluates at once."""

    def submit(self, pull: Pull) -> "Future[object]":
        """Begin to evaluate, as soon as a worker is free."""

    def stop(self, future: "Future[object]") -> None:
        """The time of a running evaluation is over: end it, or at least put another worker in its place."""

    def mend(self, future: "Future[object]") -> None:
        """The engine broke under this future: make it whole, or raise `CannotGoOn`."""

    def close(self, *, wait: bool) -> None:
        """End all workers: those at work too unless ``wait``, which means that none is."""


def open_engine(evaluate: Evaluate, *, workers: int | None, executor: Place) -> Engine:
    """The engine for an evaluator and what the user said of where it shall run."""
    if not callable(evaluate):
        raise InvalidInput("evaluate", evaluate, "must be a function that takes a pull")
    if workers is not None:
        checks.whole("workers", workers, least=1)
    called = (
        evaluate if inspect.isroutine(evaluate) or isinstance(evaluate, functools.partial) else type(evaluate).__call__
    )
    if inspect.iscoroutinefunction(called):
        if executor is not None:
            raise InvalidInput("executor", executor, "a coroutine function runs on an event loop", "leave executor out")
        return Loop(evaluate, workers or 16)  # type: ignore[arg-type]
    if executor is None or executor == "threads":
        return Threads(evaluate, workers or _cores())
    if executor == "processes":
        return Processes(evaluate, workers or _cores())
    if isinstance(executor, Executor) or callable(executor):
        return Adapter(evaluate, executor, workers)
    remedy = "pass 'threads', 'processes', or a concurrent.futures.Executor"
    raise InvalidInput("executor", executor, "is nothing that thresher can run pulls on", remedy)


def _cores() -> int:
    return os.cpu_count() or 1


class Threads:
    """Daemon threads of our own: a hung call neither blocks its fellows nor keeps the interpreter alive."""

    def __init__(self, evaluate: Evaluate, workers: int) -> None:
        self.evaluate, self.workers = evaluate, workers
        self._tasks: queue.SimpleQueue[tuple[Future[object], Pull] | None] = queue.SimpleQueue()
        self._running: dict[Future[object], Any] = {}
        self._threads = 0

    def submit(self, pull: Pull) -> "Future[object]":
        """Hand the pull to the next free thread; threads are started as they are needed."""
        future: Future[object] = Future()
        if self._threads < self.workers:
            self._start()
        self._tasks.put((future, pull))
        return future

    def stop(self, future: "Future[object]") -> None:
        """Abandon the thread, which cannot be ended, and start another in its place."""
        if self._running.pop(future, None) is not None:
            self._threads -= 1
            self._start()

    def mend(self, future: "Future[object]") -> None:
        """Threads do not break."""

    def close(self, *, wait: bool) -> None:
        """Let idle threads go."""
        for _ in range(self._threads):
            self._tasks.put(None)

    def _start(self) -> None:
        self._threads += 1
        threading.Thread(target=self._work, name="thresher-worker", daemon=True).start()

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            future, pull = task
            if future.set_running_or_notify_cancel():
                self._running[future] = True
                _fulfil(future, self.evaluate, pull)
                if self._running.pop(future, None) is None:
                    return  # abandoned: another thread has this one's place


def _fulfil(future: "Future[object]", evaluate: Evaluate, pull: Pull) -> None:
    try:
        result = evaluate(pull)
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)


class Processes(Threads):
    """Processes of our own, each with its own pipe and a thread that waits for it: a death costs one pull alone."""

    def stop(self, future: "Future[object]") -> None:
        """Kill the process; its thread notices and starts another."""
        process = self._running.get(future)
        if process is not None:
            process.kill()

    def close(self, *, wait: bool) -> None:
        """Let idle processes go; kill those at work."""
        super().close(wait=wait)
        if not wait:
            for process in list(self._running.values()):
                process.kill()

    def _work(self) -> None:
        process = Process(self.evaluate)
        try:
            while (task := self._tasks.get()) is not None:
                future, pull = task
                if future.set_running_or_notify_cancel():
                    self._running[future] = process
                    _fulfil(future, process.evaluate, pull)
                    del self._running[future]
        finally:
            process.close()


class Loop:
    """Coroutines on one event loop, in a thread of its own."""

    def __init__(self, evaluate: Callable[[Pull], Awaitable[object]], workers: int) -> None:
        self.evaluate, self.workers = evaluate, workers
        self._tasks: dict[Future[object], asyncio.Task[None]] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="thresher-loop", daemon=True)
        self._thread.start()

    def submit(self, pull: Pull) -> "Future[object]":
        """Begin at once: whoever fills the loop keeps count."""
        future: Future[object] = Future()
        self._loop.call_soon_threadsafe(self._begin, future, pull)
        return future

    def stop(self, future: "Future[object]") -> None:
        """Cancel the coroutine."""
        self._loop.call_soon_threadsafe(self._cancel, future)

    def mend(self, future: "Future[object]") -> None:
        """Loops do not break."""

    def close(self, *, wait: bool) -> None:
        """Cancel what runs, and end the loop."""
        asyncio.run_coroutine_threadsafe(self._wind_up(), self._loop)
        self._thread.join(timeout=5)
        if not self._thread.is_alive():
            self._loop.close()

    def _begin(self, future: "Future[object]", pull: Pull) -> None:
        if future.set_running_or_notify_cancel():
            self._tasks[future] = self._loop.create_task(self._evaluate(future, pull))

    async def _evaluate(self, future: "Future[object]", pull: Pull) -> None:
        try:
            result = await self.evaluate(pull)
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)
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


class Adapter:
    """Any ``concurrent.futures.Executor``, or a function that makes one."""

    def __init__(self, evaluate: Evaluate, executor: Executor | Callable[[], Executor], workers: int | None) -> None:
        self.evaluate = evaluate
        self._make = None if isinstance(executor, Executor) else executor
        self._owned = self._make is not None
        self._executor = executor if isinstance(executor, Executor) else executor()
        self._here: weakref.WeakSet[Future[object]] = weakref.WeakSet()  # what the present executor was given
        self.workers = workers or getattr(self._executor, "_max_workers", None) or _cores()

    def submit(self, pull: Pull) -> "Future[object]":
        """Submit; a pool that is found broken is mended first, for this pull has not begun."""
        try:
            future = self._executor.submit(self.evaluate, pull)
        except futures.BrokenExecutor:
            self._replace()
            future = self._executor.submit(self.evaluate, pull)
        self._here.add(future)
        return future

    def stop(self, future: "Future[object]") -> None:
        """Kill the processes of a pool; it breaks, and is mended. Other executors lose the worker for good."""
        if isinstance(self._executor, ProcessPoolExecutor):
            _kill_pool(self._executor)
        elif not future.cancel():
            self.workers -= 1
            if self.workers < 1:
                raise CannotGoOn(
                    "executor", rule="each of its workers hangs in a pull that timed out", remedy="use processes"
                )

    def mend(self, future: "Future[object]") -> None:
        """Replace the executor, unless it was replaced since."""
        if future in self._here:
            self._replace()

    def _replace(self) -> None:
        """A pool with the settings of the broken one, or what the user's function makes."""
        old = self._executor
        self._here = weakref.WeakSet()
        if self._make is not None:
            self._executor = self._make()
        elif isinstance(old, ProcessPoolExecutor):
            self._executor = _same_pool(old)
        else:
            raise CannotGoOn(
                "executor", old, "broke, and thresher cannot make another", "pass a function that makes one"
            )
        if self._owned:
            old.shutdown(wait=False, cancel_futures=True)
        self._owned = True

    def close(self, *, wait: bool) -> None:
        """Shut down what is ours; kill what still runs in a pool of processes."""
        if not wait and isinstance(self._executor, ProcessPoolExecutor):
            _kill_pool(self._executor)
        if self._owned:
            self._executor.shutdown(wait=wait, cancel_futures=True)


def _kill_pool(pool: ProcessPoolExecutor) -> None:
    for process in list((getattr(pool, "_processes", None) or {}).values()):
        process.kill()


def _same_pool(pool: Any) -> ProcessPoolExecutor:
    """A new pool with the settings of another. They are private, and the same in Python 3.11 to 3.14."""
    return ProcessPoolExecutor(
        pool._max_workers,
        mp_context=pool._mp_context,
        initializer=pool._initializer,
        initargs=pool._initargs,
        max_tasks_per_child=pool._max_tasks_per_child,
    )
