"""What only Ray does: deaths of nodes, evaluators that it cannot load, and how it starts and is shut down."""

import importlib
import os
import signal
import socket
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from engines import evaluator, make

import thresher
from thresher.errors import CannotGoOn

ray = pytest.importorskip("ray")

# -- the Ray that tests share -----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("ray_here")
def test_the_death_of_a_node_blames_no_arm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ray.nodes", list)  # all are gone
    study = make("dies", budget=2, max_failures=1)
    assert thresher.run(study, evaluator("ray"), executor="ray", workers=1).retired == []
    dropped = [(event.cause, event.reason) for event in study.events() if event.kind == "dropped"]
    assert dropped == [("lost", "its node died")] * 2


@pytest.mark.usefixtures("ray_here")
def test_an_evaluator_that_the_cluster_cannot_load_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "only_here.py").write_text("def evaluate(pull):\n    return 0.5\n")
    monkeypatch.syspath_prepend(tmp_path)
    study = make()
    words = "no worker could be started: .*No module named 'only_here'.*; thresher, and what the evaluator uses, must"
    with pytest.raises(CannotGoOn, match=words):
        thresher.run(study, importlib.import_module("only_here").evaluate, executor="ray", workers=1)
    assert study.verdict().told == study.verdict().pending == 0


@pytest.mark.usefixtures("ray_here")
def test_a_ray_that_the_user_connected_to_is_used_and_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    for executor in ("ray", "host:6379"):
        study = make(budget=4)
        assert thresher.run(study, evaluator("ray"), executor=executor, workers=1).told == 4
        assert ray.is_initialized()
        words = "connected to a Ray cluster already: that one is used, not host:6379"
        assert (words in caplog.text) == (executor != "ray")


# -- while it starts --------------------------------------------------------------------------------------------------


@pytest.fixture
def fake_ray(monkeypatch: pytest.MonkeyPatch) -> Any:
    """In place of Ray: whether it is initialized, and how often it was shut down."""
    fake = SimpleNamespace(on=False, started=[], stopped=0)

    def init(**settings: Any) -> None:
        fake.started.append(settings)
        fake.on = True

    def shutdown() -> None:
        fake.stopped += 1
        fake.on = False

    names = {"init": init, "shutdown": shutdown, "is_initialized": lambda: fake.on}
    for name, value in {**names, "put": lambda it: it, "cluster_resources": lambda: {"CPU": 0.5}}.items():
        monkeypatch.setattr(ray, name, value)
    return fake


def begin(executor: str = "ray", workers: int | None = 1) -> None:
    """A run that gets no further than the start of Ray."""
    study = make()
    try:
        thresher.run(study, lambda pull: 0.5, executor=executor, workers=workers)
    finally:
        assert len(study.events()) == 1


def test_a_ray_of_our_own_that_is_too_small_ends_the_run_and_is_shut_down(fake_ray: Any) -> None:
    words = "resources 'CPU 1': the Ray of this machine has only CPU 0.5; ask for less, or name a cluster"
    with pytest.raises(CannotGoOn, match=words):
        begin(workers=3)
    (settings,) = fake_ray.started
    assert settings.items() >= {"num_cpus": 3, "include_dashboard": False, "log_to_driver": False}.items()
    assert fake_ray.stopped == 1


def test_a_connection_that_we_made_is_closed_and_sigterm_is_handled_as_before(
    fake_ray: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def init(**settings: Any) -> None:
        fake_ray.on = True
        signal.signal(signal.SIGTERM, lambda *_: None)  # as Ray does

    def refuse(evaluate: object) -> None:
        raise TypeError("cannot pickle")

    monkeypatch.setattr(ray, "init", init)
    monkeypatch.setattr(ray, "put", refuse)
    before = signal.getsignal(signal.SIGTERM)
    words = "cannot be sent to Ray: TypeError: cannot pickle; pass what can be pickled"
    with socket.create_server(("127.0.0.1", 0)) as server, pytest.raises(CannotGoOn, match=words):
        begin(f"127.0.0.1:{server.getsockname()[1]}")
    assert (signal.getsignal(signal.SIGTERM), fake_ray.stopped) == (before, 1)


class Ended(BaseException):
    """SIGTERM came."""


def end(*_: object) -> None:
    raise Ended


@pytest.mark.parametrize(
    ("sent", "starts", "raised"),
    [
        ([signal.SIGINT], True, KeyboardInterrupt),  # takes effect once Ray has started, and can be shut down
        ([signal.SIGINT] * 2, False, KeyboardInterrupt),
        ([signal.SIGTERM], False, Ended),  # a batch system sends it to Ray's processes, too: it never starts
    ],
)
def test_signals_while_ray_starts(
    sent: list[signal.Signals],
    starts: bool,
    raised: type[BaseException],
    fake_ray: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    over = threading.Event()

    def init(**settings: Any) -> None:
        for number in sent:
            os.kill(os.getpid(), number)
            over.wait(0.3)  # the main thread sees each signal
        if starts:
            fake_ray.on = True
        else:
            over.wait(60)

    monkeypatch.setattr(ray, "init", init)
    before = [(number, signal.getsignal(number)) for number in (signal.SIGTERM, signal.SIGINT)]
    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(raised):
            begin()
    finally:
        for number, handler in before:
            signal.signal(number, handler)
        over.set()
    assert (fake_ray.on, fake_ray.stopped) == (False, int(starts))


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ConnectionError("nobody is there"), "no Ray cluster answers: .*nobody is there; start one with: ray start"),
        (ImportError("ray client"), r"no Ray cluster answers: .*; pip install 'ray\[client\]'"),
    ],
)
@pytest.mark.parametrize("executor", ["ray", "ray:auto"])
def test_a_ray_that_does_not_start_is_explained_and_left_to_no_one(
    executor: str, error: Exception, words: str, fake_ray: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def init(**_: Any) -> None:
        fake_ray.on = True
        raise error

    monkeypatch.setattr(ray, "init", init)
    with pytest.raises(CannotGoOn, match=words):
        begin(executor)
    assert fake_ray.stopped == 1


@pytest.mark.parametrize("form", ["{}", "ray:{}", "ray://{}"])
def test_an_address_is_tried_before_ray_tries_it_for_minutes(form: str, fake_ray: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    with pytest.raises(CannotGoOn, match=f"{address}.*no Ray cluster answers: .*refused.*ray start --head"):
        begin(form.format(address))
    assert fake_ray.started == []
