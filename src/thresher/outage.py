"""Telling an outage from arms that fail: when everything fails, the world is to blame and no arm is retired for it.

And who killed a worker, and for how long there is none.
"""

import contextlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from .errors import AlreadyTold, CannotGoOn
from .events import Cause
from .study import Pull, Study, give_up

log = logging.getLogger("thresher")
DESERTED = 10.0  # seconds without a worker after which it is said
FIRST_RESULTS = 8  # so many results that are no rewards at all, and the run ends at once
LONGEST_PAUSE = 60.0


class Finding(Enum):
    """What a failure shows."""

    NOTHING_NEW = 0
    OUTAGE = 1  # from now on
    NO_REWARDS = 2  # the evaluator has returned no valid reward ever


class Failure(NamedTuple):
    """A pull that came to nothing."""

    pull: Pull
    reason: str
    cause: Cause = "failed"  # or "broken-pool"
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
    last: str = ""  # the reason of the last failure

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

    def failure(self, failure: Failure, now: float) -> Finding:
        """A pull failed; says what is to be made of it."""
        self.results += 1
        self.last = failure.reason
        self.held.append(failure)
        if self.out:
            self.forgive()
            if now >= self.next_try:  # a try failed, and not a pull from before
                self.pause = min(2 * self.pause, LONGEST_PAUSE)
                self.next_try = now + self.pause
            return Finding.NOTHING_NEW
        if self.study.look(lambda ledger: ledger.open) < 2:
            self.release()  # with one arm left there is no telling: its failures are its own
        elif self.results == len(self.held) >= FIRST_RESULTS and all(held.nonsense for held in self.held):
            self.forgive()
            return Finding.NO_REWARDS
        elif len(self.held) >= self.window:
            if len({held.pull.arm for held in self.held}) < 2:
                self.release()
            else:
                self.since, self.next_try = now, now + self.pause
                self.forgive()
                return Finding.OUTAGE
        return Finding.NOTHING_NEW

    def release(self) -> None:
        """The failures count against their arms."""
        self._drop(None)

    def forgive(self) -> None:
        """The failures count against nobody."""
        self._drop("outage")

    def _drop(self, cause: Cause | None) -> None:
        while self.held:
            self._drop_one(self.held.pop(0), cause)

    def _drop_one(self, held: Failure, cause: Cause | None) -> None:
        instead = cause if held.cause == "failed" else None
        with contextlib.suppress(AlreadyTold):  # somebody else told its reward
            give_up(self.study, held.pull, reason=held.reason, cause=instead or held.cause)

    def let_go(self, pull: Pull) -> None:
        """Wait no longer with this one, if it failed: its reward is here after all, and is late."""
        for held in [held for held in self.held if held.pull.id == pull.id]:
            self.held.remove(held)
            self._drop_one(held, None)


@dataclass
class Suspects:
    """Finds the arm whose pulls kill workers that others share.

    When several pulls die together, any of their arms may be to blame. From then on only one pull of a suspected arm is
    under way at a time, until a reward clears the arm: the next time that pulls die together, that one is to blame.
    """

    arms: set[str] = field(default_factory=set)
    _judged: dict[tuple[int, ...], str | None] = field(default_factory=dict)  # what died together: who is to blame

    def judge(self, pull: Pull, together: Sequence[Pull]) -> str:
        """The cause of the drop of a pull that died with these: ``"failed"`` for one pull of the arm to blame."""
        if len(together) == 1:
            return "failed"
        group = tuple(lost.id for lost in together)
        if group not in self._judged:
            arms = {lost.arm for lost in together}
            known = arms if len(arms) == 1 else arms & self.arms
            self._judged[group] = next(iter(known)) if len(known) == 1 else None
            self.arms |= arms
        if self._judged[group] != pull.arm:
            return "broken-pool"
        self._judged[group] = None
        return "failed"

    def clear(self, arm: str) -> None:
        """A pull of this arm ended well."""
        self.arms.discard(arm)


@dataclass
class Desertion:
    """A time in which there is no worker: it is said, and does not last for ever."""

    sought: str  # what is missing
    give_up: float  # seconds
    since: float | None = None
    _is_said: bool = False

    def is_over(self, workers: int, now: float) -> bool:
        """Whether there are workers."""
        if workers > 0:
            self.since = None
            return True
        if self.since is None:
            self.since, self._is_said = now, False
        if now - self.since >= DESERTED and not self._is_said:
            self._is_said = True
            log.warning(f"there is no {self.sought}: waiting for one")
        if now - self.since >= self.give_up:
            rule = f"there was no {self.sought} for {self.give_up:g} s"
            raise CannotGoOn("run", rule=rule, remedy="start some; run again")
        return False
