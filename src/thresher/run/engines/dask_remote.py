"""What runs on a Dask scheduler and on its workers, for one run.

Dask may run a task again: after its worker died, after its worker was told to leave, or because a result was lost with
its worker. So each pull is marked on the scheduler before it is evaluated, and a pull that is marked is refused.

Outcomes are small, and go to the client with the messages that say that a task is done: no extra fetch is needed.
"""

import asyncio
import os
import signal
import threading
from typing import Any

from distributed import Scheduler, SchedulerPlugin, Worker, WorkerPlugin, get_worker

from ...study import Pull
from .engine import Evaluate, outcome
from .resources import fits

RUNNING: set[str] = set()  # the pulls that this worker is evaluating
REFUSED = b""  # the outcome of a pull that was begun before


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
        """The workers, where pulls were begun, and how often Dask reruns a task whose worker died.

        For each worker: its threads, how many pulls it takes at once, whether it has a nanny, and whether it has other
        clients' work.
        """
        workers = {
            address: (
                state.nthreads,
                int(min(state.nthreads, fits(state.resources, self._needed))),
                bool(state.nanny),
                any(not self._is_ours(task.key) for task in state.processing),
            )
            for address, state in self._scheduler.workers.items()
        }
        return {"workers": workers, "begun": self._begun, "allowed": self._scheduler.allowed_failures}

    def _is_ours(self, key: Any) -> bool:
        return isinstance(key, str) and key.startswith(self.name)

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
    RUNNING.add(key)
    try:
        data = outcome(worker.plugins[name].evaluate, pull)
    finally:
        RUNNING.discard(key)
    if task := worker.state.tasks.get(key):
        task.metadata[name] = data
    return data


def still_running(keys: list[str]) -> list[str]:
    return [key for key in keys if key in RUNNING]


def leave() -> None:
    """End this worker, once this call is answered; its nanny starts another."""
    threading.Timer(0.05, os._exit, (1,)).start()
