"""The fold of a study with cases: every pull has a place, and a baseline goes first, through all cases."""

from . import docket, evidence, kernel
from .cases import Cases
from .events import Event, imported_case, named_case
from .ledger import Ledger


class EvalSet(Ledger):
    """The state of a study with cases. It counts each case of an arm once, and settles arms by counting, too."""

    cases: Cases

    def _issue(self, arm: int, event: Event) -> None:
        named = named_case(event)
        self.hosted = self.hosted or named is not None
        is_new = self.cases.ask(arm, self.issued, imported_case(event), named=named)
        if self.certifies and arm != self.base:  # nothing is certified about the baseline
            if is_new:
                self._enqueue(arm)
            elif event.cause != "imported":
                docket.try_again(self.docket, self.cases.entry(arm, self.issued))
        self._shut(arm)

    def _count(self, arm: int, pull: int) -> None:
        if self.base >= 0:
            self._count_against_table(arm, pull)
        else:
            self._count_case(arm, pull, self.spec.counted(self.pull_reward[pull - 1]))

    def _count_case(self, arm: int, pull: int, counted: float) -> None:
        """A case has one reward: the first that comes, from whichever try."""
        scaled = self.spec.scale(counted)
        before = self.docket.settled[arm] if self.certifies else evidence.OPEN
        if self.cases.tell(arm, pull):
            kernel.observe(self.board, arm, scaled, counted)
            if self.values:
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

    def _count_against_table(self, arm: int, pull: int) -> None:
        """Count a reward against the baseline's of the same case; before all of these are known, only imports come."""
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
            self._count_case(arm, pull, self.spec.counted(reward, self.table[case]))
        else:  # imported, where the baseline has no reward
            self.cases.spare.add(pull)

    def _open_arms(self) -> None:
        """Once all of the baseline's cases are known or given up, the other arms are pulled."""
        if not self.awaits or self.cases.awaits:
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

    def _give_up(self, arm: int, pull: int, cause: str | None) -> bool:
        """A case that may be tried again is no failure yet; one that was lost too often is none of its arm."""
        gone = self.cases.drop(arm, pull, cause)
        if self.certifies:
            docket.give_up(self.docket, self.cases.entry(arm, pull), evidence.CHARGED if gone else evidence.FREED)
        return gone and cause == "failed"

    def _weigh_dropped(self, arm: int) -> None:
        super()._weigh_dropped(arm)
        self._shut(arm)
        self._open_arms()

    def _charge(self, arm: int, pull: int) -> None:
        self.cases.drop(arm, pull, "bounds")
        if self.sheet.place[pull] >= 0:  # an imported case has no place
            super()._charge(arm, self.cases.entry(arm, pull))
