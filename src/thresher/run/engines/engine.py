"""The interface that the runner needs from an engine, and the outcome of an evaluation in another process.

An outcome is bytes that any two processes can exchange. Only a reward is pickled, never an exception: many cannot be
unpickled, and an evaluator's may look like the engine's own. An exception travels as text: its message, where it was
raised, its traceback.
"""

import numbers
import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any

from ...errors import Busy, EvaluationFailed, NoReward, told_of
from ...study import Pull
from ...text.logs import log
from ..evaluator_errors import is_refused, is_transient, same_error, traceback_text
from ..failures import EvaluatorLost, EvaluatorRefused

Evaluate = Callable[[Pull], object]
EvaluateSharing = Callable[[Pull, Any], object]  # with what evaluators share


class Engine(ABC):
    """Evaluates pulls, each of them once, and gives a future for each."""

    sought = "worker"  # what is missing when there is none

    def __init__(self, workers: int) -> None:
        self.workers = workers  # how many pulls it evaluates at once; the run looks once a second whether it changed
        self._said_hung = False

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

    def say_hung(self) -> None:
        """Log, once, that a pull that timed out cannot be ended."""
        if not self._said_hung:
            self._said_hung = True
            keeps = "a pull that timed out keeps its worker until it returns or the worker is restarted"
            log.warning(f"{keeps}; the run goes on with the others")

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


def outcome(evaluate: Evaluate, pull: Pull) -> bytes:
    """Evaluate, in the worker."""
    found: tuple[type[BaseException] | None, Any]  # what to raise, None: nothing, and with which arguments
    try:
        found = None, evaluate(pull)
    except Busy as busy:
        found = Busy, {"after": busy.after}
    except KeyboardInterrupt:
        found = KeyboardInterrupt, {}
    except EvaluatorLost as error:
        found = EvaluatorLost, {"reason": str(error), "together": list(error.together)}
    except EvaluatorRefused as error:
        found = EvaluatorRefused, {name: getattr(error, name) for name in ("what", "value", "rule", "remedy")}
    except BaseException as error:
        found = NoReward if isinstance(error, NoReward) else EvaluationFailed, _told(error)
    try:
        return pickle.dumps(found)
    except Exception:
        value = found[1]
        rewards = value if isinstance(value, tuple) else (value,)  # a pair has two
        if all(isinstance(each, numbers.Real) for each in rewards):  # of a class that only the user's script defines
            plain = tuple(map(float, rewards))
            return pickle.dumps((None, plain if isinstance(value, tuple) else plain[0]))
        text = f"TypeError: it returned {value!r:.200}, which cannot be sent between processes"
        return pickle.dumps((NoReward, {"text": text, "kind": "returned what cannot be sent between processes"}))


def _told(error: BaseException) -> dict[str, Any]:
    """An exception as arguments of `EvaluationFailed`."""
    return {
        "text": told_of(error),
        "kind": same_error(error),
        "transient": is_transient(error),
        "refused": is_refused(error),
        "output": error.output if isinstance(error, EvaluationFailed) else "",
        "traceback": traceback_text(error),
    }


def opened(data: bytes) -> object:
    """The evaluator's answer: returned or raised as if it had been called in this process."""
    try:
        kind, value = pickle.loads(data)  # noqa: S301 - from a worker of our own
    except Exception as error:
        text = f"it returned something that cannot be read here: {told_of(error)}"
        raise NoReward(text, kind="returned what cannot be read here") from None
    if kind is None:
        return value
    raise kind(**value)
