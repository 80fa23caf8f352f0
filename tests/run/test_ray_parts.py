"""The parts of the engine for Ray, without a cluster."""

import os
import queue
import signal
import socket
import threading
import time
from collections import deque
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

from thresher.errors import CannotGoOn, EvaluationFailed
from thresher.run.engines import WorkerLost
from thresher.study import Pull

pytest.importorskip("ray")
from ray.exceptions import ActorDiedError, ActorUnavailableError, OutOfMemoryError, RayTaskError

from thresher.run.engines import ray as engines_ray
from thresher.run.engines import ray_place
from thresher.run.engines.ray import Ray
from thresher.run.engines.ray_place import Connection

PULL = Pull(1, "a", 1, {}, 7)

# -- the connection --------------------------------------------------------------------------------------------------


@pytest.fixture
def fake_ray(monkeypatch: pytest.MonkeyPatch) -> Any:
    """In place of Ray: whether it is initialized, and what was called."""
    fake = SimpleNamespace(on=False, started=[], stopped=0)

    def init(**settings: Any) -> None:
        fake.started.append(settings)
        fake.on = True

    def shutdown() -> None:
        fake.stopped += 1
        fake.on = False

    for name, value in {"init": init, "shutdown": shutdown, "is_initialized": lambda: fake.on}.items():
        monkeypatch.setattr(f"ray.{name}", value)
    monkeypatch.setattr(ray_place, "_check_address", lambda _: None)
    return fake


def test_a_ray_of_our_own_is_quiet_and_ends_with_the_last_run(fake_ray: Any) -> None:
    assert Connection.open("ray", 3) is True
    assert Connection.open("ray", None) is True
    (settings,) = fake_ray.started
    assert settings.items() >= {"num_cpus": 3, "include_dashboard": False, "log_to_driver": False}.items()
    Connection.close()
    assert fake_ray.stopped == 0
    Connection.close()
    assert fake_ray.stopped == 1
    assert not Connection._ours


def test_a_ray_that_the_user_connected_to_is_used_and_left_alone(
    fake_ray: Any, caplog: pytest.LogCaptureFixture
) -> None:
    fake_ray.on = True
    assert Connection.open("ray", 3) is False
    assert caplog.text == ""
    assert Connection.open("host:6379", None) is False
    assert "connected to a Ray cluster already: that one is used, not host:6379" in caplog.text
    Connection.close()
    Connection.close()
    assert (fake_ray.started, fake_ray.stopped) == ([], 0)


def test_a_ray_at_an_address_is_not_one_of_our_own(fake_ray: Any) -> None:
    assert Connection.open("host:6379", 3) is False
    (settings,) = fake_ray.started
    assert (settings["address"], "num_cpus" in settings) == ("host:6379", False)
    Connection.close()
    assert fake_ray.stopped == 1, "we connected, so we disconnect"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            ConnectionError("nobody is there"),
            "no Ray cluster answers: .*nobody is there; start one with: ray start --head",
        ),
        (ImportError("pip install ray[client]"), r"no Ray cluster answers: .*; pip install 'ray\[client\]'"),
    ],
)
@pytest.mark.parametrize("place", ["ray", "host:6379"])
def test_a_ray_that_does_not_start_is_explained_and_left_to_no_one(
    place: str, error: Exception, words: str, fake_ray: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def init(**_: Any) -> None:
        fake_ray.on = True
        raise error

    monkeypatch.setattr("ray.init", init)
    with pytest.raises(CannotGoOn, match=words):
        Connection.open(place, 1)
    assert fake_ray.stopped == 1
    assert Connection._over.is_set()
    assert (Connection._users, Connection._ours) == (0, False)


def test_ctrl_c_while_ray_starts_takes_effect_once_it_has_started(
    fake_ray: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def init(**settings: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.3)  # the main thread sees the signal first
        fake_ray.on = True

    monkeypatch.setattr("ray.init", init)
    with pytest.raises(KeyboardInterrupt):
        Connection.open("ray", 1)
    assert (fake_ray.on, fake_ray.stopped) == (False, 1)


def test_an_address_is_tried_before_ray_tries_it_for_minutes() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        for place in (address, f"ray://{address}", "auto", "[::1]"):
            ray_place._check_address(place)
        server.settimeout(10)
        for _ in range(2):
            server.accept()[0].close()
    with pytest.raises(CannotGoOn, match=f"{address}.*no Ray cluster answers: .*refused.*ray start --head"):
        ray_place._check_address(address)


# -- the actors ------------------------------------------------------------------------------------------------------


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
