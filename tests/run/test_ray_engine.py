"""The engine for Ray with a cluster that is not there: how many actors it starts, and how it ends."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from engines import until

from thresher.errors import CannotGoOn
from thresher.study import Pull

pytest.importorskip("ray")

from thresher.run.engines import ray as engines_ray
from thresher.run.engines.engine import opened
from thresher.run.engines.ray import Ray, Worker

PULL = Pull(1, "a", 1, {}, 7)


class Actor:
    """An actor that is ready when the test says so."""

    def __init__(self) -> None:
        self.started: Future[None] = Future()
        self.ready = SimpleNamespace(remote=lambda: SimpleNamespace(future=lambda: self.started))
        self.answers: list[Future[bytes]] = []
        self.given: list[list[Any]] = []
        self.evaluate = SimpleNamespace(remote=self._remote)

    def _remote(self, fields: list[Any]) -> Any:
        self.given.append(fields)
        self.answers.append(Future())
        return SimpleNamespace(future=lambda: self.answers[-1])


class Cluster:
    """In place of Ray."""

    def __init__(self) -> None:
        self.resources: dict[str, float] = {"CPU": 3.0}
        self.actors: list[Actor] = []
        self.killed: list[Actor] = []
        self.opened: list[object] = []
        self.closed = 0
        self.own = False

    def open(self, address: str, processors: int | None) -> bool:
        self.opened.append((address, processors))
        return self.own

    def close(self) -> None:
        self.closed += 1

    def remote(self, **options: Any) -> Any:
        self.options = options

        def actor(evaluate: object) -> Actor:
            self.actors.append(Actor())
            return self.actors[-1]

        return lambda kind: SimpleNamespace(remote=actor)

    def kill(self, actor: Actor) -> None:
        self.killed.append(actor)
        raise RuntimeError("it is gone already")


Make = Callable[..., Any]


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    found = Cluster()
    names = {"put": lambda it: it, "cluster_resources": lambda: found.resources, "remote": found.remote}
    for name, value in {**names, "kill": found.kill}.items():
        monkeypatch.setattr(f"ray.{name}", value)
    monkeypatch.setattr(engines_ray, "Connection", found)
    monkeypatch.setattr(engines_ray, "LOOK", 0.01)
    return found


@pytest.fixture
def make(cluster: Cluster) -> Iterator[Make]:
    made: list[Ray] = []

    def start(workers: int | None = None, needed: dict[str, float] | None = None) -> Ray:
        made.append(Ray(lambda _: 0.5, "address", workers, needed))
        return made[-1]

    yield start
    for engine in made:
        engine._closed.set()
        engine._thread.join(20)


@pytest.mark.parametrize(
    ("workers", "needed", "processors", "actors"),
    [
        (None, None, None, 3),
        (2, None, 2, 2),
        (3, {"CPU": 0.5}, 2, 3),
        (None, {"CPU": 1.5}, None, 2),
        (None, {"GPU": 1.0}, None, 1),
    ],
)
def test_as_many_actors_are_started_as_were_asked_for_or_fit(
    make: Make, cluster: Cluster, workers: Any, needed: Any, processors: int | None, actors: int
) -> None:
    engine = make(workers, needed)
    assert cluster.opened == [("address", processors)]
    assert (len(cluster.actors), engine.workers) == (actors, 0)
    assert engine.sought == ("worker with GPU 1" if needed == {"GPU": 1.0} else engine.sought)
    for actor in cluster.actors:
        actor.started.set_result(None)
    until(lambda: engine.workers == actors, "the actors")
    assert engine._thread.daemon


def test_more_actors_are_started_when_the_cluster_grows_or_one_dies(make: Make, cluster: Cluster) -> None:
    engine = make()
    cluster.resources["CPU"] = 4.0
    until(lambda: len(cluster.actors) == 4, "the fourth")
    engine._remove(cluster.actors[0])
    until(lambda: len(cluster.actors) == 5, "another one is started")
    engine._failed = CannotGoOn("executor", "ray", "no worker could be started")
    cluster.resources["CPU"] = 9.0
    engine._try_to_start_actors()
    engine._failed = None
    engine._closed.set()
    engine._try_to_start_actors()
    assert len(cluster.actors) == 5


def test_a_cluster_that_does_not_answer_is_asked_again(make: Make, cluster: Cluster) -> None:
    engine = make()
    before, cluster.resources = cluster.resources, None  # type: ignore[assignment]
    engine._news.put(engine._try_to_start_actors)
    until(engine._news.empty, "the question")
    before["CPU"] = 4.0
    cluster.resources = before
    until(lambda: len(cluster.actors) == 4, "the fourth")


def test_a_pull_goes_to_an_actor_with_all_its_fields_and_its_answer_comes_back(make: Make, cluster: Cluster) -> None:
    engine = make(1)
    future = engine.submit(PULL)
    (actor,) = cluster.actors
    actor.started.set_result(None)
    until(lambda: bool(actor.given), "the pull")
    assert actor.given == [list(PULL)]
    actor.answers[0].set_result(Worker(lambda pull: pull.seed).evaluate(actor.given[0]))
    assert opened(future.result(20)) == engine.result(future) == 7
    assert (engine.workers, engine.room) == (1, 2)


def test_a_worker_that_starts_after_two_that_could_not_is_enough(make: Make, cluster: Cluster) -> None:
    engine = make(1)
    for number in (0, 1):
        cluster.actors[number].started.set_exception(RuntimeError("no room"))
        until(lambda number=number: len(cluster.actors) == number + 2, "another")  # type: ignore[misc]
    cluster.actors[2].started.set_result(None)
    until(lambda: engine.workers == 1, "the third")
    assert engine._failed is None


@pytest.mark.parametrize("is_over", [False, True])
def test_pulls_that_wait_for_workers_that_never_start_fail_unless_they_were_taken_back(
    make: Make, cluster: Cluster, is_over: bool
) -> None:
    engine = make(3)
    waits, gone, last = (engine.submit(PULL) for _ in range(3))
    gone.cancel()
    if is_over:
        engine._closed.set()
        engine._thread.join(20)
    for actor in cluster.actors[:3]:
        engine._started(actor, failed("ModuleNotFoundError: No module named 'mine'"))
    assert [each.done() for each in (waits, gone, last)] == [not is_over, True, not is_over]
    if not is_over:
        words = "no worker could be started: ModuleNotFoundError: No module named 'mine'; thresher, and what"
        with pytest.raises(CannotGoOn, match=words):
            waits.result(0)


def failed(text: str) -> "Future[None]":
    future: Future[None] = Future()
    future.set_exception(RuntimeError(text))
    return future


@pytest.mark.parametrize("how", ["put", "resources"])
def test_a_run_that_cannot_be_set_up_closes_its_connection(
    cluster: Cluster, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(evaluate: object) -> None:
        raise TypeError("cannot pickle")

    if how == "put":
        monkeypatch.setattr("ray.put", fail)
    cluster.own, cluster.resources = True, {"CPU": 0.5}
    words = {
        "put": "cannot be sent to Ray: TypeError: cannot pickle; pass what can be pickled",
        "resources": "the Ray of this machine has only CPU 0.5; ask for less, or name a cluster that has more",
    }
    with pytest.raises(CannotGoOn, match=words[how]):
        Ray(lambda _: 0.5, "address", None)
    assert cluster.closed == 1
    cluster.own = False
    if how == "resources":
        engine = Ray(lambda _: 0.5, "address", None)  # a user's cluster may grow
        engine.close(wait=True)


def test_at_the_end_all_actors_are_killed_and_the_thread_is_over(make: Make, cluster: Cluster) -> None:
    engine = make(2)
    engine.close(wait=True)
    assert not engine._thread.is_alive()
    assert sorted(map(id, cluster.killed)) == sorted(map(id, cluster.actors))
    assert cluster.closed == 1


def test_a_worker_answers_once_its_evaluator_is_there() -> None:
    assert Worker(lambda _: 0.5).ready() is None  # type: ignore[func-returns-value]
