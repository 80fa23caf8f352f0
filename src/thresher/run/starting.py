"""A run until its first reward: if several arms fail with the same error, the evaluator is wrong, and the run ends.

That is no outage: waiting does not repair a wrong signature or a misspelt program.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from ..core.events import Cause
from ..errors import CannotGoOn, shown
from ..study import Pull, Study, peek
from .pairs import BASELINE

ARMS = 3  # arms, or cases, that must fail with the same error; in a smaller study, all of them
OUTSIDE = "outside the bounds"  # the kind of a reward for which its arm was retired
WINDOW = 8  # failures in a row, at least, that are more than bad luck


class Failure(NamedTuple):
    """A pull that failed."""

    pull: Pull
    reason: str
    cause: Cause = "failed"  # or "broken-pool", or "lost"
    kind: str | None = None  # equal for the same error; None: it is temporary, or not the evaluator's fault
    error: BaseException | None = None  # what the evaluator raised
    timed_out: bool = False


@dataclass
class SameError:
    """Failures with the same error."""

    first: Failure
    pulls: dict[str | int, int] = field(default_factory=dict)  # by arm, or by case: the first pull that failed this way
    count: int = 0
    last: str = ""  # the reason of the last of them

    def add(self, pull: Pull) -> None:
        self.count += 1
        who = pull.arm if pull.case is None else pull.case
        self.pulls[who] = min(pull.id, self.pulls.get(who, pull.id))


@dataclass
class Start:
    """A run until its first reward."""

    study: Study
    oldest: Callable[[], float]  # the id of the oldest pull of this run that is still waiting or running
    over: bool = False  # something has succeeded, or the run is being stopped
    disproved: bool = False  # the run ends because rewards lie outside the bounds
    blamed: bool = False  # failures have counted against an arm, which may be retired for them
    _failed: dict[str, SameError] = field(default_factory=dict)  # by kind

    def close(self) -> None:
        """The start is over: later failures do not count here."""
        self.over = True
        self._failed.clear()

    def failure(self, failure: Failure) -> None:
        if not self.over and failure.kind is not None:
            same = self._failed.setdefault(failure.kind, SameError(failure))
            same.add(failure.pull)
            same.last = failure.reason

    @property
    def is_for_one_arm(self) -> bool:
        """Whether the failures of a single arm may end the run."""
        return not self.over and (self._needed() == 1 or (self._has_cases and self._needed() == ARMS))

    @property
    def _has_cases(self) -> bool:
        return self.study.spec.cases is not None

    def end(self) -> CannotGoOn | None:
        """Why the run must end, if it must."""
        if not self._failed:
            return None
        needed = self._needed()
        what = "case" if self._has_cases else "arm"
        few = {1: f"the only {what}", 2: f"both {what}s"}
        who = few.get(needed, f"{needed} {what}s")
        how = "failed" if needed == 1 else "failed with the same error"
        for kind, same in sorted(self._failed.items(), key=lambda found: found[0] == OUTSIDE):
            if not self._is_enough(same, needed):
                continue
            if kind == OUTSIDE:
                all_so_far = few.get(len(same.pulls), f"{len(same.pulls)} {what}s")
                rule = f"{all_so_far} returned a reward outside the bounds before anything succeeded"
                self.disproved = True
                return CannotGoOn("run", rule=f"{rule}: {same.last}")  # which names the arms
            rule = f"{who} {how} before anything succeeded: {same.first.reason}"
            names = ", ".join(shown(name) for name in sorted(same.pulls, key=str)[:needed])
            is_of_all = needed < ARMS or self._has_cases or kind.startswith(BASELINE)
            which = "" if is_of_all else f", or take out {names} if only they are wrong,"
            remedy = f"correct the evaluator{which} and run again{'' if self.blamed else '; no arm was retired'}"
            return CannotGoOn("run", rule=rule, remedy=remedy).with_cause(same.first.error)
        return None

    def _needed(self) -> int:
        """How many arms must fail. If there are earlier rewards, the evaluator cannot be entirely wrong.

        With cases, it is how many cases, because a broken case fails for every arm. If there are earlier rewards, all
        cases that are left may be broken, and nothing may ever succeed: they are tried until they have failed for good.
        """
        measured, arms = peek(self.study, lambda ledger: (ledger.own_told, ledger.spec.contenders))
        if self._has_cases:
            return sys.maxsize if measured > 0 else min(ARMS, self.study.spec.case_count)
        return ARMS if measured > 0 else min(ARMS, arms)

    def _is_enough(self, same: SameError, needed: int) -> bool:
        """Whether enough arms failed this way, and no pull that was handed out before them may still succeed.

        If the only arm has failed this often, its first pull may still be waiting for a worker to start.
        """
        if len(same.pulls) < needed:
            return False
        is_hopeless = needed == 1 and same.count >= WINDOW
        return is_hopeless or self.oldest() > sorted(same.pulls.values())[needed - 1]
