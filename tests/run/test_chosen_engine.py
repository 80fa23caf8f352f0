"""Which engine an executor means, and what is refused."""

from typing import Any

import pytest

from thresher.errors import InvalidInput
from thresher.run import engines
from thresher.run.engines import check_engine_name, open_engine
from thresher.study import Pull


def evaluate(_: Pull, *__: object) -> float:
    return 0.5


async def evaluate_later(_: Pull, *__: object) -> float:
    return 0.5


def opened(executor: Any = None, function: Any = evaluate, **options: Any) -> Any:
    return open_engine(function, **{"workers": None, "executor": executor, **options})


def of_library(module: str, *bases: type) -> Any:
    return type("Thing", bases, {"__module__": module})()


@pytest.mark.parametrize(
    "executor", ["threads:6379", "processes:1", "nowhere", "host:port", "http://host:1", 5, object()]
)
def test_what_is_no_executor_is_refused(executor: Any) -> None:
    with pytest.raises(InvalidInput, match="cannot run pulls; pass 'threads', 'processes', 'dask', 'ray', an address"):
        opened(executor)


def test_here_are_as_many_threads_and_processes_as_cores_unless_said_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "available_cores", lambda: 7)
    for executor in (None, "threads", "processes"):
        for workers, expected in ((None, 7), (3, 3)):
            engine = opened(executor, workers=workers)
            assert (engine.workers, engine.room) == (expected, expected)


@pytest.mark.parametrize("executor", ["dask", "ray", "threads", "processes", of_library("distributed.client")])
def test_a_coroutine_function_runs_on_no_executor(executor: Any) -> None:
    with pytest.raises(InvalidInput, match="a coroutine function runs on an event loop; leave executor out"):
        opened(executor, evaluate_later)


@pytest.mark.parametrize("name", ["threads", "processes", "dask", "ray", "dask:tcp://host:1", "ray:auto", "ray://h:1"])
def test_the_names_of_engines_are_known(name: str) -> None:
    assert check_engine_name(name) == name


@pytest.mark.parametrize("name", ["", "cloud", "threads:4", "processes:x", "dask:", "ray:", "tcp://host:1", "threads:"])
def test_other_names_are_refused_with_those_that_there_are(name: str) -> None:
    with pytest.raises(InvalidInput, match="must be threads, processes, dask or ray; the last two take :ADDRESS"):
        check_engine_name(name)
