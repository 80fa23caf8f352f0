"""Rewards that are kept back until an edit: what a study was asked for counts, whether it is told or not."""

from typing import Any

import pytest

import thresher
from thresher.core.evidence import mean_capital
from thresher.core.ledger import fold_ledger
from thresher.core.replay import verify
from thresher.log.store import MemoryStore
from thresher.study import peek_study

CASES = [f"q{number}" for number in range(100)]
ARMS = ["a", "b"]


class Edited:
    """A study that is asked again in one store."""

    def __init__(self, **question: Any) -> None:
        self.question: dict[str, Any] = {"arms": ARMS, "at_least": 0.5, "storage": MemoryStore(), **question}
        self.study = thresher.create_study("s", **self.question)

    def edit(self, **changes: Any) -> thresher.Verdict:
        self.question |= changes
        self.study = thresher.create_study("s", **self.question, if_exists="revise")
        return self.study.verdict()

    def tell(self, arm: str, rewards: list[float | None]) -> None:
        """The rewards of the arm's next pulls, asked for together; None is not told."""
        for pull, reward in zip(self.study.ask_many(len(rewards), arm=arm), rewards, strict=True):
            if reward is not None:
                self.study.tell(pull, reward)

    def evidence(self, arm: int = 0) -> float:
        """That the arm reaches the bar."""
        return peek_study(self.study, lambda ledger: mean_capital(ledger.capitals[arm], 0))

    def tell_all(self, reward: float = 1.0) -> None:
        while pull := self.study.ask():
            self.study.tell(pull, reward)


def test_cases_that_were_handed_out_count_as_the_worst_once_the_list_is_edited() -> None:
    told, kept_back = Edited(cases=CASES, seed=1), Edited(cases=CASES, seed=1)
    told.tell("a", [1.0] * 4)
    kept_back.tell("a", [1.0] * 4 + [None] * 2)
    for edited in (told, kept_back):
        edited.edit(cases=CASES[1:])
    assert 0.0 < kept_back.evidence() < 0.5 * told.evidence()


@pytest.mark.parametrize("rewards", [[1.0], [None], []], ids=["told", "kept back", "not asked for"])
def test_every_history_that_begins_counts_in_what_is_promised(rewards: list[float | None]) -> None:
    edited = Edited(arms={"a": {"version": 0}, "b": {}})
    for version in range(1, 4):
        edited.tell("a", rewards)
        edited.edit(arms={"a": {"version": version}, "b": {}})
    assert edited.study.verdict().promised == pytest.approx(1 - 0.05 * (1 + 3 / 2), abs=1e-4)


def test_every_list_of_cases_draws_new_orders_so_it_counts_in_what_is_promised() -> None:
    edited = Edited(cases=CASES)
    edited.tell("a", [1.0] * 3)
    edited.tell("b", [1.0] * 3)
    assert edited.edit(cases=[*CASES, "new"]).promised == pytest.approx(0.9, abs=1e-4)
    assert edited.edit(cases=CASES).promised == pytest.approx(0.9, abs=1e-4), "the old order goes on"
    assert edited.edit(cases=[*CASES, "newer"]).promised == pytest.approx(0.85, abs=1e-4)


def test_removing_an_arm_whose_cases_were_all_replaced_does_not_lower_what_counts() -> None:
    edited = Edited(cases=CASES)
    edited.tell("a", [1.0] * 9)
    edited.edit(cases=[f"r{number}" for number in range(100)])
    assert edited.edit(arms=["b"]).promised == pytest.approx(0.9, abs=1e-4)


def test_a_case_that_failed_for_another_list_has_failed_when_the_list_is_as_before() -> None:
    edited = Edited(cases=CASES[:20])
    edited.tell("a", [1.0] * 3)
    edited.edit(cases=CASES[:19])
    failed = []
    for pull in edited.study.ask_many(5, arm="a"):
        edited.study.drop(pull, cause="failed")
        failed.append(pull.case)
    edited.edit(cases=CASES[:20])
    edited.tell_all()
    tried = {row.case for row in edited.study.pulls() if row.arm == "a" and row.state == "told"}
    assert not tried & set(failed)


# -- the bar ----------------------------------------------------------------------------------------------------------


def test_the_bar_is_moved_also_if_the_arm_was_away_in_between() -> None:
    edited = Edited()
    edited.tell("a", [1.0] * 3)
    edited.edit(arms=["b"])
    edited.edit(arms=ARMS, at_least=0.6)
    assert edited.study.verdict().promised == pytest.approx(0.9, abs=1e-4)


def test_the_bar_is_moved_also_if_rewards_counted_otherwise_in_between() -> None:
    edited = Edited()
    for arm in ARMS:
        edited.tell(arm, [1.0] * 3)
    edited.edit(failure=0.0)
    verdict = edited.edit(failure="worst", at_least=0.6)
    assert verdict.promised == pytest.approx(1 - 0.05 * 2 * 2, abs=1e-4)


def test_a_tolerance_that_is_moved_costs_nothing() -> None:
    edited = Edited()
    edited.tell("a", [1.0] * 3)
    assert edited.edit(tolerance=0.1).promised == pytest.approx(0.95, abs=1e-4)


# -- what the first reward of a case counts as -------------------------------------------------------------------------


def test_a_failure_that_counts_as_a_number_counts_as_that_in_the_next_list() -> None:
    edited = Edited(cases=CASES[:20], failure=0.0)
    for pull in edited.study.ask_many(10):
        edited.study.drop(pull, cause="failed")
    held = edited.edit(cases=CASES[:21])
    assert (held.told, held.held) == (10, 10)
    assert "failed for good" not in held.guarantee


def test_a_failure_does_not_count_as_another_number() -> None:
    edited = Edited(cases=CASES[:20], failure=0.0)
    while pull := edited.study.ask():
        edited.study.drop(pull, cause="failed")
    edited.edit(failure=1.0)
    edited.tell_all()
    assert not edited.study.verdict()["a"].exact


def test_the_first_of_two_rewards_of_a_case_stands_also_without_cases_in_between() -> None:
    edited = Edited(arms=["a"], cases=CASES[:2], confidence=0.95)
    first = edited.study.ask()
    assert first
    edited.study.drop(first, cause="lost")
    again = edited.study.ask()
    assert again
    assert again.case == first.case
    edited.study.tell(again, 0.0)
    edited.study.tell(first, 1.0)
    edited.edit(cases=None)
    edited.edit(cases=CASES[:2], failure=0.0)
    rewards = {row.case: dict(row.rewards) for row in edited.study.cases()}
    assert rewards == {first.case: {"a": 0.0}}


def test_rewards_after_a_failed_try_are_told_of_after_an_edit() -> None:
    edited = Edited(arms=["a"], cases=CASES[:20], tries=2, at_least=0.9)
    first = edited.study.ask()
    assert first
    edited.study.drop(first, cause="failed")
    edited.tell("a", [1.0])
    assert "1 reward came after a failed try" in edited.study.verdict().guarantee
    edited.edit(cases=CASES[:21])
    assert "1 reward came after a failed try" in edited.study.verdict().guarantee


def test_a_reward_outside_the_bounds_that_came_in_another_revision_proves_them_wrong() -> None:
    edited = Edited()
    edited.tell("a", [1.0] * 3)
    (pull,) = edited.study.ask_many(1, arm="a")
    edited.edit(arms=["b"])
    edited.study.tell(pull, -5.0)
    edited.edit(arms=ARMS)
    assert edited.study.ask(arm="a") is None
    assert "lay outside the bounds: 'a'" in edited.study.verdict().guarantee


def test_evidence_goes_on_after_a_revision_without_certificates() -> None:
    edited = Edited(budget=1000)
    edited.tell("a", [1.0] * 3)
    before = edited.evidence()
    edited.edit(confidence=None)
    edited.tell("b", [1.0] * 3)
    edited.edit(confidence=0.95)
    assert edited.evidence() == before
    edited.tell("a", [1.0])
    assert edited.evidence() > before


def test_imported_rewards_count_against_a_baseline_that_was_finished_while_their_arm_was_away() -> None:
    arms = ["base", "a", "b"]
    edited = Edited(arms=arms, baseline="base", at_least=None, cases=CASES[:20])
    edited.study.add_many([("a", 1.0, case) for case in CASES[:12]])
    edited.tell("base", [0.5] * 10)
    edited.edit(arms=["base", "b"])
    edited.tell("base", [0.5] * 9)
    (last,) = edited.study.ask_many(1, arm="base")
    edited.study.drop(last, cause="failed")
    verdict = edited.edit(arms=arms)
    row = verdict["a"]
    assert row.cases == 12 - (last.case in CASES[:12])
    edited.tell_all()
    assert edited.study.verdict()["a"].reached
    events = edited.study.events()
    assert verify(events).sound
    assert fold_ledger(events).state() == peek_study(edited.study, lambda ledger: ledger.state())


def test_draws_are_no_evidence_about_the_cases_of_an_earlier_revision() -> None:
    edited = Edited(cases=CASES)
    edited.tell("a", [1.0] * 3)
    edited.edit(cases=None)
    edited.tell("a", [1.0] * 3)
    edited.edit(cases=CASES[1:])
    assert peek_study(edited.study, lambda ledger: ledger.phases) == {}
    edited.tell_all()
    assert edited.study.verdict().reached == ARMS


def test_a_reward_of_a_single_arm_may_come_while_pairs_are_compared() -> None:
    edited = Edited()
    (pull,) = edited.study.ask_many(1, arm="a")
    edited.edit(baseline="b", at_least=None)
    edited.study.tell(pull, 1.0)
    edited.study.tell(pull, 1.0)
    events = edited.study.events()
    assert fold_ledger(events).state() == peek_study(edited.study, lambda ledger: ledger.state())
