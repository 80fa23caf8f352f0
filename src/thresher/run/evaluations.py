"""The pulls of a run: those that wait, those that an engine evaluates, and how they are dropped."""

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future

from ..core.events import Cause
from ..errors import AlreadyTold
from ..study import Pull, Study, give_up
from .engines import Engine
from .waiting import Evaluation, Waiting
from .workers import Suspects


class Evaluations:
    """Pulls without an outcome yet. ``when_done`` is called with each finished future, from any thread."""

    def __init__(
        self, study: Study, engine: Engine, suspects: Suspects, when_done: "Callable[[Future[object]], object]"
    ) -> None:
        self.study, self._engine, self._suspects, self._when_done = study, engine, suspects, when_done
        self.running: dict[Future[object], Evaluation] = {}
        self.overdue: dict[Future[object], Evaluation] = {}  # timed out; a reward that still comes is late
        self.waiting = Waiting()

    def __len__(self) -> int:
        return len(self.running) + len(self.waiting)

    def oldest(self) -> float:
        return min(
            (evaluation.pull.id for evaluations in (self.running.values(), self.waiting) for evaluation in evaluations),
            default=math.inf,
        )

    def begin(self, pulls: Iterable[Pull], now: float) -> None:
        """Hand pulls to the engine, for the first time."""
        for pull in pulls:
            self.waiting.hold(Evaluation(pull, attempt=1))
        self.submit_waiting(now)

    def submit_waiting(self, now: float) -> None:
        """Hand the engine the waiting pulls that are due."""
        for evaluation in self.waiting.due(now):
            try:
                self._submit(evaluation)
            except BaseException:
                self.waiting.hold(evaluation)  # so that it is dropped at the end
                raise

    def _submit(self, evaluation: Evaluation) -> None:
        suspects = self._suspects.arms
        if evaluation.pull.arm in suspects and any(other.pull.arm in suspects for other in self.running.values()):
            self.waiting.hold(evaluation)
            return
        future = self._engine.submit(evaluation.pull)
        self.running[future] = evaluation
        future.add_done_callback(self._when_done)

    def timed_out(self, timeout: float, now: float) -> "Iterator[tuple[Future[object], Evaluation]]":
        """Evaluations that timed out; they are overdue from now on."""
        for future, evaluation in list(self.running.items()):
            if evaluation.started is None:
                evaluation.started = now if self._engine.began(future) else None
            elif now - evaluation.started >= timeout and not future.done():
                self.overdue[future] = self.running.pop(future)
                yield future, evaluation

    # -- dropping ----------------------------------------------------------------------------------------------

    def abandon(self, reason: str) -> None:
        self.withdraw()
        self._engine.abandon(self.running)
        while self.running:
            self.drop(self.running.popitem()[1], reason, "lost")

    def withdraw(self) -> None:
        """Take back the pulls that have not begun."""
        for future in self._engine.withdraw(self.running) if self.running else ():
            self.drop(self.running.pop(future), "the run was stopped before it began", "cancelled")

    def cancel_waiting(self) -> None:
        """Drop the pulls that wait for their first or next try."""
        for evaluation in self.waiting.empty():
            self.drop(evaluation, "the run was stopped before it was tried", "cancelled")

    def drop(self, evaluation: Evaluation, reason: str, cause: Cause) -> None:
        """Drop a pull; only one that never began, in any attempt, was cancelled."""
        with contextlib.suppress(AlreadyTold):  # by another agent
            give_up(self.study, evaluation.pull, reason=reason, cause="lost" if evaluation.repeated else cause)
