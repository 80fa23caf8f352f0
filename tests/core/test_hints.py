"""Hints at the end of a study."""

from typing import Any

import pytest

import thresher


def make(**given: Any) -> thresher.Study:
    plain: dict[str, Any] = {"arms": ["a", "b", "c"], "at_least": 0.5, "confidence": 0.9}
    return thresher.create_study("s", **plain | given)


def test_a_study_that_arms_on_the_bar_used_up_is_told_the_tolerance_that_would_have_ended_it() -> None:
    study = make(arms=["good", "on the bar"], budget=600)
    while pull := study.ask():
        study.tell(pull, pull.arm == "good" or pull.number % 2)
    (hint,) = study.verdict().hints
    words = "'on the bar' is still open; a larger budget would continue with it, and a tolerance of about "
    assert hint.startswith(words)
    assert hint.endswith(" would have settled it (an estimate).")
    tolerance = float(hint.removeprefix(words).split()[0])
    again = make(arms=["good", "on the bar"], budget=600, tolerance=tolerance)
    while pull := again.ask():
        again.tell(pull, pull.arm == "good" or pull.number % 2)
    assert again.verdict().open == []


def losing(every: int, reward: float, **given: Any) -> thresher.Verdict:
    """A finished study of one arm that loses one of so many pulls."""
    study = make(arms=["leaky"], **{"budget": 60} | given)
    while pull := study.ask():
        if pull.number % every == 0:
            study.drop(pull, cause="lost")
        else:
            study.tell(pull, reward)
    return study.verdict()


def test_an_arm_that_can_never_be_settled_at_its_rate_of_losses_is_named() -> None:
    (hint,) = losing(3, 0.6).hints  # "above" sees a mean of .4, "below" one of .73
    assert (
        hint
        == "So many pulls of 'leaky' are lost that no number of pulls would settle it: find out why pulls are lost."
    )


@pytest.mark.parametrize(("every", "reward"), [(10, 0.6), (3, 0.9), (4, 0.25)])
def test_nothing_is_said_of_losses_that_only_slow_an_arm_down(every: int, reward: float) -> None:
    """With share c lost and mean m told, "above" is in reach while (1 − c) m > .5, "below" while c + (1 − c) m < .5."""
    early = losing(every, reward, budget=20, confidence=1 - 1e-6)
    assert early.open == ["leaky"]
    assert not any("lost" in hint for hint in early.hints)
    assert losing(every, reward, budget=None, confidence=1 - 1e-6).open == []


def test_an_arm_that_a_tolerance_can_settle_is_not_called_hopeless() -> None:
    verdict = losing(20, 0.5, tolerance=0.2, budget=30, confidence=1 - 1e-6)
    assert verdict.open == ["leaky"]
    assert not any("lost" in hint for hint in verdict.hints)
    assert losing(20, 0.5, tolerance=0.2, budget=None, confidence=1 - 1e-6).open == []


def test_a_tolerance_too_wide_to_be_of_use_is_not_proposed() -> None:
    """At a bar of .9, ±.1 would make every answer right."""
    study = make(arms=["good", "hard"], at_least=0.9, budget=60)
    while pull := study.ask():
        study.tell(pull, pull.arm == "good" or pull.number % 8 > 0)
    verdict = study.verdict()
    assert verdict.open == ["good", "hard"]
    assert verdict.hints == ("'good', 'hard' are still open; a larger budget would continue with them.",)


def test_no_larger_budget_is_proposed_for_an_arm_that_can_never_be_certified() -> None:
    study = make(arms=["good", "wrong"], at_least=0.9, budget=60)
    never = "'wrong' returned a reward outside the bounds, and can never be certified in this study: "
    while pull := study.ask():
        if pull.arm == "wrong" and pull.number == 1:
            with pytest.raises(thresher.OutsideBounds):
                study.tell(pull, 7)
            study.restore("wrong")
        else:
            study.tell(pull, pull.number % 8 > 0)
    verdict = study.verdict()
    assert verdict.open == ["good", "wrong"]
    first, second = verdict.hints
    assert first == f"{never}a new study needs the bounds that rewards can really take."
    assert second == "'good' is still open; a larger budget would continue with it."


def test_with_a_baseline_outside_the_bounds_no_budget_is_proposed() -> None:
    study = make(arms=["old", "new"], at_least=None, baseline="old", budget=20)
    while pull := study.ask():
        if pull.id == 1:
            with pytest.raises(thresher.OutsideBounds):
                study.tell(pull, (0.5, 7))
            study.restore("old")
        else:
            study.tell(pull, (pull.number % 2, 0.5))
    (hint,) = study.verdict().hints
    assert hint.startswith("The baseline 'old' returned a reward outside the bounds, so no arm can be certified")


def test_a_study_that_is_settled_gets_no_hint() -> None:
    study = make(arms=["good", "bad"], budget=None)
    while pull := study.ask():
        study.tell(pull, pull.arm == "good")
    assert study.verdict().open == []
    assert study.verdict().hints == ()


def test_there_is_nothing_to_hint_at_before_the_end() -> None:
    study = make(arms=["a"], budget=20)
    study.tell(study.ask() or 0, 0.5)
    assert study.verdict().hints == ()
