"""Pulls on a Dask cluster: the user's, or one of our own on this machine.

Dask may run a task again: after its worker died, after its worker was told to leave, or because a result was lost with
its worker. So each pull is marked on the scheduler before it is evaluated, and a pull that is marked is refused.

Outcomes are small, and go to the client with the messages that say that a task is done: no extra fetch is needed.
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

from ...errors import CannotGoOn, InvalidInput, told_of
from ...study import Pull
from ...text.logs import log
from ...text.phrasing import plural
from .. import signals
from ..failures import WorkerLost
from .engine import Engine, Evaluate, opened, outcome
from .resources import fits, sought, with_queue

LOOK = 0.25  # seconds between two looks at the cluster
PATIENCE = 20.0  # seconds for an answer of the scheduler
REFUSED = b""  # the outcome of a pull that was begun before


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
        self._closing = contextlib.ExitStack()  # what is ours
        self._needed = needed or {}  # resources of each pull
        if self._needed and executor == "dask":
            rule = "workers that thresher starts have none"
            remedy = "start some with: dask worker ADDRESS --resources 'GPU=1'"
            raise InvalidInput("resources", needed, rule, remedy)
        try:
            self.client, self._own = connected(executor, workers or cores, self._closing)
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
            self.sought = sought(self._needed)
            super().__init__(workers or cores)
            self._install(evaluate)
        except BaseException:
            self._closing.close()
            raise

    # -- setting up ---------------------------------------------------------------------------------------------

    def _install(self, evaluate: Evaluate) -> None:
        for remove in (  # a plugin that fails on one worker may stay registered, and keep new workers from starting
            functools.partial(self.client.unregister_scheduler_plugin, self._name),
            functools.partial(self._ask, "end"),
            functools.partial(self.client.unregister_worker_plugin, self._name),
            functools.partial(self.client.unsubscribe_topic, self._name),
        ):
            self._closing.callback(self._quietly, remove)
        try:
            arrive = functools.partial(_arrive, self._arrived)  # Dask keeps it, but not us, as long as the client lives
            self.client.subscribe_topic(self._name, arrive)
            self.client.register_plugin(Marks(self._name, self.client.id, self._needed), name=self._name)
            self.client.register_plugin(Evaluator(self._name, evaluate, own=self._own is not None), name=self._name)
        except Exception as error:
            rule = f"cannot take the evaluator: {told_of(error)}"
            remedy = "thresher, and what the evaluator uses, must be installed on the scheduler and its workers"
            raise CannotGoOn("executor", self.client, rule, remedy) from None
        self._see(self._ask("status"))
        if self._status["allowed"]:
            log.warning(
                f"this Dask scheduler runs a task whose worker died up to {self._status['allowed'] + 1} times "
                f"(its allowed-failures is {self._status['allowed']}); thresher lets each pull begin once"
            )
        self._looking = self._soon(self._look())

    def _quietly(self, call: Callable[[], object]) -> None:
        """Clean up, unless the scheduler is gone."""
        if self.client.status == "running":
            with contextlib.suppress(Exception):
                call()

    # -- asking the scheduler -----------------------------------------------------------------------------------

    async def _question(self, what: str, **given: Any) -> Any:
        """Ask our plugin on the scheduler; stop waiting when the client has lost its connection."""
        asked = asyncio.ensure_future(getattr(self.client.scheduler, self._name)(what=what, **given))
        end = time.monotonic() + PATIENCE
        try:
            while not asked.done():
                if self.client.status != "running" or time.monotonic() >= end:
                    raise self._disconnected()
                await asyncio.wait([asked], timeout=LOOK)
            return asked.result()
        finally:
            asked.cancel()

    def _ask(self, what: str, **given: Any) -> Any:
        return self.client.sync(self._question, what, **given)

    def _soon(self, coroutine: Any) -> "Future[Any]":
        return asyncio.run_coroutine_threadsafe(coroutine, self.client.loop.asyncio_loop)

    async def _look(self) -> None:
        """Follow the cluster as it grows and shrinks, and the pulls as they begin."""
        while self._failed is None:
            await asyncio.sleep(LOOK)
            try:
                self._see(await self._question("status"))
            except (OSError, CannotGoOn):
                self._failed = self._disconnected()

    def _see(self, status: dict[str, Any]) -> None:
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
        return self.workers if self.workers == self._most else with_queue(self.workers)

    def submit(self, pull: Pull) -> "Future[object]":
        """Submit a task with a unique key: Dask would treat equal calls as one."""
        key = f"{self._name}-{pull.id}-{next(self._serial)}"
        self._pulls[key] = pull
        future: Future[object] = self._soon(self._evaluate(key, pull))
        self._keys[future] = key
        return future

    async def _evaluate(self, key: str, pull: Pull) -> bytes:
        await self._room.acquire()  # where pulls beyond the number of workers asked for wait
        task = None
        try:
            task = self._tasks[key] = self.client.submit(
                evaluate_once, self._name, key, pull, key=key, pure=False, retries=0, resources=self._needed or None
            )
            if (error := await task.exception()) is not None:
                raise error
            data = self._arrived.pop(key, None)
            if data is None:  # refused, cancelled, or the connection was lost and restored
                data = await task.result()
            if data == REFUSED:
                raise await self._death(key, "its worker was lost")
            return data
        except KilledWorker as error:
            raise await self._death(key, f"its worker {error.last_worker.address} died") from None
        except (asyncio.CancelledError, CancelledError):  # Dask's own is of the second kind
            if key in self._given_up or self._looking.cancelled():
                raise
            if self.client.status == "running":
                raise WorkerLost("its task was cancelled on the scheduler", ()) from None
            raise self._disconnected() from None
        except OSError as error:
            if self.client.status == "running":
                raise WorkerLost(f"its worker lost its connection: {told_of(error)}", ()) from None
            raise self._disconnected() from None
        finally:
            self._given_up.discard(key)
            self._arrived.pop(key, None)
            self._tasks.pop(key, None)
            if task is not None:
                task.release()
            if key in self._hung:
                self._hung.discard(key)  # its thread is free again, or gone
            else:
                self._room.release()

    async def _death(self, key: str, reason: str) -> BaseException:
        together = await self._question("death", key=key)
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
        self._pulls.pop(key, None)  # pulls that died stay: `_death` looks up the pulls that died together
        return opened(data)

    def stop(self, future: "Future[object]") -> None:
        """Leave the task where it is: its thread cannot be ended, and Dask must know that it is busy."""
        self.say_hung()
        self.client.loop.asyncio_loop.call_soon_threadsafe(self._let_hang, self._keys[future])

    def _let_hang(self, key: str) -> None:
        if key in self._tasks:
            self._hung.add(key)
            self._room.release()
            self._see(self._status)

    def take_back(self, futures: Iterable["Future[object]"]) -> set["Future[object]"]:
        """The scheduler knows which have begun; if it does not answer, assume that all have."""
        keys = {self._keys[future]: future for future in futures if future in self._keys}
        fresh: list[str] = []
        if self.client.status == "running":
            with contextlib.suppress(Exception):
                fresh = self._ask("forbid", keys=list(keys))
                self._see(self._ask("status"))
        for key in fresh:
            self._give_up(keys[key])
        return {keys[key] for key in fresh}

    def _give_up(self, future: "Future[object]") -> None:
        key = self._keys.pop(future)
        self._given_up.add(key)
        self._pulls.pop(key, None)
        future.cancel()

    def close(self, *, wait: bool) -> None:
        """What still runs on a user's cluster is left there, and Dask knows that its threads are busy."""
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
    """An outcome, from our plugin on the scheduler."""
    key, data = event[1]
    arrived[key] = data


# -- clients and clusters -----------------------------------------------------------------------------------------


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


# -- on the scheduler and the workers -----------------------------------------------------------------------------


class Marks(SchedulerPlugin):  # type: ignore[misc]  # Dask's annotations are not read
    """On the scheduler: which pulls were begun, where, and which of them died together."""

    def __init__(self, name: str, client: str, needed: dict[str, float]) -> None:
        self.name, self._client, self._needed = name, client, needed
        self._begun: dict[str, str] = {}  # by key: the worker's address; empty: it must no longer begin
        self._died: dict[str, list[str]] = {}  # by key: those that died together; none if the worker was told to leave

    async def start(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        scheduler.handlers[self.name] = self.answer

    def answer(self, what: str, **given: Any) -> Any:
        return getattr(self, what)(**given)

    def begin(self, key: str, worker: str) -> bool:
        """Mark a pull; False if it is marked already, or if the run no longer waits for it."""
        if key in self._begun or (worker and key not in self._scheduler.tasks):
            return False
        self._begun[key] = worker
        return True

    def forbid(self, keys: list[str]) -> list[str]:
        """Keep the pulls that have not begun from beginning, and return them."""
        return [key for key in keys if self.begin(key, "")]

    def death(self, key: str) -> list[str] | None:
        """The pulls that died with this one; None if it never began."""
        return self._died.get(key, []) if self._begun.get(key) else None

    def status(self) -> dict[str, Any]:
        """How many pulls each worker takes at once, where pulls were begun, and how often Dask reruns a lost task."""
        workers = {
            address: int(min(state.nthreads, fits(state.resources, self._needed)))
            for address, state in self._scheduler.workers.items()
        }
        return {"workers": workers, "begun": self._begun, "allowed": self._scheduler.allowed_failures}

    def end(self) -> None:
        self._scheduler.handlers.pop(self.name, None)

    def remove_client(self, scheduler: Scheduler, client: str) -> None:
        """The run's client is gone, perhaps without cleaning up: remove its plugins."""
        if client == self._client:
            self.end()
            scheduler.plugins.pop(self.name, None)
            self._unregistering = asyncio.ensure_future(scheduler.unregister_worker_plugin(comm=None, name=self.name))

    def log_event(self, topic: str, msg: Any) -> None:
        """A worker is gone: its pending pulls died together, unless it was told to leave."""
        if topic == "all" and isinstance(msg, dict) and msg.get("action") == "remove-worker":
            here = [key for key in msg["processing-tasks"] if self._begun.get(key) == msg["worker"]]
            self._died |= dict.fromkeys(here, [] if msg["expected"] else here)

    def transition(self, key: str, start: str, finish: str, *args: Any, **kwargs: Any) -> None:
        """Send the outcome of a pull that is done to the client, before the message that it is done.

        A forgotten pull needs no mark, unless it must not begin: a worker may still have it.
        """
        if finish == "memory" and (data := (kwargs.get("metadata") or {}).get(self.name)):
            event = {"op": "event", "topic": self.name, "event": (0.0, [key, data])}
            self._scheduler.report(event, client=self._client)
        if finish == "forgotten" and self._begun.get(key):
            del self._begun[key]
            self._died.pop(key, None)


class Evaluator(WorkerPlugin):  # type: ignore[misc]
    """On each worker, including workers that join later: the evaluator, sent once.

    Workers of our own cluster leave Ctrl-C to the run: a terminal sends it to all processes.
    """

    def __init__(self, name: str, evaluate: Evaluate, *, own: bool) -> None:
        self.name, self.evaluate, self._own = name, evaluate, own

    def setup(self, worker: Worker) -> None:
        """Called as the worker starts, in its main thread."""
        if self._own and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # as it was while the cluster started

    def teardown(self, worker: Worker) -> None:
        """End the evaluator's processes at the end of the run, which may take a while: not on the worker's loop."""
        rest = getattr(self.evaluate, "rest", None)
        if rest is not None:
            threading.Thread(target=rest, name="thresher-rest", daemon=True).start()


def evaluate_once(name: str, key: str, pull: Pull) -> bytes:
    """A task: the outcome of a pull, or `REFUSED`."""
    worker = get_worker()
    mark = getattr(worker.scheduler, name)(what="begin", key=key, worker=worker.address)
    if not asyncio.run_coroutine_threadsafe(mark, worker.loop.asyncio_loop).result():
        return REFUSED
    data = outcome(worker.plugins[name].evaluate, pull)
    if task := worker.state.tasks.get(key):
        task.metadata[name] = data
    return data
