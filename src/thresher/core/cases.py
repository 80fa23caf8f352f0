"""The cases of a live study: which case a pull evaluates, and what became of each place."""

from array import array
from collections.abc import Iterator, Mapping

from . import places
from .columns import blank_sheet_columns
from .spec import Spec

REFUSALS = 20  # how often a case may be refused; a server that is never there must end its cases in the end


class Cases:
    """Follows a log: which place and which case each pull has. Cases are numbers here; users see names.

    Only kinds, arms, cases and causes of events matter, so a reader of a log without a ledger can use it too.
    """

    def __init__(self, spec: Spec) -> None:
        arms, self.count = len(spec.arms), spec.case_count
        self.tries = spec.tries
        self.sheet = blank_sheet_columns(arms, self.count)
        self.pull_case = array("q")  # of a pull, by id − 1
        self.imported: dict[int, set[int]] = {}  # by arm: cases whose reward was known before its order was drawn
        self.failed_before: dict[int, set[int]] = {}  # by arm: cases that failed for good before its order was drawn
        self.imported_sum: dict[int, float] = {}  # by arm: their scaled rewards
        self.spare: set[int] = set()  # pulls whose reward came after another one of the same case
        self.failures: dict[tuple[int, int], int] = {}  # by arm and place
        self.refusals: dict[tuple[int, int], int] = {}  # by arm and place: evaluations that could not begin
        self.retried: set[int] = set()  # pulls whose reward came after a failed try of their case
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
        return not self._is_fixed(arm, case) and case not in self._named.get(arm, ())

    def _is_fixed(self, arm: int, case: int) -> bool:
        """Whether the case was known, or given up, before the arm's order was drawn."""
        before = case in self.imported.get(arm, ()) or case in self.failed_before.get(arm, ())
        return before or case in self.lacking

    def place_of(self, arm: int, case: int) -> int | None:
        """The place that a case was given; None: it has none yet."""
        named = self._named.get(arm, {}).get(case)
        if named is not None:
            return named
        order = self._order[arm]
        return order.index(case) if case in order else None

    def is_free(self, arm: int, case: int) -> bool:
        """Whether the case may be tried: it has no reward, is not pending and has not failed too often."""
        if self._is_fixed(arm, case):
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
        failed = {self._order[arm][place] for place, state in states if state == places.FAILED}
        return failed | self.failed_before.get(arm, set())

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
                self.retried.add(pull)
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
                fixed = self.imported.get(arm, set()) | self.failed_before.get(arm, set())
                self.sheet.places[arm] -= len(self.lacking - fixed)
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

    # -- revisions --------------------------------------------------------------------------------------------------

    def fix(self, arm: int, known: Mapping[int, int], failed: set[int]) -> None:
        """Before an arm's first pull: cases whose reward is known, by case the pull that it came from, or that failed.

        They have no place. That they are fixed before the order of the others is drawn keeps these a sample.
        """
        self.imported[arm], self.failed_before[arm] = set(known), failed
        self.sheet.places[arm] -= len(known) + len(failed)
        self.missing[arm] += len(failed)
        for case, pull in known.items():
            self.sheet.place[pull], self.pull_case[pull - 1] = -1, case

    def begin_baseline(self) -> None:
        """After `fix`: the baseline may have been known or given up everywhere."""
        self._known = 0
        self._end_baseline()

    def move(self, arm: int, other: "Cases", source: int) -> None:
        """Make the arm one of another object, which has the same cases."""
        for column in ("imported", "failed_before", "imported_sum", "_named"):
            if source in getattr(other, column):
                getattr(self, column)[arm] = getattr(other, column)[source]
        for counts, others in ((self.failures, other.failures), (self.refusals, other.refusals)):
            for place in range(len(other.sheet.state[source]) if others else 0):
                if (source, place) in others:
                    counts[arm, place] = others[source, place]
        for column in ("missing", "_order", "_holder", "_position", "_keys"):
            getattr(self, column)[arm] = getattr(other, column)[source]
        for column in ("places", "lowest", "state", "entry"):
            getattr(self.sheet, column)[arm] = getattr(other.sheet, column)[source]

    def move_baseline(self, other: "Cases") -> None:
        """After `move` of every arm that goes on: the baseline's rewards are what they were."""
        self.awaits, self._known, self.lacking = other.awaits, other._known, other.lacking
