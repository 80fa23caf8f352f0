"""The state of a study, and what can be read from it directly."""

import math
from array import array
from collections.abc import Callable, Iterator, MutableSequence
from typing import Any

from ..errors import UnknownPull
from . import certificate, custom_scores, error_rate, kernel, places, policies
from .certificate import Docket
from .events import DROPPED, LATE, OUTSIDE, PENDING, TOLD, Event, event_imported_case, event_named_case
from .question import PLAIN
from .spec import Spec

FEW = 10_000  # up to so many arms, columns are lists
REFUSALS = 20  # how often a case may be refused; a server that is never there must end its cases in the end

# Empty columns, for a live study and for the laboratory.

# Makes a column of this many zeros. The typecode is "d" for real numbers and "q", "i" or "b" for whole ones.
Zeros = Callable[[str, int], Any]

Table = Callable[[str, int, int], Any]  # the same with a row for each arm, of this many columns


def state_table(code: str, rows: int, columns: int) -> Any:
    """Rows of a live study, which grow when they are needed."""
    return [array("b" if code == "b" else "q") for _ in range(rows)]


def state_zeros(code: str, size: int) -> Any:
    """A column of a live study.

    A list for few arms: it is faster. An array for many, which the garbage collector need not walk, and for pulls,
    whose columns begin with one entry and grow.
    """
    if 1 < size <= FEW:
        return [0.0 if code == "d" else 0] * size
    return array("d" if code == "d" else "q", [0]) * size


def tree_size(leaves: int) -> int:
    """The size of a tournament, an implicit tree whose leaves are filled up to a power of two.

    >>> [tree_size(leaves) for leaves in (1, 2, 3, 4, 5)]
    [2, 4, 8, 8, 16]
    """
    return 2 << (leaves - 1).bit_length()


def blank_board(arms: int, zeros: Zeros = state_zeros) -> kernel.Board:
    """A board without any reward."""
    nodes = tree_size(arms)
    return kernel.Board(
        seen=zeros("q", arms),
        pending=zeros("q", arms),
        mean=zeros("d", arms),
        scatter=zeros("d", arms),
        total=zeros("d", arms),
        residue=zeros("d", arms),
        shut=zeros("b", arms),
        best=zeros("d", nodes),
        winner=zeros("i", nodes),
        lead=state_ones(arms, zeros),
    )


def state_ones(arms: int, zeros: Zeros) -> Any:
    """A column of ones."""
    column = zeros("d", arms)
    for arm in range(arms):
        column[arm] = 1.0
    return column


def second_board(board: kernel.Board, zeros: Zeros = state_zeros) -> kernel.Board:
    """A second tournament over the same arms."""
    nodes = len(board.best)
    return board._replace(best=zeros("d", nodes), winner=zeros("i", nodes))


def blank_docket(arms: int, pulls: int = 0, zeros: Zeros = state_zeros) -> Docket:
    """A docket without any pull, with room for this many; pull 0 means none."""
    return Docket(
        first=zeros("q", arms),
        last=zeros("q", arms),
        waiting=zeros("q", arms),
        committed=zeros("q", arms),
        charged=zeros("q", arms),
        settled=zeros("q", arms),
        following=zeros("q", pulls + 1),
        outcome=zeros("b", pulls + 1),
        reward=zeros("d", pulls + 1),
    )


def state_stakes(specification: Spec) -> certificate.Stakes:
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
) -> certificate.Stakes:
    """The stakes for a scaled bar and its edges. Without certificates nothing is bet: the bar may lie anywhere."""
    bar, low_edge, high_edge = bars
    level = math.inf if confidence is None else arms / (1.0 - confidence)
    tolerance = (high_edge - low_edge) / 2.0
    sides = (low_edge, 1.0 - high_edge)
    bets = [share for edge in sides for share in certificate.side_bets(edge if edge > 0 else 1.0, tolerance)]
    alone = certificate.UNREACHED if ranks else level
    return certificate.Stakes(bar, low_edge, high_edge, level, alone, tuple(bets))


def state_ends(specification: Spec) -> certificate.Ends:
    """What counting needs to know of a study."""
    bars = specification.reach, specification.low_reach, specification.high_reach
    return certificate.Ends(*specification.span, *bars)


def state_aim(stakes: certificate.Stakes, *, finds: bool) -> tuple[float, float]:
    """The bar that scores measure gaps from, and what they add to these.

    An arm must get as far as the other edge. Arms that are to be found need only reach the lower edge.
    """
    return (stakes.low_edge, 0.0) if finds else (stakes.bar, (stakes.high_edge - stakes.low_edge) / 2.0)


def blank_sheet(
    arms: int, cases: int, pulls: int = 0, zeros: Zeros = state_zeros, table: Table = state_table
) -> places.Sheet:
    """A sheet on which every place is free. Without cases it is empty."""
    some = arms if cases else 0
    empty = places.Sheet(
        cases=cases,
        places=zeros("q", some),
        lowest=zeros("q", some),
        least=zeros("d", some),
        most=zeros("d", some),
        state=table("b", some, cases),
        entry=table("q", some, cases),
        place=zeros("q", pulls + 1 if cases else 0),
    )
    for arm in range(some):
        empty.places[arm] = cases
    return empty


def blank_ranking(arms: int, level: float, zeros: Zeros = state_zeros) -> error_rate.Ranking:
    """Empty lists; a level of 0 means that arms are not ranked."""
    some, nodes, lists = (arms, tree_size(arms), error_rate.LISTS) if level else (0, 0, 0)
    empty = error_rate.Ranking(
        level=level,
        arms=arms,
        rank=zeros("q", lists * some),
        reached=zeros("q", lists),
        head=zeros("q", lists * some),
        after=zeros("q", lists * some),
        before=zeros("q", lists * some),
        peak=zeros("q", lists * nodes),
        added=zeros("q", lists * nodes),
        newly_settled=zeros("q", some),
        scratch=zeros("d", 2 * certificate.BETS if level else 0),
    )
    if level:
        error_rate.clear_error_lists(empty)
    return empty


# The cases of a live study: which case a pull evaluates, and what became of each place.


class Cases:
    """Follows a log: which place and which case each pull has. Cases are numbers here; users see names.

    Only kinds, arms, cases and causes of events matter, so a reader of a log without a ledger can use it too.
    """

    def __init__(self, spec: Spec) -> None:
        arms, self.count = len(spec.arms), spec.case_count
        self.tries = spec.tries
        self.sheet = blank_sheet(arms, self.count)
        self.pull_case = array("q")  # of a pull, by id − 1
        self.imported: dict[int, set[int]] = {}  # by arm
        self.imported_sum: dict[int, float] = {}  # by arm: their scaled rewards
        self.spare: set[int] = set()  # pulls whose reward came after another one of the same case
        self.failures: dict[tuple[int, int], int] = {}  # by arm and place
        self.refusals: dict[tuple[int, int], int] = {}  # by arm and place: evaluations that could not begin
        self.retried: dict[int, set[int]] = {}  # by arm: the cases whose reward came after a failed try
        self.missing = array("q", [0]) * arms  # of an arm: places that failed too often
        self.base = spec.base  # the arm that is the baseline; −1: there is none
        self.awaits = self.base >= 0  # whether the baseline's rewards are not all known yet
        self.lacking: set[int] = set()  # cases that the baseline has no reward for, once the others are known
        self._known = 0  # cases whose reward of the baseline is known
        self._named: dict[int, dict[int, int]] = {}  # by arm: the place of each case that a host named
        self._order = [array("q") for _ in range(arms)]  # of an arm and a place: its case
        self._holder = [array("q") for _ in range(arms)]  # of an arm and a place: the last pull that took it
        self._position = array("q", [0]) * arms  # of an arm: how far its permutation has been walked
        seed = spec.seed
        assert seed is not None  # every study has one
        self._keys: list[tuple[int, ...]] = [
            (places.place_key(2 * arm, seed), places.place_key(2 * arm + 1, seed)) for arm in range(arms)
        ]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cases) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]  # it changes

    def ask(self, arm: int, pull: int, imported: int | None = None, *, named: int | None = None) -> bool:
        """Give a pull the lowest free place of its arm. Returns whether the place was never tried before.

        A case that a host named has its own place if it was tried before, and the arm's next new place if it was not.

        An imported result names its case, which is known then and has no place. It also changes the arm's order:
        otherwise somebody who has the results of an earlier study with the same seed could import the bad ones, and
        the places that come first would be the good ones.
        """
        if imported is not None:
            self._keys[arm] = tuple(places.mixed_place_word(key, imported + 1) for key in self._keys[arm])
            self.imported.setdefault(arm, set()).add(imported)
            self.sheet.places[arm] -= 1
            self.sheet.place.append(-1)
            self.pull_case.append(imported)
            return False
        sheet, place = self.sheet, self.sheet.lowest[arm]
        if named is not None:
            tried = self.place_of(arm, named)
            place = len(sheet.state[arm]) if tried is None else tried
            self._named.setdefault(arm, {})[named] = place
        if place == len(sheet.state[arm]):
            sheet.state[arm].append(places.FREE)
            sheet.entry[arm].append(0)
            self._order[arm].append(self._next_case(arm) if named is None else named)
            self._holder[arm].append(0)
        self._holder[arm][place] = pull
        sheet.place.append(place)
        self.pull_case.append(self._order[arm][place])
        return places.take_place_at(sheet, arm, pull, place)

    def _next_case(self, arm: int) -> int:
        for case in self._unwalked(arm):
            self._position[arm] += 1
            if self._is_new(arm, case):
                return case
        raise AssertionError("an arm without a free place was asked")

    def _unwalked(self, arm: int) -> Iterator[int]:
        """The rest of the arm's permutation."""
        for position in range(self._position[arm], self.count):
            yield places.case_at_place(position, self.count, *self._keys[arm])

    def _is_new(self, arm: int, case: int) -> bool:
        """Whether the permutation's next case may take a place."""
        known = case in self.imported.get(arm, ()) or case in self.lacking
        return not known and case not in self._named.get(arm, ())

    def place_of(self, arm: int, case: int) -> int | None:
        """The place that a case was given; None: it has none yet."""
        named = self._named.get(arm, {}).get(case)
        if named is not None:
            return named
        order = self._order[arm]
        return order.index(case) if case in order else None

    def is_free(self, arm: int, case: int) -> bool:
        """Whether the case may be tried: it has no reward, is not pending and has not failed too often."""
        if case in self.imported.get(arm, ()) or case in self.lacking:
            return False
        place = self.place_of(arm, case)
        return place is None or self.sheet.state[arm][place] == places.FREE

    def upcoming(self, arm: int) -> list[int]:
        """The cases that can be asked for, in the order in which `ask` hands them out."""
        states = enumerate(self.sheet.state[arm])
        freed = [self._order[arm][place] for place, state in states if state == places.FREE]
        return freed + [case for case in self._unwalked(arm) if self._is_new(arm, case)]

    def given_up(self, arm: int) -> set[int]:
        """The cases of an arm that failed too often to be tried again."""
        states = enumerate(self.sheet.state[arm])
        return {self._order[arm][place] for place, state in states if state == places.FAILED}

    def entry(self, arm: int, pull: int) -> int:
        """The first pull of this pull's place, by which the docket knows the place."""
        return self.sheet.entry[arm][self.sheet.place[pull]]

    def tell(self, arm: int, pull: int) -> bool:
        """A reward came back. Returns whether it is the first of its case; only that one counts.

        A reward of the baseline that comes after all its cases were known or given up does not count: the arms'
        differences are fixed numbers from then on.
        """
        place = self.sheet.place[pull]
        state = places.KNOWN if place < 0 else self.sheet.state[arm][place]
        is_fixed = arm == self.base and not self.awaits
        if place >= 0 and (state == places.KNOWN or is_fixed):
            self.spare.add(pull)
            return False
        if place >= 0:
            was_given_up = state == places.FAILED
            if self.failures.get((arm, place), 0) > was_given_up:  # the last failure was not of this try, or not alone
                self.retried.setdefault(arm, set()).add(self.pull_case[pull - 1])
            self.missing[arm] -= was_given_up
            places.fill_place(self.sheet, arm, place, places.KNOWN)
        self._known += arm == self.base
        self._end_baseline()
        return True

    def _end_baseline(self) -> None:
        """Once the baseline's last case is known or given up: what it lacks is no case for the arms to try.

        It changes the arms' orders, as imported results do: otherwise somebody who knows the seed could let the
        baseline fail on the cases that come first for an arm and are bad for it.
        """
        if not self.awaits or self._known + self.missing[self.base] < self.count:
            return
        self.awaits = False
        self.lacking = self.given_up(self.base)
        for arm in range(len(self.sheet.places)):
            if arm != self.base:
                self.sheet.places[arm] -= len(self.lacking - self.imported.get(arm, set()))
                for case in sorted(self.lacking):
                    self._keys[arm] = tuple(places.mixed_place_word(key, case + 1) for key in self._keys[arm])

    def drop(self, arm: int, pull: int, cause: str | None) -> bool:
        """A pull was dropped. Returns whether its place has now failed too often to be tried again.

        Only what says nothing about the outcome is tried again unless `tries` says otherwise: a case chosen by its
        failures is no sample. A worker that others shared may have died of a bad outcome, so a case that was lost with
        it is tried once more. A failure in what looks like an outage is a failure of the case, but not of the arm.

        A pull that was dropped before may turn out to lie outside the bounds: its place may have another pull by then.
        """
        place = self.sheet.place[pull]
        if place < 0 or self.sheet.state[arm][place] != places.OUT or self._holder[arm][place] != pull:
            return False
        if self._is_last_try(arm, place, cause):
            places.fill_place(self.sheet, arm, place, places.FAILED)
            self.missing[arm] += 1
            self._end_baseline()
            return True
        places.free_place(self.sheet, arm, place)
        return False

    def _is_last_try(self, arm: int, place: int, cause: str | None) -> bool:
        """Count a drop; returns whether the place may not be tried again."""
        if cause == "refused":
            self.refusals[arm, place] = self.refusals.get((arm, place), 0) + 1
            return self.refusals[arm, place] >= REFUSALS
        if cause not in ("failed", "outage", "broken-pool"):
            return False
        self.failures[arm, place] = self.failures.get((arm, place), 0) + 1
        return self.failures[arm, place] >= (max(2, self.tries) if cause == "broken-pool" else self.tries)

    def follow(self, event: Event) -> None:
        """Follow an event of a log that is known to be sound, without a ledger."""
        arm, pull = event.arm or 0, event.pull or 0
        if event.kind == "asked":
            self.ask(arm, pull, event_imported_case(event), named=event_named_case(event))
        elif event.kind == "told":
            self.tell(arm, pull)
        else:  # dropped, or retired for a reward outside the bounds
            self.drop(arm, pull, event.cause)


class State:
    """The state of a study: data, which `ledger.py` changes. Arms and pulls are numbers here; users see names."""

    def __init__(self, specification: Spec) -> None:
        self.spec = specification
        self.plain = specification.measure == PLAIN  # rewards count as they are
        self.seq = 1
        self.last = Event(1, "created")  # the last event folded in; not part of the compared state
        self.budget = specification.budget
        self.issued = self.told = self.pending = self.imported = 0
        self.own_told = 0  # rewards that were not imported
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
        # The arms to score before the next choice; None: all of them. Reading and telling need no score.
        self.stale: set[int] | None = None
        self.is_custom = specification.policy.is_custom  # a user's function scores the arms
        self.stakes = state_stakes(specification)
        self.finds = specification.find is not None  # a few arms are to be found
        self.rule = self.rule_for(self.budget, 0)
        self.board = blank_board(arms)
        self.second = second_board(self.board)
        self.second_rule = policies.second_policy_rule(
            self.rule, specification.settling_constant, specification.case_count
        )
        self.open = arms  # arms that still take pulls
        self.settled = 0  # settled arms
        self.settled_above = 0
        # for each arm
        self.asked = state_zeros("q", arms)  # pulls issued, dropped ones included
        self.failures = state_zeros("q", arms)
        self.streak = state_zeros("q", arms)  # failures in a row
        self.retired: dict[int, str] = {}
        self.outside: set[int] = set()  # arms with a reward outside the bounds: nothing is certified about them
        self.complaint: dict[int, str] = {}  # the reason for the last failure
        self.certifies = specification.confidence is not None
        self.docket = blank_docket(arms if self.certifies else 0)
        self.cases = Cases(specification) if specification.cases is not None else None
        self.sheet = self.cases.sheet if self.cases else blank_sheet(0, 0)
        self.ends = state_ends(specification)
        self.ranking = blank_ranking(arms, self.stakes.level if specification.guarantee == "rate" else 0.0)
        capital = certificate.fresh_capital()
        self.untouched = capital if arms <= FEW else array("d", capital)  # the capitals of an arm without a commit
        self.capitals: dict[int, MutableSequence[float]] = {}  # by arm, from its first commit on
        self.first_pull = state_zeros("q", arms if self.certifies else 0)
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
        if arm in self.retired or (self.certifies and self.docket.settled[arm] != certificate.OPEN):
            return False
        if self.awaits and arm != self.base:
            return self.board.pending[self.base] > 0
        return places.are_places_used_up(self.sheet, arm) and self.board.pending[arm] > 0

    @property
    def found(self) -> int:
        """How many arms are certified to reach the bar."""
        if self.base in self.outside:
            return 0
        return self.settled_above - sum(self.docket.settled[arm] == certificate.ABOVE for arm in self.outside)

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

    @property
    def aim(self) -> tuple[float, float]:
        """The bar that scores measure gaps from, and what they add to these: see `kernel.Rule`."""
        return state_aim(self.stakes, finds=self.finds)

    def rule_for(self, budget: int | None, issued: int) -> kernel.Rule:
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
        return kernel.choose_arm_for(self.board, self.second, self.rule, self.issued + 1)

    def score_stale(self) -> None:
        """Score the arms that have changed since the last choice."""
        rule, stale = self.rule, self.stale
        if stale is None:
            kernel.rescore_everything(self.board, self.second, rule, self.second_rule)
            stale = set(range(len(self.spec.arms))) if self.is_custom else set()
        if self.is_custom:
            rule = rule._replace(formula=self.spec.policy.scored_by())
        for arm in sorted(stale):
            try:
                kernel.rescore_both(self.board, self.second, arm, rule, self.second_rule)
            except custom_scores.Refused as refused:
                raise refused.of_arm(self.spec.policy.formula, self.spec.arms[arm]) from refused.__cause__
        self.stale = set()

    def is_outside(self, arm: int) -> bool:
        """Whether the arm, or the baseline it is compared with, proved the bounds wrong."""
        return arm in self.outside or self.base in self.outside

    def is_certified(self, arm: int) -> bool:
        """Whether the arm's label is certified."""
        return self.certifies and self.docket.settled[arm] != certificate.OPEN and not self.is_outside(arm)

    @property
    def certified(self) -> int:
        """How many labels are certified."""
        if self.base in self.outside:
            return 0
        return self.settled - sum(
            self.docket.settled[arm] != certificate.OPEN for arm in self.outside if self.certifies
        )

    def state_of(self, pull: object) -> int:
        """PENDING, TOLD, DROPPED, LATE or OUTSIDE."""
        if type(pull) is int and 0 < pull <= self.issued:
            return self.pull_state[pull - 1]
        there = f"pulls 1 to {self.issued}" if self.issued else "no pull yet"
        remedy = "give the number of a pull that was asked"
        raise UnknownPull("pull", pull, f"this study has issued {there}", remedy)

    def state(self) -> dict[str, Any]:
        """The whole state, for comparing two bit for bit. Every arm is scored first."""
        self.score_stale()
        return {name: value for name, value in vars(self).items() if name not in ("intervals", "last", "pull_tag")}
