"""The state of a study: what its events make of it, and what can be read from that at once."""

from array import array
from typing import Any

from ..errors import UnknownPull
from . import columns, evidence, kernel, seeds
from .events import Event
from .spec import Spec


class State:
    """A study as its events make it. Arms and pulls are numbers here; names belong to the border."""

    def __init__(self, specification: Spec) -> None:
        self.spec = specification
        self.seq = 1
        self.last = Event(1, "created")  # the event that was folded in last; no part of the state, but where it ends
        self.budget = specification.budget
        self.issued = self.told = self.pending = self.imported = 0
        self.repeatable = False  # whether some rewards come from evaluations that were made more than once
        self.unweighed = False  # whether imported results wait to be looked at, all at once
        self.weighed = False  # whether they were
        self.shuffle = ""  # the key to an order of theirs that nobody could foresee, for intervals
        self.evaluators = [] if specification.evaluator is None else [specification.evaluator]
        arms = len(specification.arms)
        self.formula: kernel.Formula = getattr(kernel, specification.policy.function)
        self.rule = specification.policy.rule(specification.scaled_threshold, arms=arms, budget=self.budget)
        self.board = columns.board(arms)
        self.second = columns.second(self.board)
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
        self.outside: set[int] = set()  # arms that proved the bounds wrong: nothing is certified about them any more
        self.complaint: dict[int, str] = {}  # the reason of the last failure
        self.certifies = specification.confidence is not None
        self.stakes = columns.stakes_of(specification)
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

    @property
    def done(self) -> bool:
        """The budget is issued, or no arm takes pulls any more; imported results are weighed by an ask before that."""
        if self.unweighed:
            return False
        return self.open == 0 or (self.budget is not None and self.issued >= self.budget)

    def seed_of(self, pull: int) -> int:
        """The seed of a pull that was issued."""
        arm, number = self.pull_arm[pull - 1], self.pull_number[pull - 1]
        return seeds.seed_of(pull, arm, number, self.spec)

    @property
    def head(self) -> str | None:
        """The digest of the last event, which stands for the whole log; None: not chained."""
        return None if self.last.digest is None else self.last.digest.hex()

    def choose(self) -> int | None:
        """The arm that the next pull must go to; None exactly when done."""
        if self.done:
            return None
        return kernel.choose_for(self.board, self.second, self.issued + 1, self.alternates)

    def is_certified(self, arm: int) -> bool:
        """Whether the arm's label can be relied on."""
        return self.certifies and self.docket.settled[arm] != evidence.OPEN and arm not in self.outside

    @property
    def certified(self) -> int:
        """How many labels can be relied on."""
        return self.settled - sum(self.docket.settled[arm] != evidence.OPEN for arm in self.outside if self.certifies)

    def state_of(self, pull: object) -> int:
        """PENDING, TOLD, DROPPED, LATE or OUTSIDE."""
        if isinstance(pull, bool) or not isinstance(pull, int) or not 1 <= pull <= self.issued:
            rule = (
                f"this study has issued pulls 1 to {self.issued}"
                if self.issued
                else "this study has issued no pull yet"
            )
            raise UnknownPull("pull", pull, rule, "tell pulls that ask() gave")
        return self.pull_state[pull - 1]
