"""The fold: events in, state out. `Ledger.apply` is the only way to change a study's state.

Nothing here reads a clock, a random number or the store. A ledger folded from the log equals the live one bit for bit.
"""

from array import array
from collections.abc import Iterable
from typing import Any

from ..errors import InvalidInput
from . import certificate, error_rate, kernel, places, validity
from .certificate import weigh_imported
from .events import (
    BLAMED,
    DROPPED,
    FAILED,
    LATE,
    OUTSIDE,
    PENDING,
    REPEATABLE,
    TOLD,
    Event,
    imported_case,
    named_case,
    other_of,
    remarks_of,
    total_cost,
)
from .spec import Spec, from_json
from .state import Cases, State

# How rewards settle arms: the part of the fold that passes them to the certificates and to the tournaments.


class Settling(State):
    """The state of a study that weighs its rewards."""

    def _weigh(self, arm: int) -> None:
        """Commit every pull of the arm that can be committed."""
        pending = self.board.pending[arm]
        if self.unweighed:
            return
        known = arm in self.capitals or certificate.ready(
            self.docket, arm, pending
        )  # capitals are made at the first commit
        if known and certificate.weigh(self.docket, self.sheet, arm, pending, self._capital(arm), self.stakes):
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
            if label != certificate.OPEN and other not in self.outside and rank > self.ranking.reached[label - 1]:
                self.docket.settled[other] = certificate.OPEN
                self.settled -= 1
                self.settled_above -= label == certificate.ABOVE
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
        self.settled_above += self.docket.settled[arm] == certificate.ABOVE
        self.due = None if self.due == arm else self.due
        self._shut(arm)

    def _shut(self, arm: int) -> None:
        """Retired and settled arms take no further pulls, nor do those without a free case.

        If the baseline proved the bounds wrong, nothing can be certified any longer, so the others take none either.
        """
        waits = self.awaits or self.base in self.outside
        if arm in self.retired or kernel.stays_shut(arm, self.base, self.sheet.cases, waits):
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
            kernel.rescore_both(self.board, self.second, arm, self.rule, self.second_rule)

    def _rescore_asked(self, arm: int) -> None:
        """After a pull of the arm was asked for: a user's function is called only before the next decision."""
        if self.stale is not None:
            self.stale.add(arm)
            if self.rule.doubles and (rule := self.rule_for(self.budget, self.issued)) != self.rule:
                self.rule = rule
                self.stale.update(range(len(self.spec.arms)))
        elif not self.folding:
            board, second = self.board, self.second
            self.rule = kernel.rescore_asked(board, second, arm, self.rule, self.second_rule, self.issued)


class Ledger(Settling):
    """The state of a study, changed only by its events."""

    def __init__(self, specification: Spec) -> None:
        super().__init__(specification)
        for arm in range(len(specification.arms) if self.base >= 0 else 0):
            self._shut(arm)
        self._rescore_all()

    def apply(self, event: Event) -> None:
        """Check the event and fold it in."""
        validity.check(self, event)
        _FOLDS[event.kind](self, event)
        self.seq, self.last = event.seq, event

    def fold(self, event: Event) -> None:
        """Fold in an event that is known to be valid. If this is interrupted, discard the ledger."""
        _FOLDS[event.kind](self, event)
        self.seq, self.last = event.seq, event

    def fold_all(self, events: Iterable[Event]) -> None:
        """Check and fold many events, and score once at the end: scores follow from the columns."""
        self.folding = True
        for event in events:
            self.apply(event)
        self.folding = False
        self._follow_rule()

    def _asked(self, event: Event) -> None:
        arm: int = event.arm  # type: ignore[assignment]  # checked
        self.issued += 1
        self.pending += 1
        self.asked[arm] += 1
        if event.cause == "imported":
            self.imported += 1
        self.pull_arm.append(arm)
        self.pull_tag.append(int.from_bytes(event.digest[:4]) if event.digest else 0)
        self.pull_number.append(self.asked[arm])
        self.pull_state.append(PENDING)
        self.pull_origin.append(0)
        self.pull_reward.append(0.0)
        if self.spec.pairs:
            self.pull_other.append(0.0)
        kernel.assign(self.board, arm)
        if self.certifies:
            self.docket.following.append(0)
            self.docket.outcome.append(certificate.PENDING)
            self.docket.reward.append(0.0)
        self._issue(arm, event)
        if self.ranking.level and error_rate.is_ranked(self.ranking, arm):  # a pending pull only lowers its arm
            self._rank(arm)
        elif self.ranking.level:
            self._shut(arm)
        self._rescore_asked(arm)

    def _issue(self, arm: int, event: Event) -> None:
        """Put the pull that was just issued into the queue of its arm."""
        if self.certifies:
            self.unweighed = event.cause == "imported"
            self._enqueue(arm)

    def _enqueue(self, arm: int) -> None:
        certificate.enqueue(self.docket, arm, self.issued)
        self.first_pull[arm] = self.first_pull[arm] or self.issued

    def _told(self, event: Event) -> None:
        pull: int = event.pull  # type: ignore[assignment]  # checked
        reward: float = event.reward  # type: ignore[assignment]
        arm = self.pull_arm[pull - 1]
        if not event.late:
            kernel.release(self.board, arm)
            self.pending -= 1
        self.pull_state[pull - 1] = LATE if event.late else TOLD
        self.pull_reward[pull - 1] = reward
        self.told += 1
        self.imported_told += pull <= self.imported
        self.streak[arm] = 0
        if event.cause == "repeatable":
            self.pull_origin[pull - 1] = REPEATABLE
        if self.pull_origin[pull - 1]:
            self.repeatable = True
        if event.cause == "failed":  # a failure that counts as a reward, by the specification
            self.pull_origin[pull - 1] |= FAILED
            self._blame(arm, event)
        if self.spec.pairs:
            self.pull_other[pull - 1] = other_of(event)
        if event.reason is not None and event.reason.startswith("{"):
            self._remark(pull, event)
        self._count(arm, pull)
        self._rescore(arm)

    def _remark(self, pull: int, event: Event) -> None:
        """Keep the note and the cost of a reward, for people."""
        remarks = remarks_of(event)
        if remarks is not None and remarks != (None, None, None):
            self.remarks[pull] = event.reason or ""
            if remarks.cost is not None:
                self.cost = total_cost((self.cost or 0.0, remarks.cost))

    def _count(self, arm: int, pull: int) -> None:
        """Count a reward that was told: as it is, or as its share or difference."""
        spec, counted = self.spec, self.pull_reward[pull - 1]
        if not self.plain:
            reward, other = counted, self.pull_other[pull - 1] if spec.pairs else 0.0
            counted = spec.counted(reward, other)
            if self.values:
                self._keep(arm, reward, other)
        scaled = spec.scale(counted)
        kernel.observe(self.board, arm, scaled, counted)
        if self.certifies:
            certificate.tell(self.docket, arm, pull, scaled)
            self._weigh(arm)

    def _keep(self, arm: int, reward: float, other: float) -> None:
        """Keep a reward, for display, where something else counts."""
        self.values[arm].append(self.spec.clipped(reward))
        if self.others:
            self.others[arm].append(self.spec.clipped(other))

    def _repeated(self, event: Event) -> None:
        at: int = event.pull - 1  # type: ignore[operator]  # checked
        self.pull_origin[at] |= REPEATABLE
        self.repeatable = self.repeatable or self.pull_state[at] in (TOLD, LATE)

    def _dropped(self, event: Event) -> None:
        pull: int = event.pull  # type: ignore[assignment]  # checked
        arm = self.pull_arm[pull - 1]
        self.pull_state[pull - 1] = DROPPED
        self.pending -= 1
        kernel.release(self.board, arm)
        if event.cause in BLAMED:
            self._blame(arm, event)
        if self._give_up(arm, pull, event.cause):
            self.streak[arm] += 1
            limit = self.spec.max_failures
            if limit is not None and self.streak[arm] >= limit and self.board.shut[arm] != kernel.SHUT:
                self.due = arm
        self._weigh_dropped(arm)
        self._rescore(arm)

    def _give_up(self, arm: int, pull: int, cause: str | None) -> bool:
        """Say what the dropped pull means to the certificate. Returns whether the drop is a failure of its arm."""
        if self.certifies:
            ignored = self.spec.failure == "ignore"
            outcome = certificate.CANCELLED if cause == "cancelled" else certificate.CHARGED
            certificate.give_up(self.docket, pull, certificate.LEFT_OUT if ignored else outcome)
        return cause in BLAMED

    def _weigh_dropped(self, arm: int) -> None:
        """A pull of the arm was dropped, and so those behind it may be committed."""
        if self.certifies:
            self._weigh(arm)

    def _retired(self, event: Event) -> None:
        arm: int = event.arm  # type: ignore[assignment]  # checked
        self.due = None
        if event.cause == "bounds":
            self._proved_wrong(arm, event)
        self.retired[arm] = event.reason or ""
        self._shut_for(arm)

    def _restored(self, event: Event) -> None:
        arm: int = event.arm  # type: ignore[assignment]  # checked
        del self.retired[arm]
        self.streak[arm] = 0
        self._shut_for(arm)

    def _shut_for(self, arm: int) -> None:
        """An arm was retired or restored. Without the baseline, no arm takes pulls."""
        for other in range(len(self.spec.arms)) if arm == self.base else (arm,):
            self._shut(other)
            self._rescore(other)

    def _extended(self, event: Event) -> None:
        self.budget = event.budget
        if self.spec.policy.follows_budget:
            self._follow_rule()

    def _proved_wrong(self, arm: int, event: Event) -> None:
        """A pull of the arm returned a reward outside the bounds: nothing about the arm is certified any longer."""
        pull: int = event.pull  # type: ignore[assignment]  # checked
        state, pulled = self.pull_state[pull - 1], self.pull_arm[pull - 1]
        if state == PENDING:
            self.pending -= 1
            kernel.release(self.board, pulled)
        if state in (PENDING, DROPPED):  # otherwise it keeps the reward that was told
            self.pull_state[pull - 1] = OUTSIDE
            rewards = self.pull_reward if pulled == arm else self.pull_other  # of a pair, the baseline's
            rewards[pull - 1] = event.reward  # type: ignore[assignment]
        self.outside.add(arm)
        if self.ranking.level:
            self._leave(arm)
        self._blame(arm, event)
        self._charge(pulled, pull)

    def _charge(self, arm: int, pull: int) -> None:
        """A pull of the arm has a reward that cannot count."""
        if self.certifies:
            certificate.give_up(self.docket, pull, certificate.CHARGED)
            self._weigh(arm)

    def _weighed(self, event: Event) -> None:
        self.unweighed, self.weighed, self.shuffle = False, True, event.reason or ""
        for arm in range(len(self.spec.arms)):
            if self.docket.first[arm]:
                weigh_imported(self.docket, self.sheet, arm, self._capital(arm), self.stakes)
                if self.docket.settled[arm] != certificate.OPEN:
                    self._settle(arm)
                if self.ranking.level:
                    self._rank(arm)
        self._rescore_all()

    def _accepted(self, event: Event) -> None:
        self.evaluators.append(event.reason or "")

    def _file(self, event: Event) -> None:
        digest, _, name = (event.reason or "").partition(" ")
        self.files.setdefault(name, []).append(digest)
        if event.cause == "vouched" and name not in self.vouched:
            self.vouched.append(name)

    def _blame(self, arm: int, event: Event) -> None:
        self.failures[arm] += 1
        self.complaint[arm] = event.reason or "no reason was given"

    def _follow_rule(self) -> None:
        """Score all arms by the rule for the current budget and the pulls issued."""
        self.rule = self.rule_for(self.budget, self.issued)
        self._rescore_all()

    def _rescore_all(self) -> None:
        if self.stale is not None:
            self.stale.update(range(len(self.spec.arms)))
        if self.folding:
            return
        kernel.rescore_everything(self.board, self.second, self.rule, self.second_rule)

    def state(self) -> dict[str, Any]:
        """The whole state, for comparing two ledgers bit for bit. With a user's function, every arm is scored first."""
        if self.stale:
            self.score_stale(self.stale)
        return {name: value for name, value in vars(self).items() if name not in ("intervals", "last", "pull_tag")}


def ledger_for(spec: Spec) -> Ledger:
    """The state of a study without events."""
    return Ledger(spec) if spec.cases is None else EvalSet(spec)


def begun(first: Event | None) -> Ledger:
    """The ledger after the first event of a log, which must be `created`."""
    if first is None or first.kind != "created" or first.seq != 1 or first.spec is None:
        raise InvalidInput("log", first and first.kind, "must begin with event 1, created", "give a study's log")
    ledger = ledger_for(from_json(first.spec))
    ledger.last = first
    return ledger


def fold(events: Iterable[Event]) -> Ledger:
    """The ledger for a whole log, which must begin with `created`."""
    stream = iter(events)
    ledger = begun(next(stream, None))
    ledger.fold_all(stream)
    return ledger


_FOLDS = {
    "asked": Ledger._asked,
    "repeated": Ledger._repeated,
    "told": Ledger._told,
    "dropped": Ledger._dropped,
    "retired": Ledger._retired,
    "restored": Ledger._restored,
    "extended": Ledger._extended,
    "weighed": Ledger._weighed,
    "accepted": Ledger._accepted,
    "file": Ledger._file,
}


# The fold of a study with cases: every pull has a place, and a baseline goes first, through all cases.


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
                certificate.try_again(self.docket, self.cases.entry(arm, self.issued))
        self._shut(arm)

    def _count(self, arm: int, pull: int) -> None:
        if self.base >= 0:
            self._count_against_table(arm, pull)
        else:
            self._count_case(arm, pull, self.spec.counted(self.pull_reward[pull - 1]))

    def _count_case(self, arm: int, pull: int, counted: float) -> None:
        """A case has one reward: the first that comes, from whichever try."""
        scaled = self.spec.scale(counted)
        before = self.docket.settled[arm] if self.certifies else certificate.OPEN
        if self.cases.tell(arm, pull):
            kernel.observe(self.board, arm, scaled, counted)
            if self.values:
                self._keep(arm, self.pull_reward[pull - 1], self.table.get(self.cases.pull_case[pull - 1], 0.0))
            if self.certifies and self.sheet.place[pull] < 0:  # imported: known, not a sample
                self.sheet.least[arm] += scaled
                self.sheet.most[arm] += scaled
                self.cases.imported_sum[arm] = self.sheet.least[arm]
            elif self.certifies:
                certificate.tell(self.docket, arm, self.cases.entry(arm, pull), scaled)
        if self.certifies:
            ends = (*self.spec.span, self.spec.reach, self.spec.tolerance)
            if certificate.settle_by_count(self.docket, self.board, self.sheet, arm, *ends):
                self._settle(arm)
                if self.ranking.level:
                    self._rank(arm, counted=True)
            else:  # where bets were wrong, the label has changed
                self.settled_above += (self.docket.settled[arm] == certificate.ABOVE) - (before == certificate.ABOVE)
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
            certificate.give_up(
                self.docket, self.cases.entry(arm, pull), certificate.CHARGED if gone else certificate.FREED
            )
        return cause == "refused" or (gone and cause == "failed")

    def _weigh_dropped(self, arm: int) -> None:
        super()._weigh_dropped(arm)
        self._shut(arm)
        self._open_arms()

    def _charge(self, arm: int, pull: int) -> None:
        self.cases.drop(arm, pull, "bounds")
        if self.sheet.place[pull] >= 0:  # an imported case has no place
            super()._charge(arm, self.cases.entry(arm, pull))
