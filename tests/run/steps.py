"""A run, one step at a time: its time stands still, and its engine does what the test says."""

from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any

from engines import make

import thresher
from thresher.run.engines import Engine
from thresher.run.loop import Runner
from thresher.run.runner import Limits
from thresher.study import Pull


class Told(Engine):
    """Evaluates nothing: the test says what becomes of each pull."""

    def __init__(self, workers: int = 4) -> None:
        super().__init__(workers)
        self.pulls: dict[int, Future[object]] = {}
        self.stopped: list[Future[object]] = []
        self.abandoned: list[Future[object]] = []
        self.waited: list[bool] = []
        self.taken_back = 0
        self.most: int | None = None

    @property
    def room(self) -> int:
        return self.workers if self.most is None else self.most

    def submit(self, pull: Pull) -> "Future[object]":
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
        self.stopped.append(future)

    def take_back(self, futures: Iterable["Future[object]"]) -> set["Future[object]"]:
        self.taken_back += 1
        return super().take_back(futures)

    def abandon(self, futures: Iterable["Future[object]"]) -> None:
        self.abandoned.extend(futures)

    def close(self, *, wait: bool) -> None:
        self.waited.append(wait)


class Still:
    """A time that stands still until the test moves it."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


def a_run(study: thresher.Study | None = None, workers: int = 4, **limits: Any) -> tuple[Any, Told]:
    engine = Told(workers)
    return Runner(study or make(budget=20), engine, Limits(**limits), None), engine


def reasons(study: thresher.Study) -> list[tuple[str | None, str | None]]:
    return [(event.cause, event.reason) for event in study.events() if event.kind == "dropped"]
