"""Evaluations that ended without an outcome, because what evaluated them is gone or must not be used."""

from collections.abc import Sequence

from ..errors import CannotGoOn
from ..study import Pull


class WorkerLost(Exception):
    """The worker died while it evaluated the pull.

    ``together`` are the pulls that were lost at once, this one among them: any of them may be to blame. It is empty
    if the worker is known to have been told to leave.
    """

    def __init__(self, reason: str, together: Sequence[Pull]) -> None:
        super().__init__(reason)
        self.together = together


class EvaluatorLost(WorkerLost):
    """The worker lives, but a persistent evaluator that several pulls shared is gone. Every engine passes this on."""


class EvaluatorRefused(CannotGoOn):
    """A persistent evaluator is not one for this study, so that no pull can be made. Every engine passes this on."""
