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

VALUE, BUSY, NONSENSE, RAISED, INTERRUPTED, LOST, REFUSED = range(7)


def outcome(evaluate: Evaluate, pull: Pull) -> bytes:
    """Evaluate, in the worker."""
    try:
        found: tuple[int, object] = VALUE, evaluate(pull)
    except Busy as busy:
        found = BUSY, busy.after
    except KeyboardInterrupt:
        found = INTERRUPTED, None
    except EvaluatorLost as error:
        found = LOST, (str(error), [pull._asdict() for pull in error.together])
    except EvaluatorRefused as error:
        found = REFUSED, (error.what, error.value, error.rule, error.remedy)
    except BaseException as error:
        found = NONSENSE if isinstance(error, NoReward) else RAISED, _told(error)
    try:
        return pickle.dumps(found)
    except Exception:
        rewards = found[1] if isinstance(found[1], tuple) else found[1:]  # a pair has two
        if all(isinstance(each, numbers.Real) for each in rewards):  # of a class that only the user's script defines
            plain = [float(each) for each in rewards]
            return pickle.dumps((VALUE, plain[0] if rewards is not found[1] else tuple(plain)))
        text = f"TypeError: it returned {found[1]!r:.200}, which cannot be sent between processes"
        return pickle.dumps((NONSENSE, {"text": text, "kind": "returned what cannot be sent between processes"}))


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
    if kind == VALUE:
        return value
    if kind == BUSY:
        raise Busy(after=value)
    if kind == INTERRUPTED:
        raise KeyboardInterrupt
    if kind == LOST:
        raise EvaluatorLost(value[0], [Pull(**pull) for pull in value[1]])
    if kind == REFUSED:
        raise EvaluatorRefused(*value)
    raise (NoReward if kind == NONSENSE else EvaluationFailed)(**value)
