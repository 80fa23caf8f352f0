"""Clients of Dask clusters: the user's, one at an address, or one of our own on this machine."""

import contextlib
import logging
import multiprocessing
import re
import signal
import weakref
from collections.abc import Callable
from typing import Any

from distributed import Client, LocalCluster

from ...errors import CannotGoOn, InvalidInput, told_of
from .. import signals

PATIENCE = 20.0  # seconds for an answer of the scheduler


def connected(executor: Any, workers: int, closing: contextlib.ExitStack) -> tuple[Client, LocalCluster | None]:
    """The client for what was passed as ``executor``, and the cluster if it is ours.

    What is made here is closed with ``closing``.
    """
    own = None
    if executor == "dask":
        with signals.later():
            executor = own = _cluster_here(workers)
            closing.callback(executor.close, timeout=PATIENCE)
    elif isinstance(executor, Client):
        if executor.asynchronous:
            remedy = "pass its cluster's address, or Client(…) without asynchronous=True"
            raise InvalidInput("executor", executor, "is an asynchronous client, and run is not", remedy)
        if executor.status != "running":
            rule = "is a client that is closed, or has lost its scheduler"
            raise CannotGoOn("executor", executor, rule, "connect again")
        return executor, None
    elif isinstance(executor, str) and not re.fullmatch(r"((tcp|tls|ws|wss|ucx)://)?[^/]+:\d+/?|inproc://.+", executor):
        rule = "is not the address of a Dask scheduler"
        raise InvalidInput("executor", executor, rule, "write HOST:PORT, as in dask://host:8786")
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # we report the same in one line
    try:
        client = Client(executor, set_as_default=False, timeout=PATIENCE)
    except (OSError, ValueError) as error:
        remedy = "start one with: dask scheduler; and workers with: dask worker ADDRESS"
        raise CannotGoOn("executor", executor, f"no Dask scheduler answers: {told_of(error)}", remedy) from None
    closing.callback(client.close, timeout=PATIENCE)
    return client, own


def _cluster_here(workers: int) -> LocalCluster:
    """A cluster of our own. Its workers ignore Ctrl-C from the start: a terminal sends it to all processes."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise SystemExit(1)  # a worker that imports the script again; the parent reports the error
    settings: dict[str, Any] = {"scheduler_kwargs": {"allowed_failures": 0}, "silence_logs": logging.CRITICAL}
    settings |= {"threads_per_worker": 1, "processes": True, "dashboard_address": "127.0.0.1:0"}
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # which workers inherit
    try:
        return LocalCluster(n_workers=workers, **settings)
    except RuntimeError as error:
        remedy = 'a script that starts workers does so under: if __name__ == "__main__":'
        raise CannotGoOn("executor", "dask", f"no worker could be started: {told_of(error)}", remedy) from None
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def weakly(method: Callable[[Any], None]) -> Callable[[Any], None]:
    """A handler that does not keep the method's object alive."""
    known = weakref.WeakMethod(method)

    def handle(event: Any) -> None:
        if (found := known()) is not None:
            found(event)

    return handle
