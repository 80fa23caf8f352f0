"""Pairs: a pull of a study with a baseline evaluates its arm and the baseline, one after the other in one worker."""

from ..core.results import rewards_of_result
from ..core.spec import Spec
from ..errors import Busy, EvaluationFailed, InvalidInput, NoReward, OutsideBounds, error_line
from ..study import Pull
from .command.reward import TimedOut
from .evaluator_errors import error_identity, is_transient_evaluator_error
from .failures import BASELINE, EvaluatorLost, EvaluatorRefused


class Pair:
    """One evaluation of an arm and the baseline."""

    def __init__(self, pull: Pull) -> None:
        self._pull = pull
        self.rewards: dict[str, object] = {}  # by arm
        self._cut_off: TimedOut | None = None  # the arm's run was killed: the baseline's time decides what it counts as

    def can_go_on(self, side: Pull, error: BaseException) -> bool:
        """Whether the pair may still count although this side failed: the arm timed out, and the baseline decides.

        A failure of the baseline is raised as an error that says so.
        """
        from asyncio import CancelledError  # imported here: a run without coroutines starts faster

        if isinstance(error, Busy | KeyboardInterrupt | CancelledError | EvaluatorLost | EvaluatorRefused):
            return False  # this says nothing about the evaluation
        if side.arm == self._pull.baseline:
            raise pair_baseline_error(error) from (None if isinstance(error, EvaluationFailed) else error)
        if isinstance(error, TimedOut):
            self._cut_off = error
        return self._cut_off is error

    def both(self) -> tuple[object, object]:
        """The arm's reward and the baseline's."""
        other = self.rewards[str(self._pull.baseline)]
        return self.rewards[self._pull.arm] if self._cut_off is None else self._cut_off.reward(other), other


def pair_baseline_error(error: BaseException) -> EvaluationFailed:
    """The same exception, saying that it is the baseline's."""
    return (NoReward if isinstance(error, NoReward) else EvaluationFailed)(
        f"{BASELINE}{error_line(error)}",
        kind=f"{BASELINE}{error_identity(error)}",
        transient=is_transient_evaluator_error(error),
        output=error.output if isinstance(error, EvaluationFailed) else "",
        traceback=error.traceback if isinstance(error, EvaluationFailed) else "",  # else the cause has one
    )


def check_pair(spec: Spec, value: object) -> None:
    """Raise `InvalidInput` if a pair of rewards cannot be told, and `OutsideBounds` if it proves the bounds wrong."""
    reward, baseline = rewards_of_result(value)
    spec.reward(reward)
    try:
        spec.reward(baseline)
    except OutsideBounds:
        raise
    except InvalidInput as error:
        raise InvalidInput("the baseline's reward", baseline, error.rule, error.remedy) from None
