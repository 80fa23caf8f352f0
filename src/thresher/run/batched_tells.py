"""Rewards that came back at about the same time are told in one write: on a disk, every write takes milliseconds."""

from ..errors import OutsideBounds, shown
from ..inner import Telling, tell_together
from ..study import Study
from ..text.logs import log
from ..text.phrasing import listed
from .command.lines import Noted, remarks_of
from .evaluations import Evaluation
from .outage import Watch
from .starting import OUTSIDE, Failure


class Rewards:
    """Rewards to be told. They are written before anything is dropped, because failures in a row count."""

    def __init__(self, study: Study, watch: Watch, *, attempts: int) -> None:
        self._study, self._watch, self._attempts = study, watch, attempts
        self._waiting: list[tuple[Evaluation, object]] = []
        self._first: OutsideBounds | None = None  # of this run
        self._retired: dict[str, bool] = {}  # the arms that were retired for such rewards: whether that was said

    def add(self, evaluation: Evaluation, value: object) -> None:
        self._waiting.append((evaluation, value))

    def write(self) -> None:
        """Tell them. Raises `CannotGoOn` if rewards outside the bounds show that the evaluator is wrong."""
        waiting, self._waiting = self._waiting, []
        outside = tell_together(self._study, [self._telling(*each) for each in waiting]) if waiting else {}
        for evaluation, _ in waiting:
            if evaluation.pull.id in outside:
                self._outside(evaluation, outside[evaluation.pull.id])
        if outside:
            self._watch.check_start()
        if self._watch.start.over:
            self.warn()

    def warn(self) -> None:
        """Say once what rewards outside the bounds mean, and name the arms that were retired for them.

        Until something succeeds, this waits: the run may end with an error that says the same.
        """
        names = [name for name, is_said in self._retired.items() if not is_said]
        if self._first is None or not names or self._watch.start.disproved:
            return
        if len(names) == len(self._retired):
            log.warning(str(self._first.of(names)))
        else:
            who = f"arm {shown(names[0])} is" if len(names) == 1 else f"arms {listed(names, show=shown)} are"
            log.warning(f"{who} retired for a reward outside the bounds, too")
        self._retired = dict.fromkeys(self._retired, True)

    def _telling(self, evaluation: Evaluation, value: object) -> Telling:
        note, cost = remarks_of(value) if isinstance(value, Noted | tuple) else (None, None)
        return Telling(evaluation.pull.id, value, self._attempts > 1 or evaluation.repeated, note, cost)

    def _outside(self, evaluation: Evaluation, error: OutsideBounds) -> None:
        self._first = self._first or error
        for arm in error.arms:
            self._retired.setdefault(arm, False)
        so_far = str(self._first.of(list(self._retired)))
        self._watch.start.failure(Failure(evaluation.pull, so_far, kind=OUTSIDE))
