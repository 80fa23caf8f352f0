"""The interface of an engine, and the outcome of an evaluation in another process.

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


def outcome(evaluate: Evaluate, pull: Pull) -> bytes:
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
        "text": told_of(error),
        "kind": same_error(error),
        "transient": is_transient(error),
        "refused": is_refused(error),
        "output": error.output if isinstance(error, EvaluationFailed) else "",
        "traceback": traceback_text(error),
    }


def unpack_outcome(data: bytes) -> object:
    """Return the reward, or raise the error, as if the evaluator had been called in this process."""
    try:
        error_type, value = pickle.loads(data)  # noqa: S301 - from a worker of our own
    except Exception as error:
        text = f"it returned something that cannot be read here: {told_of(error)}"
        raise NoReward(text, kind="returned what cannot be read here") from None
    if error_type is None:
        return value
    raise error_type(**value)
