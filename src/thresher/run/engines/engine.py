"""The interface that the runner needs from an engine."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any

from ...study import Pull

Evaluate = Callable[[Pull], object]
EvaluateSharing = Callable[[Pull, Any], object]  # with what evaluators share


class Engine(ABC):
    """Evaluates pulls, each of them once, and gives a future for each."""

    sought = "worker"  # what is missing when there is none

    def __init__(self, workers: int) -> None:
        self.workers = workers  # how many pulls it evaluates at once; the run looks once a second whether it changed

    @property
    def room(self) -> int:
        """How many pulls to have pending by default: as many as there are workers, or a few more.

        Raises `CannotGoOn` if the engine cannot recover.
        """
        return self.workers

    def prepare(self) -> None:
        """Set up what the evaluators share, before the first pull."""
        return

    @abstractmethod
    def submit(self, pull: Pull) -> "Future[object]":
        """Begin to evaluate, as soon as a worker is free."""

    def began(self, future: "Future[object]") -> bool:
        """Whether a worker has begun it."""
        return future.running()

    def result(self, future: "Future[object]") -> object:
        """What the evaluator returned, once it is done.

        Raises what it raised, `WorkerLost`, ``CancelledError`` if it never began, or `CannotGoOn` if the engine cannot
        recover.
        """
        return future.result()

    @abstractmethod
    def stop(self, future: "Future[object]") -> None:
        """End an evaluation that has run too long, or at least replace its worker."""

    def take_back(self, futures: Iterable["Future[object]"]) -> set["Future[object]"]:
        """Take back the pulls that have not begun, and return their futures. The others continue."""
        return {future for future in futures if future.cancel()}

    def abandon(self, futures: Iterable["Future[object]"]) -> None:
        """Stop waiting for these; `close` will end what it can of them."""
        return

    @abstractmethod
    def close(self, *, wait: bool) -> None:
        """End all workers: busy ones too, unless ``wait``, which means that none is busy."""

    def release(self) -> None:
        """After `close`: clean up what the evaluators shared. Here a signal may have its usual effect."""
        return
