"""A run, one round at a time: its time stands still, and a script says what becomes of its pulls."""

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any

import pytest

import thresher
from thresher.run import loop
from thresher.run.engines.local import Engine
from thresher.run.loop import Limits, run_loop_on
from thresher.study import Pull


class Scripted(Engine):
    """Evaluates nothing. A step is done in each round but the first, which hands out the first pulls.

    After the last step, every pull that was not stopped returns 0.5, and so does every later one.
    """

    def __init__(self, *steps: "Step", workers: int = 4, most: int | None = None) -> None:
        super().__init__(workers)
        self._steps, self._is_first = list(steps), True
        self.pulls: dict[int, Future[object]] = {}
        self.submitted: list[int] = []
        self.stopped: list[int] = []
        self.waited: list[bool] = []  # what `close` was told
        self.taken_back = 0
        self.most = most

    @property
    def room(self) -> int:
        if self._is_first:
            self._is_first = False
        elif self._steps:
            self._steps.pop(0)(self)
        else:
            pending = [pull for pull, future in self.pulls.items() if not future.done() and pull not in self.stopped]
            self.returns(0.5, *pending)
        return self.workers if self.most is None else self.most

    def submit(self, pull: Pull) -> "Future[object]":
        self.submitted.append(pull.id)
        self.pulls[pull.id] = Future()
        return self.pulls[pull.id]

    def begin(self, *pulls: int) -> None:
        for pull in pulls:
            self.pulls[pull].set_running_or_notify_cancel()

    def returns(self, value: object, *pulls: int) -> None:
        for pull in pulls:
            self.pulls[pull].set_result(value)

    def raises(self, error: BaseException, *pulls: int) -> None:
        for pull in pulls:
            self.pulls[pull].set_exception(error)

    def stop(self, future: "Future[object]") -> None:
        self.stopped += [pull for pull, submitted in self.pulls.items() if submitted is future]

    def take_back(self, futures: Iterable["Future[object]"]) -> set["Future[object]"]:
        self.taken_back += 1
        return super().take_back(futures)

    def close(self, *, wait: bool) -> None:
        self.waited.append(wait)


Step = Callable[[Scripted], object]


class Still:
    """A time that stands still until the test moves it."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now

    def passes(self, seconds: float) -> Step:
        """A step in which nothing but time passes."""

        def step(_: Scripted) -> None:
            self.now += seconds

        return step


def stand_still(monkeypatch: pytest.MonkeyPatch) -> Still:
    """Stop the time of runs, which then do not wait for it either."""
    still = Still()
    monkeypatch.setattr(loop, "time", still)
    monkeypatch.setattr(loop, "LONGEST_WAIT", 0.001)
    return still


def run(study: thresher.Study, engine: Scripted, **limits: Any) -> None:
    run_loop_on(engine, study, Limits(**limits), None)


def dropped(study: thresher.Study) -> list[tuple[str | None, str | None]]:
    return [(event.cause, event.reason) for event in study.events() if event.kind == "dropped"]
