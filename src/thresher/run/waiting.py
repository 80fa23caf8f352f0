"""Pulls that were issued and wait for their turn."""

import heapq
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from ..study import Pull


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


@dataclass
class Waiting:
    """Pulls whose evaluator was busy, and pulls of suspected arms, of which one is tried at a time."""

    _busy: list[tuple[float, int, Evaluation]] = field(default_factory=list)  # when to try again, the pull's id
    _held: deque[Evaluation] = field(default_factory=deque)

    def __len__(self) -> int:
        return len(self._busy) + len(self._held)

    def __iter__(self) -> Iterator[Evaluation]:
        yield from (evaluation for _, _, evaluation in self._busy)
        yield from self._held

    @property
    def next_try(self) -> float | None:
        return self._busy[0][0] if self._busy else None

    def come_back(self, evaluation: Evaluation, when: float) -> None:
        heapq.heappush(
            self._busy, (when, evaluation.pull.id, Evaluation(evaluation.pull, evaluation.attempt, was_busy=True))
        )

    def hold(self, evaluation: Evaluation) -> None:
        self._held.append(evaluation)

    def due(self, now: float) -> Iterator[Evaluation]:
        """The pulls to try now; one that is held again is not returned twice."""
        while self._busy and self._busy[0][0] <= now:
            yield heapq.heappop(self._busy)[2]
        for _ in range(len(self._held)):
            yield self._held.popleft()

    def empty(self) -> Iterator[Evaluation]:
        while self._busy:
            yield self._busy.pop()[2]
        while self._held:
            yield self._held.popleft()
