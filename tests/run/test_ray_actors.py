"""The actors of the engine for Ray, without a cluster."""

import queue
import threading
from collections import deque
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

from thresher.errors import CannotGoOn, EvaluationFailed
from thresher.run.lost_workers import WorkerLost
from thresher.study import Pull

pytest.importorskip("ray")
from ray.exceptions import ActorDiedError, ActorUnavailableError, OutOfMemoryError, RayTaskError

from thresher.run.engines import ray as engines_ray
from thresher.run.engines.ray import Ray

PULL = Pull(1, "a", 1, {}, 7)


class Died(ActorDiedError):  # type: ignore[misc]  # Ray is partly annotated
    """The death of an actor, in these words."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text

    def __str__(self) -> str:
        return self.text


class Actor:
    """An actor that answers when the test says so."""

    def __init__(self, *, broken: bool = False) -> None:
        self.answers: list[Future[bytes]] = []
        self._broken = broken
        self.evaluate = SimpleNamespace(remote=self._remote)

    def _remote(self, fields: list[Any]) -> Any:
        if self._broken:
            raise ActorUnavailableError("gone", None)
        self.answers.append(Future())
        return SimpleNamespace(future=lambda: self.answers[-1])


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Any:
    """An engine that is connected to nothing; ``killed`` are the actors that it killed."""
    made: Any = Ray.__new__(Ray)
    made.workers, made._wanted, made._needed = 0, 1, {"CPU": 1.0}
    made._actors, made._idle, made._at_work, made._waiting = set(), [], {}, deque()
    made._failed, made._failed_starts, made._lock = None, 0, threading.RLock()
    made._closed, made._news = threading.Event(), queue.SimpleQueue()
    made.killed = []
    monkeypatch.setattr(engines_ray.ray, "kill", made.killed.append)  # type: ignore[attr-defined]
    return made


def ready(error: Exception | None = None) -> "Future[None]":
    future: Future[None] = Future()
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)
    return future


def handle(engine: Any) -> None:
    """Do what the engine's own thread does with Ray's answers."""
    engine._try_to_start_actors = lambda: None
    while not engine._news.empty():
        engine._news.get()()


def test_pulls_wait_until_an_actor_is_ready_and_each_actor_has_one(engine: Any) -> None:
    actor = Actor()
    engine._actors.add(actor)
    first, second = engine.submit(PULL), engine.submit(PULL)
    assert not engine.began(first)
    engine._started(actor, ready())
    assert (engine.workers, engine.began(first), engine.began(second)) == (1, True, False)
    actor.answers[0].set_result(b"done")
    handle(engine)
    assert (first.result(0), engine.began(second), engine._idle) == (b"done", True, [])
    actor.answers[1].set_result(b"done")
    handle(engine)
    assert engine._idle == [actor]


def test_an_actor_that_dies_costs_its_pull_and_is_replaced(engine: Any) -> None:
    actor = Actor()
    engine._actors.add(actor)
    engine._started(actor, ready())
    future = engine.submit(PULL)
    actor.answers[0].set_exception(Died("dead because it ran out of luck.\nmore"))
    handle(engine)
    with pytest.raises(WorkerLost) as caught:
        engine.result(future)
    assert caught.value.together == (PULL,)
    assert (engine.workers, engine._actors, engine._idle) == (0, set(), [])


def test_an_actor_that_cannot_be_called_costs_its_pull(engine: Any) -> None:
    engine._started(Actor(broken=True), ready())
    with pytest.raises(WorkerLost) as caught:
        engine.result(engine.submit(PULL))
    assert caught.value.together == (), "nobody is to blame"


def test_an_actor_that_hangs_is_killed_and_its_late_answer_changes_nothing(engine: Any) -> None:
    actor = Actor()
    engine._started(actor, ready())
    future = engine.submit(PULL)
    engine.stop(future)
    engine.stop(future)
    with pytest.raises(WorkerLost, match="it timed out"):
        engine.result(future)
    actor.answers[0].set_result(b"late")
    handle(engine)
    assert (engine.killed, engine.workers, engine._idle) == ([actor], 0, [])


def test_workers_that_cannot_be_started_end_the_run(engine: Any) -> None:
    future = engine.submit(PULL)
    for number in range(3):
        assert engine._failed is None, number
        engine._started(
            Actor(), ready(RuntimeError("\x1b[36mModuleNotFoundError: no module\x1b[0m\nModuleNotFoundError: x"))
        )
    with pytest.raises(CannotGoOn, match="no worker could be started: ModuleNotFoundError: x; thresher, and what"):
        future.result(0)
    with pytest.raises(CannotGoOn, match="no worker could be started"):
        _ = engine.room


def test_workers_that_fail_to_start_while_others_work_do_not_end_the_run(engine: Any) -> None:
    engine._started(Actor(), ready())
    for _ in range(5):
        engine._started(Actor(), ready(RuntimeError("no room")))
    assert (engine.workers, engine.room) == (1, 2)


@pytest.mark.parametrize(
    ("error", "expected", "words"),
    [
        (OutOfMemoryError("x"), WorkerLost, "x"),
        (
            ConnectionError("reset"),
            CannotGoOn,
            "connection to the Ray cluster was lost: .*reset; the study is as it was",
        ),
    ],
)
def test_what_an_error_of_ray_means(error: Exception, expected: type[Exception], words: str) -> None:
    with pytest.raises(expected, match=words):
        raise engines_ray._meaning(error, PULL)


def test_an_error_within_an_actor_is_the_evaluators() -> None:
    error = RayTaskError("evaluate", "\x1b[36mtraceback\x1b[0m of it", KeyError("depth"))
    meant = engines_ray._meaning(error, PULL)
    assert isinstance(meant, EvaluationFailed)
    assert (meant.kind, "\x1b" in meant.traceback) == ("KeyError", False)
    assert "traceback of it" in meant.traceback


@pytest.mark.parametrize(
    ("text", "why", "together"),
    [
        ("The actor is dead because its owner has died. Owner Id: 1", "its owner has died", (PULL,)),
        ("The actor is dead because its node has died.\nmore", "its node has died", ()),
    ],
)
def test_a_death_is_told_in_one_sentence_and_blames_no_pull_for_its_node(
    text: str, why: str, together: tuple[Pull, ...]
) -> None:
    meant = engines_ray._meaning(Died(text), PULL)
    assert isinstance(meant, WorkerLost)
    assert (str(meant), meant.together) == (why, together)


def test_a_lost_actor_is_replaced_and_counts_no_longer(engine: Any) -> None:
    engine.workers, engine._actors = 2, {"one", "two"}
    engine._remove("one")
    assert (engine.workers, engine._actors) == (1, {"two"})
    assert engine._news.get_nowait() == engine._try_to_start_actors


def test_ray_restarts_no_actor_and_repeats_no_call(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    options: list[dict[str, Any]] = []
    for name, value in {"put": lambda it: it, "cluster_resources": lambda: {"CPU": 4.0}}.items():
        monkeypatch.setattr(f"ray.{name}", value)

    def remote(**given: Any) -> Any:
        options.append(given)
        return lambda kind: kind

    monkeypatch.setattr("ray.remote", remote)
    engine._start_actors = lambda: None
    engine._set_up(lambda _: 0.5, own=True)
    assert options == [{"max_restarts": 0, "max_task_retries": 0, "num_cpus": 1.0}]
    engine._needed = {"CPU": 1.0, "GPU": 4.0}
    words = "resources 'CPU 1, GPU 4': the Ray of this machine has only CPU 4, GPU 0"
    with pytest.raises(CannotGoOn, match=words):
        engine._set_up(lambda _: 0.5, own=True)
