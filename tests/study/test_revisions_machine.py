"""Random histories of edits: every verdict has exactly the results that hold, and none of them is evaluated again."""

import random
from collections.abc import Hashable
from typing import Any
from unittest.mock import patch

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, precondition
from hypothesis.stateful import rule as step

import thresher
from thresher.core.ledger import fold_ledger
from thresher.core.replay import verify
from thresher.core.spec import Spec
from thresher.log.store import MemoryStore
from thresher.study import Pull, peek_study, revise_study

ARMS, CASES, VERSIONS = ("a", "b", "c"), ("p", "q", "r", "s", "t"), st.integers(0, 1)
BARS = st.sampled_from([{}, {"tolerance": 0.1}, {"at_least": 0.6}, {"confidence": 0.6}, {"guarantee": "rate"}])


class RevisionsMachine(RuleBasedStateMachine):
    """The model knows what each result depends on, and which results stand."""

    has_cases = True
    pulls: Any = Bundle("pulls")

    def __init__(self) -> None:
        super().__init__()
        self.drawn = patch("os.urandom", random.Random(1).randbytes)  # each example must be repeatable
        self.drawn.start()

    @initialize()
    def create(self) -> None:
        self.store, self.arms, self.cases = MemoryStore(), dict.fromkeys(ARMS[:2], 0), dict.fromkeys(CASES[:3], 0)
        self.code = 0
        self.question: dict[str, Any] = {}
        self.numbers: dict[int, int] = {0: 0}  # by code: revisions with the same number are about the same code
        self.number = self.largest = 0
        self.results: dict[Hashable, float | None] = {}  # by what it depends on; None: it failed for good
        self.rewards: dict[Hashable, list[float]] = {}  # without cases: of each history, in order
        self.revise(None, first=True)

    def spec(self) -> Spec:
        question = {"at_least": 0.5, "max_failures": None, **self.question}
        if self.has_cases:
            question["cases"] = {case: {"version": version} for case, version in self.cases.items()}
        arms = {arm: {"version": version} for arm, version in self.arms.items()}
        return Spec(arms=arms, depends={"files": {"code.py": str(self.code)}}, **question)

    def revise(self, taking: Any, *, first: bool = False) -> None:
        if first:
            arms = self.spec()
            self.study = thresher.create.create_from_spec("s", arms, storage=self.store)
            return
        revise_study(self.study, self.spec(), taking=taking)

    def history(self, arm: str) -> Hashable:
        """What the history of an arm depends on."""
        return self.number, arm, self.arms[arm], frozenset(self.cases.items()) if self.has_cases else None

    def key(self, arm: str, case: Any) -> Hashable:
        """What a result depends on."""
        return self.number, arm, self.arms[arm], case, self.cases[case]

    # -- pulls --------------------------------------------------------------------------------------------------------

    def ask(self) -> Any:
        pull = self.study.ask()
        if pull is None:
            return multiple()
        if self.has_cases:
            assert self.key(pull.arm, pull.case) not in self.results, "a result that holds is evaluated again"
        return pull, self.history(pull.arm)

    @step(target=pulls)
    def begin(self) -> Any:
        return self.ask()

    @step(rewards=st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=8))
    def evaluate(self, rewards: list[float]) -> None:
        for reward in rewards:
            asked = self.ask()
            if isinstance(asked, tuple):
                self.tell(asked, reward)

    def goes_on(self, pull: Pull) -> bool:
        """Whether the pull's history goes on, perhaps again: late rewards count."""
        return peek_study(self.study, lambda ledger: ledger.arm_of(pull.id)) is not None

    def is_pending(self, pull: Pull) -> bool:
        """Whether nothing has ended the pull: the end of its history does."""
        return pull.id in peek_study(self.study, lambda ledger: ledger.pending_pulls())

    @step(asked=consumes(pulls), reward=st.sampled_from([0.0, 0.5, 1.0]))
    def end(self, asked: Any, reward: float) -> None:
        self.tell(asked, reward)

    def tell(self, asked: Any, reward: float) -> None:
        pull, history = asked
        counts = self.goes_on(pull)
        self.study.tell(pull, reward)
        self.study.tell(pull, reward)  # the same again is accepted
        if counts and self.has_cases:
            self.results.setdefault(self.key(pull.arm, pull.case), reward)
        elif counts:
            self.rewards.setdefault(history, []).append(reward)

    @step(asked=consumes(pulls))
    def fail(self, asked: Any) -> None:
        pull, _ = asked
        counts = self.is_pending(pull)
        self.study.drop(pull, cause="failed")
        if counts and self.has_cases:
            self.results.setdefault(self.key(pull.arm, pull.case), None)

    @step(asked=consumes(pulls))
    def lose(self, asked: Any) -> None:
        self.study.drop(asked[0], cause="lost")

    # -- edits --------------------------------------------------------------------------------------------------------

    @step(arm=st.sampled_from(ARMS), version=VERSIONS)
    def edit_arm(self, arm: str, version: int) -> None:
        self.arms[arm] = version
        self.revise(None)

    @precondition(lambda self: len(self.arms) > 1)
    @step(choose=st.integers(0, 2))
    def remove_arm(self, choose: int) -> None:
        del self.arms[sorted(self.arms)[choose % len(self.arms)]]
        self.revise(None)

    @precondition(lambda self: self.has_cases)
    @step(case=st.sampled_from(CASES), version=VERSIONS)
    def edit_case(self, case: str, version: int) -> None:
        self.cases[case] = version
        self.revise(None)

    @precondition(lambda self: self.has_cases and len(self.cases) > 1)
    @step(choose=st.integers(0, 4))
    def remove_case(self, choose: int) -> None:
        del self.cases[sorted(self.cases)[choose % len(self.cases)]]
        self.revise(None)

    @step(question=BARS)
    def ask_another_question(self, question: dict[str, Any]) -> None:
        self.question = question
        self.revise(None)

    @step(code=st.integers(0, 2))
    def edit_code(self, code: int) -> None:
        self.code = code
        self.largest = max(self.largest, *self.numbers.values(), self.number)
        self.number = self.numbers.setdefault(code, self.largest + 1)
        self.revise(None)

    @step(code=st.integers(0, 2))
    def vouch_for_code(self, code: int) -> None:
        if code != self.code:
            self.code = code
            self.numbers[code] = self.number
            self.revise("vouched")

    @step()
    def start_over(self) -> None:
        self.largest = max(self.largest, *self.numbers.values(), self.number) + 1
        self.number = self.largest
        self.numbers = {self.code: self.number}
        self.revise("fresh")

    # -- promises -----------------------------------------------------------------------------------------------------

    @invariant()
    def the_verdict_has_what_holds(self) -> None:
        if not hasattr(self, "study"):
            return
        verdict = self.study.verdict()
        assert {row.arm for row in verdict} == set(self.arms)
        for row in verdict:
            if self.has_cases:
                held = [self.results.get(self.key(row.arm, case)) for case in self.cases]
                missing = sum(self.key(row.arm, case) in self.results for case in self.cases)
                rewards = [reward for reward in held if reward is not None]
                assert row.missing == missing - len(rewards)
            else:
                rewards = self.rewards.get(self.history(row.arm), [])
            assert row.seen == len(rewards)
            assert row.mean is None if not rewards else abs((row.mean or 0.0) - sum(rewards) / len(rewards)) < 1e-12

    @invariant()
    def reopening_is_bit_equal(self) -> None:
        if hasattr(self, "study"):
            state = peek_study(self.study, lambda ledger: ledger.state())
            assert fold_ledger(self.study.events()).state() == state

    def teardown(self) -> None:
        self.drawn.stop()
        if hasattr(self, "study"):
            report = verify(self.study.events())
            assert report.sound, report.reason
            assert [row.id for row in self.study.pulls()] == list(range(1, len(self.study.pulls()) + 1))


class DrawsMachine(RevisionsMachine):
    """The same without cases."""

    has_cases = False


TestRevisions = RevisionsMachine.TestCase
TestRevisions.settings = settings(max_examples=30, stateful_step_count=40, deadline=None)
TestDraws = DrawsMachine.TestCase
TestDraws.settings = settings(max_examples=20, stateful_step_count=40, deadline=None)
