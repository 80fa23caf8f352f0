"""Lost workers: how engines report them, which arm's pull killed one, and how long the run has had no worker."""

from collections.abc import Iterable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field

from ..core.events import Cause
from ..errors import CannotGoOn, EvaluationFailed, told_of
from ..study import Pull
from ..text.logs import log
from .evaluator_errors import same_error

WARN_AFTER = 10.0  # seconds without a worker after which a warning is logged


class WorkerLost(Exception):
    """The worker died while it evaluated the pull.

    ``together`` are the pulls that were lost at once, including this one: any of them may be to blame. It is empty if
    the worker was told to leave or its node died.
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
    pending at a time, until a reward clears the arm. If it dies together with others again, its next pull is made
    alone, with no other pending. Only a death that no other arm shares counts against an arm.
    """

    arms: set[str] = field(default_factory=set)
    alone: set[str] = field(default_factory=set)  # of these: whose next pull is made alone
    _judged: set[tuple[int, ...]] = field(default_factory=set)  # pulls that died together

    def judge(self, error: WorkerLost) -> Cause:
        """Why to drop a pull whose worker was lost: ``"failed"``, once for a group, if one arm alone is to blame."""
        group, arms = tuple(pull.id for pull in error.together), {pull.arm for pull in error.together}
        if not group:
            return "lost"
        if len(group) == 1:
            return "failed"
        is_first = group not in self._judged
        self._judged.add(group)
        if is_first:
            self.alone |= arms & self.arms
            self.arms |= arms
        return "failed" if is_first and len(arms) == 1 else "broken-pool"

    def clear(self, arm: str) -> None:
        """It returned a reward."""
        self.arms.discard(arm)
        self.alone.discard(arm)

    def must_wait(self, pull: Pull, running: Iterable[Pull], waiting: Iterable[Pull]) -> bool:
        """Whether this pull must wait until some of those that run have ended."""
        busy = {other.arm for other in running}
        if pull.arm in self.alone:
            return bool(busy)
        if self.alone & (busy | {other.arm for other in waiting}):
            return True
        return pull.arm in self.arms and bool(busy & self.arms)


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
