"""Threads."""

import contextlib
import queue
import threading
from concurrent.futures import Future
from typing import Any

from ...study import Pull
from ..lost import as_the_evaluators
from ..shared import Shared, entered
from .engine import Engine


class Threads(Engine):
    """Daemon threads of our own: a hung call neither blocks the others nor keeps the interpreter alive."""

    def __init__(self, evaluate: Any, workers: int, shared: Shared | None = None) -> None:
        super().__init__(workers)
        self.evaluate, self._shared = evaluate, shared
        self._stack = contextlib.ExitStack()
        self._tasks: queue.SimpleQueue[tuple[Future[object], Pull] | None] = queue.SimpleQueue()
        self._running: dict[Future[object], Any] = {}  # the thread or process that runs each
        self._threads: set[threading.Thread] = set()

    def prepare(self) -> None:
        if self._shared is not None:
            self.evaluate.more = self._stack.enter_context(entered(self._shared))

    def release(self) -> None:
        self._stack.close()

    def submit(self, pull: Pull) -> "Future[object]":
        """Hand the pull to the next free thread; threads are started as they are needed."""
        future: Future[object] = Future()
        if len(self._threads) < self.workers:
            self._start()
        self._tasks.put((future, pull))
        return future

    def stop(self, future: "Future[object]") -> None:
        """Abandon the thread, which cannot be ended, and start another in its place."""
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
                    future.set_exception(as_the_evaluators(error))
                if self._running.pop(future, None) is None:
                    return  # abandoned: another thread has this one's place
