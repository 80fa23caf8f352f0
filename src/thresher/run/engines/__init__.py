"""Engines: where pulls are evaluated. Every kind of place gets the same interface, that of ``concurrent.futures``.

No code outside this package asks what kind of executor it has; each kind's library is imported only where it is used.
"""

import functools
import importlib
import inspect
import os
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import Any

from ...core import checks
from ...errors import InvalidInput
from ..pairs import Paired, PairedCoroutine
from .engine import Engine, Evaluate, WorkerLost
from .resources import checked
from .threads import Threads

__all__ = ["Engine", "Evaluate", "Place", "WorkerLost", "check_name", "cores", "open_engine"]

CLUSTERS = ("dask", "ray")
NAMES = ("threads", "processes", *CLUSTERS)


Place = Executor | Callable[[], Executor] | str | Any | None  # Any: a client or a cluster of Dask


def open_engine(
    evaluate: Evaluate, *, workers: int | None, executor: Place, resources: Mapping[str, float] | None = None
) -> Engine:
    """The engine for an evaluator and the place that the user chose for it."""
    if not callable(evaluate):
        raise InvalidInput("evaluate", evaluate, "must be a function that takes a pull")
    if workers is not None:
        checks.whole("workers", workers, least=1)
    needed = checked(resources)
    is_coroutine = _is_coroutine(evaluate)
    evaluate = PairedCoroutine(evaluate) if is_coroutine else Paired(evaluate)
    if not is_coroutine and (engine := _on_a_cluster(evaluate, executor, workers, needed)) is not None:
        return engine
    if needed:
        remedy = "leave them out, or name a cluster as executor"
        raise InvalidInput("resources", resources, "only Dask and Ray count them", remedy)
    if is_coroutine:
        if executor is not None:
            raise InvalidInput("executor", executor, "a coroutine function runs on an event loop", "leave executor out")
        from .coroutines import Loop

        return Loop(evaluate, workers or 16)  # type: ignore[arg-type]
    if executor is None or executor == "threads":
        return Threads(evaluate, workers or cores())
    if executor == "processes":
        from .processes import Processes

        return Processes(evaluate, workers or cores())
    if isinstance(executor, Executor) or callable(executor):
        from .adapter import Adapter

        return Adapter(evaluate, executor, workers, cores())
    remedy = "pass 'threads', 'processes', 'dask', 'ray', an address, a Dask client, or a concurrent.futures.Executor"
    raise InvalidInput("executor", executor, "cannot run pulls", remedy)


def check_name(engine: str) -> str:
    """The name of an engine, if there is such an engine."""
    name, colon, address = engine.partition(":")
    if name not in NAMES or (colon and (not address or name not in CLUSTERS)):
        rule = f"must be {', '.join(NAMES[:-1])} or {NAMES[-1]}; the last two take :ADDRESS"
        raise InvalidInput("engine", engine, rule)
    return engine


def _on_a_cluster(evaluate: Evaluate, executor: Place, workers: int | None, needed: dict[str, float]) -> Engine | None:
    """The engine for a Dask or Ray cluster, given by name, by address or as an object of its library."""
    place: Any
    if isinstance(executor, str):
        library, place = _cluster_named(executor)
    else:
        library, place = type(executor).__module__.partition(".")[0], executor
        if library == "distributed" and isinstance(executor, Executor):
            place = _client_of(executor)
        elif library == "dask_jobqueue" or library == "dask_kubernetes":
            library = "distributed"
    if library in ("dask", "distributed"):
        return _fetched("dask").Dask(evaluate, place, workers, cores(), needed)  # type: ignore[no-any-return]
    if library == "ray":
        return _fetched("ray").Ray(evaluate, place, workers, needed)  # type: ignore[no-any-return]
    return None


def _client_of(executor: Any) -> Any:
    """The client behind a ``Client.get_executor()``. Its retries are ignored; its other options cannot be kept."""
    wishes = sorted(executor._kwargs.keys() - {"pure", "retries"})
    if wishes:
        remedy = "pass its client, and resources= to run"
        raise InvalidInput("executor", executor, f"{', '.join(wishes)} cannot be kept", remedy)
    return executor._client


def _cluster_named(name: str) -> tuple[str, str]:
    """The library and the address that a name means.

    >>> _cluster_named("dask"), _cluster_named("dask://host:8786"), _cluster_named("dask:tcp://host:8786")
    (('dask', 'dask'), ('dask', 'tcp://host:8786'), ('dask', 'tcp://host:8786'))
    >>> _cluster_named("ray"), _cluster_named("ray:host:6379"), _cluster_named("ray://host:10001")
    (('ray', 'ray'), ('ray', 'host:6379'), ('ray', 'ray://host:10001'))
    >>> _cluster_named("tcp://host:8786"), _cluster_named("host:6379")
    (('dask', 'tcp://host:8786'), ('ray', 'host:6379'))
    """
    library, colon, address = name.partition(":")
    if library in ("tcp", "tls", "ws", "wss"):
        return "dask", name
    if library not in CLUSTERS:
        is_ray = address.isdecimal() and library not in NAMES  # host:6379, as Ray writes its own addresses
        return ("ray" if is_ray else ""), name
    if library == "dask" and address.startswith("//"):
        return library, f"tcp:{address}"
    return library, name if not colon or address.startswith("//") else address


def _fetched(library: str) -> Any:
    """The module for a library that comes with an extra."""
    try:
        return importlib.import_module(f".{library}", __package__)
    except ModuleNotFoundError as error:
        rule = f"needs the package {error.name}, which is not installed"
        raise InvalidInput("executor", library, rule, f"pip install 'thresher[{library}]'") from None


def _is_coroutine(evaluate: Evaluate) -> bool:
    while isinstance(evaluate, functools.partial):
        evaluate = evaluate.func
    plain = inspect.isroutine(evaluate)
    return inspect.iscoroutinefunction(evaluate if plain else type(evaluate).__call__)


def cores() -> int:
    """The cores that this process may use: in a container or a batch job, fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
