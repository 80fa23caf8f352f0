"""Telling an outage from arms that fail: when everything fails, the world is to blame and no arm is retired for it."""

from dataclasses import dataclass, field
from typing import NamedTuple

from .study import Pull, Study

FIRST_RESULTS = 8  # so many results that are no rewards at all, and the run ends at once
LONGEST_PAUSE = 60.0


class Failure(NamedTuple):
    """A pull that came to nothing."""

    pull: Pull
    reason: str
    cause: str = "failed"  # or "broken-pool"
    nonsense: bool = False  # it returned something, but no valid reward


@dataclass
class Watch:
    """Holds failures back until it is clear whether the arms or the world is to blame.

    A success settles it: the failures before it count against their arms. ``window`` failures in a row over at least
    two arms are an outage: they are dropped with cause ``outage``, which counts against nobody.
    """

    study: Study
    window: int
    held: list[Failure] = field(default_factory=list)
    results: int = 0
    since: float | None = None  # when the outage was noticed; None: there is none
    next_try: float = 0.0
    pause: float = 1.0

    @property
    def out(self) -> bool:
        """Whether there is an outage."""
        return self.since is not None

    def success(self) -> bool:
        """A reward came; says whether it ended an outage."""
        self.results += 1
        ended = self.out
        self.since, self.pause = None, 1.0
        self.release()
        return ended

    def failure(self, failure: Failure, now: float) -> bool:
        """A pull failed; says whether this is the moment at which an outage is noticed."""
        self.results += 1
        self.held.append(failure)
        if self.out:
            self.forgive()
            self.pause = min(2 * self.pause, LONGEST_PAUSE)
            self.next_try = now + self.pause
            return False
        if self.study.look(lambda ledger: ledger.open) < 2:
            self.release()  # with one arm left there is no telling: its failures are its own
        elif len(self.held) >= self.window:
            if len({held.pull.arm for held in self.held}) < 2:
                self.release()
            else:
                self.since, self.next_try = now, now + self.pause
                self.forgive()
                return True
        return False

    def only_nonsense(self) -> bool:
        """Whether every result so far is no reward at all, often enough to be sure that something is set up wrongly."""
        return self.results == len(self.held) >= FIRST_RESULTS and all(held.nonsense for held in self.held)

    def release(self) -> None:
        """The failures count against their arms."""
        self._drop(None)

    def forgive(self) -> None:
        """The failures count against nobody."""
        self._drop("outage")

    def _drop(self, cause: str | None) -> None:
        for held in self.held:
            instead = cause if held.cause == "failed" else None
            self.study.drop(held.pull, reason=held.reason, cause=instead or held.cause)
        self.held.clear()
