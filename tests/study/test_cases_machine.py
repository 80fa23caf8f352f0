"""Eval sets, ranked lists and finding, under every order of calls: a simple model says what must come out."""

import math
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, precondition
from hypothesis.stateful import rule as step

import thresher
from thresher.core.events import Cause
from thresher.core.evidence import ABOVE
from thresher.core.ledger import fold_ledger
from thresher.core.question import is_above
from thresher.core.replay import verify
from thresher.study import give_up_in_study, peek_study

ARMS = ["a", "b", "c"]
arms = st.sampled_from(ARMS)
rewards = st.sampled_from([0.0, 0.25, 0.5, 1.0])
QUESTIONS = st.sampled_from(
    [
        {"confidence": None},
        {"confidence": 0.5},
        {"confidence": 0.5, "tolerance": 0.2},
        {"confidence": 0.5, "guarantee": "rate"},
        {"confidence": 0.5, "guarantee": "rate", "tolerance": 0.2},
        {"confidence": 0.5, "find": 1},
        {"confidence": 0.9, "find": 2},
        {"confidence": 0.9, "find": 3},
        {"confidence": 0.5, "find": 2, "tolerance": 0.2},
    ]
)


class Arm:
    """What is known about an arm's cases."""

    def __init__(self) -> None:
        self.order: list[int] = []  # the cases that were tried, in the order of their places
        self.known: dict[int, float] = {}
        self.holder: dict[int, int] = {}  # by case: the pending pull that may still fill it
        self.failures: dict[int, int] = {}
        self.failed: set[int] = set()
        self.streak = 0


class CasesMachine(RuleBasedStateMachine):
    """The model is a dict of cases for each arm."""

    pulls: Any = Bundle("pulls")
    gone: Any = Bundle("gone")

    @initialize(
        question=QUESTIONS,
        cases=st.integers(1, 6),
        tries=st.integers(1, 3),
        budget=st.sampled_from([None, 8, 20]),
        limit=st.sampled_from([None, 1, 2]),
        seed=st.integers(0, 2**70),
    )
    def create(
        self, question: Any, cases: int, tries: int, budget: int | None, limit: int | None, seed: int
    ) -> None:  # fmt: skip
        self.study = thresher.create_study(
            "s", arms=ARMS, at_least=0.5, cases=cases, tries=tries, budget=budget, max_failures=limit, seed=seed,
            **question,
        )  # fmt: skip
        self.cases, self.tries, self.budget, self.limit = cases, tries, budget, limit
        self.arms = {arm: Arm() for arm in ARMS}
        self.issued = self.imported = self.told = 0
        self.of: dict[int, tuple[str, int]] = {}
        self.pending: set[int] = set()
        self.seeds: dict[tuple[str, int], int] = {}
        self.retired: set[str] = set()
        self.answers: dict[str, bool] = {}

    def settled(self) -> dict[str, bool]:
        """Whether each settled arm reaches the bar."""
        labels = peek_study(self.study, lambda ledger: list(ledger.docket.settled))
        return {arm: label == ABOVE for arm, label in zip(ARMS, labels, strict=False) if label}

    def counted(self, arm: str) -> set[bool]:
        """The answers that are right whatever is missing; within the tolerance, both are."""
        known, (low, high) = self.arms[arm].known.values(), self.study.verdict().edges
        missing = self.cases - len(known)
        reaches = is_above(math.fsum(known), self.cases, low)
        misses = not is_above(math.fsum(known) + missing, self.cases, high)
        return {answer for answer, is_right in ((True, reaches), (False, misses)) if is_right}

    def free(self, arm: str) -> int:
        """How many cases of the arm may be tried."""
        state = self.arms[arm]
        return self.cases - len(state.known.keys() | state.holder.keys() | state.failed)

    def done(self) -> bool:
        settled = self.settled()
        if self.budget is not None and self.issued >= self.budget:
            return True
        takes = [arm for arm in ARMS if arm not in settled and arm not in self.retired and self.free(arm)]
        find = self.study.spec.find
        if find is None or not takes:
            return not takes
        above = sum(settled.values())
        waits = [arm for arm in ARMS if arm not in settled and not self.free(arm) and self.pulls_of(arm)]
        return above >= find or above + len(takes) + len(waits) < find

    def pulls_of(self, arm: str) -> list[int]:
        return [pull for pull in self.pending if self.of[pull][0] == arm]

    @step(target=pulls, n=st.integers(0, 5))
    def ask(self, n: int) -> Any:
        issued = self.study.ask_many(n)
        for pull in issued:
            assert isinstance(pull.case, int)
            state, case = self.arms[pull.arm], pull.case
            self.issued += 1
            assert pull.id == self.issued
            assert pull.arm not in self.retired
            assert case not in state.known
            assert case not in state.holder
            assert case not in state.failed
            open_before = [c for c in state.order if c not in state.known.keys() | state.holder.keys() | state.failed]
            if open_before:
                assert case == open_before[0]  # the lowest free place
            else:
                assert case not in state.order
                state.order.append(case)
            assert self.seeds.setdefault((pull.arm, case), pull.seed) == pull.seed
            state.holder[case] = pull.id
            self.of[pull.id] = pull.arm, case
            self.pending.add(pull.id)
        assert len(set(self.seeds.values())) == len(self.seeds)
        assert len(issued) == n or self.done()
        return multiple(*(pull.id for pull in issued))

    def learn(self, pull: int, reward: float) -> None:
        arm, case = self.of[pull]
        state = self.arms[arm]
        self.pending.discard(pull)
        self.told += 1
        state.streak = 0
        state.known.setdefault(case, reward)
        state.failed.discard(case)
        state.holder.pop(case, None)

    @step(pull=consumes(pulls), reward=rewards)
    def tell(self, pull: int, reward: float) -> None:
        self.study.tell(pull, reward)
        self.learn(pull, reward)

    @step(pull=consumes(gone), reward=rewards)
    def tell_late(self, pull: int, reward: float) -> None:
        self.study.tell(pull, reward)
        self.learn(pull, reward)
        self.study.tell(pull, reward)  # the same again is accepted

    @step(
        target=gone,
        pull=consumes(pulls),
        cause=st.sampled_from(["failed", "failed", "lost", "cancelled", "outage", "refused"]),
    )
    def drop(self, pull: int, cause: Cause) -> int:
        arm, case = self.of[pull]
        state, settled = self.arms[arm], self.settled()
        shut = arm in settled or arm in self.retired or not self.free(arm)
        give_up_in_study(self.study, pull, cause=cause, reason="gone")
        self.study.drop(pull, cause="failed")  # a second drop counts for nothing
        self.pending.discard(pull)
        if state.holder.get(case) != pull:
            return pull  # a late reward came before
        del state.holder[case]
        if cause in ("failed", "outage"):
            state.failures[case] = state.failures.get(case, 0) + 1
            if state.failures[case] >= self.tries:
                state.failed.add(case)
        if cause == "refused" or (cause == "failed" and case in state.failed):
            state.streak += 1
            if self.limit is not None and state.streak >= self.limit and not shut:
                self.retired.add(arm)
        return pull

    @step(arm=arms)
    def retire(self, arm: str) -> None:
        self.study.retire(arm)
        self.retired.add(arm)

    @step(arm=arms)
    def restore(self, arm: str) -> None:
        self.study.restore(arm)
        if arm in self.retired:
            self.retired.discard(arm)
            self.arms[arm].streak = 0

    @precondition(lambda self: self.issued == self.imported and (self.budget is None or self.issued < self.budget))
    @step(arm=arms, case=st.integers(0, 7), reward=st.one_of(st.none(), rewards))
    def add(self, arm: str, case: int, reward: float | None) -> None:
        state = self.arms[arm]
        if case >= self.cases or (reward is not None and case in state.known):
            with pytest.raises(thresher.InvalidInput):
                self.study.add(arm, reward, case=case)
            return
        self.study.add(arm, reward, case=case)
        if reward is not None:
            self.issued += 1
            self.imported += 1
            self.told += 1
            state.streak = 0
            state.known[case] = reward

    @precondition(lambda self: self.issued > self.imported)
    @step(arm=arms)
    def add_too_late(self, arm: str) -> None:
        with pytest.raises(thresher.InvalidInput):
            self.study.add(arm, 1, case=0)

    @invariant()
    def the_study_is_what_the_model_says(self) -> None:
        if not hasattr(self, "study"):
            return
        verdict, settled = self.study.verdict(), self.settled()
        assert (verdict.issued, verdict.told, verdict.pending) == (self.issued, self.told, len(self.pending))
        assert verdict.done == self.study.done == self.done()
        assert set(verdict.retired) == self.retired - set(settled)
        if self.study.spec.confidence is not None:
            assert [*map(set, (verdict.reached, verdict.missed))] == [
                {arm for arm, answer in settled.items() if answer == side} for side in (True, False)
            ]
            assert set(verdict.open) == set(ARMS) - settled.keys()
        for row in verdict.rows:
            state, counted = self.arms[row.arm], self.counted(row.arm)
            assert (row.seen, row.cases, row.missing) == (len(state.known), len(state.known), len(state.failed))
            assert row.exact == (len(state.known) == self.cases)
            assert row.certified == (row.arm in settled)
            if self.study.spec.confidence is not None:
                assert not counted or settled[row.arm] in counted  # what is certain is settled
            before = self.answers.get(row.arm)
            if before is not None and settled[row.arm] != before:  # only where it is proven wrong beyond its edge
                assert counted == {settled[row.arm]}
            if row.exact and row.certified and before is None:
                assert settled[row.arm] in counted
            if row.low is not None and row.high is not None:
                least = math.fsum(state.known.values()) / self.cases
                assert least - 1e-9 <= row.low <= row.high <= least + 1 - len(state.known) / self.cases + 1e-9
        self.answers = settled

    @invariant()
    def the_log_makes_the_same_state_and_is_sound(self) -> None:
        if hasattr(self, "study"):
            assert fold_ledger(self.study.events()).state() == peek_study(self.study, lambda ledger: ledger.state())

    def teardown(self) -> None:
        if hasattr(self, "study"):
            assert verify(self.study.events()).sound
            assert [row.case for row in self.study.pulls() if row.id > self.imported] == [
                case for pull, (_, case) in sorted(self.of.items()) if pull > self.imported
            ]


CasesMachine.TestCase.settings = settings(max_examples=35, stateful_step_count=35, deadline=None)
TestCases = CasesMachine.TestCase
