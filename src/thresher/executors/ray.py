"""Pulls on a Ray cluster: somebody's, or one of our own on this machine.

A worker is an actor with one pull at a time, so that it is known which pull was begun, and so that a death costs one
pull. Ray restarts no actor and repeats no call of ours.
"""

import contextlib
import logging
import re
import signal
import socket
import threading
from collections import deque
from concurrent.futures import Future
from typing import Any

import ray
from ray.exceptions import ActorUnavailableError, OutOfMemoryError, RayActorError, RayError, RayTaskError

from ..errors import CannotGoOn, told_of
from ..study import Pull
from .engine import Engine, Evaluate, EvaluationFailed, WorkerLost, with_queue
from .outcome import opened, outcome

log = logging.getLogger("thresher")
PATIENCE = 20.0  # seconds for an answer
LOOK = 1.0  # seconds between two looks at the size of the cluster
HOPELESS = 3  # workers that die before the first is ready: the evaluator cannot be set up there


class Worker:
    """What runs on the cluster."""

    def __init__(self, evaluate: Evaluate) -> None:
        self._evaluate = evaluate

    def ready(self) -> None:
        """Answers once the evaluator is here."""

    def evaluate(self, pull: Pull) -> bytes:
        """The outcome of a pull."""
        return outcome(self._evaluate, pull)


class Connection:
    """Ray knows one cluster a process: the first run of ours that needs it connects, the last lets go."""

    _lock = threading.Lock()
    _users = 0
    _ours = False

    @classmethod
    def open(cls, place: str, workers: int | None) -> None:
        """Connect, unless somebody has."""
        with cls._lock:
            if not ray.is_initialized():
                cls._init(place, workers)
                cls._ours = True
            elif place != "ray":
                log.warning(f"this process is connected to a Ray cluster already: that one is used, not {place}")
            cls._users += 1

    @classmethod
    def close(cls) -> None:
        """Let go."""
        with cls._lock:
            cls._users -= 1
            if cls._ours and cls._users == 0:
                cls._ours = False
                ray.shutdown()

    @staticmethod
    def _init(place: str, workers: int | None) -> None:
        settings: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
        if place == "ray":
            settings |= {"num_cpus": workers, "include_dashboard": False}
        else:
            _check_address(place)
            settings |= {"address": place}
        before = signal.getsignal(signal.SIGTERM)
        try:
            ray.init(**settings)
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGTERM, before)  # Ray's own ends the program with another status
        except (ConnectionError, RuntimeError, ValueError, OSError, RayError, ImportError) as error:
            remedy = "start one with: ray start --head"
            if "ray[client]" in str(error):
                remedy = "pip install 'ray[client]'"
            raise CannotGoOn("executor", place, f"no Ray cluster answers: {told_of(error)}", remedy) from None


class Ray(Engine):
    """A run's part of a Ray cluster."""

    elastic = True

    def __init__(self, evaluate: Evaluate, place: str, workers: int | None) -> None:
        Connection.open(place, workers)
        super().__init__(0)
        self._wanted = workers
        self._lock = threading.RLock()
        self._waiting: deque[tuple[Future[object], Pull]] = deque()
        self._staff: set[Any] = set()  # all actors; each is either starting, idle or at work
        self._idle: list[Any] = []
        self._at_work: dict[Future[object], Any] = {}
        self._stillborn = 0
        self._failed: CannotGoOn | None = None
        self._closed, self._short = threading.Event(), threading.Event()
        try:
            self._evaluate = ray.put(evaluate)
            self._actor = ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0)(Worker)
            self._hire()
        except Exception as error:
            Connection.close()
            raise CannotGoOn(
                "evaluate", evaluate, f"cannot be sent to Ray: {told_of(error)}", "pass what can be pickled"
            ) from None
        self._looker = threading.Thread(target=self._look, name="thresher-ray", daemon=True)
        self._looker.start()

    # -- the staff ----------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """Follow the cluster as it grows; where it shrinks, actors die, and calls of them fail."""
        while not self._closed.is_set():
            self._short.wait(LOOK)
            self._short.clear()
            with contextlib.suppress(Exception):  # a cluster that is gone shows in the calls
                self._hire()

    def _hire(self) -> None:
        """As many actors as were asked for, or as the cluster has processors; Ray starts them as it has room."""
        wanted = self._wanted or max(1, int(ray.cluster_resources().get("CPU", 1)))
        while len(self._staff) < wanted and not self._closed.is_set() and self._failed is None:
            actor = self._actor.remote(self._evaluate)
            with self._lock:
                self._staff.add(actor)
            ready = actor.ready.remote()
            ready.future().add_done_callback(lambda future, actor=actor: self._started(actor, future))

    def _started(self, actor: Any, ready: "Future[None]") -> None:
        error = ready.exception()
        with self._lock:
            if error is None:
                self.workers += 1
                self._idle.append(actor)
            else:
                self._staff.discard(actor)
        if error is None:
            self._hand_on()
            return
        with self._lock:
            self._stillborn += 1
            if self.workers == 0 and self._stillborn >= HOPELESS and not self._closed.is_set():
                rule = f"no worker could be started: {_cause(error)}"
                remedy = "thresher, and what the evaluator uses, must be installed on the cluster"
                self._fail(CannotGoOn("executor", "ray", rule, remedy))

    def _fail(self, error: CannotGoOn) -> None:
        self._failed = error
        while self._waiting:
            future, _ = self._waiting.popleft()
            if future.set_running_or_notify_cancel():
                future.set_exception(error)

    def _strike_off(self, actor: Any) -> None:
        """An actor is dead, or shall be: another is hired, by a thread that may wait for Ray."""
        self._staff.discard(actor)
        self.workers -= 1
        self._short.set()

    # -- the engine ---------------------------------------------------------------------------------------------

    @property
    def room(self) -> int:
        """The actors that are there and a small queue."""
        if self._failed is not None:
            raise self._failed
        return with_queue(self.workers)

    def submit(self, pull: Pull) -> "Future[object]":
        """Wait for an idle actor, here: what waits has not begun."""
        future: Future[object] = Future()
        with self._lock:
            self._waiting.append((future, pull))
        self._hand_on()
        return future

    def _next(self) -> tuple["Future[object]", Pull, Any] | None:
        """A pull that waits and an actor for it, if there are both."""
        with self._lock:
            while self._idle and self._waiting:
                future, pull = self._waiting.popleft()
                if future.set_running_or_notify_cancel():
                    actor = self._at_work[future] = self._idle.pop()
                    return future, pull, actor
        return None

    def _hand_on(self) -> None:
        """Give actors their pulls. No lock is held while Ray is called: its answers come on another thread."""
        while (found := self._next()) is not None:
            future, pull, actor = found
            try:
                answer = actor.evaluate.remote(pull).future()
            except Exception as error:
                self._over(future, pull, _failure(error))
            else:
                answer.add_done_callback(lambda answer, future=future, pull=pull: self._over(future, pull, answer))

    def _over(self, future: "Future[object]", pull: Pull, answer: "Future[bytes]") -> None:
        error = answer.exception()
        with self._lock:
            actor = self._at_work.pop(future, None)
            if actor is None:  # its time was over
                return
            if error is None:
                self._idle.append(actor)
            else:
                self._strike_off(actor)
        if error is None:
            self._hand_on()
            future.set_result(answer.result())
        else:
            future.set_exception(_meaning(error, pull))

    def result(self, future: "Future[object]") -> object:
        """The outcome, once it is here."""
        data: Any = future.result()
        return opened(data)

    def stop(self, future: "Future[object]") -> None:
        """Kill the actor; another is hired."""
        with self._lock:
            actor = self._at_work.pop(future, None)
            if actor is None:
                return
            self._strike_off(actor)
        future.set_exception(WorkerLost("its time was over", ()))
        with contextlib.suppress(Exception):
            ray.kill(actor)

    def close(self, *, wait: bool) -> None:
        """End the actors, those at work too, and let go of the cluster."""
        self._closed.set()
        self._short.set()
        self._looker.join(timeout=5)
        with self._lock:
            staff = list(self._staff)
        for actor in staff:
            with contextlib.suppress(Exception):
                ray.kill(actor)
        Connection.close()


def _check_address(address: str) -> None:
    """Ray itself tries for minutes where nobody answers."""
    found = re.fullmatch(r"(?:ray://)?\[?([^/\]]+)\]?:(\d+)", address)
    if found is None:
        return
    try:
        socket.create_connection((found[1], int(found[2])), timeout=PATIENCE).close()
    except OSError as error:
        remedy = "start one with: ray start --head"
        raise CannotGoOn("executor", address, f"no Ray cluster answers: {told_of(error)}", remedy) from None


def _failure(error: Exception) -> "Future[bytes]":
    future: Future[bytes] = Future()
    future.set_exception(error)
    return future


def _meaning(error: BaseException, pull: Pull) -> Exception:
    """What an error of Ray's means for the pull."""
    if isinstance(error, RayActorError | OutOfMemoryError):
        why = _epitaph(error)
        blameless = isinstance(error, ActorUnavailableError) or "its node" in why
        return WorkerLost(why, () if blameless else (pull,))
    if isinstance(error, RayTaskError):
        return EvaluationFailed(told_of(error.cause or error))
    remedy = "the study is as it was: run again once the cluster is back"
    return CannotGoOn("executor", "ray", f"the connection to the Ray cluster was lost: {told_of(error)}", remedy)


def _cause(error: BaseException) -> str:
    """The exception behind an error of Ray's, which tells it at the end of a page, in colours."""
    lines = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).splitlines()
    found = [line.strip() for line in lines if re.match(r"\s*[\w.]*(Error|Exception)\b", line)]
    return found[-1][:300] if found else told_of(error)


def _epitaph(error: BaseException) -> str:
    """What Ray says of an actor's death is a page; what matters is one of its sentences."""
    found = re.search(r"dead because (.*?)[.\n]", f"{error}.")
    return found[1] if found else told_of(error)
