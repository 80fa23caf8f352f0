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
            self._keep(arm, self.pull_reward[pull - 1], self.table.get(self.cases.pull_case[pull - 1], 0.0))
            if self.certifies and self.sheet.place[pull] < 0:  # imported: known, not a sample
                self.sheet.least[arm] += scaled
                self.sheet.most[arm] += scaled
                self.cases.imported_sum[arm] = self.sheet.least[arm]
            elif self.certifies:
                docket.tell(self.docket, arm, self.cases.entry(arm, pull), scaled)
        if self.certifies:
            ends = (*self.spec.span, self.spec.reach, self.spec.tolerance)
            if docket.settle_by_count(self.docket, self.board, self.sheet, arm, *ends):
                self._settle(arm)
                if self.ranking.level:
                    self._rank(arm, counted=True)
            else:  # where bets were wrong, the label has changed
                self.settled_above += (self.docket.settled[arm] == evidence.ABOVE) - (before == evidence.ABOVE)
            self._weigh(arm)
        self._shut(arm)

    def _keep(self, arm: int, reward: float, other: float) -> None:
        """Keep a reward, for display, where something else counts."""
        if self.values:
            self.values[arm].append(self.spec.clipped(reward))
        if self.others:
            self.others[arm].append(self.spec.clipped(other))

    def _count_against_table(self, arm: int, pull: int) -> None:
        """Count a reward of a case against the baseline's; before all of these are known, only imports can come."""
        assert self.cases
        reward, case = self.pull_reward[pull - 1], self.cases.pull_case[pull - 1]
        if arm == self.base:
            if self.cases.tell(arm, pull):
                self.table[case] = reward
                kernel.observe(self.board, arm, 0.0, self.spec.clipped(reward))
            self._shut(arm)
            self._open_arms()
        elif self.awaits:
            self.deferred.append(pull)
        elif case in self.table:
            counted = self.spec.counted(reward, self.table[case])
            self._told_case(arm, pull, self.spec.scale(counted), counted)
        else:  # imported, where the baseline has no reward
            self.cases.spare.add(pull)

    def _open_arms(self) -> None:
        """Once all of the baseline's cases are known or given up, the other arms are pulled."""
        if not self.awaits or (self.cases and self.cases.awaits):
            return
        self.awaits = False
        for arm in range(len(self.spec.arms)):
            if arm != self.base and self.certifies:
                self.sheet.most[arm] += self.lacking
        for pull in self.deferred:
            self._count_against_table(self.pull_arm[pull - 1], pull)
        for arm in range(len(self.spec.arms)):
            self._shut(arm)
            self._rescore(arm)

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
        if arm in self.retired or (self.base >= 0 and self._stays_shut(arm)):
            shut = kernel.SHUT
        elif self.certifies:
            capital, pending = self.capitals.get(arm, self.untouched), self.board.pending[arm]
            shut = rate.closed(self.ranking, self.docket, self.sheet, arm, pending, capital, self.stakes)
        else:
            shut = kernel.SHUT if places.is_used_up(self.sheet, arm) else 0
        self.open += (self.board.shut[arm] == kernel.SHUT) - (shut == kernel.SHUT)
        self.board.shut[arm] = shut

    def _stays_shut(self, arm: int) -> bool:
        """With a baseline: without cases, it is pulled only in pairs; with cases, the other arms wait for it.

        If it proved the bounds wrong, nothing can be certified any longer. If it was retired, the arms wait in vain,
        but once all its cases are known or given up, they do not need it.
        """
        if arm == self.base:
            return not self.cases
        return self.awaits or self.base in self.outside

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
