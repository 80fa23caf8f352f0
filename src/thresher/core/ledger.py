"""The fold: events in, state out. `Ledger.apply` is the only way to change a study's state.

Nothing here reads a clock, a random number or the store. A ledger folded from the log equals the live one bit for bit.
"""

from collections.abc import Iterable
from typing import Any

from ..errors import InvalidInput
from . import docket, error_rate, evidence, kernel, steps, validity
from .events import DROPPED, FAILED, LATE, OUTSIDE, PENDING, REPEATABLE, TOLD, Event, other_of, remarks_of, total_cost
from .imported import weigh_imported
from .settling import Settling
from .spec import Spec
from .stored import from_json


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
            self.docket.outcome.append(evidence.PENDING)
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
        docket.enqueue(self.docket, arm, self.issued)
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
            docket.tell(self.docket, arm, pull, scaled)
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
        if event.cause == "failed":
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
            outcome = evidence.CANCELLED if cause == "cancelled" else evidence.CHARGED
            docket.give_up(self.docket, pull, evidence.LEFT_OUT if ignored else outcome)
        return cause == "failed"

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
            docket.give_up(self.docket, pull, evidence.CHARGED)
            self._weigh(arm)

    def _weighed(self, event: Event) -> None:
        self.unweighed, self.weighed, self.shuffle = False, True, event.reason or ""
        for arm in range(len(self.spec.arms)):
            if self.docket.first[arm]:
                weigh_imported(self.docket, self.sheet, arm, self._capital(arm), self.stakes)
                if self.docket.settled[arm] != evidence.OPEN:
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
        steps.rescore_everything(self.board, self.second, self.rule, self.second_rule)

    def state(self) -> dict[str, Any]:
        """The whole state, for comparing two ledgers bit for bit. With a user's function, every arm is scored first."""
        if self.stale:
            self.score_stale(self.stale)
        return {name: value for name, value in vars(self).items() if name not in ("intervals", "last", "pull_tag")}


def ledger_for(spec: Spec) -> Ledger:
    """The state of a study without events."""
    from .eval_set import EvalSet  # here: it builds on this file

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
