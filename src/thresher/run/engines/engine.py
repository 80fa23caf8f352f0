"""The interface of an engine."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from concurrent.futures import Future

from ...study import Pull
from ...text.logs import log


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
