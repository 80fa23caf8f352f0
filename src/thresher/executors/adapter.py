"""Other people's executors."""

import weakref
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from typing import Any

from ..errors import CannotGoOn
from ..study import Pull
from .threads import Evaluate


class Adapter:
    """Any ``concurrent.futures.Executor``, or a function that makes one."""

    def __init__(
        self, evaluate: Evaluate, executor: Executor | Callable[[], Executor], workers: int | None, default: int
    ) -> None:
        self.evaluate = evaluate
        self._make = None if isinstance(executor, Executor) else executor
        self._owned = self._make is not None
        self._executor = executor if isinstance(executor, Executor) else executor()
        self._here: weakref.WeakSet[Future[object]] = weakref.WeakSet()  # what the present executor was given
        self.workers: int = workers or getattr(self._executor, "_max_workers", None) or default

    def submit(self, pull: Pull) -> "Future[object]":
        """Submit; a pool that is found broken is mended first, for this pull has not begun."""
        try:
            future = self._executor.submit(self.evaluate, pull)
        except BrokenExecutor:
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
