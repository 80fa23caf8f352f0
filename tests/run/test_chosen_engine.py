"""Which engine an executor means, and what is refused, without starting any."""

import os
from collections.abc import Callable
from concurrent.futures import Executor, Future
from types import SimpleNamespace
from typing import Any

import pytest

from thresher.errors import InvalidInput
from thresher.run import engines
from thresher.run.engines import check_name, open_engine
from thresher.run.engines.futures import Adapter
from thresher.run.engines.local import Threads
from thresher.run.evaluators import Wrapped
from thresher.study import Pull
from thresher.text.machine import available_cores


def evaluate(_: Pull, *__: object) -> float:
    return 0.5


async def evaluate_later(_: Pull, *__: object) -> float:
    return 0.5


def opened(executor: Any = None, **given: Any) -> Any:
    return open_engine(evaluate, **{"workers": None, "executor": executor, **given})


@pytest.fixture
def clusters(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
    """In place of the engines for clusters: with what they were made."""
    made: list[tuple[object, ...]] = []

    def engine(library: str) -> Callable[..., str]:
        def make(paired: object, *given: object) -> str:
            assert isinstance(paired, Wrapped)
            made.append((library, *given))
            return library

        return make

    monkeypatch.setattr(engines, "_fetched", lambda name: SimpleNamespace(Dask=engine("dask"), Ray=engine("ray")))
    monkeypatch.setattr(engines, "available_cores", lambda: 7)
    return made


@pytest.mark.parametrize(
    ("executor", "expected"),
    [
        ("dask", ("dask", "dask", 3, 7, {"GPU": 1.0})),
        ("dask://host:8786", ("dask", "tcp://host:8786", 3, 7, {"GPU": 1.0})),
        ("tls://host:8786", ("dask", "tls://host:8786", 3, 7, {"GPU": 1.0})),
        ("ray", ("ray", "ray", 3, {"GPU": 1.0})),
        ("ray:auto", ("ray", "auto", 3, {"GPU": 1.0})),
        ("host:6379", ("ray", "host:6379", 3, {"GPU": 1.0})),
    ],
)
def test_a_cluster_is_known_by_its_name_or_its_address(
    executor: str, expected: tuple[object, ...], clusters: list[Any]
) -> None:
    assert opened(executor, workers=3, resources={"GPU": 1}) == expected[0]
    assert clusters == [expected]


def of_library(module: str, *bases: type, **attributes: object) -> Any:
    return type("Thing", bases, {"__module__": module, **attributes})()


@pytest.mark.parametrize("module", ["distributed.client", "distributed", "dask_jobqueue.slurm", "dask_kubernetes.core"])
def test_a_client_and_a_cluster_of_dask_are_known_by_their_library(module: str, clusters: list[Any]) -> None:
    executor = of_library(module)
    assert opened(executor) == "dask"
    assert clusters == [("dask", executor, None, 7, {})]


def test_an_executor_of_dask_stands_for_its_client(clusters: list[Any]) -> None:
    def submit(self: Any, function: Any, /, *args: Any, **given: Any) -> "Future[Any]":
        raise AssertionError("it is not used")

    plain = of_library(
        "distributed.cfexecutor", Executor, submit=submit, _client="client", _kwargs={"pure": 1, "retries": 3}
    )
    assert opened(plain) == "dask"
    assert clusters == [("dask", "client", None, 7, {})]
    wishes = of_library("distributed.cfexecutor", Executor, _client="c", _kwargs={"workers": 1, "pure": 1, "key": 2})
    with pytest.raises(InvalidInput, match="key, workers cannot be kept; pass its client, and resources= to run"):
        opened(wishes)


@pytest.mark.parametrize(
    "executor", ["threads:6379", "processes:1", "nowhere", "host:port", "http://host:1", 5, object()]
)
def test_what_is_no_executor_is_refused(executor: Any, clusters: list[Any]) -> None:
    with pytest.raises(InvalidInput, match="cannot run pulls; pass 'threads', 'processes', 'dask', 'ray', an address"):
        opened(executor)
    assert clusters == []


def test_here_are_as_many_threads_and_processes_as_cores_unless_said_otherwise(clusters: list[Any]) -> None:
    from thresher.run.engines.local import Processes

    for executor in (None, "threads", "processes"):
        for workers, expected in ((None, 7), (3, 3)):
            engine = opened(executor, workers=workers)
            assert type(engine) is (Processes if executor == "processes" else Threads)
            assert engine.workers == expected
    with_size = of_library("mine", Executor)
    engine = opened(with_size)
    assert (type(engine), engine.workers) == (Adapter, 7)
    assert opened(lambda: with_size, workers=2).workers == 2


def test_sixteen_coroutines_run_at_once_unless_said_otherwise() -> None:
    for workers, expected in ((None, 16), (3, 3)):
        engine = open_engine(evaluate_later, workers=workers, executor=None)
        assert engine.workers == expected
        engine.close(wait=True)
        engine.release()


@pytest.mark.parametrize("executor", ["dask", "ray", of_library("distributed.client")])
def test_a_coroutine_function_runs_on_no_cluster(executor: Any, clusters: list[Any]) -> None:
    with pytest.raises(InvalidInput, match="a coroutine function runs on an event loop; leave executor out"):
        open_engine(evaluate_later, workers=None, executor=executor)
    assert clusters == []


def test_resources_are_counted_only_by_clusters() -> None:
    for function in (evaluate, evaluate_later):
        with pytest.raises(InvalidInput, match="only Dask and Ray count them; leave it out, or name a cluster"):
            open_engine(function, workers=None, executor=None, resources={"GPU": 1})


# -- what evaluators share -------------------------------------------------------------------------------------------

PAIR = (dict, print)


@pytest.mark.parametrize("executor", ["dask", "ray", of_library("mine", Executor)])
def test_what_is_shared_is_set_up_only_by_our_own_engines(executor: Any, clusters: list[Any]) -> None:
    words = "is set up only for threads, processes and coroutines; use the pool's initializer"
    with pytest.raises(InvalidInput, match=words):
        opened(executor, shared=PAIR)


def test_processes_share_only_what_each_of_them_can_set_up() -> None:
    import contextlib

    with pytest.raises(InvalidInput, match=r"cannot be shared between processes; pass a pair of functions"):
        opened("processes", shared=contextlib.nullcontext())
    for executor, shared in [("processes", PAIR), ("threads", contextlib.nullcontext()), (None, PAIR)]:
        assert opened(executor, shared=shared)._shared.is_pair == (shared is PAIR)
    assert opened("processes")._shared is None


# -- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["threads", "processes", "dask", "ray", "dask:tcp://host:1", "ray:auto", "ray://h:1"])
def test_the_names_of_engines_are_known(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize("name", ["", "cloud", "threads:4", "processes:x", "dask:", "ray:", "tcp://host:1", "threads:"])
def test_other_names_are_refused_with_those_that_there_are(name: str) -> None:
    words = "must be threads, processes, dask or ray; the last two take :ADDRESS"
    with pytest.raises(InvalidInput, match=words):
        check_name(name)


def test_a_missing_library_is_named_with_the_extra_that_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str, package: str) -> None:
        assert (name, package) == (".ray", "thresher.run.engines")
        raise ModuleNotFoundError("No module named 'ray'", name="ray")

    monkeypatch.setattr("importlib.import_module", missing)
    with pytest.raises(
        InvalidInput, match=r"needs the package ray, which is not installed; pip install 'thresher\[ray"
    ):
        opened("ray")


def test_cores_are_those_that_this_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {1, 2, 5} if process == 0 else set(), raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert available_cores() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    assert available_cores() == 64
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert available_cores() == 1


@pytest.mark.parametrize("workers", [0, -1, 1.5])
def test_workers_are_whole_and_at_least_one(workers: Any) -> None:
    with pytest.raises(InvalidInput, match="workers"):
        opened(workers=workers)
    assert opened(workers=1).workers == 1
