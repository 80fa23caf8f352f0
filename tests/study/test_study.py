"""Asking, telling, dropping and steering: what a study promises to its caller."""

import decimal
import fractions
import math
import pickle
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from studying import finish, make

import thresher
from thresher.core.events import Cause
from thresher.core.places import seed_of_place
from thresher.study import give_up_in_study

# -- asking and telling -------------------------------------------------------------------------------------------


def test_ask_gives_nothing_exactly_when_the_study_is_done() -> None:
    study = make(budget=6)
    for _ in range(6):
        assert not study.done
        assert study.ask()
    assert study.done
    assert study.ask() is None
    assert study.ask_many(5) == []


def test_one_arm_is_fine() -> None:
    assert finish(make(arms=["only"], budget=10))["only"].seen == 10


def test_a_pull_says_what_to_do() -> None:
    study = make(arms={"a": {"depth": 3}, "b": {"depth": 5}})
    first, second, third = study.ask_many(3)
    assert (first.id, first.arm, first.number, dict(first.params)) == (1, "a", 1, {"depth": 3})
    assert (second.arm, second.number) == ("b", 1)
    assert (third.id, third.arm, third.number) == (3, "a", 2)
    assert pickle.loads(pickle.dumps(first)) == first


@given(st.integers(0, 2**80), st.integers(1, 2**32 - 500))
def test_no_two_pulls_share_a_seed(study_seed: int, first: int) -> None:
    seeds = [seed_of_place(study_seed, 0, 1, number) for number in range(first, first + 500)]
    assert len(set(seeds)) == 500
    assert all(0 <= seed < 2**32 for seed in seeds)


def test_the_seeds_of_a_study_follow_from_its_seed_alone() -> None:
    one, again, other = make(seed=7), make(seed=7), make(seed=8)
    assert [p.seed for p in one.ask_many(20)] == [p.seed for p in again.ask_many(20)]
    assert not {p.seed for p in make(seed=7).ask_many(20)} & {p.seed for p in other.ask_many(20)}


@pytest.mark.parametrize(
    "reward",
    [
        *(1, 0.25, True, False, fractions.Fraction(1, 3), decimal.Decimal("0.1")),
        *(numpy.float32(0.5), numpy.int64(1), numpy.bool_(True), numpy.array(0.5)),
    ],
    ids=repr,
)
def test_numbers_and_bools_are_rewards(reward: object) -> None:
    study = make()
    study.tell(study.ask() or 0, reward)
    assert study.verdict()["a"].mean == float(reward)  # type: ignore[arg-type]


BAD_REWARDS = [math.nan, "0.5", None, 1j, [0.5], numpy.array([0.5]), object]


@pytest.mark.parametrize("reward", BAD_REWARDS, ids=lambda value: repr(value)[:20])
def test_anything_else_is_refused_and_changes_nothing(reward: object) -> None:
    study = make()
    pull = study.ask()
    before = study.events()
    with pytest.raises(thresher.InvalidInput, match=r"^reward .*must be (a finite|one) number"):
        study.tell(pull or 0, reward)
    assert study.events() == before
    study.tell(pull or 0, 0.5)


@pytest.mark.parametrize("reward", [math.inf, -(10**400)], ids=["inf", "huge"])
def test_without_bounds_rewards_must_be_finite(reward: object) -> None:
    study = make(bounds=None, confidence=None)
    with pytest.raises(thresher.InvalidInput, match=r"^reward .*must be (a finite|one) number"):
        study.tell(study.ask() or 0, reward)


def test_the_same_reward_twice_is_recorded_once() -> None:
    study = make()
    pull = study.ask() or pytest.fail("no pull")
    study.tell(pull, 0.5)
    study.tell(pull.id, 0.5)
    assert [event.kind for event in study.events()] == ["created", "asked", "told"]


def test_another_reward_for_the_same_pull_is_an_error_that_names_both() -> None:
    study = make()
    study.ask()
    study.tell(1, 0.5)
    with pytest.raises(thresher.AlreadyTold, match=r"0\.75.*0\.5"):
        study.tell(1, 0.75)
    assert study.verdict()["a"].mean == 0.5


@pytest.mark.parametrize("pull", ["1", None, 1.0])
def test_what_is_no_pull_is_refused_with_the_order_of_arguments(pull: Any) -> None:
    study = make()
    asked = study.ask()
    rule = ": must be a Pull, its id or its ticket;"
    with pytest.raises(thresher.UnknownPull, match=rf"{rule} write tell\(pull, reward\)$"):
        study.tell(pull, asked)
    with pytest.raises(thresher.UnknownPull, match=f"{rule} pass what ask returned$"):
        study.drop(pull, cause="lost")


@pytest.mark.parametrize("pull", [0, 2, -1, True])
def test_a_pull_that_was_never_issued_is_unknown(pull: Any) -> None:
    study = make()
    study.ask()
    with pytest.raises(thresher.UnknownPull, match="issued"):
        study.tell(pull, 0.5)
    with pytest.raises(thresher.UnknownPull, match="issued"):
        study.drop(pull, cause="lost")


# -- dropping -----------------------------------------------------------------------------------------------------


def test_a_dropped_pull_is_pending_no_more_and_its_late_reward_is_welcome_once() -> None:
    study = make()
    study.ask()
    study.drop(1, reason="worker lost", cause="lost")
    study.drop(1, cause="lost")  # again: nothing happens
    assert study.verdict().pending == 0
    study.tell(1, 0.75)
    study.tell(1, 0.75)
    assert [(event.kind, event.late) for event in study.events()][2:] == [("dropped", None), ("told", True)]
    assert study.verdict()["a"].mean == 0.75
    with pytest.raises(thresher.AlreadyTold, match=r"0\.25"):
        study.tell(1, 0.25)


def test_a_told_pull_cannot_be_dropped() -> None:
    study = make()
    study.ask()
    study.tell(1, 0.5)
    with pytest.raises(thresher.AlreadyTold, match=r"0\.5"):
        study.drop(1, cause="lost")


def test_a_drop_needs_a_cause_that_exists() -> None:
    study = make()
    study.ask()
    with pytest.raises(thresher.InvalidInput, match=r"'tired'.*failed"):
        study.drop(1, cause="tired")  # type: ignore[arg-type]


def test_failures_in_a_row_retire_an_arm_and_the_verdict_says_so() -> None:
    study = make(arms=["only", "other"], max_failures=2)
    by_arm: dict[str, list[thresher.Pull]] = {"only": [], "other": []}
    for pull in study.ask_many(4):
        by_arm[pull.arm].append(pull)
    for pull in by_arm["only"]:
        study.drop(pull, cause="failed", reason="no route to host")
    verdict = study.verdict()
    assert verdict.retired == ["only"]
    assert verdict["only"].reason == "2 failures in a row, the last: no route to host"
    assert verdict["only"].failures == 2
    assert {pull.arm for pull in study.ask_many(10)} == {"other"}
    study.restore("only")
    study.restore("only")
    assert study.verdict().retired == []


def test_a_success_in_between_forgives_failures_and_other_causes_are_none() -> None:
    study = make(arms=["a"], max_failures=2)
    pulls = study.ask_many(6)
    study.drop(pulls[0], cause="failed")
    study.tell(pulls[1], 1)
    causes: list[Cause] = ["failed", "lost", "broken-pool", "outage"]
    for pull, cause in zip(pulls[2:], causes, strict=True):
        give_up_in_study(study, pull, cause=cause, reason="over")
    assert study.verdict().retired == []
    study.drop(study.ask() or 0, cause="failed")
    assert study.verdict().retired == ["a"]
    assert study.done


def test_a_failure_may_have_a_reward_and_then_retires_nobody() -> None:
    study = make(arms=["a"], failure=0.0, max_failures=1)
    study.ask_many(2)
    study.drop(1, cause="failed", reason="timed out")
    study.drop(2, cause="lost")
    verdict = study.verdict()
    assert (verdict["a"].mean, verdict["a"].failures, verdict["a"].reached) == (0.0, 1, False)
    assert verdict["a"].reason == "timed out"


def test_dropped_pulls_count_towards_the_budget() -> None:
    study = make(budget=6)
    for pull in study.ask_many(6):
        study.drop(pull, cause="lost")
    assert study.done


# -- steering -----------------------------------------------------------------------------------------------------


def test_a_budget_can_be_extended_but_not_shrunk() -> None:
    study = make(budget=6)
    study.ask_many(6)
    study.extend(budget=8)
    study.extend(budget=8)
    assert not study.done
    assert len(study.ask_many(9)) == 2
    with pytest.raises(thresher.InvalidInput, match=r"7.*8"):
        study.extend(budget=7)
    with pytest.raises(thresher.InvalidInput, match="whole number"):
        study.extend(budget=9.5)  # type: ignore[arg-type]


def test_arms_can_be_retired_by_hand_until_none_is_left() -> None:
    study = make()
    for arm in "abc":
        study.retire(arm, reason="too dear")
    study.retire("a")
    assert study.done
    assert study.ask() is None
    assert study.verdict()["a"].reason == "too dear"
    study.restore("b")
    assert (study.ask() or pytest.fail("no pull")).arm == "b"


def test_an_arm_nobody_knows_is_refused_by_name() -> None:
    study = make()
    for call in (study.retire, study.restore, lambda arm: study.add(arm, 1)):
        with pytest.raises(thresher.InvalidInput, match=r"'zebra'.*'a', 'b', 'c'"):
            call("zebra")


def test_results_already_paid_for_are_added_before_the_first_ask() -> None:
    study = make(budget=6)
    for reward in (1, 1, 0):
        study.add("b", reward)
    assert study.verdict()["b"].mean == pytest.approx(2 / 3)
    assert [event.cause for event in study.events()] == [None, *["imported"] * 6]
    assert [pull.arm for pull in study.ask_many(9)] == ["a", "c", "a"]
    with pytest.raises(thresher.InvalidInput, match="before the first ask"):
        study.add("b", 1)


def test_what_is_no_reward_is_refused_without_a_remedy_for_evaluators() -> None:
    study = make()
    with pytest.raises(thresher.InvalidInput, match=r"^reward nan: must be a finite number or a bool$"):
        study.tell(study.ask() or 0, float("nan"))
