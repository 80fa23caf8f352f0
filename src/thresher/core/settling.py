"""How rewards settle arms: the part of the fold that passes them to the certificates and to the tournaments."""

from array import array

from . import docket, error_rate, evidence, kernel, places, steps
from .state import State


class Settling(State):
    """The state of a study that weighs its rewards."""

    def _weigh(self, arm: int) -> None:
        """Commit every pull of the arm that can be committed."""
        pending = self.board.pending[arm]
        if self.unweighed:
            return
        known = arm in self.capitals or docket.ready(self.docket, arm, pending)  # capitals are made at the first commit
        if known and docket.weigh(self.docket, self.sheet, arm, pending, self._capital(arm), self.stakes):
            self._settle(arm)
        if self.ranking.level:
            self._rank(arm)

    def _rank(self, arm: int, *, counted: bool = False) -> None:
        """Where the error rate is bounded: rank the arm again, and settle what its list has reached."""
        if (arm not in self.capitals and not counted) or arm in self.outside:
            return
        capital = self._capital(arm)
        for at in range(error_rate.update(self.ranking, self.docket, self.sheet, arm, capital, self.stakes, counted)):
            other = self.ranking.found[at]
            self._settle(other)
            self._rescore(other)
        self._shut(arm)

    def _leave(self, arm: int) -> None:
        """The arm proved the bounds wrong: it counts in no list, and what was settled on its strength is open again."""
        error_rate.leave(self.ranking, arm)
        for which in range(error_rate.LISTS):
            self.ranking.reached[which] = error_rate.largest(self.ranking, which)
        for other, label in enumerate(self.docket.settled):
            rank = self.ranking.rank[(label - 1) * len(self.spec.arms) + other]
            if label != evidence.OPEN and other not in self.outside and rank > self.ranking.reached[label - 1]:
                self.docket.settled[other] = evidence.OPEN
                self.settled -= 1
                self.settled_above -= label == evidence.ABOVE
                self._shut(other)
                self._rescore(other)

    def _capital(self, arm: int) -> "array[float]":
        capital = self.capitals.get(arm)
        if capital is None:
            capital = self.capitals[arm] = self.untouched[:]
        return capital

    def _settle(self, arm: int) -> None:
        """The arm was just settled: it takes no further pulls."""
        self.settled += 1
        self.settled_above += self.docket.settled[arm] == evidence.ABOVE
        self.due = None if self.due == arm else self.due
        self._shut(arm)

    def _shut(self, arm: int) -> None:
        """Retired and settled arms take no further pulls, nor do those without a free case.

        If the baseline proved the bounds wrong, nothing can be certified any longer, so the others take none either.
        """
        waits = self.awaits or self.base in self.outside
        if arm in self.retired or steps.stays_shut(arm, self.base, self.sheet.cases, waits):
            shut = kernel.SHUT
        elif self.certifies:
            capital, pending = self.capitals.get(arm, self.untouched), self.board.pending[arm]
            shut = error_rate.closed(self.ranking, self.docket, self.sheet, arm, pending, capital, self.stakes)
        else:
            shut = kernel.SHUT if places.is_used_up(self.sheet, arm) else 0
        self.open += (self.board.shut[arm] == kernel.SHUT) - (shut == kernel.SHUT)
        self.board.shut[arm] = shut

    def _rescore(self, arm: int) -> None:
        if self.stale is not None:
            self.stale.add(arm)
        elif not self.folding:
            steps.rescore_both(self.board, self.second, arm, self.rule, self.second_rule)

    def _rescore_asked(self, arm: int) -> None:
        """After a pull of the arm was asked for: a user's function is called only before the next decision."""
        if self.stale is not None:
            self.stale.add(arm)
            if self.rule.doubles and (rule := self.rule_for(self.budget, self.issued)) != self.rule:
                self.rule = rule
                self.stale.update(range(len(self.spec.arms)))
        elif not self.folding:
            board, second = self.board, self.second
            self.rule = steps.rescore_asked(board, second, arm, self.rule, self.second_rule, self.issued)
