"""The state of a study, and what can be read from it directly."""

import math
from array import array
from collections.abc import MutableSequence
from typing import Any

from ..errors import UnknownPull
from . import board, custom_scores, evidence, places, policies
from .board import choose_from_boards, rescore_arm_on_boards, rescore_boards
from .cases import Cases
from .columns import (
    FEW,
    blank_board_columns,
    blank_docket_columns,
    blank_ranking_columns,
    blank_sheet_columns,
    column_of_zeros,
    second_board_columns,
)
from .events import DROPPED, LATE, OUTSIDE, PENDING, TOLD, Event
from .evidence import ABOVE, BETS, OPEN, UNREACHED, Stakes, capital_bets, fresh_capital
from .places import History
from .question import PLAIN
from .spec import Spec


def state_stakes(specification: Spec) -> Stakes:
    """The stakes of a study."""
    bars = tuple(map(specification.scale, (specification.bar, specification.low_edge, specification.high_edge)))
    arms, confidence = specification.contenders, specification.confidence
    return state_stakes_for(bars, arms, confidence, ranks=specification.guarantee == "rate")


def state_stakes_for(
    bars: tuple[float, ...],
    arms: int,
    confidence: float | None,
    *,
    ranks: bool = False,
) -> Stakes:
    """The stakes for a scaled bar and its edges. Without certificates nothing is bet: the bar may lie anywhere."""
    bar, low_edge, high_edge = bars
    level = math.inf if confidence is None else arms / (1.0 - confidence)
    tolerance = (high_edge - low_edge) / 2.0
    sides = (low_edge, 1.0 - high_edge)
    bets = [share for edge in sides for share in capital_bets(edge if edge > 0 else 1.0, tolerance)]
    alone = UNREACHED if ranks else level
    return Stakes(bar, low_edge, high_edge, level, alone, tuple(bets))


def new_history(specification: Spec, stakes: Stakes, arm: int, revision: int) -> History:
    """The history of an arm that begins with this specification."""
    assert specification.seed is not None  # every study has one
    edges = stakes.low_edge, stakes.high_edge, (stakes.high_edge - stakes.low_edge) / 2.0
    arms = len(specification.arms)
    return History(specification.seed, arm, arms, specification.contenders, revision, *edges)


def later_stakes(stakes: Stakes, history: History, confidence: float | None) -> Stakes:
    """The stakes of an arm whose history began under other edges, or among more arms.

    What a bet wins is fixed when the history begins: λ · edge stays, so one stopping rule covers every edge.
    """
    bets, tolerance = list(stakes.bets), history.tolerance
    edges = ((history.low_edge, stakes.low_edge), (1.0 - history.high_edge, 1.0 - stakes.high_edge))
    for side, (before, now) in enumerate(edges):
        sizes = capital_bets(before, tolerance)
        if before != now:
            sizes = [size * before / now for size in sizes]
        bets[side * BETS : (side + 1) * BETS] = sizes
    level = math.inf if confidence is None else history.most / (1.0 - confidence)
    alone = stakes.alone if stakes.alone == UNREACHED else level
    return stakes._replace(level=level, alone=alone, bets=tuple(bets))


def state_ends(specification: Spec) -> evidence.Ends:
    """What counting needs to know of a study."""
    bars = specification.reach, specification.low_reach, specification.high_reach
    return evidence.Ends(*specification.span, *bars)


def state_aim(stakes: Stakes, *, finds: bool) -> tuple[float, float]:
    """The bar that scores measure gaps from, and what they add to these.

    An arm must get as far as the other edge. Arms that are to be found need only reach the lower edge.
    """
    return (stakes.low_edge, 0.0) if finds else (stakes.bar, (stakes.high_edge - stakes.low_edge) / 2.0)


class State:
    """The state of a study: data, which `ledger.py` changes. Arms and pulls are numbers here; users see names."""

    def __init__(self, specification: Spec) -> None:
        self.spec = specification
        self.plain = specification.measure == PLAIN  # rewards count as they are
        self.seq = 1
        self.last = Event(1, "created")  # the last event folded in; not part of the compared state
        self.budget = specification.budget
        self.revision = 1
        self.lineage: Any = None  # what led to this revision, see `revisions.py`; None: nothing has changed yet
        self.histories: dict[int, History] = {}  # of arms whose history began in an earlier revision
        self.arm_stakes: dict[int, Stakes] = {}  # ... and their stakes
        self.phases: dict[int, tuple[Any, ...]] = {}  # by arm: evidence about earlier lists of cases: `revisions.Phase`
        self.strays: set[int] = set()  # pulls of histories that had ended when their reward came: it counts nowhere
        self.issued = self.told = self.pending = self.imported = 0  # pulls of the histories of this revision
        self.own_told = 0  # rewards that were not imported
        self.cost: float | None = None  # what evaluators said that the rewards cost; not read by any decision
        self.remarks: dict[int, str] = {}  # by pull: the reason of its reward, where there is a note or a cost
        self.repeatable = False  # whether some evaluations may have run more than once
        self.hosted = False  # whether the order of cases came from a host that says it shuffled them
        self.unweighed = False  # whether imported rewards are waiting to be weighed, all at once
        self.weighed = False  # whether they have been
        self.shuffle = ""  # the key of a random order for them, for intervals
        arms = len(specification.arms)
        # The arms to score before the next choice; None: all of them. Reading and telling need no score.
        self.stale: set[int] | None = None
        self.is_custom = specification.policy.is_custom  # a user's function scores the arms
        self.stakes = state_stakes(specification)
        self.finds = specification.find is not None  # a few arms are to be found
        self.rule = self.rule_for(self.budget, 0)
        self.board = blank_board_columns(arms)
        self.second = second_board_columns(self.board)
        self.second_rule = policies.second_policy_rule(
            self.rule, specification.settling_constant, specification.case_count
        )
        self.open = arms  # arms that still take pulls
        self.settled = 0  # settled arms
        self.settled_above = 0
        # for each arm
        self.asked = column_of_zeros("q", arms)  # pulls issued, dropped ones included
        self.failures = column_of_zeros("q", arms)
        self.streak = column_of_zeros("q", arms)  # failures in a row
        self.retired: dict[int, str] = {}
        self.outside: set[int] = set()  # arms with a reward outside the bounds: nothing is certified about them
        self.complaint: dict[int, str] = {}  # the reason for the last failure
        self.certifies = specification.confidence is not None
        self.docket = blank_docket_columns(arms if self.certifies else 0)
        self.cases = Cases(specification) if specification.cases is not None else None
        self.sheet = self.cases.sheet if self.cases else blank_sheet_columns(0, 0)
        self.ends = state_ends(specification)
        self.ranking = blank_ranking_columns(arms, self.stakes.level if specification.guarantee == "rate" else 0.0)
        capital = fresh_capital()
        self.untouched = capital if arms <= FEW else array("d", capital)  # the capitals of an arm without a commit
        self.capitals: dict[int, MutableSequence[float]] = {}  # by arm, from its first commit on
        self.first_pull = column_of_zeros("q", arms if self.certifies else 0)
        self.intervals: dict[int, Any] = {}  # a cache for display, not part of the state
        self.due: int | None = None  # the arm whose retirement must be the next event
        self.last_pull = 0  # the id of the last pull that was issued, in any revision
        # for each pull, by id − 1
        self.pull_arm = array("q")  # −1: what its reward depends on has changed since
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

    @property
    def done(self) -> bool:
        """Whether the budget is issued or no arm takes more pulls. Imported rewards must be weighed by an ask first."""
        if self.unweighed:
            return False
        if self.budget is not None and self.issued >= self.budget:
            return True
        if self.awaits or self.spec.find is None:
            return self.open == 0
        settled, pending = self.docket.settled, self.board.pending
        return places.are_places_finished(self.sheet, settled, pending, self.open, self.found, self.spec.find)

    @property
    def waits(self) -> bool:
        """Whether no case is free, but some are pending: what is lost is tried again, so the study may not be over."""
        return self.done and self.may_take_more()

    def may_take_more(self, arm: int | None = None) -> bool:
        """Whether an ask, perhaps for this arm, that gets no pull now may get one once pending pulls have ended."""
        is_found = self.spec.find is not None and self.found >= self.spec.find
        is_issued = self.budget is not None and self.issued >= self.budget
        if not self.pending or is_issued or is_found:
            return False
        return any(map(self._may_open, range(len(self.spec.arms)) if arm is None else (arm,)))

    def _may_open(self, arm: int) -> bool:
        """Whether the arm has no case to pull now, but may have one once pending pulls have ended."""
        if arm in self.retired or (self.certifies and self.docket.settled[arm] != OPEN):
            return False
        if self.awaits and arm != self.base:
            return self.board.pending[self.base] > 0
        return places.are_places_used_up(self.sheet, arm) and self.board.pending[arm] > 0

    @property
    def found(self) -> int:
        """How many arms are certified to reach the bar."""
        if self.base in self.outside:
            return 0
        return self.settled_above - sum(self.docket.settled[arm] == ABOVE for arm in self.outside)

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
        pulls = zip(self.pull_state, self.pull_arm, self.cases.pull_case if self.cases else (), strict=False)
        return {self.spec.case_name(case) for state, arm, case in pulls if state in (TOLD, LATE) and arm >= 0}

    def is_exact(self, arm: int) -> bool:
        """Whether every case of the arm has its reward."""
        return self.cases is not None and self.board.seen[arm] == self.cases.count

    def arm_of(self, pull: int) -> int | None:
        """The arm of a pull that was issued; None: its history has ended."""
        arm = self.pull_arm[pull - 1]
        return None if arm < 0 else arm

    def goes_on(self, pull: int) -> bool:
        """Whether the history that issued the pull goes on; where only its reward holds, it is a known value."""
        return self.pull_arm[pull - 1] >= 0 and (self.cases is None or self.sheet.place[pull] >= 0)

    def history(self, arm: int) -> History:
        """The history of an arm."""
        return self.histories.get(arm) or new_history(self.spec, self.stakes, arm, self.revision)

    def stakes_of(self, arm: int) -> Stakes:
        """The stakes of an arm."""
        return self.arm_stakes.get(arm, self.stakes)

    def charged_before(self, arm: int) -> int:
        """With cases: how many are charged to the arm without being pulled."""
        return self.lacking + len(self.cases.failed_before.get(arm, ())) if self.cases else 0

    @property
    def lacking(self) -> int:
        """How many cases the baseline has no reward for: they are charged to every arm."""
        return len(self.cases.lacking) if self.cases else 0

    def imported_sum(self, arm: int) -> float:
        """The sum of the arm's imported rewards, scaled; only with cases."""
        return self.cases.imported_sum.get(arm, 0.0) if self.cases else 0.0

    @property
    def aim(self) -> tuple[float, float]:
        """The bar that scores measure gaps from, and what they add to these: see `formulas.Rule`."""
        return state_aim(self.stakes, finds=self.finds)

    def rule_for(self, budget: int | None, issued: int) -> board.Rule:
        """How the policy scores arms, for this budget after so many pulls."""
        spec = self.spec
        return spec.policy.rule(
            *self.aim,
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
        self.score_stale()
        return choose_from_boards(self.board, self.second, self.rule, self.issued + 1)

    def score_stale(self) -> None:
        """Score the arms that have changed since the last choice."""
        rule, stale = self.rule, self.stale
        if stale is None:
            rescore_boards(self.board, self.second, rule, self.second_rule)
            stale = set(range(len(self.spec.arms))) if self.is_custom else set()
        if self.is_custom:
            rule = rule._replace(formula=self.spec.policy.scored_by())
        for arm in sorted(stale):
            try:
                rescore_arm_on_boards(self.board, self.second, arm, rule, self.second_rule)
            except custom_scores.CustomScoreRefused as refused:
                raise refused.of_arm(self.spec.policy.formula, self.spec.arms[arm]) from refused.__cause__
        self.stale = set()

    def is_outside(self, arm: int) -> bool:
        """Whether the arm, or the baseline it is compared with, proved the bounds wrong."""
        return arm in self.outside or self.base in self.outside

    def is_certified(self, arm: int) -> bool:
        """Whether the arm's label is certified."""
        return self.certifies and self.docket.settled[arm] != OPEN and not self.is_outside(arm)

    @property
    def certified(self) -> int:
        """How many labels are certified."""
        if self.base in self.outside:
            return 0
        return self.settled - sum(self.docket.settled[arm] != OPEN for arm in self.outside if self.certifies)

    def state_of(self, pull: object) -> int:
        """PENDING, TOLD, DROPPED, LATE or OUTSIDE."""
        if type(pull) is int and 0 < pull <= self.last_pull:
            return self.pull_state[pull - 1]
        there = f"pulls 1 to {self.last_pull}" if self.last_pull else "no pull yet"
        remedy = "give the number of a pull that was asked"
        raise UnknownPull("pull", pull, f"this study has issued {there}", remedy)

    def state(self) -> dict[str, Any]:
        """The whole state, for comparing two bit for bit. Every arm is scored first."""
        self.score_stale()
        return {name: value for name, value in vars(self).items() if name not in ("intervals", "last", "pull_tag")}
