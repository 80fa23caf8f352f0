"""A study under every order of calls: a simple model says what must come out."""

import math
from typing import Any

import pytest
import rewritten
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)

import thresher
from thresher.core import policies
from thresher.core.events import Cause
from thresher.core.ledger import fold_ledger
from thresher.core.policies import Policy, custom
from thresher.study import give_up_in_study, peek_study

rewards = st.floats(0, 1)
arms = st.sampled_from(["a", "b", "c", "d"])


class StudyMachine(RuleBasedStateMachine):
    """The model is a few dicts: what was issued, what came back, who is retired."""

    pulls: Any = Bundle("pulls")
    ended: Any = Bundle("ended")

    @initialize(
        policy=st.sampled_from([*sorted(policies.CONSTRUCTORS), rewritten.DOUBLING, custom(rewritten.thirds)]),
        budget=st.integers(8, 40),
        limit=st.integers(1, 3),
        confidence=st.sampled_from([None, 0.5]),
        tolerance=st.sampled_from([0.0, 0.2, 0.4]),
    )
    def create(self, policy: str | Policy, budget: int, limit: int, confidence: float | None, tolerance: float) -> None:
        self.study = thresher.create_study(
            "s",
            arms=["a", "b", "c", "d"],
            at_least=0.5,
            budget=budget,
            policy=policy,
            confidence=confidence,
            tolerance=0.0 if confidence is None else tolerance,
            max_failures=limit,
        )
        self.budget, self.limit, self.issued = budget, limit, 0
        self.pending: set[int] = set()
        self.dropped: set[int] = set()
        self.told: dict[int, float] = {}
        self.arm: dict[int, str] = {}
        self.streak = dict.fromkeys("abcd", 0)
        self.retired: set[str] = set()
        self.outside: set[str] = set()
        self.certain: dict[str, bool | None] = {}
        self.imported, self.weighed = 0, False
        self.key: dict[int, str] = {}  # of the ask that issued a pull
        self.again: set[int] = set()

    def settled(self) -> dict[str, bool | None]:
        """The arms whose answer stays; those that proved the bounds wrong are not certified all the same."""
        kept = peek_study(
            self.study, lambda ledger: [ledger.certifies and ledger.docket.settled[arm] for arm in range(4)]
        )
        return {row.arm: row.reached for row, label in zip(self.study.verdict().rows, kept, strict=True) if label}

    def done(self) -> bool:
        if self.imported and not self.weighed and self.study.spec.confidence is not None:
            return False  # the first ask weighs what was imported
        return self.issued >= self.budget or len(self.retired | set(self.settled())) == 4

    @rule(target=pulls, n=st.integers(0, 6))
    def ask(self, n: int) -> Any:
        before = self.settled()
        key = f"ask {self.study.verdict().events}"
        issued = self.study.ask_many(n, key=key)
        assert len(issued) <= n
        assert not {pull.arm for pull in issued} & set(before)
        self.weighed |= n > 0 and self.imported > 0 and self.study.spec.confidence is not None
        for pull in issued:
            self.issued += 1
            assert pull.id == self.issued
            assert pull.arm not in self.retired
            self.arm[pull.id] = pull.arm
            assert pull.number == list(self.arm.values()).count(pull.arm)
            self.pending.add(pull.id)
            self.key[pull.id] = key
        assert len(issued) == n or self.done()
        return multiple(*(pull.id for pull in issued))

    @rule(pull=st.one_of(pulls, ended))
    def ask_again(self, pull: int) -> None:
        """The same pulls; those without a reward may be evaluated twice."""
        found = [each.id for each in self.study.ask_many(1, key=self.key[pull])]
        assert found == [each for each, key in self.key.items() if key == self.key[pull]]
        self.again |= {each for each in found if each in self.pending | (self.dropped - self.told.keys())}

    @rule(target=ended, pull=consumes(pulls), reward=rewards)
    def tell(self, pull: int, reward: float) -> int:
        self.study.tell(pull, reward)
        self.pending.discard(pull)
        self.told[pull] = reward
        self.streak[self.arm[pull]] = 0
        return pull

    @rule(
        target=ended, pull=consumes(pulls), cause=st.sampled_from(["failed", "failed", "lost", "cancelled", "outage"])
    )
    def drop(self, pull: int, cause: Cause) -> int:
        give_up_in_study(self.study, pull, cause=cause, reason="dropped by a runner")
        self.pending.discard(pull)
        self.dropped.add(pull)
        if cause == "failed":
            arm = self.arm[pull]
            self.streak[arm] += 1
            if self.streak[arm] >= self.limit and arm not in self.settled():
                self.retired.add(arm)
        return pull

    @rule(pull=ended, reward=rewards)
    def tell_again(self, pull: int, reward: float) -> None:
        """Late for a dropped pull, idempotent for the same reward, an error for another."""
        if pull in self.told and self.told[pull] != reward:
            with pytest.raises(thresher.AlreadyTold):
                self.study.tell(pull, reward)
            reward = self.told[pull]
        self.study.tell(pull, reward)
        if pull not in self.told:
            self.told[pull] = reward
            self.streak[self.arm[pull]] = 0

    @rule(pull=consumes(pulls), reward=st.sampled_from([1.5, -0.25, math.inf]), late=st.booleans())
    def tell_outside(self, pull: int, reward: float, late: bool) -> None:
        """The bounds are wrong: the arm is retired, and certified no more. The pull has its reward."""
        if late:
            self.study.drop(pull, cause="lost")
        for _ in range(2):
            with pytest.raises(thresher.OutsideBounds):
                self.study.tell(pull, reward)
        with pytest.raises(thresher.AlreadyTold):
            self.study.tell(pull, 0.5)
        self.study.drop(pull, cause="lost")
        self.pending.discard(pull)
        self.outside.add(self.arm[pull])
        self.retired.add(self.arm[pull])

    @rule(pull=ended)
    def drop_again(self, pull: int) -> None:
        if pull in self.told:
            with pytest.raises(thresher.AlreadyTold):
                self.study.drop(pull, cause="lost")
        else:
            self.study.drop(pull, cause="failed")  # a second drop counts for nothing

    @rule(more=st.integers(-2, 6))
    def extend(self, more: int) -> None:
        if more < 0:
            with pytest.raises(thresher.InvalidInput):
                self.study.extend(budget=self.budget + more)
        else:
            self.study.extend(budget=self.budget + more)
            self.budget += more

    @rule(arm=arms)
    def retire(self, arm: str) -> None:
        self.study.retire(arm)
        self.retired.add(arm)

    @rule(arm=arms)
    def restore(self, arm: str) -> None:
        self.study.restore(arm)
        if arm in self.retired:
            self.retired.discard(arm)
            self.streak[arm] = 0

    @precondition(lambda self: self.issued == self.imported and self.issued < self.budget)
    @rule(arm=arms, reward=st.one_of(st.none(), st.sampled_from([0.0, 1.0]), rewards), times=st.integers(1, 8))
    def add(self, arm: str, reward: float | None, times: int) -> None:
        results = [(arm, reward)] * min(times, self.budget - self.issued)
        if self.weighed:
            with pytest.raises(thresher.InvalidInput, match="before the first ask"):
                self.study.add_many(results)
            return
        before = self.settled()
        self.study.add_many(results)
        assert self.settled() == before  # looked at once, at the first ask
        for _ in results:
            self.issued += 1
            self.imported += 1
            self.arm[self.issued] = arm
            if reward is not None:
                self.told[self.issued] = reward
                self.streak[arm] = 0

    @invariant()
    def the_study_is_what_the_model_says(self) -> None:
        if not hasattr(self, "study"):
            return
        verdict = self.study.verdict()
        assert (verdict.issued, verdict.pending, verdict.told) == (self.issued, len(self.pending), len(self.told))
        settled = self.settled()
        certified = set(settled) - self.outside
        assert set(verdict.retired) == self.retired - certified
        assert set(verdict.outside) == self.outside
        assert {row.arm for row in verdict.rows if row.certified} == certified
        answered = certified if self.study.spec.confidence is not None else {self.arm[pull] for pull in self.told}
        assert set(verdict.open) == set("abcd") - (answered - set(verdict.retired))
        assert {*verdict.reached, *verdict.missed} == set("abcd") - set(verdict.open)
        assert {arm: settled.get(arm) for arm in self.certain} == self.certain  # a settled answer never changes
        self.certain = settled
        assert verdict.done == self.study.done == self.done()
        for row in verdict.rows:
            seen = [reward for pull, reward in self.told.items() if self.arm[pull] == row.arm]
            assert row.seen == len(seen)
            if seen:
                assert row.mean == pytest.approx(math.fsum(seen) / len(seen))
        assert {pull.id for pull in self.study.pending()} == self.pending
        if self.study.spec.confidence is not None:
            assert ("may have been, repeated" in verdict.guarantee) == bool(self.again & self.told.keys())

    @invariant()
    def the_log_makes_the_same_state(self) -> None:
        if hasattr(self, "study"):
            assert fold_ledger(self.study.events()).state() == peek_study(self.study, lambda ledger: ledger.state())


StudyMachine.TestCase.settings = settings(max_examples=35, stateful_step_count=40, deadline=None)
TestStudy = StudyMachine.TestCase
