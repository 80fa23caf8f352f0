"""The state of a study, and what can be read from it directly."""

from array import array
from typing import Any

from ..errors import UnknownPull
from . import columns, evidence, kernel, places, policies, scores, steps
from .cases import Cases
from .events import DROPPED, LATE, OUTSIDE, PENDING, TOLD, Event
from .question import PLAIN
from .spec import Spec


class State:
    """The state of a study. Arms and pulls are numbers here; users see names."""

    def __init__(self, specification: Spec) -> None:
        self.spec = specification
        self.plain = specification.measure == PLAIN  # rewards count as they are
        self.seq = 1
        self.last = Event(1, "created")  # the last event folded in; not part of the compared state
        self.budget = specification.budget
        self.issued = self.told = self.pending = self.imported = 0
        self.imported_told = 0  # imported pulls with a reward
        self.cost: float | None = None  # what evaluators said that the rewards cost; not read by any decision
        self.remarks: dict[int, str] = {}  # by pull: the reason of its reward, where there is a note or a cost
        self.repeatable = False  # whether some evaluations may have run more than once
        self.hosted = False  # whether the order of cases came from a host that says it shuffled them
        self.unweighed = False  # whether imported rewards are waiting to be weighed, all at once
        self.weighed = False  # whether they have been
        self.shuffle = ""  # the key of a random order for them, for intervals
        self.evaluators = [] if specification.evaluator is None else [specification.evaluator]
        self.files: dict[str, list[str]] = {}  # by name: the digests of what the rewards were measured with
        self.vouched: list[str] = []  # those that changed after rewards were measured
        arms = len(specification.arms)
        # a user's function scores arms only when the study is asked, so reading and telling do not need it
        self.stale: set[int] | None = set(range(arms)) if specification.policy.is_custom else None
        self.rule = self.rule_for(self.budget, 0)
        self.board = columns.board(arms)
        self.second = columns.second(self.board)
        self.second_rule = policies.second_rule(self.rule, specification.settling_constant, specification.case_count)
        self.open = arms  # arms that still take pulls
        self.settled = 0  # settled arms
        self.settled_above = 0
        # for each arm
        self.asked = array("q", [0]) * arms  # pulls issued, dropped ones included
        self.failures = array("q", [0]) * arms
        self.streak = array("q", [0]) * arms  # failures in a row
        self.retired: dict[int, str] = {}
        self.outside: set[int] = set()  # arms with a reward outside the bounds: nothing is certified about them
        self.complaint: dict[int, str] = {}  # the reason for the last failure
        self.certifies = specification.confidence is not None
        self.stakes = columns.stakes_of(specification)
        self.docket = columns.docket(arms if self.certifies else 0)
        self.cases = Cases(specification) if specification.cases is not None else None
        self.sheet = self.cases.sheet if self.cases else columns.sheet(0, 0)
        width = evidence.columns_needed(self.stakes.tolerance)
        self.ranking = columns.ranking(arms, self.stakes.level if specification.guarantee == "rate" else 0.0, width)
        self.untouched = array("d", evidence.fresh(self.stakes))  # the capitals of an arm without a commit
        self.capitals: dict[int, array[float]] = {}  # by arm, from its first commit on
        self.first_pull = array("q", [0]) * (arms if self.certifies else 0)
        self.intervals: dict[int, Any] = {}  # a cache for display, not part of the state
        self.due: int | None = None  # the arm whose retirement must be the next event
        # for each pull, by id − 1
        self.pull_arm = array("q")
        self.pull_tag = array("I")  # 32 bits of the digest of the event that issued it; not part of the compared state
        self.pull_number = array("q")
        self.pull_state = bytearray()
        self.pull_origin = bytearray()  # how its reward came about, or will: see `events.ONCE`
        self.pull_reward = array("d")
        self.pull_other = array("d")  # of a pair: the baseline's reward
        self.base = specification.base  # the arm that is the baseline; −1: there is none
        self.awaits = self.cases is not None and self.base >= 0  # the baseline's rewards: no other arm is pulled before
        self.table: dict[int, float] = {}  # the baseline's reward by case
        self.deferred: list[int] = []  # imported pulls that wait for the table
        kept = specification.share is not None or self.base >= 0
        self.values = [array("d") for _ in range(arms if kept else 0)]  # of an arm: its rewards, for display
        self.others = [array("d") for _ in range(arms if self.base >= 0 else 0)]  # of an arm: the baseline's in them
        self.folding = False  # while a whole log is folded in, scores are not needed

    @property
    def own_told(self) -> int:
        """How many rewards were not imported."""
        return self.told - self.imported_told

    @property
    def is_budget_issued(self) -> bool:
        """Whether the whole budget is issued."""
        return self.budget is not None and self.issued >= self.budget

    @property
    def done(self) -> bool:
        """Whether the budget is issued or no arm takes more pulls. Imported rewards must be weighed by an ask first."""
        if self.unweighed:
            return False
        if self.is_budget_issued:
            return True
        if self.awaits or self.spec.find is None:
            return self.open == 0
        settled, pending = self.docket.settled, self.board.pending
        return places.is_finished(self.sheet, settled, pending, self.open, self.found, self.spec.find)

    @property
    def waits(self) -> bool:
        """Whether no case is free, but some are pending: what is lost is tried again, so the study may not be over."""
        return self.done and self.may_take_more()

    def may_take_more(self, arm: int | None = None) -> bool:
        """Whether an ask, perhaps for this arm, that gets no pull now may get one once pending pulls have ended."""
        is_found = self.spec.find is not None and self.found >= self.spec.find
        if not self.pending or self.is_budget_issued or is_found:
            return False
        return any(map(self._may_open, range(len(self.spec.arms)) if arm is None else (arm,)))

    def _may_open(self, arm: int) -> bool:
        """Whether the arm has no case to pull now, but may have one once pending pulls have ended."""
        if arm in self.retired or (self.certifies and self.docket.settled[arm] != evidence.OPEN):
            return False
        if self.awaits and arm != self.base:
            return self.board.pending[self.base] > 0
        return places.is_used_up(self.sheet, arm) and self.board.pending[arm] > 0

    @property
    def found(self) -> int:
        """How many arms are certified to reach the bar."""
        if self.base in self.outside:
            return 0
        return self.settled_above - sum(self.docket.settled[arm] == evidence.ABOVE for arm in self.outside)

    @property
    def left(self) -> int | None:
        """How many pulls of the budget have not ended yet; None without a budget."""
        return None if self.budget is None else self.budget - self.issued + self.pending

    def case_of(self, pull: int) -> int | None:
        """The number of the case that an issued pull evaluates; None: there are no cases."""
        return self.cases.pull_case[pull - 1] if self.cases else None

    def has_reward(self, pull: int) -> bool:
        """Whether the pull's arm has a reward. Of a pair, that of the baseline alone may lie outside the bounds."""
        state = self.pull_state[pull - 1]
        if self.spec.pairs and state == OUTSIDE:
            return self.spec.is_outside(self.pull_reward[pull - 1])
        return state not in (PENDING, DROPPED)

    def pending_pulls(self) -> list[int]:
        """The pulls that are pending."""
        return [at + 1 for at, state in enumerate(self.pull_state) if state == PENDING]

    def known_cases(self) -> set[str | int | None]:
        """The cases that have a reward of any arm."""
        told = (at + 1 for at, state in enumerate(self.pull_state) if state in (TOLD, LATE))
        return {self.spec.case_name(case) for case in map(self.case_of, told) if case is not None}

    def is_exact(self, arm: int) -> bool:
        """Whether every case of the arm has its reward."""
        return self.cases is not None and self.board.seen[arm] == self.cases.count

    @property
    def lacking(self) -> int:
        """How many cases the baseline has no reward for: they are charged to every arm."""
        return len(self.cases.lacking) if self.cases else 0

    def imported_sum(self, arm: int) -> float:
        """The sum of the arm's imported rewards, scaled; only with cases."""
        return self.cases.imported_sum.get(arm, 0.0) if self.cases else 0.0

    def rule_for(self, budget: int | None, issued: int) -> kernel.Rule:
        """How the policy scores arms, for this budget after so many pulls."""
        spec = self.spec
        return spec.policy.rule(
            spec.scaled_threshold,
            arms=len(spec.arms),
            budget=budget,
            issued=issued,
            constant=spec.settling_constant,
            cases=spec.case_count,
            finds=spec.find is not None,
        )

    @property
    def head(self) -> str | None:
        """The digest of the last event, which covers the whole log; None if the log is not chained."""
        return None if self.last.digest is None else self.last.digest.hex()

    def choose(self) -> int | None:
        """The arm of the next pull; None exactly when done."""
        if self.done:
            return None
        if self.stale:
            self.score_stale(self.stale)
        return steps.choose_for(self.board, self.second, self.rule, self.issued + 1)

    def score_stale(self, stale: set[int]) -> None:
        """Score the arms that have changed since the last decision, with the user's function."""
        rule = self.rule._replace(formula=self.spec.policy.scored_by())
        for arm in sorted(stale):
            try:
                steps.rescore_both(self.board, self.second, arm, rule, self.second_rule)
            except scores.Refused as refused:
                raise refused.of_arm(self.spec.policy.formula, self.spec.arms[arm]) from refused.__cause__
        stale.clear()

    def is_outside(self, arm: int) -> bool:
        """Whether the arm, or the baseline it is compared with, proved the bounds wrong."""
        return arm in self.outside or self.base in self.outside

    def is_certified(self, arm: int) -> bool:
        """Whether the arm's label is certified."""
        return self.certifies and self.docket.settled[arm] != evidence.OPEN and not self.is_outside(arm)

    @property
    def certified(self) -> int:
        """How many labels are certified."""
        if self.base in self.outside:
            return 0
        return self.settled - sum(self.docket.settled[arm] != evidence.OPEN for arm in self.outside if self.certifies)

    def state_of(self, pull: object) -> int:
        """PENDING, TOLD, DROPPED, LATE or OUTSIDE."""
        if type(pull) is int and 0 < pull <= self.issued:
            return self.pull_state[pull - 1]
        there = f"pulls 1 to {self.issued}" if self.issued else "no pull yet"
        remedy = "give the number of a pull that was asked"
        raise UnknownPull("pull", pull, f"this study has issued {there}", remedy)
