"""Pairs: a pull of a study with a baseline evaluates its arm and the baseline, one after the other in one worker."""

from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

from ..core.spec import Spec
from ..errors import Busy, EvaluationFailed, InvalidInput, NoReward, OutsideBounds, told_of
from ..log.calls import both
from ..study import Pull
from .command.timing import TimedOut
from .lost import EvaluatorLost, EvaluatorRefused
from .tracebacks import is_transient, same_error

BASELINE = "the baseline failed: "  # begins the reason and the kind of such failures


class Paired:
    """An evaluator that gives both rewards where a pull is a pair: ``(the arm's, the baseline's)``.

    >>> pull = Pull(1, "new", 1, {}, 7, baseline="old", baseline_first=True)
    >>> Paired(lambda one: len(one.arm))(pull), Paired(lambda one: one.seed)(Pull(1, "new", 1, {}, 7))
    ((3, 3), 7)
    """

    def __init__(self, evaluate: Callable[..., object]) -> None:
        self.evaluate: Callable[..., Any] = evaluate
        self.more: tuple[object, ...] = ()  # what evaluators share, once it is set up

    def __call__(self, pull: Pull) -> object:
        if pull.baseline is None:
            return self.evaluate(pull, *self.more)
        pair = Pair(pull)
        for one in pair:
            with pair:
                pair.keep(one, self.evaluate(one, *self.more))
        return pair.rewards()

    def rest(self) -> None:
        """The run is over: an evaluator that has processes here ends those that are idle."""
        if (rest := getattr(self.evaluate, "rest", None)) is not None:
            rest()

    def __repr__(self) -> str:
        return repr(self.evaluate)


class PairedCoroutine(Paired):
    """The same around a coroutine function."""

    async def __call__(self, pull: Pull) -> object:
        if pull.baseline is None:
            return await self.evaluate(pull, *self.more)
        pair = Pair(pull)
        for one in pair:
            with pair:
                pair.keep(one, await self.evaluate(one, *self.more))
        return pair.rewards()


class Pair:
    """One evaluation of both sides. As a context, it says which side an exception came from."""

    def __init__(self, pull: Pull) -> None:
        self._pull, self._now = pull, ""
        self._rewards: dict[str, object] = {}  # by arm
        self._cut_off: TimedOut | None = None  # the arm's run was killed: the baseline's time decides what it counts as

    def __iter__(self) -> Iterator[Pull]:
        for one in self._pull.both():
            self._now = one.arm
            yield one

    def keep(self, one: Pull, reward: object) -> None:
        self._rewards[one.arm] = reward

    def __enter__(self) -> None:
        return

    def __exit__(self, _: object, error: BaseException | None, __: TracebackType | None) -> bool:
        """Pass on the arm's errors, and those that are not about this evaluation."""
        if error is None:
            return False
        from asyncio import CancelledError  # here, for a run without coroutines starts sooner without asyncio

        if isinstance(error, Busy | KeyboardInterrupt | CancelledError | EvaluatorLost | EvaluatorRefused):
            return False
        if self._now == self._pull.baseline:
            raise of_baseline(error) from (None if isinstance(error, EvaluationFailed) else error)
        if isinstance(error, TimedOut):
            self._cut_off = error
        return self._cut_off is not None

    def rewards(self) -> tuple[object, object]:
        """The arm's and the baseline's."""
        other = self._rewards[str(self._pull.baseline)]
        if self._cut_off is not None:
            return self._cut_off.reward(other), other
        return self._rewards[self._pull.arm], other


def of_baseline(error: BaseException) -> EvaluationFailed:
    """An exception of the baseline's evaluation, as one that says so."""
    return (NoReward if isinstance(error, NoReward) else EvaluationFailed)(
        f"{BASELINE}{told_of(error)}",
        kind=f"{BASELINE}{same_error(error)}",
        transient=is_transient(error),
        output=error.output if isinstance(error, EvaluationFailed) else "",
        traceback=error.traceback if isinstance(error, EvaluationFailed) else "",  # else the cause has one
    )


def check_reward(spec: Spec, value: object) -> None:
    """Raise `InvalidInput` if an answer cannot be told, and `OutsideBounds` if it proves the bounds wrong."""
    if not spec.pairs:
        spec.reward(value)
        return
    mine, other = both(value)
    spec.reward(mine)
    try:
        spec.reward(other)
    except OutsideBounds:
        raise
    except InvalidInput as error:
        raise InvalidInput("the baseline's reward", other, error.rule, error.remedy) from None
