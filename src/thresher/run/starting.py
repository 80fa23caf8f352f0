"""Errors at the start: the same failure on several arms before anything succeeded is not an outage.

Waiting does not repair a wrong signature or a misspelt program, so the run ends at once and says what was wrong.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from ..core.events import Cause
from ..errors import CannotGoOn, shown
from ..study import Pull, Study, look

ARMS = 3  # arms that must fail with the same error; in a smaller study, all of them


class Failure(NamedTuple):
    """A pull that failed."""

    pull: Pull
    reason: str
    cause: Cause = "failed"  # or "broken-pool"
    kind: str | None = None  # equal for the same error; None: it is temporary, or not the evaluator's fault
    error: BaseException | None = None  # what the evaluator raised


@dataclass
class SameError:
    """Failures with the same error."""

    first: Failure
    pulls: dict[str, int] = field(default_factory=dict)  # by arm: its first pull that failed this way

    def add(self, pull: Pull) -> None:
        self.pulls[pull.arm] = min(pull.id, self.pulls.get(pull.arm, pull.id))


@dataclass
class Start:
    """A run until its first reward."""

    study: Study
    oldest: Callable[[], float]  # the id of the oldest pull of this run that is still waiting or running
    over: bool = False  # something has succeeded, or the run is being stopped
    blamed: bool = False  # failures have counted against an arm, which may be retired for them
    _failed: dict[str, SameError] = field(default_factory=dict)
    _outside: SameError | None = None

    def close(self) -> None:
        """The start is over: later failures do not count here."""
        self.over = True
        self._failed.clear()
        self._outside = None

    def failure(self, failure: Failure) -> None:
        if not self.over and failure.kind is not None:
            self._failed.setdefault(failure.kind, SameError(failure)).add(failure.pull)

    def outside_bounds(self, pull: Pull, error: Exception) -> None:
        """A pull returned a reward outside the bounds, and its arm was retired for it."""
        if not self.over:
            self._outside = self._outside or SameError(Failure(pull, str(error)))
            self._outside.add(pull)

    @property
    def is_for_one_arm(self) -> bool:
        """Whether a single failing arm may end the run."""
        return not self.over and self._needed() == 1

    def end(self) -> CannotGoOn | None:
        """Why the run must end, if it must."""
        if not self._failed and self._outside is None:
            return None
        needed = self._needed()
        who = {1: "the only arm", 2: "both arms"}.get(needed, f"{needed} arms")
        how = "failed" if needed == 1 else "failed with the same error"
        for same in self._failed.values():
            if self._is_enough(same, needed):
                rule = f"{who} {how} before anything succeeded: {same.first.reason}"
                names = ", ".join(map(shown, sorted(same.pulls)[:needed]))
                which = "" if needed < ARMS else f", or take out {names} if only they are wrong,"
                remedy = f"correct the evaluator{which} and run again{'' if self.blamed else '; no arm was retired'}"
                return CannotGoOn("run", rule=rule, remedy=remedy).with_cause(same.first.error)
        if self._outside is not None and self._is_enough(self._outside, needed):
            what = f"{who} returned a reward outside the bounds before anything succeeded"
            return CannotGoOn("run", rule=f"{what}: {self._outside.first.reason}")
        return None

    def _needed(self) -> int:
        """The arms that must fail; if there are earlier rewards, the evaluator cannot be entirely wrong."""
        measured, arms = look(self.study, lambda ledger: (ledger.told - ledger.imported, len(ledger.spec.arms)))
        return ARMS if measured > 0 else min(ARMS, arms)

    def _is_enough(self, same: SameError, needed: int) -> bool:
        """Whether enough arms failed this way, and no pull that was handed out before them may still succeed."""
        return len(same.pulls) >= needed and self.oldest() > sorted(same.pulls.values())[needed - 1]
