"""The outcome of an evaluation, as bytes that any two processes can exchange.

Only a reward is pickled, never an exception: many cannot be unpickled, and an evaluator's may look like the engine's
own. An exception travels as text: its message, where it was raised, its traceback.
"""

import numbers
import pickle
from typing import Any

from ...errors import Busy, EvaluationFailed, NoReward, told_of
from ...study import Pull
from ..lost import EvaluatorLost, EvaluatorRefused
from ..tracebacks import is_transient, same_error, traceback_text
from .engine import Evaluate


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
