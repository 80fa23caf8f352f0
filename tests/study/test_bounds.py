"""A reward outside the bounds proves them wrong: nothing is certified about its arm from then on."""

import math
from typing import Any

import pytest

import thresher
from thresher.core.ledger import fold_ledger
from thresher.core.replay import verify
from thresher.study import peek_study


def make(**given: Any) -> thresher.Study:
    plain: dict[str, Any] = {"arms": ["a", "b"], "at_least": 0.5, "budget": 400, "policy": "uniform"}
    return thresher.create_study("s", **plain | given)


def settle(study: thresher.Study, arm: str) -> None:
    """Tell the arm ones, and the others a mean of .5, until it is settled."""
    while not study.verdict()[arm].certified:
        pull = study.ask() or pytest.fail("done")
        study.tell(pull, 1.0 if pull.arm == arm else pull.number % 2)


def pull_of(study: thresher.Study, arm: str) -> thresher.Pull:
    while True:
        pull = study.ask() or pytest.fail("done")
        if pull.arm == arm:
            return pull
        study.tell(pull, 0.5)


def out_of_bounds(study: thresher.Study, pull: thresher.Pull, reward: object = 1.5) -> None:
    with pytest.raises(thresher.OutsideBounds, match=r"must lie within the bounds .*, or with clip=True"):
        study.tell(pull, reward)


def test_an_arm_whose_bounds_are_wrong_is_not_certified() -> None:
    """One reward of 1 in ten, otherwise .04, in bounds of (0, .06) against .05: the mean of .136 is above."""
    study = thresher.create_study("s", arms=["a"], at_least=0.05, bounds=(0, 0.06), budget=2000)
    verdict = thresher.run(study, lambda pull: 1.0 if pull.number % 10 == 7 else 0.04, workers=1)
    assert verdict.outside == ("a",)
    assert not verdict["a"].certified
    assert "Not certified, because a reward lay outside the bounds: 'a'." in verdict.guarantee


@pytest.mark.parametrize(
    "reward",
    [1.0001, -0.0001, math.inf, -math.inf, 10**400],
    ids=lambda value: f"{value:.6}"[:9] if value != 10**400 else "huge",
)
def test_the_arm_is_retired_and_the_error_has_the_remedy(reward: object) -> None:
    study = make()
    pull = pull_of(study, "a")
    out_of_bounds(study, pull, reward)
    row = study.verdict()["a"]
    assert (row.standing, row.certified, row.pending) == ("retired", False, 0)
    assert "outside the bounds (0, 1)" in (row.reason or "")
    assert {study.ask_many(1)[0].arm for _ in range(10)} == {"b"}
    assert verify(study.events()).sound


def test_an_answer_settled_earlier_stays_but_is_certified_no_more() -> None:
    study = make()
    late = pull_of(study, "a")
    settle(study, "a")
    assert study.verdict()["a"].certified
    out_of_bounds(study, late)
    verdict = study.verdict()
    row = verdict["a"]
    assert (row.reached, row.certified, row.low, row.high) == (True, False, None, None)
    assert (verdict.open, verdict.retired) == (["a", "b"], ["a"])
    assert "Nothing is certified yet" in verdict.guarantee


def test_restoring_the_arm_does_not_lift_it() -> None:
    study = make()
    out_of_bounds(study, pull_of(study, "a"))
    study.restore("a")
    while pull := study.ask():
        study.tell(pull, 1.0)
    verdict = study.verdict()
    assert (verdict["a"].reached, verdict["a"].certified) == (True, False)
    assert verdict["b"].certified
    assert verdict.open == ["a"]
    assert "the certified answer is right" in verdict.guarantee


def test_a_late_reward_outside_the_bounds_proves_them_wrong_too() -> None:
    study = make()
    pull = pull_of(study, "a")
    study.drop(pull, cause="lost")
    out_of_bounds(study, pull)
    assert study.verdict().outside == ("a",)


def test_an_arm_that_was_retired_before_is_not_certified_either() -> None:
    study = make()
    pull = pull_of(study, "a")
    settle(study, "a")
    study.retire("a")
    out_of_bounds(study, pull)
    study.restore("a")
    assert not study.verdict()["a"].certified


def test_telling_it_again_says_the_same_and_is_recorded_once() -> None:
    study = make()
    pull = pull_of(study, "a")
    out_of_bounds(study, pull)
    before = study.events()
    out_of_bounds(study, pull)
    study.drop(pull, cause="lost")
    assert study.events() == before
    with pytest.raises(thresher.AlreadyTold, match=r"told 1\.5 before"):
        study.tell(pull, 0.5)


def test_a_pull_that_was_told_keeps_its_reward_but_its_bounds_are_wrong_all_the_same() -> None:
    study = make()
    pull = pull_of(study, "a")
    study.tell(pull, 0.5)
    out_of_bounds(study, pull)
    before = study.events()
    out_of_bounds(study, pull)
    assert study.events() == before
    assert (study.verdict().outside, study.verdict()["a"].mean) == (("a",), 0.5)
    study.tell(pull, 0.5)
    assert verify(study.events()).sound


def test_an_arm_outside_the_bounds_has_no_estimate_and_is_not_counted() -> None:
    study = make()
    seen: list[thresher.Progress] = []
    late = pull_of(study, "a")
    settle(study, "a")
    out_of_bounds(study, late)
    assert study.verdict()["a"].left is None
    thresher.run(study, lambda pull: 1, on_progress=seen.append)
    assert seen[-1].settled == 1  # b


def test_a_restored_study_knows_it_too() -> None:
    study = make()
    late = pull_of(study, "a")
    settle(study, "a")
    out_of_bounds(study, late)
    assert fold_ledger(study.events()).state() == peek_study(study, lambda ledger: ledger.state())


def test_failures_that_have_a_reward_do_not_hide_it() -> None:
    study = make(failure=0.0)
    thresher.run(study, lambda pull: 2.0 if pull.arm == "a" else pull.number % 2, workers=1)
    assert study.verdict().outside == ("a",)


def test_clip_counts_such_rewards_as_the_bound() -> None:
    study = make(clip=True)
    pull = pull_of(study, "a")
    study.tell(pull, 7.0)
    study.tell(pull, 7.0)
    study.tell(pull_of(study, "a"), -math.inf)
    verdict = study.verdict()
    assert (verdict["a"].mean, verdict.outside) == (0.5, ())
    assert "counted as the nearest number between 0 and 1" in verdict.guarantee
    told = [event.reward for event in study.events() if event.kind == "told" and event.arm == 0]
    assert told[0] == 7.0  # the log has what came
    assert fold_ledger(study.events()).state() == peek_study(study, lambda ledger: ledger.state())


@pytest.mark.parametrize("clip", [1.5, "yes", None])
def test_clip_is_yes_or_no(clip: object) -> None:
    with pytest.raises(thresher.InvalidInput, match="clip"):
        make(clip=clip)


def test_clip_needs_bounds() -> None:
    with pytest.raises(thresher.InvalidInput, match=r"clip.*no bounds"):
        make(clip=True, bounds=None, confidence=None)


@pytest.mark.parametrize(("bounds", "bar"), [((-1e16, 1), 0.5), ((0, 1e16), 0.5), ((0, 1), 1e-12), ((0, 1), 1 - 1e-12)])
def test_bounds_that_swallow_the_bar_are_refused(bounds: tuple[float, float], bar: float) -> None:
    with pytest.raises(thresher.InvalidInput, match=r"^bounds .*so wide that the bar"):
        make(bounds=bounds, at_least=bar)
    make(bounds=bounds, at_least=bar, confidence=None)  # nothing is certified: nothing can break
