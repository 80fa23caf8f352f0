"""Engines: where pulls are evaluated. All engines have the interface of ``concurrent.futures``.

No code outside this package asks what kind of executor it has; each kind's library is imported only where it is used.
"""

import importlib
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import Any, Protocol

from ...core import checks
from ...errors import InvalidInput, missing_package
from ...text.machine import available_cores
from ...text.naming import Naming
from ...text.phrasing import either_phrase
from ..evaluators import (
    Shared,
    Sharing,
    WrappedCoroutine,
    WrappedEvaluator,
    is_coroutine_evaluator,
    shared_by_evaluators,
)
from .local import Engine, Evaluate, EvaluateSharing, LocalProcesses, LocalThreads
from .resources import read_resources

HERE, CLUSTERS = ("threads", "processes"), ("dask", "ray")
NAMES = (*HERE, *CLUSTERS)
CHOICES = either_phrase([*HERE, *(f"{name}[:ADDRESS]" for name in CLUSTERS)])  # for people


class DaskClient(Protocol):
    """A client of Dask."""

    def submit(self, *args: Any, **kwargs: Any) -> Any: ...

    def scheduler_info(self, *args: Any, **kwargs: Any) -> Any: ...


class DaskCluster(Protocol):
    """A cluster of Dask: a LocalCluster, or one of dask_jobqueue or dask_kubernetes."""

    @property
    def scheduler_address(self) -> Any: ...

    def scale(self, *args: Any, **kwargs: Any) -> Any: ...


AnyExecutor = Executor | Callable[[], Executor] | str | DaskClient | DaskCluster | None


def open_engine(
    evaluate: Evaluate | EvaluateSharing,
    *,
    workers: int | None,
    executor: AnyExecutor,
    resources: Mapping[str, float] | None = None,
    shared: Sharing | None = None,
) -> Engine:
    """The engine for an evaluator and the ``executor`` that the user chose for it."""
    check_engine_evaluator(evaluate, workers)
    needed = read_resources(resources)
    awaits = is_coroutine_evaluator(evaluate)
    sharing = _read_shared(shared, executor, awaits=awaits)
    wrapped = WrappedCoroutine(evaluate) if awaits else WrappedEvaluator(evaluate)
    if not awaits and (engine := _cluster_engine(wrapped, executor, workers, needed)) is not None:
        return engine
    if needed:
        leave_out = Naming("leave it out, or name a cluster as {executor}")
        raise InvalidInput("resources", resources, "only Dask and Ray count them", leave_out)
    if awaits:
        if executor is not None:
            raise InvalidInput("executor", executor, "a coroutine function runs on an event loop", "leave executor out")
        from .coroutines import CoroutinesLoop

        return CoroutinesLoop(wrapped, workers or 16, sharing)
    if executor is None or executor == "threads":
        return LocalThreads(wrapped, workers or available_cores(), sharing)
    if executor == "processes":
        return LocalProcesses(wrapped, workers or available_cores(), sharing)
    if isinstance(executor, Executor) or callable(executor):
        from .futures import FuturesAdapter

        return FuturesAdapter(wrapped, executor, workers, available_cores())
    named = ", ".join(map(repr, NAMES))
    remedy = f"pass {named}, an address, a Dask client, or a concurrent.futures.Executor"
    raise InvalidInput("executor", executor, "cannot run pulls", remedy)


def check_engine_evaluator(evaluate: object, workers: int | None) -> None:
    if not callable(evaluate):
        raise InvalidInput("evaluate", evaluate, "must be a function that takes a pull")
    check_engine_workers(workers)


def check_engine_workers(workers: int | None) -> None:
    if workers is not None:
        checks.checked_whole("workers", workers, least=1)


def _read_shared(sharing: Sharing | None, executor: AnyExecutor, *, awaits: bool) -> Shared | None:
    """Read the argument ``shared``, and refuse it if the engine cannot set it up where evaluators run."""
    if sharing is None:
        return None
    if not awaits and executor not in (None, *HERE):
        rule = "is set up only for threads, processes and coroutines"
        remedy = "use the pool's initializer, or a function with functools.cache that the evaluator calls"
        raise InvalidInput("shared", sharing, rule, remedy)
    shared = shared_by_evaluators(sharing, awaits=awaits)
    if executor == "processes" and shared is not None and not shared.is_pair:
        remedy = "pass a pair of functions, (set_up, clean_up), for each process to call"
        raise InvalidInput("shared", sharing, "cannot be shared between processes", remedy)
    return shared


def check_engine_name(engine: str) -> str:
    """Return the name of an engine as the command line takes it. Raises `InvalidInput` for any other text."""
    name, colon, address = engine.partition(":")
    if name not in NAMES or (colon and (not address or name not in CLUSTERS)):
        rule = f"must be {either_phrase(NAMES)}; the last two take :ADDRESS"
        raise InvalidInput("engine", engine, rule)
    return engine


def _cluster_engine(
    evaluate: Evaluate, executor: AnyExecutor, workers: int | None, needed: dict[str, float]
) -> Engine | None:
    """The engine for a Dask or Ray cluster: its name, its address or an object of its library."""
    cluster: Any
    if isinstance(executor, str):
        library, cluster = _cluster_named(executor)
    else:
        library, cluster = type(executor).__module__.partition(".")[0], executor
        if library == "distributed" and isinstance(executor, Executor):
            rule = "is an executor of a Dask client, whose options thresher cannot see"
            raise InvalidInput("executor", executor, rule, "pass the client, and resources= to run")
        if library in ("dask_jobqueue", "dask_kubernetes"):
            library = "distributed"
    if library in ("dask", "distributed"):
        return _import_engine("dask").Dask(evaluate, cluster, workers, available_cores(), needed)  # type: ignore[no-any-return]
    if library == "ray":
        return _import_engine("ray").Ray(evaluate, cluster, workers, needed)  # type: ignore[no-any-return]
    return None


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


def _import_engine(library: str) -> Any:
    """Import the module for a library that comes with an extra."""
    try:
        return importlib.import_module(f".{library}", __package__)
    except ModuleNotFoundError as error:
        raise InvalidInput("executor", library, *missing_package(error, library)) from None
