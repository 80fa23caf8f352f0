"""Who is to blame for failures: the arms, an outage, or the evaluator.

When everything fails, no arm is to blame and none is retired. The same failure on several arms before anything
succeeded is not an outage: waiting does not repair a wrong signature or a misspelt program, so the run ends at once
and says what was wrong.
"""

import contextlib
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ..core import kernel
from ..core.events import Cause
from ..core.ledger import Ledger
from ..core.places import mixed
from ..errors import AlreadyTold, CannotGoOn, shown
from ..study import Pull, Study, give_up, look
from ..text.logs import log
from .pairs import BASELINE

ARMS = 3  # arms, or cases, that must fail with the same error; in a smaller study, all of them
OUTSIDE = "outside the bounds"  # the kind of a reward for which its arm was retired
WINDOW = 8  # failures in a row, at least, that make an outage
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0  # seconds between two tries


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
    pulls: dict[str | int, int] = field(default_factory=dict)  # by arm, or by case: the first pull that failed this way
    count: int = 0

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
    blamed: bool = False  # failures have counted against an arm, which may be retired for them
    _failed: dict[str, SameError] = field(default_factory=dict)  # by kind

    def close(self) -> None:
        """The start is over: later failures do not count here."""
        self.over = True
        self._failed.clear()

    def failure(self, failure: Failure) -> None:
        if not self.over and failure.kind is not None:
            self._failed.setdefault(failure.kind, SameError(failure)).add(failure.pull)

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
        who = {1: f"the only {what}", 2: f"both {what}s"}.get(needed, f"{needed} {what}s")
        how = "failed" if needed == 1 else "failed with the same error"
        for kind, same in sorted(self._failed.items(), key=lambda found: found[0] == OUTSIDE):
            if not self._is_enough(same, needed):
                continue
            if kind == OUTSIDE:
                rule = f"{who} returned a reward outside the bounds before anything succeeded"
                return CannotGoOn("run", rule=f"{rule}: {same.first.reason}")
            rule = f"{who} {how} before anything succeeded: {same.first.reason}"
            names = ", ".join(shown(name) for name in sorted(same.pulls, key=str)[:needed])
            is_of_all = needed < ARMS or self._has_cases or kind.startswith(BASELINE)
            which = "" if is_of_all else f", or take out {names} if only they are wrong,"
            remedy = f"correct the evaluator{which} and run again{'' if self.blamed else '; no arm was retired'}"
            return CannotGoOn("run", rule=rule, remedy=remedy).with_cause(same.first.error)
        return None

    def _needed(self) -> int:
        """The arms that must fail; if there are earlier rewards, the evaluator cannot be entirely wrong.

        With cases, these must fail: one that is broken fails for every arm. If there are earlier rewards, those that
        are left may all be broken, so that nothing may ever succeed: they are tried until they have failed for good.
        """
        measured, arms = look(self.study, lambda ledger: (ledger.told - ledger.imported, ledger.spec.contenders))
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


@dataclass
class Watch:
    """Holds failures back until it is clear whether the arms, the evaluator or an outage is to blame.

    A success decides it: the failures before it count against their arms. ``window`` failures in a row over at least
    two arms, or of a baseline that goes first, are an outage: they are dropped with cause ``outage``, which counts
    against no arm. So are those that show, before anything succeeded, that the evaluator is wrong: then the run ends.
    Where another arm has worked before, one pull of it, the control, decides: if it succeeds, the arms are broken.
    """

    study: Study
    oldest: Callable[[], float]  # as in `Start`
    window: int = WINDOW
    held: list[Failure] = field(default_factory=list)
    since: float | None = None  # when the outage was noticed; None: there is none
    next_try: float = 0.0
    pause: float = field(default_factory=lambda: FIRST_PAUSE)
    _last: Failure | None = None  # since the last success
    _failed: Counter[str] = field(default_factory=Counter)  # failures since then, by arm
    _deciding: bool = False  # a control is to decide; what is held waits for it
    _control: int | None = None  # its pull

    def __post_init__(self) -> None:
        self.start = Start(self.study, self.oldest)

    @property
    def out(self) -> bool:
        return self.since is not None

    def success(self, pull: Pull, *, first: Callable[[], object] = lambda: None) -> None:
        """A pull succeeded. Failures that were held are dropped, ``first`` being called before."""
        self.start.close()
        if self._deciding and pull.id != self._control:  # it may have begun before the outage
            return
        if self.held:
            first()
        if self.out and not self._deciding:
            log.warning("an evaluation succeeded: the outage is over")
        self.since, self.pause, self._last, self._deciding = None, FIRST_PAUSE, None, False
        self._failed.clear()
        self.release()

    def failure(self, failure: Failure, now: float) -> None:
        """A pull failed. Raises `CannotGoOn` if the evaluator is wrong."""
        self._last = failure
        self._failed[failure.pull.arm] += 1
        self.held.append(failure._replace(error=None))  # its traceback would keep many objects alive
        self.start.failure(failure)
        self.check_start()
        if self._deciding:
            if failure.pull.id == self._control:
                self._begin_outage(failure, now)
        elif self.out:
            self.forgive()
            if now >= self.next_try:  # this was a try, not a pull from before the outage
                self.pause = min(2 * self.pause, LONGEST_PAUSE)
                self.next_try = now + self.pause
        elif self._is_the_last_arms(failure):
            self.release()  # with one arm left, its failures are its own
        elif len(self.held) >= self.window:
            if self._are_broken_cases():
                self.release()
            elif self._arm_that_worked() is not None:
                self.since, self.next_try, self._deciding, self._control = now, now, True, None
            elif self._is_more_than_an_arm():
                self._begin_outage(failure, now)
            else:
                self.release()

    def _begin_outage(self, failure: Failure, now: float) -> None:
        self.since, self.next_try, self._deciding = now, now + self.pause, False
        log.warning(
            f"the last {len(self.held)} evaluations all failed, the last with: {failure.reason}; "
            "only one pull is tried now and then until one succeeds; no arm is retired for this"
        )
        self.forgive()

    def arm_to_try(self) -> str | None:
        """The arm for the next try in an outage, else None: the policy chooses.

        It would choose the same arm again and again, for nothing becomes known about it. If that arm is broken, the
        outage would never end. So each try is of another arm; and not of its neighbour, which may be broken like it.
        """
        if not self.out:
            return None
        control = self._arm_that_worked() if self._deciding else None
        return control or self._least_failed(lambda ledger, arm: True)

    def tried(self, pulls: Sequence[Pull]) -> Sequence[Pull]:
        """What is asked for now. The first is the control, if one is to decide."""
        if self._deciding and pulls:
            self._control = pulls[0].id
        return pulls

    def _arm_that_worked(self) -> str | None:
        """An arm that has had a reward, and has not failed since the last success."""
        names = self.study.spec.arms
        return self._least_failed(lambda ledger, arm: ledger.board.seen[arm] > 0 and not self._failed[names[arm]])

    def _least_failed(self, fits: Callable[[Ledger, int], bool]) -> str | None:
        names = self.study.spec.arms

        def rank(ledger: Ledger, arm: int) -> tuple[int, bool, int]:
            return self._failed[names[arm]], not ledger.board.seen[arm], mixed(arm, 1)

        def least(ledger: Ledger) -> str | None:
            takes = [arm for arm in range(len(names)) if ledger.board.shut[arm] != kernel.SHUT and fits(ledger, arm)]
            return names[min(takes, key=lambda arm: rank(ledger, arm))] if takes else None

        return look(self.study, least)

    def _is_the_last_arms(self, failure: Failure) -> bool:
        """Whether there is no other arm to compare with; the only arm of a study may end the run instead."""
        if look(self.study, lambda ledger: ledger.open > 1 or ledger.awaits):
            return False
        return failure.kind is None or not self.start.is_for_one_arm

    def _is_more_than_an_arm(self) -> bool:
        """Whether it can be an outage. While the baseline goes first through the cases, no other arm can fail."""
        return len({held.pull.arm for held in self.held}) > 1 or look(self.study, lambda ledger: ledger.awaits)

    def _are_broken_cases(self) -> bool:
        """Whether a few cases failed again and again, none of which ever had a reward."""
        cases = {held.pull.case for held in self.held}
        if None in cases or len(cases) > len(self.held) // 2:
            return False
        return not look(self.study, lambda ledger: cases & ledger.known_cases())

    def check_start(self) -> None:
        """Raise `CannotGoOn` if failures before the first success show that the evaluator is wrong."""
        if not self.start.over and (end := self.start.end()) is not None:
            self.forgive()
            raise end

    def end(self, rule: str, remedy: str) -> CannotGoOn:
        """The error with which an outage ends the run."""
        last = "" if self._last is None else f", the last with: {self._last.reason}"
        end = CannotGoOn("run", rule=f"{rule}{last}", remedy=f"{remedy}; no arm was retired for it")
        return end.with_cause(None if self._last is None else self._last.error)

    def release(self) -> None:
        """Drop the held pulls; the failures count against their arms.

        If the run ends before a control has decided, those of several arms are taken for an outage.
        """
        if self._deciding and self._is_more_than_an_arm():
            self.forgive()
        elif self._deciding:
            self.since = None
        self._deciding = False
        self.start.blamed |= bool(self.held)
        self._drop(None)

    def forgive(self) -> None:
        """Drop the held pulls; the failures count against no arm."""
        self._drop("outage")

    def _drop(self, cause: Cause | None) -> None:
        while self.held:
            self._drop_one(self.held.pop(0), cause)

    def _drop_one(self, held: Failure, cause: Cause | None) -> None:
        instead = cause if held.cause == "failed" else None
        with contextlib.suppress(AlreadyTold):  # another agent told its reward
            give_up(self.study, held.pull, reason=held.reason, cause=instead or held.cause)

    def let_go(self, pull: Pull) -> None:
        """Drop this pull now, if it failed: its reward came after all, and is late."""
        for held in [held for held in self.held if held.pull.id == pull.id]:
            self.held.remove(held)
            self._drop_one(held, None)
