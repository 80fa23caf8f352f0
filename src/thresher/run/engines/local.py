"""The interface of an engine, and the engines of this machine: threads and processes of our own."""

import contextlib
import multiprocessing
import numbers
import os
import pickle
import queue
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from multiprocessing.connection import Connection
from typing import Any

from ...errors import Busy, CannotGoOn, EvaluationFailed, NoReward, error_line
from ...study import Pull
from ...text.logs import log
from .. import forks
from ..command.reward import exit_in_words
from ..evaluator_errors import error_identity, is_refused_error, is_transient_error, traceback_text
from ..evaluators import Shared, shared_argument
from ..failures import EvaluatorLost, EvaluatorRefused, WorkerLost, wrap_evaluator_error

Evaluate = Callable[[Pull], object]
EvaluateSharing = Callable[[Pull, Any], object]  # with the shared object


class Engine(ABC):
    """Evaluates pulls, each of them once, and returns a future for each."""

    sought = "worker"  # in a message that says that there is none

    def __init__(self, workers: int) -> None:
        self.workers = workers  # how many pulls it evaluates at once; this may change during a run
        self._said_hung = False

    @property
    def room(self) -> int:
        """How many pulls to have pending by default: as many as there are workers, or a few more.

        Raises `CannotGoOn` if the engine cannot recover.
        """
        return self.workers

    def prepare(self) -> None:
        """Set up the shared object, before the first pull."""
        return

    @abstractmethod
    def submit(self, pull: Pull) -> "Future[object]":
        """Evaluate a pull as soon as a worker is free."""

    def began(self, future: "Future[object]") -> bool:
        """Whether a worker has begun this evaluation."""
        return future.running()

    def result(self, future: "Future[object]") -> object:
        """The value that the evaluator returned.

        Raises the evaluator's exception, `WorkerLost`, ``CancelledError`` if the evaluation never began, or
        `CannotGoOn` if the engine cannot recover.
        """
        return future.result()

    @abstractmethod
    def stop(self, future: "Future[object]") -> None:
        """End an evaluation that has run too long, or at least replace its worker."""

    def say_hung(self) -> None:
        """Log, once, that a pull that timed out cannot be ended."""
        if not self._said_hung:
            self._said_hung = True
            keeps = "a pull that timed out keeps its worker until it returns or the worker is restarted"
            log.warning(f"{keeps}; the run goes on with the others")

    def take_back(self, futures: Iterable["Future[object]"]) -> set["Future[object]"]:
        """Take back the pulls that have not begun, and return their futures. The others continue."""
        return {future for future in futures if future.cancel()}

    @abstractmethod
    def close(self, *, wait: bool) -> None:
        """End all workers, also busy ones. With ``wait``, none is busy."""

    def release(self) -> None:
        """Clean up the shared object, after `close`. Here a signal may have its usual effect."""
        return


class Threads(Engine):
    """Daemon threads of our own: a call that hangs neither blocks the others nor keeps the interpreter alive."""

    def __init__(self, evaluate: Any, workers: int, shared: Shared | None = None) -> None:
        super().__init__(workers)
        self.evaluate, self._shared = evaluate, shared
        self._stack = contextlib.ExitStack()
        self._tasks: queue.SimpleQueue[tuple[Future[object], Pull] | None] = queue.SimpleQueue()
        self._running: dict[Future[object], Any] = {}  # the thread or process that runs each
        self._threads: set[threading.Thread] = set()

    def prepare(self) -> None:
        if self._shared is not None:
            self.evaluate.more = self._stack.enter_context(shared_argument(self._shared))

    def release(self) -> None:
        self._stack.close()

    def submit(self, pull: Pull) -> "Future[object]":
        """Hand the pull to the next free thread. Threads are started as they are needed."""
        future: Future[object] = Future()
        if len(self._threads) < self.workers:
            self._start()
        self._tasks.put((future, pull))
        return future

    def stop(self, future: "Future[object]") -> None:
        """Abandon the thread, because it cannot be ended, and start another in its place."""
        thread = self._running.pop(future, None)
        if thread is not None:
            self._threads.discard(thread)
            self._start()

    def close(self, *, wait: bool) -> None:
        for _ in self._threads:
            self._tasks.put(None)

    def _start(self) -> None:
        thread = threading.Thread(target=self._work, name="thresher-worker", daemon=True)
        self._threads.add(thread)
        thread.start()

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            future, pull = task
            if future.set_running_or_notify_cancel():
                self._running[future] = threading.current_thread()
                try:
                    future.set_result(self.evaluate(pull))
                except BaseException as error:
                    future.set_exception(wrap_evaluator_error(error))
                if self._running.pop(future, None) is None:
                    return  # abandoned: another thread has this one's place


# -- The outcome of an evaluation in another process -------------------------------------------------------------------
#
# An outcome is bytes that any two processes can exchange. Only a reward is pickled, never an exception: many cannot be
# unpickled, and an evaluator's may look like the engine's own. An exception travels as text: its message, where it was
# raised, its traceback.


def evaluate_to_outcome(evaluate: Evaluate, pull: Pull) -> bytes:
    """Evaluate a pull in the worker."""
    error_type: type[BaseException] | None = None
    value: Any  # the reward, or the arguments of the error
    try:
        value = evaluate(pull)
    except Busy as busy:
        error_type, value = Busy, {"after": busy.after}
    except KeyboardInterrupt:
        error_type, value = KeyboardInterrupt, {}
    except EvaluatorLost as error:
        error_type, value = EvaluatorLost, {"reason": str(error), "together": list(error.together)}
    except EvaluatorRefused as error:
        fields = ("what", "value", "rule", "remedy")
        error_type, value = EvaluatorRefused, {name: getattr(error, name) for name in fields}
    except BaseException as error:
        error_type, value = NoReward if isinstance(error, NoReward) else EvaluationFailed, _error_fields(error)
    try:
        return pickle.dumps((error_type, value))
    except Exception:
        rewards = value if isinstance(value, tuple) else (value,)  # a pair has two
        if all(isinstance(reward, numbers.Real) for reward in rewards):  # of a class that only the user's script has
            plain = tuple(map(float, rewards))
            return pickle.dumps((None, plain if isinstance(value, tuple) else plain[0]))
        text = f"TypeError: it returned {value!r:.200}, which cannot be sent between processes"
        return pickle.dumps((NoReward, {"text": text, "kind": "returned what cannot be sent between processes"}))


def _error_fields(error: BaseException) -> dict[str, Any]:
    """An exception as arguments of `EvaluationFailed`."""
    return {
        "text": error_line(error),
        "kind": error_identity(error),
        "transient": is_transient_error(error),
        "refused": is_refused_error(error),
        "output": error.output if isinstance(error, EvaluationFailed) else "",
        "traceback": traceback_text(error),
    }


def unpack_outcome(data: bytes) -> object:
    """Return the reward, or raise the error, as if the evaluator had been called in this process."""
    try:
        error_type, value = pickle.loads(data)  # noqa: S301 - from a worker of our own
    except Exception as error:
        text = f"it returned something that cannot be read here: {error_line(error)}"
        raise NoReward(text, kind="returned what cannot be read here") from None
    if error_type is None:
        return value
    raise error_type(**value)


# -- Processes ---------------------------------------------------------------------------------------------------------


class Processes(Threads):
    """Processes of our own. Each has a pipe, and a thread here that waits for it: a death costs only one pull."""

    def __init__(self, evaluate: Any, workers: int, shared: Shared | None = None) -> None:
        super().__init__(evaluate, workers, shared)
        self._ready: list[Process] = []  # set up before the first pull
        self._starting: set[Process] = set()

    def prepare(self) -> None:
        """Start one process, so that no pull is issued if the shared object cannot be set up."""
        if self._shared is not None:
            process = Process(self.evaluate, self._shared)
            try:
                process.prepare()
            except BaseException:
                process.kill()
                raise
            self._ready.append(process)

    def stop(self, future: "Future[object]") -> None:
        """Kill the process; its thread notices and starts another."""
        process = self._running.get(future)
        if process is not None:
            process.kill()

    def close(self, *, wait: bool) -> None:
        super().close(wait=wait)
        if not wait:
            for process in [*self._running.values(), *self._starting]:
                process.kill()
        for thread in self._threads:
            thread.join(timeout=5)

    def release(self) -> None:
        while self._ready:  # no pull has needed it
            self._ready.pop().close()

    def _work(self) -> None:
        process = self._ready.pop() if self._ready else Process(self.evaluate, self._shared)
        try:
            while (task := self._tasks.get()) is not None:
                future, pull = task
                failure = self._failure_to_start(process)
                if future.set_running_or_notify_cancel():
                    self._running[future] = process
                    try:
                        if failure is not None:
                            raise failure
                        future.set_result(process.evaluate(pull))
                    except BaseException as error:
                        future.set_exception(error)
                    del self._running[future]
        finally:
            process.close()

    def _failure_to_start(self, process: "Process") -> BaseException | None:
        """Start the process if it is not running. Its set-up is not part of a pull's time."""
        self._starting.add(process)
        try:
            process.prepare()
        except BaseException as error:
            return error
        finally:
            self._starting.discard(process)
        return None


class Process:
    """Evaluates one pull at a time in another process, and starts a new one after a death."""

    def __init__(self, evaluate: Evaluate, shared: Shared | None = None) -> None:
        self._evaluate, self._shared = evaluate, shared
        self._pipe: Connection | None = None
        self._process: Any = None

    def prepare(self) -> Connection:
        """Start the process and wait until it has set up the shared object, unless it is running."""
        if self._pipe is not None:
            return self._pipe
        pipe = self._start()
        if self._shared is not None:
            try:
                failure = self._received(pipe).decode()
            except (EOFError, OSError):
                failure = "its process ended"
            if failure:
                self._reap()
                raise CannotGoOn("shared", rule=f"its set-up failed: {failure}", remedy="correct it and run again")
        return pipe

    def evaluate(self, pull: Pull) -> object:
        question = pickle.dumps(pull)
        pipe = self.prepare()
        try:
            pipe.send_bytes(question)
        except OSError:  # the process died while it was idle, so this pull has not begun
            self._reap()
            pipe = self.prepare()
            pipe.send_bytes(question)
        try:
            answer = self._received(pipe)
        except (EOFError, OSError):
            raise WorkerLost(self._reap(), (pull,)) from None
        try:
            return unpack_outcome(answer)
        except KeyboardInterrupt as error:  # the evaluator raised it: Ctrl-C does not reach the process
            raise wrap_evaluator_error(error) from None

    def _received(self, pipe: Connection) -> bytes:
        while not pipe.poll(0.5):  # a child of the evaluator may hold the pipe open, so EOF may not come
            if not self._process.is_alive() and not pipe.poll(0):
                raise EOFError
        return pipe.recv_bytes()

    def kill(self) -> None:
        """End the process now; a pull in it fails."""
        with forks.TURN:  # wait for a process that is being started
            if self._process is not None:
                self._process.kill()

    def close(self) -> None:
        if self._pipe is not None:
            with contextlib.suppress(OSError):
                self._pipe.send_bytes(b"")
            self._process.join()
            self._pipe.close()

    def _start(self) -> Connection:
        context: Any = multiprocessing.get_context()
        with forks.TURN:
            ours: Connection
            ours, theirs = context.Pipe()
            with theirs:
                arguments = (theirs, self._evaluate, self._shared)
                process = context.Process(target=_serve, args=arguments, name="thresher-worker")
                try:
                    process.start()
                except BaseException:
                    ours.close()
                    raise
            self._process, self._pipe = process, ours
        return ours

    def _reap(self) -> str:
        """Clean up after a dead process, and return in words how it ended."""
        self._process.join()
        if self._pipe is not None:
            self._pipe.close()
        code, self._pipe = self._process.exitcode, None
        return f"its process {exit_in_words(code)}"


def _serve(pipe: Connection, evaluate: Any, shared: Shared | None) -> None:
    """Answer in the worker until the parent says stop, or is gone. The parent handles Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    parent = os.getppid()  # or the fork server, which ends with the parent
    threading.Thread(target=_exit_with, args=(parent,), daemon=True).start()
    with contextlib.suppress(EOFError, OSError), contextlib.ExitStack() as stack:
        if shared is not None:
            try:
                evaluate.more = stack.enter_context(shared_argument(shared))
            except BaseException as error:
                pipe.send_bytes(error_line(error.__cause__ or error).encode())
                return
            pipe.send_bytes(b"")
        while os.getppid() == parent:  # siblings may hold copies of the parent's end, so EOF may not come
            if pipe.poll(1.0):
                question = pipe.recv_bytes()
                if not question:
                    return
                pipe.send_bytes(evaluate_to_outcome(evaluate, pickle.loads(question)))  # noqa: S301 - from our own parent


def _exit_with(parent: int) -> None:
    """Exit when the parent dies, even during an evaluation."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)
