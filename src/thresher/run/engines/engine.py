"""What the runner needs of a place where pulls are evaluated."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError, Future

from ...errors import CannotGoOn, EvaluationFailed, told_of
from ...study import Pull
from ..tracebacks import same_error

Evaluate = Callable[[Pull], object]


class WorkerLost(Exception):
    """Whoever evaluated the pull died under it.

    ``together`` are the pulls that were lost in one go, this one among them: any of them may be to blame. None are,
    where it is known that the worker was told to leave.
    """

    def __init__(self, reason: str, together: Sequence[Pull]) -> None:
        super().__init__(reason)
        self.together = together


class Engine(ABC):
    """Evaluates pulls, each of them once, and gives a future for each."""

    elastic = False  # whether the number of workers changes by itself
    sought = "worker"  # what is missing when there is none

    def __init__(self, workers: int) -> None:
        self.workers = workers  # how many pulls it evaluates at once; may change while it runs

    @property
    def room(self) -> int:
        """How many pulls to have under way if nobody says: as many as there are workers, or a few more.

        Raises `CannotGoOn` if the engine is beyond hope.
        """
        return self.workers

    @abstractmethod
    def submit(self, pull: Pull) -> "Future[object]":
        """Begin to evaluate, as soon as a worker is free."""

    def began(self, future: "Future[object]") -> bool:
        """Whether a worker is at it."""
        return future.running()

    def result(self, future: "Future[object]") -> object:
        """What the evaluator returned, once it is done.

        Raises what it raised, `WorkerLost`, ``CancelledError`` if it never began, or `CannotGoOn` if this was the end.
        """
        return future.result()

    @abstractmethod
    def stop(self, future: "Future[object]") -> None:
        """The time of a running evaluation is over: end it, or at least put another worker in its place."""

    def withdraw(self, futures: Iterable["Future[object]"]) -> set["Future[object]"]:
        """Let none of these begin any more; says which have not. The others go on."""
        return {future for future in futures if future.cancel()}

    def abandon(self, futures: Iterable["Future[object]"]) -> None:
        """Nobody waits for these any more; `close` will end what it can of them."""
        return

    @abstractmethod
    def close(self, *, wait: bool) -> None:
        """End all workers: those at work too unless ``wait``, which means that none is."""


def as_the_evaluators(error: BaseException) -> BaseException:
    """What an evaluator raised in this process; nobody shall take it for what an engine says."""
    if not isinstance(error, WorkerLost | CannotGoOn | CancelledError):
        return error
    failed = EvaluationFailed(told_of(error), kind=same_error(error))
    failed.__cause__ = error
    return failed


def with_queue(workers: int) -> int:
    """So many workers far away are kept busy by so many pulls: a few wait, so that none idles for the next decision."""
    return workers + -(-workers // 8)
