"""Other people's executors: anything in the shape of ``concurrent.futures.Executor``."""

import contextlib
import inspect
import itertools
import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from typing import Any

from ...errors import CannotGoOn, InvalidInput, told_of
from ...study import Pull
from ..lost_workers import WorkerLost
from .engine import Engine, Evaluate, opened, outcome


class Adapter(Engine):
    """Any ``concurrent.futures.Executor``, or a function that makes one."""

    def __init__(
        self, evaluate: Evaluate, executor: Executor | Callable[[], Executor], workers: int | None, default: int
    ) -> None:
        self.evaluate = evaluate
        self._make = None if isinstance(executor, Executor) else executor
        self._owned = self._make is not None
        self._executor = executor if isinstance(executor, Executor) else _made(executor)
        self._here: dict[Future[object], Pull] = {}  # what the current executor was given, in that order
        self._lost: dict[Future[object], Sequence[Pull]] = {}  # from broken executors: pulls lost together
        self._killed = False  # by us
        super().__init__(workers or _size(self._executor) or default)

    def submit(self, pull: Pull) -> "Future[object]":
        """Submit; a broken pool is replaced first, because this pull has not begun."""
        try:
            future: Future[object] = self._executor.submit(outcome, self.evaluate, pull)
        except BrokenExecutor:
            self._replace()
            future = self._executor.submit(outcome, self.evaluate, pull)
        except RuntimeError as error:  # it was shut down
            raise CannotGoOn("executor", self._executor, told_of(error), "pass one that is open") from None
        self._here[future] = pull
        return future

    def began(self, future: "Future[object]") -> bool:
        """Pools report some queued pulls as running, but only as many can run as there are workers."""
        return future.running() and future in itertools.islice(
            (other for other in self._here if not other.done()), self.workers
        )

    def result(self, future: "Future[object]") -> object:
        """The reward. A broken pool is replaced; the pulls in it are lost."""
        try:
            data: Any = future.result()
        except BrokenExecutor as error:
            if future in self._here:
                self._replace()
            together = self._lost.pop(future, ())
            raise WorkerLost(f"the pool broke: {told_of(error)}", together, was_killed=not together) from None
        finally:
            self._here.pop(future, None)
        return opened(data)

    def stop(self, future: "Future[object]") -> None:
        """Kill and replace a pool of processes. Other executors lose the worker until its call returns."""
        pull = self._here.pop(future, None)
        if pull is None:  # its pool was replaced
            return
        if hasattr(self._executor, "_processes"):
            self._killed = True
            self._replace()
        elif not future.cancel():
            self.workers -= 1
            future.add_done_callback(self._came_back)
            if self.workers < 1:
                rule = "each of its workers hangs in a pull that timed out"
                raise CannotGoOn("executor", rule=rule, remedy="use processes")

    def _came_back(self, future: "Future[object]") -> None:
        """The call returned after all: its worker is free again."""
        self.workers += 1

    def close(self, *, wait: bool) -> None:
        if not wait:
            _kill(self._executor)
        if self._owned:
            can_cancel = "cancel_futures" in inspect.signature(self._executor.shutdown).parameters  # loky's has none
            self._executor.shutdown(wait=wait, **{"cancel_futures": True} if can_cancel else {})

    def _replace(self) -> None:
        """A pool with the settings of the broken one, or what the user's function makes."""
        old = self._executor
        lost = () if self._killed else tuple(pull for future, pull in self._here.items() if _broke(future))
        self._lost |= dict.fromkeys(self._here, lost)
        self._here, self._killed = {}, False
        _kill(old)  # its results are no longer wanted
        self._executor = _made(self._make) if self._make is not None else _same(old)
        if self._owned:
            old.shutdown(wait=False)
        self._owned = True


def _made(make: Callable[[], Executor]) -> Executor:
    executor = make()
    if not isinstance(executor, Executor):
        raise InvalidInput("executor", make, f"made {executor!r:.100}, which is not a concurrent.futures.Executor")
    return executor


def _size(executor: Executor) -> int | None:
    sizes = (getattr(executor, name, None) for name in ("_max_workers", "num_workers"))  # the second is mpi4py's
    return next((size for size in sizes if isinstance(size, int) and size > 0), None)


def _broke(future: "Future[object]") -> bool:
    """Whether it was lost with its pool, or is about to be."""
    return not future.done() or (not future.cancelled() and isinstance(future.exception(), BrokenExecutor))


def _kill(pool: Executor) -> None:
    for pid in list(getattr(pool, "_processes", None) or ()):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _same(pool: Any) -> Executor:
    """A new pool with the settings of another. They are private, and the same in Python 3.11 to 3.14."""
    size = _size(pool)
    settings = {name: getattr(pool, f"_{name}") for name in ("initializer", "initargs") if hasattr(pool, f"_{name}")}
    if isinstance(pool, ProcessPoolExecutor):
        for name in ("mp_context", "max_tasks_per_child"):
            settings[name] = getattr(pool, f"_{name}")
        return ProcessPoolExecutor(size, **settings)
    if type(pool).__module__.startswith("loky."):
        import loky

        settings |= {"timeout": pool._timeout, "context": pool._context, "env": pool._env}
        return loky.ProcessPoolExecutor(size, **settings)  # type: ignore[no-any-return]
    raise CannotGoOn("executor", pool, "broke, and thresher cannot make another", "pass a function that makes one")
