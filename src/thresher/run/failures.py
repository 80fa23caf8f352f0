"""Who is to blame for failures: arms, the evaluator, lost workers, or an outage, in which everything fails.

Until the first reward of a run, several arms that fail with the same error show that the evaluator is wrong, and the
run ends. That is no outage: waiting does not repair a wrong signature or a misspelt program.
"""

import contextlib
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from ..core.board import SHUT
from ..core.events import Cause
from ..core.places import mixed_place_word
from ..core.state import State
from ..errors import AlreadyTold, CannotGoOn, EvaluationFailed, error_line, shown
from ..study import Pull, Study, give_up_in_study, peek_study
from ..text.logs import log
from ..text.naming import Naming
from ..text.quantities import duration_text
from .evaluator_errors import error_identity

BASELINE = "the baseline failed: "  # the reason and the kind of a baseline's failure begin with this
OUTSIDE = "outside the bounds"  # the kind of a failure that is a reward outside the bounds
ARMS = 3  # arms, or cases, that must fail with the same error; in a smaller study, all of them
WINDOW = 8  # failures in a row; that many are more than bad luck
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0  # seconds between two tries
WARN_AFTER = 10.0  # seconds without a worker after which a warning is logged


class Failure(NamedTuple):
    """A pull that failed."""

    pull: Pull
    reason: str
    cause: Cause = "failed"  # or "broken-pool", or "lost"
    kind: str | None = None  # equal for the same error; None: it is temporary, or not the evaluator's fault
    error: BaseException | None = None  # what the evaluator raised
    timed_out: bool = False


@dataclass
class SameFailure:
    """Failures with the same error."""

    first: Failure
    pulls: dict[str | int, int] = field(default_factory=dict)  # the first pull that failed this way, by arm or by case
    count: int = 0
    last_reason: str = ""

    def add(self, failure: Failure) -> None:
        self.count += 1
        self.last_reason, pull = failure.reason, failure.pull
        key = pull.arm if pull.case is None else pull.case
        self.pulls[key] = min(pull.id, self.pulls.get(key, pull.id))


@dataclass
class StartFailures:
    """The time until the first reward of a run."""

    study: Study
    oldest: Callable[[], float]  # returns the id of the oldest pull of this run that still waits or runs
    over: bool = False  # something has succeeded, or the run is being stopped
    disproved: bool = False  # the run ends because rewards lie outside the bounds
    blamed: bool = False  # failures have counted against an arm, which may be retired for them
    _failed: dict[str, SameFailure] = field(default_factory=dict)  # by kind

    def close(self) -> None:
        """The start is over: later failures do not count here."""
        self.over = True
        self._failed.clear()

    def failure(self, failure: Failure) -> None:
        if not self.over and failure.kind is not None:
            self._failed.setdefault(failure.kind, SameFailure(failure)).add(failure)

    @property
    def is_for_one_arm(self) -> bool:
        """Whether the failures of a single arm may end the run."""
        return not self.over and (self._needed() == 1 or (self.has_cases and self._needed() == ARMS))

    @property
    def has_cases(self) -> bool:
        return self.study.spec.cases is not None

    def end(self) -> CannotGoOn | None:
        """The error with which the run must end, if it must."""
        if not self._failed:
            return None
        needed = self._needed()
        unit = "case" if self.has_cases else "arm"
        few = {1: f"the only {unit}", 2: f"both {unit}s"}
        who = few.get(needed, f"{needed} {unit}s")
        how = "failed" if needed == 1 else "failed with the same error"
        for kind, same in sorted(self._failed.items(), key=lambda item: item[0] == OUTSIDE):
            if not self._is_enough(same, needed):
                continue
            if kind == OUTSIDE:
                self.disproved = True
                all_so_far = few.get(len(same.pulls), f"{len(same.pulls)} {unit}s")
                rule = f"{all_so_far} returned a reward outside the bounds before anything succeeded"
                return CannotGoOn("run", rule=Naming("{rule}: {last}", rule=rule, last=same.last_reason))
            rule = f"{who} {how} before anything succeeded: {same.first.reason}"
            names = ", ".join(shown(name) for name in sorted(same.pulls, key=str)[:needed])
            is_of_all = needed < ARMS or self.has_cases or kind.startswith(BASELINE)
            which = "" if is_of_all else f", or take out {names} if only they are wrong,"
            remedy = f"correct the evaluator{which} and run again{'' if self.blamed else '; no arm was retired'}"
            return CannotGoOn("run", rule=rule, remedy=remedy).with_cause(same.first.error)
        return None

    def _needed(self) -> int:
        """How many arms must fail before the run ends; after earlier rewards, the evaluator cannot be entirely wrong.

        In a study with cases it is how many cases, because a broken case fails for every arm. After earlier rewards,
        all cases that are left may be broken: then they are tried until they have failed for good.
        """
        measured, arms = peek_study(self.study, lambda ledger: (ledger.own_told, ledger.spec.contenders))
        if self.has_cases:
            return sys.maxsize if measured > 0 else min(ARMS, self.study.spec.case_count)
        return ARMS if measured > 0 else min(ARMS, arms)

    def _is_enough(self, same: SameFailure, needed: int) -> bool:
        """Whether enough arms failed this way, and no pull that was handed out before them may still succeed.

        If the only arm has failed this often, its first pull may still be waiting for a worker to start.
        """
        if len(same.pulls) < needed:
            return False
        is_hopeless = needed == 1 and same.count >= WINDOW
        return is_hopeless or self.oldest() > sorted(same.pulls.values())[needed - 1]


# -- Outages ----------------------------------------------------------------------------------------------------------


@dataclass
class FailureWatch:
    """Holds failures back until it is clear whether the arms, the evaluator or an outage is to blame.

    After a success, the failures before it count against their arms. ``window`` failures in a row of at least two arms,
    or of a baseline that goes first, are an outage: they are dropped with cause ``outage``, which counts against no
    arm. The same happens to failures which show, before anything has succeeded, that the evaluator is wrong. If another
    arm has worked before, one pull of it, the control, decides: if it succeeds, the failed arms are to blame.
    """

    study: Study
    oldest: Callable[[], float]  # as in `StartFailures`
    window: int = WINDOW  # failures in a row that may be an outage
    give_up: float = math.inf  # seconds of an outage that end the run
    held: list[Failure] = field(default_factory=list)
    since: float | None = None  # when the outage was noticed; None: there is none
    next_try: float = 0.0
    pause: float = field(default_factory=lambda: FIRST_PAUSE)
    last: Failure | None = None  # the last failure since the last success
    _failed: Counter[str] = field(default_factory=Counter)  # how many pulls of an arm have failed since then
    _timeouts: int = 0  # how many of these failures are time-outs
    _control: int | None = None  # the id of the control; 0: it is still to be asked for

    def __post_init__(self) -> None:
        self.start = StartFailures(self.study, self.oldest)

    @property
    def out(self) -> bool:
        return self.since is not None

    @property
    def paused(self) -> bool:
        """Whether there is an outage for sure: no control is to decide it."""
        return self.out and self._control is None

    @property
    def _only_timeouts(self) -> bool:
        return 0 < self._timeouts == self._failed.total()

    def success(self, pull: Pull) -> None:
        """Note a success, and drop the held failures. Write earlier rewards first, because failures in a row count."""
        self.start.close()
        if self._control is not None and pull.id != self._control:  # this pull may have begun before the outage
            return
        if self.out and self._control is None:
            log.warning("an evaluation succeeded: the outage is over")
        self.since, self.pause, self.last, self._control = None, FIRST_PAUSE, None, None
        self._failed.clear()
        self._timeouts = 0
        self.release()

    def failure(self, failure: Failure, now: float) -> None:
        """Note a failure. Raises `CannotGoOn` if it shows that the evaluator is wrong."""
        self.last = failure
        self._failed[failure.pull.arm] += 1
        self._timeouts += failure.timed_out
        self.held.append(failure._replace(error=None))  # the traceback would keep many objects alive
        self.start.failure(failure)
        self.check_start()
        if self._control is not None:
            if failure.pull.id == self._control:
                self._begin_outage(failure, now)
        elif self.out:
            self.forgive()
            if now >= self.next_try:  # otherwise, the pull began before the outage
                self.pause = min(2 * self.pause, LONGEST_PAUSE)
                self.next_try = now + self.pause
        elif self._is_of_last_arm(failure) or (len(self.held) >= self.window and self._are_broken_cases()):
            self.release()
        elif len(self.held) >= self.window:
            if self._least_failed()[1]:
                self.since, self.next_try, self._control = now, now, 0
            elif self._may_be_an_outage():
                self._begin_outage(failure, now)
            else:
                self.release()

    def _begin_outage(self, failure: Failure, now: float) -> None:
        self.since, self.next_try, self._control = now, now + self.pause, None
        failed = f"the last {len(self.held)} evaluations all failed, the last with: {failure.reason}"
        limit = math.isfinite(self.give_up)
        how_long = f", for at most {duration_text(self.give_up, rounded=True)} ({{give_up}})" if limit else ""
        more = "all of them timed out: they may need a larger {timeout}; " if self._only_timeouts else ""
        text = (
            f"{{failed}}; {more}the run is paused: one pull is tried from time to time until one succeeds{how_long}; "
            "no arm is retired for this"
        )
        log.warning(Naming(text, failed=failed))
        self.forgive()

    def tries(self, now: float, *, idle: bool) -> Sequence[Pull]:
        """The pull to try now, if one is due. Raises `CannotGoOn` if the outage has lasted too long."""
        if self.since is not None and now - self.since >= self.give_up:
            remedy = "repair the evaluator and run again"
            if self._only_timeouts:
                remedy = Naming("run again with a larger {timeout}, or repair the evaluator")
            raise self.end(f"every evaluation failed for {self.give_up:g} s", remedy)
        if not idle or now < self.next_try:
            return []
        return self.tried(self.study.ask_many(1, arm=self.arm_to_try()))

    def arm_to_try(self) -> str | None:
        """The arm for the next try in an outage.

        Without new rewards, the policy would choose the same arm again and again. If that arm is broken, the outage
        would never end. So the next try is of another arm, and not of its neighbour, which may be broken the same way.
        """
        return self._least_failed()[0]

    def tried(self, pulls: Sequence[Pull]) -> Sequence[Pull]:
        """Note the pulls that were asked for. If a control is to decide, it is the first of them."""
        if self._control is not None and pulls:
            self._control = pulls[0].id
        return pulls

    def _least_failed(self) -> tuple[str | None, bool]:
        """The arm that has failed least since the last success, and whether it works: it has a reward and no failure.

        Of arms that failed equally often, those with a reward come first.
        """

        def least_failed(ledger: State) -> tuple[str | None, bool]:
            names = ledger.spec.arms
            takes = [arm for arm in range(len(names)) if ledger.board.shut[arm] != SHUT]
            ranks = [
                (self._failed[names[arm]], not ledger.board.seen[arm], mixed_place_word(arm, 1), arm) for arm in takes
            ]
            if not ranks:
                return None, False
            failures, is_new, _, arm = min(ranks)
            return names[arm], not failures and not is_new

        return peek_study(self.study, least_failed)

    def _is_of_last_arm(self, failure: Failure) -> bool:
        """Whether no other arm is left to compare with. The only arm of a study may end the run instead."""
        if peek_study(self.study, lambda ledger: ledger.open > 1 or ledger.awaits):
            return False
        return failure.kind is None or not self.start.is_for_one_arm

    def _may_be_an_outage(self) -> bool:
        """Whether several arms failed. While the baseline goes first through the cases, no other arm can fail."""
        return len({held.pull.arm for held in self.held}) > 1 or peek_study(self.study, lambda ledger: ledger.awaits)

    def _are_broken_cases(self) -> bool:
        """Whether only a few cases failed, again and again, and none of them ever had a reward."""
        cases = {held.pull.case for held in self.held}
        if None in cases or len(cases) > len(self.held) // 2:
            return False
        return not peek_study(self.study, lambda ledger: cases & ledger.known_cases())

    def check_start(self) -> None:
        """Raise `CannotGoOn` if failures before the first success show that the evaluator is wrong."""
        if (end := self.start.end()) is not None:
            if self.start.has_cases:  # somebody must correct the evaluator: the cases are tried once more
                self._drop({"failed": "broken-pool", "refused": "lost"})
            self.forgive()
            raise end

    def end(self, rule: str, remedy: str) -> CannotGoOn:
        """The error with which an outage ends the run."""
        last = "" if self.last is None else f", the last with: {self.last.reason}"
        remedy = Naming("{remedy}; no arm was retired for it", remedy=remedy)
        end = CannotGoOn("run", rule=f"{rule}{last}", remedy=remedy)
        return end.with_cause(None if self.last is None else self.last.error)

    def release(self) -> None:
        """Drop the held pulls; the failures count against their arms.

        If the run ends before a control has decided, failures of several arms count as an outage.
        """
        if self._control is not None and self._may_be_an_outage():
            self.forgive()
        elif self._control is not None:
            self.since = None
        self._control = None
        self.start.blamed |= bool(self.held)
        self._drop()

    def forgive(self) -> None:
        """Drop the held pulls; the failures count against no arm."""
        self._drop({"failed": "outage", "refused": "lost"})

    def let_go(self, pull: Pull) -> None:
        """Drop this pull now, if its failure is held: its reward came after all, and is late."""
        self._drop(only=pull)

    def _drop(self, instead: Mapping[Cause, Cause] = MappingProxyType({}), *, only: Pull | None = None) -> None:
        """Drop the held pulls, or ``only`` one of them. Causes may be replaced: ``instead`` says by which."""
        for held in [held for held in self.held if only is None or held.pull.id == only.id]:
            self.held.remove(held)
            with contextlib.suppress(AlreadyTold):  # another agent told its reward
                give_up_in_study(self.study, held.pull, reason=held.reason, cause=instead.get(held.cause, held.cause))


# -- Lost workers -----------------------------------------------------------------------------------------------------


class WorkerLost(Exception):
    """The worker died while it evaluated the pull.

    ``together`` are the pulls that were lost at once, including this one: any of them may be to blame. It is empty if
    the worker was told to leave or its node died.
    """

    def __init__(self, reason: str, together: Sequence[Pull]) -> None:
        super().__init__(reason)
        self.together = together


class EvaluatorLost(WorkerLost):
    """A persistent evaluator that several pulls shared is gone; the worker lives. Every engine passes this on."""


class EvaluatorRefused(CannotGoOn):
    """A persistent evaluator does not fit this study, so no pull can be made. Every engine passes this on."""


def wrapped_failure(error: BaseException) -> BaseException:
    """An exception of the evaluator, wrapped if it could be mistaken for one of the engine's own, or for Ctrl-C."""
    is_meant = isinstance(error, EvaluatorLost | EvaluatorRefused)
    if is_meant or not isinstance(error, WorkerLost | CannotGoOn | CancelledError | KeyboardInterrupt):
        return error
    failed = EvaluationFailed(error_line(error), kind=error_identity(error))
    failed.__cause__ = error
    return failed


@dataclass
class FailureSuspects:
    """Finds the arm whose pulls kill workers that others share.

    When several pulls die together, any of their arms may be to blame. From then on only one pull of a suspected arm is
    pending at a time, until a reward clears the arm. If it dies together with others again, its next pull is made
    alone, with no other pending. Only a death that no other arm shares counts against an arm.
    """

    arms: set[str] = field(default_factory=set)
    alone: set[str] = field(default_factory=set)  # of these: whose next pull is made alone
    _judged: set[tuple[int, ...]] = field(default_factory=set)  # pulls that died together

    def judge(self, error: WorkerLost) -> Cause:
        """The cause for dropping a lost pull. In a group of pulls of one arm, the first of them has failed."""
        group, arms = tuple(pull.id for pull in error.together), {pull.arm for pull in error.together}
        if not group:
            return "lost"
        if len(group) == 1:
            return "failed"
        is_first = group not in self._judged
        self._judged.add(group)
        if is_first:
            self.alone |= arms & self.arms
            self.arms |= arms
        return "failed" if is_first and len(arms) == 1 else "broken-pool"

    def clear(self, arm: str) -> None:
        """Suspect an arm no longer, because it returned a reward."""
        self.arms.discard(arm)
        self.alone.discard(arm)

    def must_wait(self, pull: Pull, running: Iterable[Pull], waiting: Iterable[Pull]) -> bool:
        """Whether this pull must wait until some of the running pulls have ended."""
        busy = {other.arm for other in running}
        if pull.arm in self.alone:
            return bool(busy)
        if self.alone & (busy | {other.arm for other in waiting}):
            return True
        return pull.arm in self.arms and bool(busy & self.arms)


@dataclass
class NoWorkersFailure:
    """A time without any worker. It is logged, and after ``give_up_in_study`` seconds it ends the run."""

    sought: str  # such as "worker with GPU 1"
    give_up: float  # seconds
    since: float | None = None
    _is_said: bool = False

    def is_over(self, workers: int, now: float) -> bool:
        """Whether there are workers. Raises `CannotGoOn` if there were none for too long."""
        if workers > 0:
            self.since = None
            return True
        if self.since is None:
            self.since, self._is_said = now, False
        if now - self.since >= WARN_AFTER and not self._is_said:
            self._is_said = True
            log.warning(f"there is no {self.sought}: waiting for one")
        if now - self.since >= self.give_up:
            rule = f"there was no {self.sought} for {self.give_up:g} s"
            raise CannotGoOn("run", rule=rule, remedy="start some and run again")
        return False
