"""The outcome of an evaluation in another process: bytes that any two processes can exchange.

Only a reward is pickled, never an exception: many cannot be unpickled, and an evaluator's may look like the engine's
own. An exception travels as text: its message, where it was raised, its traceback.
"""

import numbers
import pickle
from collections.abc import Callable
from typing import Any

from ...errors import Busy, EvaluationFailed, NoReward, error_line
from ...study import Pull
from ..evaluator_errors import error_identity, is_refused_evaluator_error, is_transient_evaluator_error, traceback_text
from ..failures import EvaluatorLost, EvaluatorRefused


def evaluate_to_outcome(evaluate: Callable[[Pull], object], pull: Pull) -> bytes:
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
        "transient": is_transient_evaluator_error(error),
        "refused": is_refused_evaluator_error(error),
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
