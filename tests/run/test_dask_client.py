"""Clients of Dask clusters, without connecting any: what is accepted, what is ours, and what is closed."""

import contextlib
import gc
import logging
import multiprocessing
import signal
from typing import Any

import pytest

from thresher.errors import CannotGoOn, InvalidInput
from thresher.run.engines import dask as dask_client
from thresher.run.engines.dask import PATIENCE, _cluster_here, connected, weakly


class Client:
    """In place of Dask's."""

    made: list["Client"]
    error: Exception | None

    def __init__(self, executor: object = None, **settings: Any) -> None:
        if Client.error is not None:
            raise Client.error
        self.executor, self.settings = executor, settings
        self.asynchronous, self.status = False, "running"
        self.closed: list[float] = []
        Client.made.append(self)

    def close(self, *, timeout: float) -> None:
        self.closed.append(timeout)


class Cluster(Client):
    """The same for a cluster."""

    blocked: set[Any]

    def __init__(self, **settings: Any) -> None:
        Cluster.blocked = signal.pthread_sigmask(signal.SIG_BLOCK, set())
        super().__init__(None, **settings)


@pytest.fixture(autouse=True)
def made(monkeypatch: pytest.MonkeyPatch) -> list[Client]:
    Client.made, Client.error = [], None
    monkeypatch.setattr(dask_client, "Client", Client)
    monkeypatch.setattr(dask_client, "LocalCluster", Cluster)
    monkeypatch.setattr(logging.getLogger("distributed.client"), "level", logging.WARNING)
    return Client.made


def test_a_users_client_is_used_and_left_open(made: list[Client]) -> None:
    client: Any = Client()
    with contextlib.ExitStack() as closing:
        assert connected(client, 2, closing) == (client, None)
    assert (made, client.closed) == ([client], [])
    client.asynchronous = True
    with pytest.raises(InvalidInput, match="is an asynchronous client, and run is not; pass its cluster's address"):
        connected(client, 2, closing)
    client.asynchronous, client.status = False, "closed"
    with pytest.raises(CannotGoOn, match="is a client that is closed, or has lost its scheduler; connect again"):
        connected(client, 2, closing)


@pytest.mark.parametrize(
    "executor",
    ["tcp://host:8786", "host:8786", "tls://host:1/", "ws://h:1", "wss://h:1", "ucx://h:1", "inproc://x", object()],
)
def test_a_client_is_made_for_an_address_or_a_cluster_and_closed_at_the_end(executor: Any, made: list[Client]) -> None:
    with contextlib.ExitStack() as closing:
        client, own = connected(executor, 2, closing)
        assert (made, own, made[0].executor) == ([client], None, executor)
        assert made[0].settings == {"set_as_default": False, "timeout": PATIENCE}
    assert made[0].closed == [PATIENCE]
    assert logging.getLogger("distributed.client").level == logging.CRITICAL


@pytest.mark.parametrize("executor", ["host", "http://host:1", "tcp://host", "host:port", "inproc://", "a/b:1", ""])
def test_what_is_no_address_is_refused(executor: str, made: list[Client]) -> None:
    words = "is not the address of a Dask scheduler; write HOST:PORT, as in dask://host:8786"
    with pytest.raises(InvalidInput, match=words):
        connected(executor, 2, contextlib.ExitStack())
    assert made == []


@pytest.mark.parametrize("error", [OSError("refused"), ValueError("no such protocol")])
def test_a_scheduler_that_does_not_answer_is_named_with_the_remedy(error: Exception) -> None:
    Client.error = error
    words = f"no Dask scheduler answers: .*{error}; start one with: dask scheduler; and workers with: dask worker ADD"
    with pytest.raises(CannotGoOn, match=words):
        connected("host:8786", 2, contextlib.ExitStack())


def test_a_cluster_of_our_own_repeats_no_task_and_ignores_ctrl_c_from_the_start(made: list[Client]) -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, set())
    with contextlib.ExitStack() as closing:
        client, own = connected("dask", 3, closing)
        assert made == [own, client]
        assert made[1].executor is own
        assert made[0].settings == {
            "n_workers": 3,
            "threads_per_worker": 1,
            "processes": True,
            "dashboard_address": "127.0.0.1:0",
            "silence_logs": logging.CRITICAL,
            "scheduler_kwargs": {"allowed_failures": 0},
        }
        assert signal.SIGINT in Cluster.blocked
        assert signal.pthread_sigmask(signal.SIG_BLOCK, set()) == before
    assert [each.closed for each in made] == [[PATIENCE], [PATIENCE]]


def test_a_cluster_of_our_own_that_cannot_start_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, set())
    Client.error = RuntimeError("Nanny failed to start.")
    words = (
        "no worker could be started: .*Nanny failed to start.*; a script that starts workers does so under: if __name"
    )
    with pytest.raises(CannotGoOn, match=words):
        _cluster_here(2)
    assert signal.pthread_sigmask(signal.SIG_BLOCK, set()) == before
    Client.error = None
    monkeypatch.setattr(multiprocessing.current_process(), "_inheriting", True, raising=False)
    with pytest.raises(SystemExit) as caught:
        _cluster_here(2)
    assert caught.value.code == 1, "a worker that imports the script again: its parent reports the error"


def test_a_handler_keeps_nothing_alive() -> None:
    class Thing:
        def note(self, event: object) -> None:
            seen.append(event)

    seen: list[object] = []
    thing = Thing()
    handle = weakly(thing.note)
    handle(1)
    del thing
    gc.collect()
    handle(2)
    assert seen == [1]
