"""The fold: events in, state out. `Ledger.apply` is the only way in which a study's state changes.

Nothing here reads a clock, a random number or the store; a ledger folded from the log equals the live one to the bit.
"""

from array import array
from collections.abc import Iterable
from typing import Any

from . import columns, evidence, kernel, spec
from .errors import AlreadyTold, InvalidInput, UnknownPull
from .events import CAUSES, Event
from .spec import Spec

PENDING, TOLD, DROPPED, LATE = range(4)  # what became of a pull; LATE: dropped first, told afterwards


class Ledger:
    """A study as its events make it. Arms and pulls are numbers here; names belong to the border."""

    def __init__(self, specification: Spec) -> None:
        self.spec = specification
        self.seq = 1
        self.budget = specification.budget
        self.issued = self.told = self.pending = self.imported = 0
        self.repeatable = False  # whether some rewards come from evaluations that are repeated until one goes well
        arms = len(specification.arms)
        self.formula: kernel.Formula = getattr(kernel, specification.policy.function)
        self.rule = specification.policy.rule(specification.scaled_threshold, arms=arms, budget=self.budget)
        self.board = columns.board(arms)
        self.second = self.board._replace(best=self.board.best[:], winner=self.board.winner[:])
        self.second_rule = self.rule._replace(exploration=specification.settling_constant)
        self.alternates = specification.policy.second is not None
        self._doubles = specification.policy.exploration == "doubling"
        self.open = arms  # arms that still take pulls
        self.settled = 0  # arms whose label is certain
        # of each arm
        self.asked = array("q", [0]) * arms  # pulls issued, dropped ones included
        self.failures = array("q", [0]) * arms
        self.streak = array("q", [0]) * arms  # failures in a row
        self.retired: dict[int, str] = {}
        self.complaint: dict[int, str] = {}  # the reason of the last failure
        self.certifies = specification.confidence is not None
        self.stakes = columns.stakes(specification)
        self.docket = columns.docket(arms if self.certifies else 0)
        self.capitals: dict[int, array[float]] = {}  # of an arm, from its first commit on
        self.first_pull = array("q", [0]) * (arms if self.certifies else 0)
        self.intervals: dict[int, Any] = {}  # for display: made and kept by whoever shows them, no part of the state
        self.due: int | None = None  # the arm whose retirement must be the next event
        # of each pull, by id − 1
        self.pull_arm = array("q")
        self.pull_number = array("q")
        self.pull_state = bytearray()
        self.pull_reward = array("d")
        self.folding = False  # while a whole log is folded in, nobody asks for scores
        self._rescore_all()

    # -- reading ------------------------------------------------------------------------------------------------

    @property
    def done(self) -> bool:
        """The budget is issued, or no arm takes pulls any more."""
        return self.open == 0 or (self.budget is not None and self.issued >= self.budget)

    def choose(self) -> int | None:
        """The arm that the next pull must go to; None exactly when done."""
        if self.done:
            return None
        even = (self.issued + 1) % 2 == 0
        return kernel.choose(self.second if even and self.alternates else self.board)

    def state_of(self, pull: object) -> int:
        """PENDING, TOLD, DROPPED or LATE."""
        if isinstance(pull, bool) or not isinstance(pull, int) or not 1 <= pull <= self.issued:
            rule = (
                f"this study has issued pulls 1 to {self.issued}"
                if self.issued
                else "this study has issued no pull yet"
            )
            raise UnknownPull("pull", pull, rule, "tell pulls that ask() gave")
        return self.pull_state[pull - 1]

    # -- checking -----------------------------------------------------------------------------------------------

    def check(self, event: Event) -> None:
        """Raise, and change nothing, unless the event may follow those before it."""
        if event.seq != self.seq + 1:
            raise InvalidInput("event", event.seq, f"must have the number {self.seq + 1}")
        if self.due is not None and (event.kind, event.arm, event.cause) != ("retired", self.due, "failures"):
            raise InvalidInput("event", event.kind, f"the retirement of arm {self.due} must come first")
        kind = _KINDS.get(event.kind)
        if kind is None:
            raise InvalidInput("event", event.kind, "is not a kind that this version knows", "update thresher")
        kind[0](self, event)

    def _check_asked(self, event: Event) -> None:
        if event.pull != self.issued + 1:
            raise InvalidInput("pull", event.pull, f"the next pull is {self.issued + 1}")
        arm = self._arm_of(event)
        if event.cause == "imported" and self.issued > self.imported:
            raise InvalidInput("arm", self.spec.arms[arm], "rewards are imported before the first ask alone")
        if self.budget is not None and self.issued >= self.budget:
            raise InvalidInput("budget", self.budget, "is issued", "extend the study")
        if self.board.shut[arm] and event.cause != "imported":
            raise InvalidInput("arm", self.spec.arms[arm], "takes no further pulls")

    def _check_told(self, event: Event) -> None:
        state = self.state_of(event.pull)
        reward = self.spec.reward(event.reward)
        if state in (TOLD, LATE):
            before = self.pull_reward[event.pull - 1]  # type: ignore[operator]  # state_of has seen to it
            raise AlreadyTold(
                f"pull {event.pull}, reward", reward, f"it was told {before!r} before", "a pull has one reward"
            )
        if bool(event.late) != (state == DROPPED):
            raise InvalidInput("late", event.late, "marks rewards of dropped pulls, and those alone")

    def _check_dropped(self, event: Event) -> None:
        if self.state_of(event.pull) != PENDING:
            raise AlreadyTold("pull", event.pull, "is pending no more")
        if event.cause not in CAUSES:
            raise InvalidInput("cause", event.cause, f"must be one of {', '.join(CAUSES)}")

    def _check_retired(self, event: Event) -> None:
        arm = self._arm_of(event)
        if event.cause == "failures" and arm != self.due:
            raise InvalidInput("arm", self.spec.arms[arm], "has not failed often enough to be retired by rule")
        if arm in self.retired:
            raise InvalidInput("arm", self.spec.arms[arm], "is retired already")

    def _check_restored(self, event: Event) -> None:
        if self._arm_of(event) not in self.retired:
            raise InvalidInput("arm", self.spec.arms[self._arm_of(event)], "is not retired")

    def _check_extended(self, event: Event) -> None:
        budget = spec.check_budget(event.budget, self.spec.arms, self.spec.policy)
        if self.budget is None:
            raise InvalidInput("budget", budget, "this study has none: it goes on until every arm is settled")
        if budget <= self.budget:
            raise InvalidInput(
                "budget", budget, f"must be larger than the {self.budget} in force", "give the new total"
            )

    def _arm_of(self, event: Event) -> int:
        arm = event.arm
        if arm is None or not 0 <= arm < len(self.spec.arms):
            raise InvalidInput("arm", arm, f"must be a number from 0 to {len(self.spec.arms) - 1}")
        return arm

    # -- folding ------------------------------------------------------------------------------------------------

    def apply(self, event: Event) -> None:
        """Check the event and fold it in."""
        self.check(event)
        _KINDS[event.kind][1](self, event)
        self.seq = event.seq

    def _asked(self, event: Event) -> None:
        arm: int = event.arm  # type: ignore[assignment]  # checked
        self.issued += 1
        self.pending += 1
        self.imported += event.cause == "imported"
        self.asked[arm] += 1
        self.pull_arm.append(arm)
        self.pull_number.append(self.asked[arm])
        self.pull_state.append(PENDING)
        self.pull_reward.append(0.0)
        kernel.assign(self.board, arm)
        if self.certifies:
            self.docket.following.append(0)
            self.docket.outcome.append(evidence.PENDING)
            self.docket.reward.append(0.0)
            evidence.enqueue(self.docket, arm, self.issued)
            self.first_pull[arm] = self.first_pull[arm] or self.issued
        if self._doubles:
            exploration = kernel.doubled(self.rule.exploration, self.issued, len(self.spec.arms))
            if exploration != self.rule.exploration:
                self.rule = self.rule._replace(exploration=exploration)
                self._rescore_all()
                return
        self._rescore(arm)

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
        self.streak[arm] = 0
        if event.cause == "failed":  # a failure that the specification gives a reward
            self._blame(arm, event)
        elif event.cause == "repeatable":
            self.repeatable = True
        scaled = self.spec.scale(reward)
        kernel.observe(self.board, arm, scaled, reward)
        if self.certifies:
            evidence.tell(self.docket, arm, pull, scaled)
            self._weigh(arm)
        self._rescore(arm)

    def _dropped(self, event: Event) -> None:
        pull: int = event.pull  # type: ignore[assignment]  # checked
        arm = self.pull_arm[pull - 1]
        self.pull_state[pull - 1] = DROPPED
        self.pending -= 1
        kernel.release(self.board, arm)
        if event.cause == "failed":
            self._blame(arm, event)
            self.streak[arm] += 1
            limit = self.spec.max_failures
            if limit is not None and self.streak[arm] >= limit and not self.board.shut[arm]:
                self.due = arm
        if self.certifies:
            uncharged = event.cause == "cancelled" or self.spec.failure == "ignore"
            evidence.give_up(self.docket, pull, evidence.LEFT_OUT if uncharged else evidence.CHARGED)
            self._weigh(arm)
        self._rescore(arm)

    def _retired(self, event: Event) -> None:
        arm: int = event.arm  # type: ignore[assignment]  # checked
        self.due = None
        self.retired[arm] = event.reason or ""
        self._shut(arm)
        self._rescore(arm)

    def _restored(self, event: Event) -> None:
        arm: int = event.arm  # type: ignore[assignment]  # checked
        del self.retired[arm]
        self.streak[arm] = 0
        self._shut(arm)
        self._rescore(arm)

    def _extended(self, event: Event) -> None:
        self.budget = event.budget
        if self.spec.policy.needs_budget:
            bar, arms = self.spec.scaled_threshold, len(self.spec.arms)
            self.rule = self.spec.policy.rule(bar, arms=arms, budget=self.budget)
            self._rescore_all()

    def _weigh(self, arm: int) -> None:
        """Commit what can be committed of the arm; a settled one takes no further pulls."""
        while evidence.ready(self.docket, arm, self.board.pending[arm]):
            capital = self.capitals.get(arm)
            if capital is None:
                capital = self.capitals[arm] = array("d", [0.0]) * evidence.columns_needed(self.stakes.tolerance)
                evidence.reset(capital)
            evidence.advance(self.docket, arm, capital, self.stakes)
            if self.docket.settled[arm]:
                self.settled += 1
                self.due = None if self.due == arm else self.due
                self._shut(arm)

    def _shut(self, arm: int) -> None:
        """Retired and settled arms take no further pulls."""
        shut = int(arm in self.retired or (self.certifies and self.docket.settled[arm] != evidence.OPEN))
        self.open += self.board.shut[arm] - shut
        self.board.shut[arm] = shut

    def _blame(self, arm: int, event: Event) -> None:
        self.failures[arm] += 1
        self.complaint[arm] = event.reason or "no reason was given"

    def _rescore(self, arm: int) -> None:
        if self.folding:
            return
        kernel.rescore(self.board, arm, self.formula, self.rule)
        if self.alternates:
            kernel.rescore(self.second, arm, kernel.cheapest, self.second_rule)

    def _rescore_all(self) -> None:
        if self.folding:
            return
        kernel.rescore_all(self.board, self.formula, self.rule)
        if self.alternates:
            kernel.rescore_all(self.second, kernel.cheapest, self.second_rule)

    def state(self) -> dict[str, Any]:
        """All of the state, for comparing two ledgers to the bit."""
        return {name: value for name, value in vars(self).items() if name not in ("formula", "intervals")}


def begun(first: Event | None) -> Ledger:
    """The ledger after the first event of a log, which must be `created`."""
    if first is None or first.kind != "created" or first.seq != 1 or first.spec is None:
        raise InvalidInput("log", first and first.kind, "must begin with event 1, created", "this is no log of a study")
    return Ledger(spec.from_json(first.spec))


def fold(events: Iterable[Event]) -> Ledger:
    """The ledger that a whole log makes; its first event must be `created`."""
    stream = iter(events)
    ledger = begun(next(stream, None))
    ledger.folding = True  # the scores follow from the columns: it is enough to have them when all is folded in
    for event in stream:
        ledger.apply(event)
    ledger.folding = False
    ledger._rescore_all()
    return ledger


_KINDS = {
    "asked": (Ledger._check_asked, Ledger._asked),
    "told": (Ledger._check_told, Ledger._told),
    "dropped": (Ledger._check_dropped, Ledger._dropped),
    "retired": (Ledger._check_retired, Ledger._retired),
    "restored": (Ledger._check_restored, Ledger._restored),
    "extended": (Ledger._check_extended, Ledger._extended),
}
