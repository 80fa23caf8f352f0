"""The estimate of the pulls that are left."""

from typing import Any

import pytest

import thresher
from bench.forecast import at_half_time, share_within
from thresher.core.forecast import forecast_left
from thresher.study import peek_study


@pytest.mark.parametrize(
    "asked",
    [{"cases": 200}, {"cases": 200, "tolerance": 0.03}, {"tolerance": 0.04}, {"tolerance": 0.04, "guarantee": "rate"}],
    ids=str,
)
def test_at_half_time_it_is_within_a_factor_of_2_in_four_of_five_studies(asked: dict[str, Any]) -> None:
    factors = [at_half_time(seed, arms=12, **asked) for seed in range(30)]
    assert share_within(factors) >= 0.8


def make(**given: Any) -> thresher.Study:
    plain: dict[str, Any] = {"arms": ["a", "b"], "at_least": 0.5, "tolerance": 0.1}
    return thresher.create_study("s", **plain | given)


def test_there_is_no_telling_before_every_arm_has_a_reward() -> None:
    study = make(policy="uniform")
    assert study.verdict().left is None
    for pull in study.ask_many(2):
        assert study.verdict()[pull.arm].left is None
        study.tell(pull, 1)
        assert study.verdict()[pull.arm].left
    assert study.verdict().left == sum(row.left or 0 for row in study.verdict())


def test_nothing_is_left_of_what_is_settled_or_of_a_study_that_ended() -> None:
    study = make()
    while pull := study.ask():
        study.tell(pull, pull.arm == "a")
        assert all(row.left == 0 for row in study.verdict() if row.certified)
    assert study.verdict().left == 0


def test_no_more_is_left_than_the_budget_or_the_cases_that_remain() -> None:
    for given, most in (({"budget": 30}, 30), ({"cases": 20, "tolerance": 0.01}, 40)):
        study = make(**given)
        while pull := study.ask():
            study.tell(pull, pull.number % 2)
            assert peek_study(study, forecast_left) in (None, *range(most - study.verdict().issued + 1))


def test_retired_arms_and_the_baseline_have_no_estimate_and_others_still_do() -> None:
    study = make(arms=["a", "b", "old"], at_least=None, baseline="old")
    for pull in study.ask_many(6):
        study.tell(pull, (0.75, 0.25))
    study.retire("a")
    assert [row.left is None for row in study.verdict()] == [True, False, True]
    assert study.verdict().left == study.verdict()["b"].left


def test_without_certificates_the_rest_of_the_budget_is_left_and_no_arm_is_estimated() -> None:
    study = make(confidence=None, tolerance=0, budget=30)
    for pull in study.ask_many(9):
        study.tell(pull, 1)
    assert study.verdict().left == 21
    assert all(row.left is None for row in study.verdict())
