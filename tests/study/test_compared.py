"""Comparisons with a baseline at their edges: ties, rewards of both sides outside the bounds, huge rewards."""

import math
import random
from typing import Any

import pytest

import thresher
from thresher.cli.import_export import exported_rows
from thresher.core.ledger import fold_ledger
from thresher.core.replay import verify
from thresher.study import give_up_in_study, peek_study


def create(**given: Any) -> thresher.Study:
    return thresher.create_study("s", **{"arms": ["now", "a", "b"], "baseline": "now", **given})


def full_run(table: dict[str, list[float]], **given: Any) -> thresher.Verdict:
    study = create(arms=list(table), cases=len(table["now"]), **given)
    while pull := study.ask():
        study.tell(pull, table[pull.arm][pull.case])  # type: ignore[index]
    return study.verdict()


@pytest.mark.parametrize("lower", [False, True])
def test_an_arm_with_the_baselines_rewards_in_another_order_matches_it(lower: bool) -> None:
    """The differences are rounded one by one, and rounding must not decide."""
    chance = random.Random(1)
    for seed in range(60):
        now = [chance.randrange(11) / 10 for _ in range(chance.choice([2, 3, 5, 8]))]
        row = full_run({"now": now, "a": chance.sample(now, len(now))}, seed=seed, lower_is_better=lower)["a"]
        assert (row.reached, row.certified) == (True, True), (now, row)


@pytest.mark.parametrize(("now", "arm", "margin"), [(0.2, 0.3, 0.1), (0.7, 0.8, 0.1), (0.3, 0.2, -0.1)])
def test_an_arm_that_beats_the_baseline_by_exactly_the_margin_reaches_it(now: float, arm: float, margin: float) -> None:
    """0.3 − 0.2 is less than 0.1 in binary."""
    assert full_run({"now": [now] * 5, "a": [arm] * 5}, margin=margin)["a"].reached is True
    row = full_run({"now": [now] * 5, "a": [arm - 1e-9] * 5}, margin=margin)["a"]
    assert (row.reached, row.certified) == (False, True)


@pytest.mark.parametrize(
    ("pair", "asked"),
    [
        ((0.3, 0.2), {"margin": 0.1}),
        ((0.1, 0.2), {"margin": -0.1}),
        ((0.2, 0.3), {"margin": 0.1, "lower_is_better": True}),
        ((0.9, 0.3), {"ratio": 3.0, "lower_is_better": True}),
        ((0.21, 0.7), {"ratio": 0.3, "lower_is_better": True}),
        ((0.36, 0.3), {"ratio": 1.2}),
    ],
)
def test_a_pair_exactly_on_the_limit_is_within_it(pair: tuple[float, float], asked: dict[str, Any]) -> None:
    for factor, within in ((1.0, 1.0), (1 + 1e-12 if "lower_is_better" in asked else 1 - 1e-12, 0.0)):
        study = create(share=0.5, **asked)
        study.tell(study.ask() or pytest.fail("done"), (pair[0] * factor, pair[1]))
        assert study.verdict()["a"].share == within


@pytest.mark.parametrize(("rewards", "bar"), [([0.6, 0.7, 0.8], 0.7), ([0.1, 0.2, 0.6], 0.3)])
def test_a_mean_exactly_on_the_bar_stays_within_it(rewards: list[float], bar: float) -> None:
    study = thresher.create_study("s", arms=["a"], at_most=bar, cases=3)
    while pull := study.ask():
        study.tell(pull, rewards[pull.case])  # type: ignore[index]
    assert study.verdict()["a"].reached is True


def test_a_pair_outside_the_bounds_on_both_sides_proves_them_wrong_for_both() -> None:
    study = create()
    pull = study.ask()
    assert pull is not None
    with pytest.raises(thresher.OutsideBounds):
        study.tell(pull, (2.0, 3.0))
    assert "a reward of the baseline lay outside the bounds" in study.verdict().guarantee
    assert study.done
    assert verify(study.events()).sound


@pytest.mark.parametrize("cases", [None, 4])
def test_huge_rewards_that_are_clipped_can_be_shown(cases: int | None) -> None:
    study = create(clip=True, cases=cases, bounds=(0, 2))
    for _ in range(6):
        pull = study.ask()
        assert pull is not None
        study.tell(pull, 1e308 if cases else (1e308, math.inf))
    rows = study.verdict()
    assert rows["now"].mean == 2.0
    assert rows["a"].mean == 2.0
    assert rows["a"].baseline == 2.0
    assert rows["a"].difference == 0.0
    assert fold_ledger(study.events()).state() == peek_study(study, lambda ledger: ledger.state())


@pytest.mark.parametrize("reason", [None, "", "nan", "inf", "1e999", "0x1", " 0.25", "0.250", "1_0", "0.25" * 9999])
def test_a_log_with_a_pair_that_was_never_told_is_damaged(reason: str | None) -> None:
    study = create()
    study.tell(study.ask() or pytest.fail("done"), (0.5, 0.25))
    *before, told = study.events()
    assert told.reason == "0.25"
    for forged in (told._replace(reason=reason), told._replace(cause="failed")):
        assert verify([*before, forged]).wrong == told.seq
        with pytest.raises(thresher.InvalidInput):
            fold_ledger([*before, forged])


def test_a_failure_that_counts_as_less_than_nothing_has_no_ratio() -> None:
    with pytest.raises(thresher.InvalidInput, match=r"failure -1.0: must be .* between 0 and"):
        create(cases=3, ratio=1.1, failure=-1.0)


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("pair", [(1.0, 0.0), (0.0, 0.0), (1e100, 5e-324), (0.0, 1.0)])
def test_the_quantile_of_ratios_agrees_with_the_answer_where_the_baseline_takes_no_time(
    pair: tuple[float, float], lower: bool
) -> None:
    study = create(ratio=1.05, lower_is_better=lower, arms=["now", "a"])
    for each in (pair, (1.0, 1.0), pair):
        study.tell(study.ask() or pytest.fail("done"), each)
    row = study.verdict()["a"]
    assert row.quantile is not None
    assert row.reached is (row.quantile <= 1.05 if lower else row.quantile >= 1.05)
    assert "Infinity" not in study.verdict().to_json()


def test_a_reward_of_the_baseline_outside_the_bounds_is_no_reward_of_the_arm() -> None:
    study = create()
    with pytest.raises(thresher.OutsideBounds):
        study.tell(study.ask() or pytest.fail("done"), (0.5, 3.0))
    (pull,) = study.pulls()
    assert (pull.state, pull.reward, pull.baseline) == ("outside", None, 3.0)
    ledger = fold_ledger(study.events())
    assert (list(ledger.pull_reward), list(ledger.pull_other)) == ([0.0], [3.0])
    (row,) = exported_rows(ledger)
    assert (row.state, row.reward) == ("dropped", None)


def test_nobody_chooses_an_arms_first_cases_by_letting_the_baseline_fail_on_others() -> None:
    """Otherwise who knows the seed lets the baseline fail on an arm's first bad cases, and its capital only grows."""

    def order(lacking: set[object]) -> list[object]:
        study = create(arms=["now", "a"], cases=60, seed=7, tries=1, max_failures=None, confidence=0.999999)
        found: list[object] = []
        while pull := study.ask():
            if pull.arm == "now" and pull.case in lacking:
                give_up_in_study(study, pull, reason="no", cause="failed")
                continue
            found += [pull.case] if pull.arm == "a" else []
            study.tell(pull, len(found) % 2)
        return found

    plain = order(set())
    first = set(plain[:8])
    assert order(first)[:20] != [case for case in plain if case not in first][:20]


@pytest.mark.parametrize("rewards", [(1.0, 0.7, 0.7), (0.7, 1.0, 0.7), (0.7, 0.7, 1.0)])
def test_rounding_decides_no_tie_of_graded_cases_with_the_bar(rewards: tuple[float, ...]) -> None:
    """The sum of these decimals over 3 is 0.8; in binary it comes out below."""
    study = thresher.create_study("s", arms=["a"], at_least=0.8, cases=3, seed=1)
    while pull := study.ask():
        study.tell(pull, rewards[pull.case])  # type: ignore[index]
    row = study.verdict()["a"]
    assert (row.reached, row.certified, row.exact) == (True, True, True)
