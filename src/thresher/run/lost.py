"""Lost workers: how engines report them, which arm's pull killed one, and how long the run has had no worker."""

from collections.abc import Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field

from ..errors import CannotGoOn, EvaluationFailed, told_of
from ..study import Pull
from ..text.logs import log
from .tracebacks import same_error

WARN_AFTER = 10.0  # seconds without a worker after which a warning is logged


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


@dataclass
class Suspects:
    """Finds the arm whose pulls kill workers that others share.

    When several pulls die together, any of their arms may be to blame. From then on only one pull of a suspected arm is
    pending at a time, until a reward clears the arm. The next time that pulls die together, that arm is to blame.
    """

    arms: set[str] = field(default_factory=set)  # a reward takes its arm out
    _judged: dict[tuple[int, ...], str | None] = field(default_factory=dict)  # by pulls that died together: whose fault

    def judge(self, pull: Pull, together: Sequence[Pull]) -> str:
        """Why to drop a pull that died together with others: ``"failed"`` for one pull of the arm to blame."""
        if len(together) == 1:
            return "failed"
        group = tuple(lost.id for lost in together)
        if group not in self._judged:
            arms = {lost.arm for lost in together}
            known = arms if len(arms) == 1 else arms & self.arms
            self._judged[group] = next(iter(known)) if len(known) == 1 else None
            self.arms |= arms
        arm = next((lost.arm for lost in together if lost.id == pull.id), pull.arm)  # of a pair, the side that died
        if self._judged[group] != arm:
            return "broken-pool"
        self._judged[group] = None
        return "failed"


@dataclass
class NoWorkers:
    """A time without any worker: it is logged, and after ``give_up`` seconds it ends the run."""

    sought: str  # what is missing
    give_up: float  # seconds
    since: float | None = None
    _is_said: bool = False

    def is_over(self, workers: int, now: float) -> bool:
        """Whether there are workers. Raises `CannotGoOn` if there were none for too long."""
        if workers > 0:
            self.since = None
            return True
        if self.since is None:
            self.since, self._is_said = now, False
        if now - self.since >= WARN_AFTER and not self._is_said:
            self._is_said = True
            log.warning(f"there is no {self.sought}: waiting for one")
        if now - self.since >= self.give_up:
            rule = f"there was no {self.sought} for {self.give_up:g} s"
            raise CannotGoOn("run", rule=rule, remedy="start some and run again")
        return False
