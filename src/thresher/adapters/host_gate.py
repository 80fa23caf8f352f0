"""A gate between a study and a host that runs an arm's cases itself. It says which cases to run, and takes the results.

The host decides when a case has its turn. Evidence is committed in the order in which cases were *asked for*, so the
gate asks in an order that does not depend on these turns: the study's own order of the arm or, if the host has shuffled
the cases, the host's. When a case has its turn, the gate also asks for the cases before it, and holds their pulls until
their own turn.

At the end, pulls that are still held never began, and are taken back. A pull whose case began is told, or dropped as
failed or lost. The gate never waits for another arm or for a case.
"""

import contextlib
import threading
from collections.abc import Iterable

from ..core.events import Cause
from ..core.evidence import ABOVE, OPEN
from ..core.state import State
from ..errors import AlreadyTold, CannotGoOn, InvalidInput, OutsideBounds
from ..study import Pull, Study, ask_study_for_cases, give_up_in_study, peek_study


class HostGate:
    """The gate of one arm. Cases are numbers. Thread-safe."""

    def __init__(self, study: Study, arm: str) -> None:
        self.study, self.arm = study, arm
        self.held: dict[int, Pull] = {}  # by case: pulls that were asked for and have not begun
        self.begun: dict[int, Pull] = {}  # by case
        self._ended: set[int] = set()  # cases that began and ended without a reward; they failed if the host continues
        self._number, self._revision = study.spec.arm(arm), study.revision
        self._order: list[int] | None = None  # the host's order; None: the study's own
        self._position: dict[int, int] = {}  # by case: its position in the host's order
        self._next = 0  # in the host's order
        self._lock = threading.RLock()

    def upcoming(self) -> list[int]:
        """The cases that can be asked for, in the study's own order of the arm."""
        return peek_study(self.study, lambda ledger: ledger.cases.upcoming(self._number) if ledger.cases else [])

    def follow(self, order: Iterable[int]) -> None:
        """From now on, ask in the order of a host that shuffled its cases, but first for cases asked for before.

        Such a case already has a place in the order of the evidence, which waits for it.
        """
        with self._lock:
            cases = list(order)
            tried = peek_study(self.study, lambda ledger: [case for case in cases if self._was_tried(ledger, case)])
            self._order = tried + [case for case in cases if case not in set(tried)]
            self._position = {case: position for position, case in enumerate(self._order)}
            self._next = 0

    def _was_tried(self, ledger: State, case: int) -> bool:
        cases = ledger.cases
        return bool(cases and cases.is_free(self._number, case) and cases.place_of(self._number, case) is not None)

    def begin(self, case: int) -> str | None:
        """The case has its turn. Returns None if the host should run it, and otherwise why not."""
        with self._lock:
            while self._ended:
                self.fail(self._ended.pop(), "the case ended without a reward")
            self.fail(case, "the case failed, and is tried again")
            if over := self.over():
                self._take_back(over)
                return over
            pull = self._pull_for(case)
            if pull is None:
                return self.over() or peek_study(self.study, lambda ledger: self._why_not(ledger, case))
            self.begun[case] = pull
            return None

    def tell(self, case: int, reward: object) -> None:
        """The case has a reward. If it never had its turn, because its reward was known, it is asked for now."""
        with self._lock:
            self._check_revision()
            pull = self.begun.pop(case, None)
            if pull is None:
                pull = None if self.over() else self._pull_for(case)
            if pull is None:
                return
            try:
                self.study.tell(pull, reward)
            except (OutsideBounds, AlreadyTold):
                return  # the study has retired the arm, or the reward of another process was first and counts
            except InvalidInput:
                self._drop(pull, "failed", "its reward is not a number")
                raise

    def ended(self, case: int) -> None:
        """The case ended without a reward. It has failed if another case begins later. Otherwise the host stopped."""
        with self._lock:
            self._ended.add(case)

    def fail(self, case: int, reason: str, *, cause: Cause = "failed") -> None:
        """The case has failed, if it began."""
        with self._lock:
            if (pull := self.begun.pop(case, None)) is not None:
                self._drop(pull, cause, reason)

    def end(self, *, finished: bool) -> None:
        """The host runs no more cases. If it finished, cases that began and have no reward have failed."""
        with self._lock:
            self._ended.clear()
            self._take_back("the host ended before its turn came")
            for case in list(self.begun):
                if finished:
                    self._drop(self.begun.pop(case), "failed", "the case ended without a reward")
                else:
                    self._drop(self.begun.pop(case), "lost", "the host ended before the case did")

    def over(self) -> str | None:
        """Why the arm needs no more rewards, or None if it needs more."""
        return peek_study(self.study, self._over)

    def _check_revision(self, pull: Pull | None = None) -> None:
        """Raise if another process has revised the study: its cases have other numbers, and tasks may differ."""
        if self.study.revision != self._revision:
            if pull is not None:
                self._drop(pull, "cancelled", "the study was revised")
            self._take_back("the study was revised")
            raise CannotGoOn("study", self.study.name, "was revised by another process", "evaluate again")

    def _over(self, ledger: State) -> str | None:
        arm, find = self._number, ledger.spec.find
        if arm in ledger.retired:
            return f"retired: {ledger.retired[arm]}"
        if ledger.certifies and ledger.docket.settled[arm] != OPEN:
            return f"settled: it {'reaches' if ledger.docket.settled[arm] == ABOVE else 'misses'} the bar"
        return "enough arms are found" if find is not None and ledger.found >= find else None

    def _why_not(self, ledger: State, case: int) -> str:
        if not ledger.cases or ledger.cases.is_free(self._number, case):
            return "the budget is issued"
        return "the case is known, given up, or pending elsewhere"

    def _pull_for(self, case: int) -> Pull | None:
        pull = self._ask_for(case)
        self._check_revision(pull)
        return pull

    def _ask_for(self, case: int) -> Pull | None:
        """The pull of this case. Pulls of the cases before it are asked for first, and held until their turn."""
        if (held := self.held.pop(case, None)) is not None:
            return held
        if not peek_study(self.study, lambda ledger: ledger.cases and ledger.cases.is_free(self._number, case)):
            return None
        if self._order is not None:
            position = self._position.get(case, -1)
            wanted = self._order[self._next : position + 1] if position >= self._next else [case]
            self._next = max(self._next, position + 1)
            self._hold(ask_study_for_cases(self.study, self.arm, wanted))
        else:
            while case not in self.held and (pull := self.study.ask(arm=self.arm)):
                self._hold([pull])
        return self.held.pop(case, None)

    def _hold(self, pulls: Iterable[Pull]) -> None:
        for pull in pulls:
            self.held[self.study.spec.case(pull.case)] = pull

    def _take_back(self, reason: str) -> None:
        while self.held:
            _, pull = self.held.popitem()
            self._drop(pull, "cancelled", reason)

    def _drop(self, pull: Pull, cause: Cause, reason: str) -> None:
        with contextlib.suppress(AlreadyTold):  # by another process
            give_up_in_study(self.study, pull, cause=cause, reason=reason)
