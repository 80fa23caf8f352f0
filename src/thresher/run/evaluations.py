"""The pulls of a run: which ones wait, which ones an engine is evaluating, and how they are dropped."""

import contextlib
import heapq
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass

from ..core.events import Cause
from ..errors import AlreadyTold
from ..study import Pull, Study, give_up
from .engines import Engine
from .lost import Suspects


@dataclass(slots=True)
class Evaluation:
    """A pull that the run is responsible for."""

    pull: Pull
    attempt: int
    started: float | None = None
    was_busy: bool = False  # its evaluator raised `Busy` before: its outcome may have been known by then

    @property
    def repeated(self) -> bool:
        """Whether the evaluation began more than once: then it is not a single draw."""
        return self.attempt > 1 or self.was_busy


class Evaluations:
    """Pulls without an outcome yet. ``when_done`` is called with each finished future, from any thread."""

    def __init__(
        self, study: Study, engine: Engine, suspects: Suspects, when_done: "Callable[[Future[object]], object]"
    ) -> None:
        self.study, self._engine, self._suspects, self._when_done = study, engine, suspects, when_done
        self.running: dict[Future[object], Evaluation] = {}
        self.overdue: dict[Future[object], Evaluation] = {}  # timed out; a reward that still comes is late
        self._busy: list[tuple[float, int, Evaluation]] = []  # a heap: when to try again, the pull's id
        self._held: deque[Evaluation] = deque()  # tried as soon as possible; of suspected arms, one at a time

    def __len__(self) -> int:
        return len(self.running) + len(self._busy) + len(self._held)

    def oldest(self) -> float:
        waiting = (*(evaluation for _, _, evaluation in self._busy), *self._held)
        return min((evaluation.pull.id for evaluation in (*self.running.values(), *waiting)), default=math.inf)

    @property
    def next_try(self) -> float | None:
        """When the next pull whose evaluator was busy is due."""
        return self._busy[0][0] if self._busy else None

    def try_at(self, when: float, evaluation: Evaluation) -> None:
        """Its evaluator was busy: try again at that time."""
        again = Evaluation(evaluation.pull, evaluation.attempt, was_busy=True)
        heapq.heappush(self._busy, (when, evaluation.pull.id, again))

    def hold(self, evaluation: Evaluation) -> None:
        """Try it with the next pulls."""
        self._held.append(evaluation)

    def begin(self, pulls: Iterable[Pull], now: float) -> None:
        """Hand pulls to the engine, for the first time."""
        self._held.extend(Evaluation(pull, attempt=1) for pull in pulls)
        self.submit_waiting(now)

    def submit_waiting(self, now: float) -> None:
        """Hand the engine the waiting pulls that are due."""
        while self._busy and self._busy[0][0] <= now:
            self._submit(heapq.heappop(self._busy)[2])
        for _ in range(len(self._held)):  # a pull that is held again is not tried twice
            self._submit(self._held.popleft())

    def _submit(self, evaluation: Evaluation) -> None:
        if self._suspects.arms:
            running, waiting = ([other.pull for other in group] for group in (self.running.values(), self._held))
            if self._suspects.must_wait(evaluation.pull, running, waiting):
                self.hold(evaluation)
                return
        try:
            future = self._engine.submit(evaluation.pull)
        except BaseException:
            self.hold(evaluation)  # so that it is dropped at the end
            raise
        self.running[future] = evaluation
        future.add_done_callback(self._when_done)

    def timed_out(self, timeout: float, now: float) -> "Iterator[tuple[Future[object], Evaluation]]":
        """Evaluations that just timed out, and are overdue from now on."""
        for future, evaluation in list(self.running.items()):
            if evaluation.started is None:
                evaluation.started = now if self._engine.began(future) else None
            elif now - evaluation.started >= timeout and not future.done():
                self.overdue[future] = self.running.pop(future)
                yield future, evaluation

    # -- dropping ----------------------------------------------------------------------------------------------

    def drop_all(self, reason: str) -> None:
        self.take_back()
        self._engine.abandon(self.running)
        while self.running:
            self.drop(self.running.popitem()[1], reason, "lost")

    def take_back(self) -> None:
        """Take back the pulls that have not begun."""
        for future in self._engine.take_back(self.running) if self.running else ():
            self.drop(self.running.pop(future), "the run was stopped before it began", "cancelled")

    def cancel_waiting(self) -> None:
        """Drop the pulls that wait for their first or next try."""
        while self._busy or self._held:
            evaluation = self._busy.pop()[2] if self._busy else self._held.popleft()
            self.drop(evaluation, "the run was stopped before it was tried", "cancelled")

    def drop(self, evaluation: Evaluation, reason: str, cause: Cause) -> None:
        """Drop a pull. It counts as cancelled only if it never began, in any attempt."""
        with contextlib.suppress(AlreadyTold):  # by another agent
            give_up(self.study, evaluation.pull, reason=reason, cause="lost" if evaluation.repeated else cause)
