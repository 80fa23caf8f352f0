"""The pulls of a run: those that wait, those that an engine evaluates, and how they are dropped."""

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future

from ..core.events import Cause
from ..errors import AlreadyTold
from ..study import Pull, Study, give_up
from .engines import Engine
from .waiting import Flight, Waiting
from .workers import Suspects


class Flights:
    """Pulls without an outcome. ``when_done`` is called with each future, from any thread."""

    def __init__(
        self, study: Study, engine: Engine, suspects: Suspects, when_done: "Callable[[Future[object]], object]"
    ) -> None:
        self.study, self._engine, self._suspects, self._when_done = study, engine, suspects, when_done
        self.flying: dict[Future[object], Flight] = {}
        self.overdue: dict[Future[object], Flight] = {}  # timed out; a reward that still comes is late
        self.waiting = Waiting()

    def __len__(self) -> int:
        return len(self.flying) + len(self.waiting)

    def oldest(self) -> float:
        """The smallest id of a pull that waits or runs."""
        return min(
            (flight.pull.id for flights in (self.flying.values(), self.waiting) for flight in flights), default=math.inf
        )

    def begin(self, pulls: Iterable[Pull], now: float) -> None:
        """Hand pulls to the engine, for the first time."""
        for pull in pulls:
            self.waiting.hold(Flight(pull, attempt=1))
        self.submit_waiting(now)

    def submit_waiting(self, now: float) -> None:
        """Hand over what is due."""
        for flight in self.waiting.due(now):
            try:
                self._submit(flight)
            except BaseException:
                self.waiting.hold(flight)  # so that it is dropped at the end
                raise

    def _submit(self, flight: Flight) -> None:
        suspects = self._suspects.arms
        if flight.pull.arm in suspects and any(other.pull.arm in suspects for other in self.flying.values()):
            self.waiting.hold(flight)
            return
        future = self._engine.submit(flight.pull)
        self.flying[future] = flight
        future.add_done_callback(self._when_done)

    def timed_out(self, timeout: float, now: float) -> "Iterator[tuple[Future[object], Flight]]":
        """Evaluations that timed out; they are overdue from now on."""
        for future, flight in list(self.flying.items()):
            if flight.started is None:
                flight.started = now if self._engine.began(future) else None
            elif now - flight.started >= timeout and not future.done():
                self.overdue[future] = self.flying.pop(future)
                yield future, flight

    # -- dropping ----------------------------------------------------------------------------------------------

    def abandon(self, reason: str) -> None:
        """Drop all pending pulls."""
        self.withdraw()
        self._engine.abandon(self.flying)
        while self.flying:
            self.drop(self.flying.popitem()[1], reason, "lost")

    def withdraw(self) -> None:
        """Take back the pulls that have not begun."""
        for future in self._engine.withdraw(self.flying) if self.flying else ():
            self.drop(self.flying.pop(future), "the run was stopped before it began", "cancelled")

    def cancel_waiting(self) -> None:
        """Drop the pulls that wait for their first or next try."""
        for flight in self.waiting.empty():
            self.drop(flight, "the run was stopped before it was tried", "cancelled")

    def drop(self, flight: Flight, reason: str, cause: Cause) -> None:
        """Drop a pull; only one that never began, in any attempt, was cancelled."""
        with contextlib.suppress(AlreadyTold):  # by another agent
            give_up(self.study, flight.pull, reason=reason, cause="lost" if flight.repeated else cause)
