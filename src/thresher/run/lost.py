"""Evaluations that ended without an outcome: their worker is gone, or their evaluator must not be used."""

from collections.abc import Sequence
from concurrent.futures import CancelledError

from ..errors import CannotGoOn, EvaluationFailed, told_of
from ..study import Pull
from .tracebacks import same_error


class WorkerLost(Exception):
    """The worker died while it evaluated the pull.

    ``together`` are the pulls that were lost at once, including this one: any of them may be to blame. It is empty if
    the worker was told to leave.
    """

    def __init__(self, reason: str, together: Sequence[Pull]) -> None:
        super().__init__(reason)
        self.together = together


class EvaluatorLost(WorkerLost):
    """The worker lives, but a persistent evaluator that several pulls shared is gone. Every engine passes this on."""


class EvaluatorRefused(CannotGoOn):
    """A persistent evaluator does not fit this study, so no pull can be made. Every engine passes this on."""


def as_the_evaluators(error: BaseException) -> BaseException:
    """An exception of the evaluator, wrapped if it could be mistaken for one of the engine's own."""
    is_meant = isinstance(error, EvaluatorLost | EvaluatorRefused)
    if is_meant or not isinstance(error, WorkerLost | CannotGoOn | CancelledError):
        return error
    failed = EvaluationFailed(told_of(error), kind=same_error(error))
    failed.__cause__ = error
    return failed
