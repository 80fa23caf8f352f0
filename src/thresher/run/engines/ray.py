"""Pulls on a Ray cluster: the user's, or one of our own on this machine.

A worker is an actor with one pull at a time, so we know which pulls have begun, and a death costs only one
pull. Ray restarts none of our actors and repeats none of our calls.
"""

import contextlib
import functools
import logging
import math
import queue
import re
import signal
import socket
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import ray
from ray.exceptions import ActorUnavailableError, OutOfMemoryError, RayActorError, RayError, RayTaskError

from ...errors import CannotGoOn, EvaluationFailed, InvalidInput, error_line
from ...study import Pull
from ...text.logs import log
from .. import signals
from ..failures import WorkerLost
from .local import Engine, Evaluate
from .outcomes import evaluate_to_outcome, unpack_outcome
from .resources import (
    pulls_queued_for_resources,
    pulls_that_fit_resources,
    resources_in_words,
    worker_resources_in_words,
)

PATIENCE = 20.0  # seconds for an answer
LOOK = 1.0  # seconds between two looks at the size of the cluster
HOPELESS = 3  # workers; if that many died before one was ready, they cannot load the evaluator


class RayWorker:
    """An actor, which runs on the cluster."""

    def __init__(self, evaluator: list[Any]) -> None:
        self._evaluator = evaluator  # a reference in a list: Ray does not fetch it before `ready`, whose errors we see

    def ready(self) -> tuple[str, str]:
        """Load the evaluator. Returns the node's id, or an empty one and the error."""
        try:
            self._evaluate: Evaluate = ray.get(self._evaluator[0])
        except Exception as error:
            return "", error_line(error)
        return ray.get_runtime_context().get_node_id(), ""

    def evaluate(self, fields: list[Any]) -> bytes:
        return evaluate_to_outcome(self._evaluate, Pull(*fields))


class Ray(Engine):
    """A run's part of a Ray cluster."""

    def __init__(
        self, evaluate: Evaluate, address: str, workers: int | None, needed: dict[str, float] | None = None
    ) -> None:
        self._needed = {"CPU": 1.0, **(needed or {})}  # resources of each pull
        own = RayConnection.open(address, workers and math.ceil(workers * self._needed["CPU"]))
        self.sought = worker_resources_in_words(needed or {})
        super().__init__(0)
        self._wanted = workers
        self._lock = threading.RLock()
        self._waiting: deque[tuple[Future[object], Pull]] = deque()
        self._actors: dict[Any, str] = {}  # all actors, with the nodes of those that have started
        self._idle: list[Any] = []
        self._at_work: dict[Future[object], Any] = {}
        self._failed_starts = 0
        self._failed: CannotGoOn | None = None
        self._closed = threading.Event()
        self._news: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()  # calls for our own thread
        try:
            self._set_up(evaluate, own=own)
        except BaseException:
            RayConnection.close()
            raise
        self._thread = threading.Thread(target=self._serve, name="thresher-ray", daemon=True)
        self._thread.start()

    def _set_up(self, evaluate: Evaluate, *, own: bool) -> None:
        try:
            self._evaluator = ray.put(evaluate)
        except Exception as error:
            rule = f"cannot be sent to Ray: {error_line(error)}"
            raise CannotGoOn("evaluate", evaluate, rule, "pass what can be pickled") from None
        resources = ray.cluster_resources()
        if own and pulls_that_fit_resources(resources, self._needed) < 1:  # a Ray of our own does not grow
            available = {name: resources.get(name, 0.0) for name in self._needed}
            rule = f"the Ray of this machine has only {resources_in_words(available)}"
            raise CannotGoOn(
                "resources", resources_in_words(self._needed), rule, "ask for less, or name a cluster that has more"
            )
        try:
            self._actor_class = ray.remote(max_restarts=0, max_task_retries=0, **_options(self._needed))(RayWorker)
            self._start_actors()
        except ValueError as error:
            rule = f"Ray says: {' '.join(map(str, error.args))}"
            raise InvalidInput("resources", resources_in_words(self._needed), rule) from None

    # -- the actors ---------------------------------------------------------------------------------------------

    def _serve(self) -> None:
        """Handle Ray's answers. Ray's own threads only queue them, because a call to Ray may deadlock there.

        Once a second, check whether the cluster has grown. If it shrinks, actors die, and their calls fail.
        """
        while not self._closed.is_set():
            try:
                self._news.get(timeout=LOOK)()
            except queue.Empty:
                self._try_to_start_actors()

    def _try_to_start_actors(self) -> None:
        with contextlib.suppress(Exception):  # if the cluster is gone, the calls fail
            self._start_actors()

    def _start_actors(self) -> None:
        """Start as many actors as the user asked for or the cluster can hold. Ray starts each when there is room."""
        wanted = self._wanted or max(1, int(pulls_that_fit_resources(ray.cluster_resources(), self._needed)))
        while len(self._actors) < wanted and not self._closed.is_set() and self._failed is None:
            actor = self._actor_class.remote([self._evaluator])
            with self._lock:
                self._actors[actor] = ""
            ready = actor.ready.remote()
            self._when_done(ready.future(), functools.partial(self._started, actor))

    def _when_done(self, answer: "Future[Any]", handle: "Callable[[Future[Any]], None]") -> None:
        answer.add_done_callback(lambda done: self._news.put(functools.partial(handle, done)))

    def _started(self, actor: Any, ready: "Future[tuple[str, str]]") -> None:
        error = ready.exception()
        node, failure = ("", error_line(error)) if error is not None else ready.result()
        with self._lock:
            if not failure:
                self.workers += 1
                self._actors[actor] = node
                self._idle.append(actor)
            else:
                self._actors.pop(actor, None)
                self._failed_starts += 1
                if self.workers == 0 and self._failed_starts >= HOPELESS and not self._closed.is_set():
                    rule = f"no worker could be started: {failure}"
                    remedy = "thresher, and what the evaluator uses, must be installed on the cluster"
                    self._fail(CannotGoOn("executor", "ray", rule, remedy))
        if failure:
            _end(actor)
        else:
            self._dispatch()

    def _fail(self, error: CannotGoOn) -> None:
        self._failed = error
        while self._waiting:
            future, _ = self._waiting.popleft()
            if future.set_running_or_notify_cancel():
                future.set_exception(error)

    def _remove(self, actor: Any) -> str:
        """Remove an actor that is dead or being killed, and return its node. Our own thread starts another."""
        self.workers -= 1
        self._news.put(self._try_to_start_actors)
        return self._actors.pop(actor, "")

    # -- the engine ---------------------------------------------------------------------------------------------

    @property
    def room(self) -> int:
        if self._failed is not None:
            raise self._failed
        return pulls_queued_for_resources(self.workers)

    def submit(self, pull: Pull) -> "Future[object]":
        """Queue the pull here until an actor is idle: a queued pull has not begun."""
        future: Future[object] = Future()
        with self._lock:
            self._waiting.append((future, pull))
        self._dispatch()
        return future

    def _next(self) -> tuple["Future[object]", Pull, Any] | None:
        """Take a pull that waits and an idle actor, if there are both."""
        with self._lock:
            while self._idle and self._waiting:
                future, pull = self._waiting.popleft()
                if future.set_running_or_notify_cancel():
                    actor = self._at_work[future] = self._idle.pop()
                    return future, pull, actor
        return None

    def _dispatch(self) -> None:
        """Give actors their pulls. No lock is held while Ray is called: its answers come on another thread."""
        while (assignment := self._next()) is not None:
            future, pull, actor = assignment
            try:
                answer = actor.evaluate.remote(list(pull)).future()
            except Exception as error:
                self._over(future, pull, _failure(error))
            else:
                self._when_done(answer, functools.partial(self._over, future, pull))

    def _over(self, future: "Future[object]", pull: Pull, answer: "Future[bytes]") -> None:
        error = answer.exception()
        with self._lock:
            actor = self._at_work.pop(future, None)
            if actor is None:  # the pull had timed out
                return
            if error is None:
                self._idle.append(actor)
            else:
                node = self._remove(actor)
        if error is None:
            self._dispatch()
            future.set_result(answer.result())
        else:
            future.set_exception(_meaning(error, pull, node))

    def result(self, future: "Future[object]") -> object:
        data: Any = future.result()
        return unpack_outcome(data)

    def stop(self, future: "Future[object]") -> None:
        with self._lock:
            actor = self._at_work.pop(future, None)
            if actor is None:
                return
            self._remove(actor)
        future.set_exception(WorkerLost("it timed out", ()))
        _end(actor)

    def close(self, *, wait: bool) -> None:
        self._closed.set()
        self._news.put(lambda: None)
        self._thread.join(timeout=5)
        with self._lock:
            actors = list(self._actors)
        for actor in actors:
            _end(actor)
        RayConnection.close()


def _options(needed: dict[str, float]) -> dict[str, Any]:
    """Resources as Ray's options. Some have an option of their own.

    >>> _options({"CPU": 1.0, "GPU": 0.5, "licence": 1.0})
    {'num_cpus': 1.0, 'num_gpus': 0.5, 'resources': {'licence': 1.0}}
    """
    own = {"CPU": "num_cpus", "GPU": "num_gpus", "memory": "memory"}
    others = {name: amount for name, amount in needed.items() if name not in own}
    options: dict[str, Any] = {own[name]: amount for name, amount in needed.items() if name in own}
    return {**options, "resources": others} if others else options


def _failure(error: Exception) -> "Future[bytes]":
    future: Future[bytes] = Future()
    future.set_exception(error)
    return future


def _end(actor: Any) -> None:
    with contextlib.suppress(Exception):  # it is already gone
        ray.kill(actor)


def _meaning(error: BaseException, pull: Pull, node: str) -> Exception:
    """Translate an error of Ray. If the actor's node died, the pull is not to blame."""
    if isinstance(error, ActorUnavailableError):
        return WorkerLost("its worker cannot be reached", ())
    if isinstance(error, OutOfMemoryError):
        return WorkerLost("its worker used too much memory", (pull,))
    if isinstance(error, RayActorError):
        return WorkerLost("its node died", ()) if _is_dead(node) else WorkerLost("its worker died", (pull,))
    if isinstance(error, RayTaskError):
        cause = error.cause or error
        return EvaluationFailed(error_line(cause), kind=type(cause).__qualname__)
    remedy = "the study is as it was: run again once the cluster is back"
    return CannotGoOn("executor", "ray", f"the connection to the Ray cluster was lost: {error_line(error)}", remedy)


def _is_dead(node: str) -> bool:
    try:
        return node not in {other["NodeID"] for other in ray.nodes() if other["Alive"]}
    except Exception:  # the cluster is gone
        return True


# -- the connection ------------------------------------------------------------------------------------------


class RayConnection:
    """Ray allows one cluster per process: the first run that needs it connects, the last one disconnects."""

    _lock = threading.Lock()
    _users = 0
    _ours = False
    _over = threading.Event()  # of a Ray of our own

    @classmethod
    def open(cls, address: str, processors: int | None) -> bool:
        """Connect, unless already connected. Returns whether it is a Ray that we started on this machine."""
        with cls._lock:
            if not ray.is_initialized():
                try:
                    cls._init(address, processors)
                except BaseException:  # such as Ctrl-C
                    if ray.is_initialized():
                        ray.shutdown()
                    cls._over.set()
                    raise
                cls._ours = True
            elif address != "ray":
                log.warning(f"this process is connected to a Ray cluster already: that one is used, not {address}")
            cls._users += 1
            return cls._ours and address == "ray"

    @classmethod
    def close(cls) -> None:
        with cls._lock:
            cls._users -= 1
            if cls._ours and cls._users == 0:
                cls._ours = False
                ray.shutdown()
                cls._over.set()

    @staticmethod
    def _init(address: str, processors: int | None) -> None:
        quiet: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
        try:
            if address == "ray":
                RayConnection._over = threading.Event()
                _start_here({**quiet, "num_cpus": processors, "include_dashboard": False}, RayConnection._over)
            else:
                _check_address(address)
                before = signal.getsignal(signal.SIGTERM)
                ray.init(address=address, **quiet)
                if threading.current_thread() is threading.main_thread():
                    signal.signal(signal.SIGTERM, before)  # Ray's handler ends the program with another status
        except (RuntimeError, ValueError, OSError, RayError, ImportError) as error:
            is_missing = isinstance(error, ImportError)
            remedy = "pip install 'ray[client]'" if is_missing else "start one with: ray start --head"
            raise CannotGoOn("executor", address, f"no Ray cluster answers: {error_line(error)}", remedy) from None


def _start_here(settings: dict[str, Any], over: threading.Event) -> None:
    """Start a Ray of our own. Ctrl-C takes effect when it has started, a second Ctrl-C at once.

    SIGTERM, and SIGHUP in a command, take effect at once: if a job's processes all get them, Ray never starts.

    Another thread starts it: an interrupted start would leave processes behind, and in the main thread Ray replaces the
    signal handlers. The thread stays until Ray is ``over``, because the system ends Ray's processes with the thread.
    """
    started: Future[None] = Future()

    def start() -> None:
        try:
            ray.init(**settings)
        except BaseException as error:
            started.set_exception(error)
        else:
            started.set_result(None)
            over.wait()

    inbox: queue.SimpleQueue[signal.Signals | Future[None]] = queue.SimpleQueue()
    caught: list[signal.Signals] = []
    started.add_done_callback(inbox.put)
    with signals.queue_signals(inbox):
        threading.Thread(target=start, name="thresher-ray-start", daemon=True).start()
        while not started.done() and len(caught) < 2 and not {signal.SIGTERM, signal.SIGHUP} & {*caught}:
            with contextlib.suppress(queue.Empty):  # a wait of a second, as in `loop.LONGEST_WAIT`
                if isinstance(item := inbox.get(timeout=1.0), signal.Signals):
                    caught.append(item)
    while not inbox.empty():  # a signal may have come just before Ray had started
        if isinstance(item := inbox.get(), signal.Signals):
            caught.append(item)
    for number in caught:
        signal.raise_signal(number)
    started.result()


def _check_address(address: str) -> None:
    """Fail early: Ray itself tries an address for minutes."""
    parts = re.fullmatch(r"(?:ray://)?\[?([^/\]]+)\]?:([0-9]{1,5})", address)
    if parts is not None:
        socket.create_connection((parts[1], int(parts[2])), timeout=PATIENCE).close()
