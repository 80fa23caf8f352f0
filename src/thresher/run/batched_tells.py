"""Rewards that came back at about the same time are told in one write: on a disk, every write takes milliseconds."""

from ..errors import OutsideBounds
from ..inner import Telling, tell_together
from ..study import Study
from ..text.logs import log
from .command.lines import Noted, remarks_of
from .evaluations import Evaluation
from .outage import Watch
from .starting import OUTSIDE, Failure


class Rewards:
    """Rewards to be told. They are written before anything is dropped, because failures in a row count."""

    def __init__(self, study: Study, watch: Watch, *, attempts: int) -> None:
        self._study, self._watch, self._attempts = study, watch, attempts
        self._waiting: list[tuple[Evaluation, object]] = []

    def add(self, evaluation: Evaluation, value: object) -> None:
        self._waiting.append((evaluation, value))

    def write(self) -> None:
        """Tell them. Raises `CannotGoOn` if rewards outside the bounds show that the evaluator is wrong."""
        waiting, self._waiting = self._waiting, []
        outside = tell_together(self._study, [self._telling(*each) for each in waiting]) if waiting else {}
        for evaluation, _ in waiting:
            if evaluation.pull.id in outside:
                self._outside(evaluation, outside[evaluation.pull.id])

    def _telling(self, evaluation: Evaluation, value: object) -> Telling:
        note, cost = remarks_of(value) if isinstance(value, Noted | tuple) else (None, None)
        return Telling(evaluation.pull.id, value, self._attempts > 1 or evaluation.repeated, note, cost)

    def _outside(self, evaluation: Evaluation, error: OutsideBounds) -> None:
        log.warning(str(error))
        self._watch.start.failure(Failure(evaluation.pull, str(error), kind=OUTSIDE))
        self._watch.check_start()
