"""What a pull needs besides a worker's time: counted by the cluster, tested on the real engines."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from engines import Counted, causes, evaluator, make

import thresher
from thresher.run.engines import open_engine


@contextmanager
def engine(executor: Any, **resources: float) -> Iterator[Any]:
    opened = open_engine(evaluator("dask"), workers=None, executor=executor, resources=resources)
    try:
        yield opened
    finally:
        opened.close(wait=False)


def test_dask_runs_as_many_at_once_as_its_resources_allow(dask_client: Any, tmp_path: Path) -> None:
    """Two workers, each with two threads and ``engines.RESOURCES``."""
    study = make("a", budget=30, bounds=(0, 10))
    thresher.run(study, Counted(tmp_path), executor=dask_client, resources={"GPU": 1.5})
    assert max(event.reward or 0 for event in study.events()) <= 2
    with engine(dask_client, GPU=0.9, licence=1.5) as opened:
        assert opened.workers == 2
    with engine(dask_client, GPU=1) as opened:
        assert opened.workers == 4
    with engine(dask_client, GPU=0.1) as opened:
        assert opened.workers == 4, "it has no more threads"
    with engine(dask_client, GPU=3) as opened:
        assert (opened.workers, opened.sought) == (0, "worker with GPU 3")


def test_a_missing_resource_is_waited_for_and_named(dask_client: Any, caplog: pytest.LogCaptureFixture) -> None:
    study = make(budget=4)
    with pytest.raises(thresher.CannotGoOn, match="there was no worker with disk 1 for 1 s"):
        thresher.run(study, evaluator("dask"), executor=dask_client, resources={"disk": 1}, give_up=1.0)
    assert causes(study) == ["cancelled"], "one pull waited there, for an autoscaler to see, and cost nothing"


def test_ray_runs_as_many_at_once_as_its_resources_allow(ray_here: None, tmp_path: Path) -> None:
    study = make("a", budget=10, bounds=(0, 10))
    thresher.run(study, Counted(tmp_path), executor="ray", resources={"CPU": 0.5, "licence": 1.5})
    assert max(event.reward or 0 for event in study.events()) <= 2
    study = make("a", budget=4)
    verdict = thresher.run(study, evaluator("ray"), executor="ray", resources={"licence": 3})
    assert verdict.told == 4


@pytest.mark.parametrize(
    ("resources", "words"),
    [
        ({"GPU": 0}, "resource GPU 0: must be more than 0"),
        ({"GPU": -1}, "resource GPU -1: must be more than 0"),
        ({"GPU": "much"}, "resource GPU 'much': must be a finite number"),
        ({"": 1}, "must not be empty"),
        ("GPU", "resources 'GPU': must be amounts by name"),
    ],
)
def test_an_invalid_resource_is_named(resources: Any, words: str) -> None:
    with pytest.raises(thresher.InvalidInput, match=words):
        thresher.run(make(), evaluator("dask"), executor="dask", resources=resources)


@pytest.mark.parametrize(
    ("engine", "executor"), [("asyncio", None), *((name, name) for name in ("threads", "processes"))]
)
def test_engines_without_resources_refuse_them(engine: str, executor: str | None) -> None:
    words = "only Dask and Ray count them; leave it out, or name a cluster"
    with pytest.raises(thresher.InvalidInput, match=words):
        thresher.run(make(), evaluator(engine), executor=executor, resources={"GPU": 1})


def test_workers_that_thresher_starts_have_no_resources() -> None:
    with pytest.raises(thresher.InvalidInput, match=r"start some with: dask worker ADDRESS --resources 'GPU=1'"):
        thresher.run(make(), evaluator("dask"), executor="dask", resources={"GPU": 1})


def test_amounts_too_fine_for_ray_are_named_with_its_words(ray_here: None) -> None:
    with pytest.raises(thresher.InvalidInput, match="licence 1e-05': Ray says"):
        thresher.run(make(), evaluator("ray"), executor="ray", resources={"licence": 0.00001})


@pytest.mark.usefixtures("ray_here")
def test_amounts_that_ray_does_not_have_are_named_with_its_words() -> None:
    with pytest.raises(thresher.InvalidInput, match=r"resources 'CPU 1, GPU 1\.5': Ray says"):
        thresher.run(make(), evaluator("ray"), executor="ray", resources={"GPU": 1.5})
