"""The connection to Ray, without a cluster."""

import os
import signal
import socket
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

from thresher.errors import CannotGoOn

pytest.importorskip("ray")

from thresher.run.engines import ray as ray_connection
from thresher.run.engines.ray import Connection

AT_FIRST = (Connection._users, Connection._ours)  # nothing has run when this module is imported


def test_at_first_no_ray_is_ours() -> None:
    """Otherwise a run would shut down the one that the user connected to."""
    assert AT_FIRST == (0, False)


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
    monkeypatch.setattr(ray_connection, "_check_address", lambda _: None)
    return fake


def test_a_ray_of_our_own_is_quiet_and_ends_with_the_last_run(fake_ray: Any) -> None:
    assert Connection.open("ray", 3) is True
    assert Connection.open("ray", None) is True
    (settings,) = fake_ray.started
    assert settings.items() >= {"num_cpus": 3, "include_dashboard": False, "log_to_driver": False}.items()
    Connection.close()
    assert fake_ray.stopped == 0
    assert not Connection._over.is_set()
    Connection.close()
    assert (fake_ray.stopped, Connection._ours) == (1, False)
    assert Connection._over.is_set(), "its thread may end"


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


@pytest.mark.parametrize("in_main", [True, False])
def test_the_handler_of_sigterm_is_as_before_ray_changed_it(
    in_main: bool, fake_ray: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def init(**settings: Any) -> None:
        fake_ray.on = True
        if in_main:
            signal.signal(signal.SIGTERM, lambda *_: None)

    monkeypatch.setattr("ray.init", init)
    before = signal.getsignal(signal.SIGTERM)
    if in_main:
        Connection.open("host:6379", None)
    else:
        thread = threading.Thread(target=Connection.open, args=("host:6379", None))
        thread.start()
        thread.join()
    assert (signal.getsignal(signal.SIGTERM), Connection._users) == (before, 1)
    Connection.close()


def test_sigterm_while_ray_starts_takes_effect_at_once(fake_ray: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Ended(BaseException):
        """SIGTERM came."""

    def end(*_: object) -> None:
        raise Ended

    over = threading.Event()

    def init(**settings: Any) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        over.wait(20)

    monkeypatch.setattr("ray.init", init)
    before = signal.signal(signal.SIGTERM, end)
    try:
        with pytest.raises(Ended):
            Connection.open("ray", 1)
    finally:
        signal.signal(signal.SIGTERM, before)
        over.set()
    assert (Connection._users, Connection._ours, fake_ray.stopped) == (0, False, 0)


def test_ctrl_c_in_the_moment_in_which_ray_has_started_is_obeyed(
    fake_ray: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def init(**settings: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        fake_ray.on = True

    monkeypatch.setattr("ray.init", init)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            Connection.open("ray", 1)
    finally:
        signal.signal(signal.SIGINT, before)
    assert (Connection._users, Connection._ours, fake_ray.stopped) == (0, False, 1)


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
@pytest.mark.parametrize("address", ["ray", "host:6379"])
def test_a_ray_that_does_not_start_is_explained_and_left_to_no_one(
    address: str, error: Exception, words: str, fake_ray: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def init(**_: Any) -> None:
        fake_ray.on = True
        raise error

    monkeypatch.setattr("ray.init", init)
    with pytest.raises(CannotGoOn, match=words):
        Connection.open(address, 1)
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


def test_a_second_ctrl_c_does_not_wait_for_ray(fake_ray: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    over, started = threading.Event(), []

    def init(**settings: Any) -> None:
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.3)  # the main thread sees each signal
        started.append(over.wait(5))

    monkeypatch.setattr("ray.init", init)
    with pytest.raises(KeyboardInterrupt):
        Connection.open("ray", 1)
    assert started == []
    over.set()


def test_an_address_is_tried_before_ray_tries_it_for_minutes() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        for each in (address, f"ray://{address}", "auto", "[::1]"):
            ray_connection._check_address(each)
        server.settimeout(10)
        for _ in range(2):
            server.accept()[0].close()
    with pytest.raises(CannotGoOn, match=f"{address}.*no Ray cluster answers: .*refused.*ray start --head"):
        Connection.open(address, None)
