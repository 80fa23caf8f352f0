"""Engines: where pulls are evaluated. Every kind of place is brought to one shape, that of ``concurrent.futures``.

No code outside this package asks what kind of executor it has; each kind's library is imported only where it is used.
"""

import functools
import inspect
import os
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any

from .. import checks
from ..errors import InvalidInput
from .engine import Engine, Evaluate, WorkerLost
from .threads import Threads

__all__ = ["Engine", "Evaluate", "Place", "WorkerLost", "open_engine"]

Place = Executor | Callable[[], Executor] | str | Any | None  # any: a Dask client or cluster


def open_engine(evaluate: Evaluate, *, workers: int | None, executor: Place) -> Engine:
    """The engine for an evaluator and what the user said of where it shall run."""
    if not callable(evaluate):
        raise InvalidInput("evaluate", evaluate, "must be a function that takes a pull")
    if workers is not None:
        checks.whole("workers", workers, least=1)
    if _is_coroutine(evaluate):
        if executor is not None:
            raise InvalidInput("executor", executor, "a coroutine function runs on an event loop", "leave executor out")
        from .loop import Loop

        return Loop(evaluate, workers or 16)  # type: ignore[arg-type]
    if executor is None or executor == "threads":
        return Threads(evaluate, workers or _cores())
    if executor == "processes":
        from .processes import Processes

        return Processes(evaluate, workers or _cores())
    if isinstance(executor, Executor) or callable(executor):
        from .adapter import Adapter

        return Adapter(evaluate, executor, workers, _cores())
    remedy = "pass 'threads', 'processes', or a concurrent.futures.Executor"
    raise InvalidInput("executor", executor, "is nothing that thresher can run pulls on", remedy)


def _is_coroutine(evaluate: Evaluate) -> bool:
    plain = inspect.isroutine(evaluate) or isinstance(evaluate, functools.partial)
    return inspect.iscoroutinefunction(evaluate if plain else type(evaluate).__call__)


def _cores() -> int:
    return os.cpu_count() or 1
