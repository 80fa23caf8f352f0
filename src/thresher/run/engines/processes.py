"""Processes of our own."""

import contextlib
import multiprocessing
import os
import pickle
import signal
import threading
import time
from concurrent.futures import Future
from multiprocessing.connection import Connection
from typing import Any

from ...study import Pull
from .engine import Evaluate, WorkerLost
from .outcome import opened, outcome
from .threads import Threads

# One start at a time: a sibling forked in between would inherit the new worker's end of its pipe, and its death would
# go unnoticed.
_STARTING = threading.Lock()


class Processes(Threads):
    """Processes of our own, each with its own pipe and a thread that waits for it: a death costs only one pull."""

    def stop(self, future: "Future[object]") -> None:
        """Kill the process; its thread notices and starts another."""
        process = self._running.get(future)
        if process is not None:
            process.kill()

    def close(self, *, wait: bool) -> None:
        super().close(wait=wait)
        if not wait:
            for process in list(self._running.values()):
                process.kill()
        for thread in self._threads:
            thread.join(timeout=5)

    def _work(self) -> None:
        process = Process(self.evaluate)
        try:
            while (task := self._tasks.get()) is not None:
                future, pull = task
                if future.set_running_or_notify_cancel():
                    self._running[future] = process
                    try:
                        future.set_result(process.evaluate(pull))
                    except BaseException as error:
                        future.set_exception(error)
                    del self._running[future]
        finally:
            process.close()


class Process:
    """Evaluates one pull at a time in another process, and starts a new one after a death."""

    def __init__(self, evaluate: Evaluate) -> None:
        self._evaluate = evaluate
        self._pipe: Connection | None = None
        self._process: Any = None

    def evaluate(self, pull: Pull) -> object:
        question = pickle.dumps(pull)
        pipe = self._pipe or self._start()
        try:
            pipe.send_bytes(question)
        except OSError:  # it died while it was idle: this pull has not begun
            self._reap()
            pipe = self._start()
            pipe.send_bytes(question)
        try:
            while not pipe.poll(0.5):  # a child of the evaluator may hold the pipe open, so EOF may not come
                if not self._process.is_alive() and not pipe.poll(0):
                    raise EOFError
            answer = pipe.recv_bytes()
        except (EOFError, OSError):
            raise WorkerLost(self._reap(), (pull,)) from None
        return opened(answer)

    def kill(self) -> None:
        """End the process now; a pull in it fails."""
        with _STARTING:  # a process that is starting must be there first
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
        with _STARTING:
            ours: Connection
            ours, theirs = context.Pipe()
            with theirs:
                process = context.Process(target=_serve, args=(theirs, self._evaluate), name="thresher-worker")
                try:
                    process.start()
                except BaseException:
                    ours.close()
                    raise
            self._process, self._pipe = process, ours
        return ours

    def _reap(self) -> str:
        """Clean up after a dead process; says how it ended."""
        self._process.join()
        if self._pipe is not None:
            self._pipe.close()
        code, self._pipe = self._process.exitcode, None
        ending = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"exited with {code}"
        return f"its process {ending}"


def _serve(pipe: Connection, evaluate: Evaluate) -> None:
    """In the worker: answer until told to stop, or until the parent is gone. The parent handles Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    above = os.getppid()  # the parent, or the server that forks for it, which ends with it
    threading.Thread(target=_follow, args=(above,), daemon=True).start()
    with contextlib.suppress(EOFError, OSError):
        while os.getppid() == above:  # siblings may hold copies of the parent's end, so EOF may not come
            if pipe.poll(1.0):
                question = pipe.recv_bytes()
                if not question:
                    return
                pipe.send_bytes(outcome(evaluate, pickle.loads(question)))  # noqa: S301 - from our own parent


def _follow(above: int) -> None:
    """Exit when the parent dies, even during an evaluation."""
    while os.getppid() == above:
        time.sleep(1.0)
    os._exit(1)
