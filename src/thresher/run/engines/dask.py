"""Pulls on a Dask cluster: the user's, or one of our own on this machine.

Dask may run a task again: after its worker died, after its worker was told to leave, or because a result was lost with
its worker. So each pull is marked on the scheduler before it is evaluated, and a pull with a mark is refused.

An outcome is small. It travels to the client in the message that says that its task is done, so nothing is fetched.
"""

import asyncio
import contextlib
import functools
import itertools
import logging
import re
import secrets
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError, Future
from typing import Any

from distributed import (
    Client,
    KilledWorker,
    LocalCluster,
    Scheduler,
    SchedulerPlugin,
    Worker,
    WorkerPlugin,
    fire_and_forget,
    get_worker,
)

from ...errors import CannotGoOn, InvalidInput, error_line
from ...study import Pull
from ...text.logs import log
from ...text.phrasing import plural
from .. import signals
from ..failures import WorkerLost
from .local import Engine, Evaluate
from .outcomes import evaluate_to_outcome, unpack_outcome
from .resources import pulls_queued_for_resources, pulls_that_fit_resources, worker_resources_in_words

LOOK = 0.25  # seconds between two looks at the cluster
PATIENCE = 20.0  # seconds for an answer of the scheduler
REFUSED = b""  # the outcome of a pull that has a mark


class Dask(Engine):
    """A run's part of a Dask cluster. Coroutines on the client's own loop talk to the scheduler."""

    def __init__(
        self,
        evaluate: Evaluate,
        executor: "Client | str | Any",
        workers: int | None,
        cores: int,
        needed: dict[str, float] | None = None,
    ) -> None:
        self._closing = contextlib.ExitStack()  # ends everything that we started or installed
        self._needed = needed or {}  # resources of each pull
        if self._needed and executor == "dask":
            remedy = "start some with: dask worker ADDRESS --resources 'GPU=1'"
            raise InvalidInput("resources", needed, "workers that thresher starts have none", remedy)
        try:
            self.client, self._own = connected_dask_client(executor, workers or cores, self._closing)
            self._most = None if self._own else workers
            self._room = asyncio.Semaphore(self._most or sys.maxsize)
            self._name = f"thresher-{secrets.token_hex(4)}"
            self._serial = itertools.count(1)
            self._keys: dict[Future[object], str] = {}
            self._pulls: dict[str, Pull] = {}
            self._arrived: dict[str, bytes] = {}  # outcomes of tasks that are about to be done
            self._tasks: dict[str, Any] = {}  # Dask's futures
            self._given_up: set[str] = set()
            self._hung: set[str] = set()  # pulls that timed out and keep their threads
            self._status: dict[str, Any] = {}
            self._failed: CannotGoOn | None = None
            self.sought = worker_resources_in_words(self._needed)
            super().__init__(workers or cores)
            self._install(evaluate)
        except BaseException:
            self._closing.close()
            raise

    # -- setting up ---------------------------------------------------------------------------------------------

    def _install(self, evaluate: Evaluate) -> None:
        for remove in (  # a plugin that fails on one worker may stay registered, and keep new workers from starting
            functools.partial(self.client.unregister_scheduler_plugin, self._name),
            functools.partial(self._call_and_wait, "end"),
            functools.partial(self.client.unregister_worker_plugin, self._name),
            functools.partial(self.client.unsubscribe_topic, self._name),
        ):
            self._closing.callback(self._quietly, remove)
        try:
            arrive = functools.partial(_arrive, self._arrived)  # no method, because Dask keeps it longer than us
            self.client.subscribe_topic(self._name, arrive)
            self.client.register_plugin(DaskMarks(self._name, self.client.id, self._needed), name=self._name)
            self.client.register_plugin(DaskEvaluator(self._name, evaluate, own=self._own is not None), name=self._name)
        except Exception as error:
            rule = f"cannot take the evaluator: {error_line(error)}"
            remedy = "thresher, and what the evaluator uses, must be installed on the scheduler and its workers"
            raise CannotGoOn("executor", self.client, rule, remedy) from None
        self._note_status(self._call_and_wait("status"))
        if self._status["allowed"]:
            log.warning(
                f"this Dask scheduler runs a task whose worker died up to {self._status['allowed'] + 1} times "
                f"(its allowed-failures is {self._status['allowed']}); thresher lets each pull begin once"
            )
        self._looking = self._start(self._look())

    def _quietly(self, call: Callable[[], object]) -> None:
        """Call a step of cleaning up, unless the scheduler is gone."""
        if self.client.status == "running":
            with contextlib.suppress(Exception):
                call()

    # -- asking the scheduler -----------------------------------------------------------------------------------

    async def _call_plugin(self, method: str, **arguments: Any) -> Any:
        """Call our plugin on the scheduler. Stop waiting when the client has lost its connection."""
        answer = asyncio.ensure_future(getattr(self.client.scheduler, self._name)(method=method, **arguments))
        end = time.monotonic() + PATIENCE
        try:
            while not answer.done():
                if self.client.status != "running" or time.monotonic() >= end:
                    raise self._disconnected()
                await asyncio.wait([answer], timeout=LOOK)
            return answer.result()
        finally:
            answer.cancel()

    def _call_and_wait(self, method: str, **arguments: Any) -> Any:
        return self.client.sync(self._call_plugin, method, **arguments)

    def _start(self, coroutine: Any) -> "Future[Any]":
        return asyncio.run_coroutine_threadsafe(coroutine, self.client.loop.asyncio_loop)

    async def _look(self) -> None:
        """Watch the cluster grow and shrink, and pulls begin."""
        while self._failed is None:
            await asyncio.sleep(LOOK)
            try:
                self._note_status(await self._call_plugin("status"))
            except (OSError, CannotGoOn):
                self._failed = self._disconnected()

    def _note_status(self, status: dict[str, Any]) -> None:
        self._status = status
        threads = sum(status["workers"].values()) - len(self._hung)
        self.workers = max(0, threads if self._most is None else min(threads, self._most))

    # -- the engine ---------------------------------------------------------------------------------------------

    @property
    def room(self) -> int:
        if self._failed is not None:
            raise self._failed
        if self.workers == 0:  # a user's cluster may start a worker for one waiting pull
            return 0 if self._own else 1
        return self.workers if self.workers == self._most else pulls_queued_for_resources(self.workers)

    def submit(self, pull: Pull) -> "Future[object]":
        """Submit a task with a unique key, because Dask runs equal calls only once."""
        key = f"{self._name}-{pull.id}-{next(self._serial)}"
        self._pulls[key] = pull
        future: Future[object] = self._start(self._evaluate(key, pull))
        self._keys[future] = key
        return future

    async def _evaluate(self, key: str, pull: Pull) -> bytes:
        await self._room.acquire()  # here the pulls wait for which there is no worker
        task = None
        try:
            task = self._tasks[key] = self.client.submit(
                evaluate_once_in_dask,
                self._name,
                key,
                pull,
                key=key,
                pure=False,
                retries=0,
                resources=self._needed or None,
            )
            if (error := await task.exception()) is not None:
                raise error
            data = self._arrived.pop(key, None)
            if data is None:  # it was refused or cancelled, or the connection was lost and restored
                data = await task.result()
            if data == REFUSED:
                raise await self._death(key, "its worker was lost")
            return data
        except KilledWorker as error:
            raise await self._death(key, f"its worker {error.last_worker.address} died") from None
        except (asyncio.CancelledError, CancelledError):  # Dask raises the second kind
            if key in self._given_up or self._looking.cancelled():
                raise
            if self.client.status == "running":
                raise WorkerLost("its task was cancelled on the scheduler", ()) from None
            raise self._disconnected() from None
        except OSError as error:
            if self.client.status == "running":
                raise WorkerLost(f"its worker lost its connection: {error_line(error)}", ()) from None
            raise self._disconnected() from None
        finally:
            self._given_up.discard(key)
            self._arrived.pop(key, None)
            self._tasks.pop(key, None)
            if task is not None:
                task.release()
            if key in self._hung:
                self._hung.discard(key)  # the thread is free again, or gone
            else:
                self._room.release()

    async def _death(self, key: str, reason: str) -> BaseException:
        together = await self._call_plugin("death", key=key)
        if together is None:
            return asyncio.CancelledError("its worker was lost before it began")
        return WorkerLost(reason, [self._pulls[other] for other in together if other in self._pulls])

    def _disconnected(self) -> CannotGoOn:
        address = getattr(self.client.scheduler, "address", "")
        remedy = "the study is as it was: run again once the scheduler is back"
        return CannotGoOn("executor", address, "the connection to the Dask scheduler was lost", remedy)

    def began(self, future: "Future[object]") -> bool:
        return bool(self._status["begun"].get(self._keys[future]))

    def result(self, future: "Future[object]") -> object:
        key = self._keys.pop(future, "")
        data: Any = future.result()
        self._pulls.pop(key, None)  # pulls that died stay: `_death` looks up those that died together
        return unpack_outcome(data)

    def stop(self, future: "Future[object]") -> None:
        """Leave the task where it is: its thread cannot be ended, and Dask must know that it is busy."""
        self.say_hung()
        self.client.loop.asyncio_loop.call_soon_threadsafe(self._let_hang, self._keys[future])

    def _let_hang(self, key: str) -> None:
        if key in self._tasks:
            self._hung.add(key)
            self._room.release()
            self._note_status(self._status)

    def take_back(self, futures: Iterable["Future[object]"]) -> set["Future[object]"]:
        """Ask the scheduler which pulls have begun. If it does not answer, assume that all have."""
        futures_by_key = {self._keys[future]: future for future in futures if future in self._keys}
        not_begun: list[Future[object]] = []
        if self.client.status == "running":
            with contextlib.suppress(Exception):
                keys = self._call_and_wait("forbid", keys=list(futures_by_key))
                not_begun = [futures_by_key[key] for key in keys]
                self._note_status(self._call_and_wait("status"))
        for future in not_begun:
            self._give_up(future)
        return set(not_begun)

    def _give_up(self, future: "Future[object]") -> None:
        key = self._keys.pop(future)
        self._given_up.add(key)
        self._pulls.pop(key, None)
        future.cancel()

    def close(self, *, wait: bool) -> None:
        """Pulls that still run on a user's cluster are left there, so that Dask knows which threads are busy."""
        self._quietly(self._leave_behind)
        self._looking.cancel()
        for future in list(self._keys):
            self._give_up(future)
        self._closing.close()

    def _leave_behind(self) -> None:
        left = [task for key, task in list(self._tasks.items()) if key not in self._given_up]
        if left and self._own is None:
            fire_and_forget(left)
            log.warning(f"{plural(len(left), 'pull')} still running on the cluster: restart the workers that hang")


def _arrive(arrived: dict[str, bytes], event: Any) -> None:
    """Take in an outcome from our plugin on the scheduler."""
    key, data = event[1]
    arrived[key] = data


# -- clients and clusters -----------------------------------------------------------------------------------------


def connected_dask_client(
    executor: Any, workers: int, closing: contextlib.ExitStack
) -> tuple[Client, LocalCluster | None]:
    """The client for the argument ``executor``, and the cluster if it is ours. ``closing`` will close what we make."""
    own = None
    if executor == "dask":
        with signals.delay_signals():
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
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # the errors below say the same in one line
    try:
        client = Client(executor, set_as_default=False, timeout=PATIENCE)
    except (OSError, ValueError) as error:
        remedy = "start one with: dask scheduler; and workers with: dask worker ADDRESS"
        raise CannotGoOn("executor", executor, f"no Dask scheduler answers: {error_line(error)}", remedy) from None
    closing.callback(client.close, timeout=PATIENCE)
    return client, own


def _cluster_here(workers: int) -> LocalCluster:
    """Start a cluster of our own. Its workers ignore Ctrl-C, because a terminal sends it to all processes."""
    settings: dict[str, Any] = {"scheduler_kwargs": {"allowed_failures": 0}, "silence_logs": logging.CRITICAL}
    settings |= {"threads_per_worker": 1, "processes": True, "dashboard_address": "127.0.0.1:0"}
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # which workers inherit
    try:
        return LocalCluster(n_workers=workers, **settings)
    except RuntimeError as error:
        remedy = 'a script that starts workers does so under: if __name__ == "__main__":'
        raise CannotGoOn("executor", "dask", f"no worker could be started: {error_line(error)}", remedy) from None
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


# -- on the scheduler and the workers -----------------------------------------------------------------------------


class DaskMarks(SchedulerPlugin):  # type: ignore[misc]  # Dask's annotations are not read
    """Knows, on the scheduler, which pulls have begun, where, and which of them died together."""

    def __init__(self, name: str, client: str, needed: dict[str, float]) -> None:
        self.name, self._client, self._needed = name, client, needed
        self._begun: dict[str, str] = {}  # by key, the worker's address; an empty one forbids the pull to begin
        self._died: dict[str, list[str]] = {}  # by key, all that died together; none if the worker was told to leave

    async def start(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        scheduler.handlers[self.name] = self.answer

    def answer(self, method: str, **arguments: Any) -> Any:
        return getattr(self, method)(**arguments)

    def begin(self, key: str, worker: str) -> bool:
        """Mark a pull. False if it has a mark, or if the run no longer waits for it."""
        if key in self._begun or (worker and key not in self._scheduler.tasks):
            return False
        self._begun[key] = worker
        return True

    def forbid(self, keys: list[str]) -> list[str]:
        """Keep the pulls that have not begun from beginning, and return them."""
        return [key for key in keys if self.begin(key, "")]

    def death(self, key: str) -> list[str] | None:
        """All pulls that died together with this pull. None if it never began."""
        return self._died.get(key, []) if self._begun.get(key) else None

    def status(self) -> dict[str, Any]:
        """How many pulls each worker takes at once, where pulls were begun, and how often Dask reruns a lost task."""
        workers = {
            address: int(min(state.nthreads, pulls_that_fit_resources(state.resources, self._needed)))
            for address, state in self._scheduler.workers.items()
        }
        return {"workers": workers, "begun": self._begun, "allowed": self._scheduler.allowed_failures}

    def end(self) -> None:
        self._scheduler.handlers.pop(self.name, None)

    def remove_client(self, scheduler: Scheduler, client: str) -> None:
        """Remove the run's plugins: its client is gone, perhaps without cleaning up."""
        if client == self._client:
            self.end()
            scheduler.plugins.pop(self.name, None)
            self._unregistering = asyncio.ensure_future(scheduler.unregister_worker_plugin(comm=None, name=self.name))

    def log_event(self, topic: str, msg: Any) -> None:
        """Note that the pulls of a worker died together, unless it was told to leave."""
        if topic == "all" and isinstance(msg, dict) and msg.get("action") == "remove-worker":
            here = [key for key in msg["processing-tasks"] if self._begun.get(key) == msg["worker"]]
            self._died |= dict.fromkeys(here, [] if msg["expected"] else here)

    def transition(self, key: str, start: str, finish: str, *args: Any, **kwargs: Any) -> None:
        """Send an outcome to the client, before the message that its task is done.

        The mark of a forgotten task goes. A forbidden pull keeps its mark, because a worker may still have its task.
        """
        if finish == "memory" and (data := (kwargs.get("metadata") or {}).get(self.name)):
            event = {"op": "event", "topic": self.name, "event": (0.0, [key, data])}
            self._scheduler.report(event, client=self._client)
        if finish == "forgotten" and self._begun.get(key):
            del self._begun[key]
            self._died.pop(key, None)


class DaskEvaluator(WorkerPlugin):  # type: ignore[misc]
    """Holds the evaluator on each worker, also on workers that join later. It is sent once.

    Workers of our own cluster leave Ctrl-C to the run, because a terminal sends it to all processes.
    """

    def __init__(self, name: str, evaluate: Evaluate, *, own: bool) -> None:
        self.name, self.evaluate, self._own = name, evaluate, own

    def setup(self, worker: Worker) -> None:
        """Dask calls this as the worker starts, in its main thread."""
        if self._own and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # as it was while the cluster started

    def teardown(self, worker: Worker) -> None:
        """End the evaluator's processes after the run. This may take a while, so not on the worker's loop."""
        rest = getattr(self.evaluate, "rest", None)
        if rest is not None:
            threading.Thread(target=rest, name="thresher-rest", daemon=True).start()


def evaluate_once_in_dask(name: str, key: str, pull: Pull) -> bytes:
    """A task. Returns the outcome of a pull, or `REFUSED`."""
    worker = get_worker()
    mark = getattr(worker.scheduler, name)(method="begin", key=key, worker=worker.address)
    if not asyncio.run_coroutine_threadsafe(mark, worker.loop.asyncio_loop).result():
        return REFUSED
    data = evaluate_to_outcome(worker.plugins[name].evaluate, pull)
    if task := worker.state.tasks.get(key):
        task.metadata[name] = data
    return data
