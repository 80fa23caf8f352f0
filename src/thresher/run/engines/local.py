"""The interface of an engine, and the engines of this machine: threads and processes of our own."""

import contextlib
import multiprocessing
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

from ...errors import CannotGoOn, error_line
from ...study import Pull
from ...text.logs import log
from .. import forks
from ..command.program_end import program_end_in_words
from ..evaluators import Shared, shared_argument
from ..failures import WorkerLost, wrapped_failure
from .outcomes import evaluate_to_outcome, unpack_outcome

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


class LocalThreads(Engine):
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
                    future.set_exception(wrapped_failure(error))
                if self._running.pop(future, None) is None:
                    return  # abandoned: another thread has this one's place


# -- Processes ---------------------------------------------------------------------------------------------------------


class LocalProcesses(LocalThreads):
    """Processes of our own. Each has a pipe, and a thread here that waits for it: a death costs only one pull."""

    def __init__(self, evaluate: Any, workers: int, shared: Shared | None = None) -> None:
        super().__init__(evaluate, workers, shared)
        self._ready: list[LocalProcess] = []  # set up before the first pull
        self._starting: set[LocalProcess] = set()

    def prepare(self) -> None:
        """Start one process, so that no pull is issued if the shared object cannot be set up."""
        if self._shared is not None:
            process = LocalProcess(self.evaluate, self._shared)
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
        process = self._ready.pop() if self._ready else LocalProcess(self.evaluate, self._shared)
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

    def _failure_to_start(self, process: "LocalProcess") -> BaseException | None:
        """Start the process if it is not running. Its set-up is not part of a pull's time."""
        self._starting.add(process)
        try:
            process.prepare()
        except BaseException as error:
            return error
        finally:
            self._starting.discard(process)
        return None


class LocalProcess:
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
            raise wrapped_failure(error) from None

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
        return f"its process {program_end_in_words(code)}"


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
