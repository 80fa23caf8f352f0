"""How rewards settle arms: the part of the fold that passes them to the certificates."""

from array import array

from . import docket, evidence, kernel, places, rate, steps
from .state import State


class Settling(State):
    """The state of a study that weighs its rewards."""

    def _told_case(self, arm: int, pull: int, scaled: float, reward: float) -> None:
        """A case has one reward: the first that comes, from whichever try."""
        assert self.cases
        before = self.docket.settled[arm] if self.certifies else evidence.OPEN
        if self.cases.tell(arm, pull):
            kernel.observe(self.board, arm, scaled, reward)
            if self.certifies and self.sheet.place[pull] < 0:  # imported: known, not a sample
                self.sheet.least[arm] += scaled
                self.sheet.most[arm] += scaled
                self.cases.imported_sum[arm] = self.sheet.least[arm]
            elif self.certifies:
                docket.tell(self.docket, arm, self.cases.entry(arm, pull), scaled)
        if self.certifies:
            ends = (*self.spec.span, self.spec.threshold, self.spec.tolerance)
            if docket.settle_by_count(self.docket, self.board, self.sheet, arm, *ends):
                self._settle(arm)
                if self.ranking.level:
                    self._rank(arm, counted=True)
            else:  # where bets were wrong, the label has changed
                self.settled_above += (self.docket.settled[arm] == evidence.ABOVE) - (before == evidence.ABOVE)
            self._weigh(arm)
        self._shut(arm)

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
        for at in range(rate.update(self.ranking, self.docket, self.sheet, arm, capital, self.stakes, counted)):
            other = self.ranking.found[at]
            self._settle(other)
            self._rescore(other)
        self._shut(arm)

    def _leave(self, arm: int) -> None:
        """The arm proved the bounds wrong: it counts in no list, and what was settled on its strength is open again."""
        rate.leave(self.ranking, arm)
        for which in range(rate.LISTS):
            self.ranking.reached[which] = rate.largest(self.ranking, which)
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
            capital = self.capitals[arm] = array("d", [0.0]) * evidence.columns_needed(self.stakes.tolerance)
            evidence.reset(capital, self.spec.rule)
        return capital

    def _settle(self, arm: int) -> None:
        """The arm was just settled: it takes no further pulls."""
        self.settled += 1
        self.settled_above += self.docket.settled[arm] == evidence.ABOVE
        self.due = None if self.due == arm else self.due
        self._shut(arm)

    def _shut(self, arm: int) -> None:
        """Retired and settled arms take no further pulls, nor do those without a free case."""
        if arm in self.retired:
            shut = kernel.SHUT
        elif self.certifies:
            capital, pending = self.capitals.get(arm, self.untouched), self.board.pending[arm]
            shut = rate.closed(self.ranking, self.docket, self.sheet, arm, pending, capital, self.stakes)
        else:
            shut = kernel.SHUT if places.is_used_up(self.sheet, arm) else 0
        self.open += (self.board.shut[arm] == kernel.SHUT) - (shut == kernel.SHUT)
        self.board.shut[arm] = shut

    def _rescore(self, arm: int) -> None:
        if not self.folding:
            steps.rescore_both(
                self.board,
                self.second,
                arm,
                self.formula,
                self.rule,
                kernel.cheapest,
                self.second_rule,
                self.alternates,
            )
