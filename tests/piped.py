"""A persistent evaluator whose program is only two pipes: the tests say what it prints and when it exits."""

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import pytest
from engines import until

from thresher.run.command import persistent
from thresher.run.command.persistent import PersistentProcess
from thresher.run.command.protocol import Greeting
from thresher.run.command.reward import CommandFailed
from thresher.study import Pull

Timer = TypeVar("Timer")
SECONDS = 20.0  # far more than anything takes


def pull(number: int, arm: str = "a") -> Pull:
    return Pull(number, arm, number, {}, 7)


class Pipes:
    """In place of a program: the test says what it prints and when it exits."""

    def __init__(self) -> None:
        self.theirs, self.input = os.pipe()
        self.output, self.printed = os.pipe()
        self.exit, self._alive = os.pipe()
        self._open = {self.theirs, self.input, self.output, self.printed, self.exit, self._alive}
        for file in (self.input, self.output, self.theirs):
            os.set_blocking(file, False)
        self.errors, self.ended = b"", "exited with 3"
        self.calls: list[object] = []

    def prints(self, *lines: str) -> None:
        os.write(self.printed, "".join(f"{line}\n" for line in lines).encode())

    def answers(self, *pulls: int) -> None:
        self.prints(*(json.dumps({"pull": number, "reward": number / 8}) for number in pulls))

    def heard(self) -> list[int]:
        """The pulls that were written to it since the last time."""
        with contextlib.suppress(BlockingIOError):
            return [json.loads(line)["pull"] for line in os.read(self.theirs, 1 << 20).splitlines()]
        return []

    def exits(self) -> None:
        self._close(self._alive)

    def stops_reading(self) -> None:
        self._close(self.theirs)

    def stops_printing(self) -> None:
        self._close(self.printed)

    def _close(self, *files: int) -> None:
        for file in files:
            self._open.remove(file)
            os.close(file)

    def end(self) -> None:
        self._close(*self._open)

    def reap(self, *, at_once: bool) -> None:
        self.calls.append(("reaped", at_once))

    def exits_within(self, seconds: float) -> None:
        self.calls.append(("waited", seconds))

    def hang_up(self) -> None:
        self.calls.append("hung up")

    def close(self) -> None:
        self.calls.append("closed")


class Stands:
    """A time that stands still until the test moves it."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


Greeted = Callable[[Greeting], None]
Piped = Callable[..., tuple[PersistentProcess, Pipes]]


@pytest.fixture
def piped(monkeypatch: pytest.MonkeyPatch) -> Iterator[Piped]:
    made: list[Pipes] = []

    def begin(greeted: Greeted = lambda _: None, *, exit_is_told: bool = True) -> tuple[PersistentProcess, Pipes]:
        pipes = Pipes()
        made.append(pipes)
        if not exit_is_told:
            pipes.exit = -1
        monkeypatch.setattr(persistent, "PersistentProgram", lambda _: pipes)
        return PersistentProcess(("x",), greeted), pipes

    yield begin
    for each in made:
        each.end()


def timed_by(clock: Timer, monkeypatch: pytest.MonkeyPatch) -> Timer:
    """Let persistent evaluators read the time from this clock."""
    monkeypatch.setattr(persistent, "time", clock)
    return clock


@pytest.fixture
def still(monkeypatch: pytest.MonkeyPatch) -> Stands:
    return timed_by(Stands(), monkeypatch)


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


def begun(
    pool: ThreadPoolExecutor, one: PersistentProcess, pipes: Pipes, number: int, arm: str = "a"
) -> "Future[float]":
    """An evaluation in another thread that waits for its answer."""
    future = pool.submit(one.evaluate, pull(number, arm), number, SECONDS)
    until(lambda: pipes.heard() == [number], "the pull")
    return future


def failure(call: Callable[[], object]) -> CommandFailed:
    with pytest.raises(CommandFailed) as caught:
        call()
    return caught.value
