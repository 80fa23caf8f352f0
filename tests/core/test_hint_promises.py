"""Every hint names an arm that is open and says what would help; a settled study has none."""

import random
from typing import Any

import pytest

import thresher


def finished(**given: Any) -> thresher.Verdict:
    """The verdict of a study whose arms return 1 with the chance that their names say, and lose some pulls."""
    chance, loss = random.Random(given.pop("draws", 0)), given.pop("loss", 0.0)
    plain: dict[str, Any] = {"at_least": 0.5, "budget": 300}
    study = thresher.create_study("s", **plain | given)
    while pull := study.ask():
        if chance.random() < loss:
            study.drop(pull, cause="lost")
        else:
            study.tell(pull, chance.random() < float(pull.arm))
    return study.verdict()


@pytest.mark.parametrize("draws", range(6))
@pytest.mark.parametrize("arms", [["0.5"], ["0.45", "0.5", "0.55"], ["0.05", "0.95"], ["0.1", "0.5", "0.52", "0.9"]])
@pytest.mark.parametrize("loss", [0.0, 0.3])
@pytest.mark.parametrize("tolerance", [0.0, 0.1])
def test_every_hint_names_an_open_arm_and_a_settled_study_has_none(
    draws: int, arms: list[str], loss: float, tolerance: float
) -> None:
    verdict = finished(arms=arms, draws=draws, loss=loss, tolerance=tolerance)
    for hint in verdict.hints:
        assert any(repr(name) in hint for name in verdict.open), hint
        assert not any(repr(name) in hint for name in arms if name not in verdict.open), hint
        assert hint[0] != hint[0].lower() or hint[0] == "'", "a sentence"
    if not verdict.open:
        assert verdict.hints == ()


def test_a_study_that_is_settled_before_its_budget_ends_has_no_hint() -> None:
    verdict = finished(arms=["0.0", "1.0"], budget=2000)
    assert (verdict.open, verdict.hints) == ([], ())


def test_three_open_arms_are_all_named() -> None:
    verdict = finished(arms=["0.4", "0.5", "0.6"], budget=60)
    assert len(verdict.open) == 3
    (hint,) = verdict.hints
    assert all(repr(name) in hint for name in verdict.open)


def test_no_hint_proposes_a_tolerance_as_wide_as_the_way_to_the_bounds() -> None:
    verdict = finished(arms=["0.9"], at_least=0.9, budget=400)
    assert verdict.open == ["0.9"]
    assert not any("tolerance of 0.1 " in hint for hint in verdict.hints)


def test_an_arm_that_loses_too_many_pulls_is_named() -> None:
    verdict = finished(arms=["0.6"], loss=0.4, budget=200)
    (hint,) = verdict.hints
    assert "'0.6'" in hint
    assert "lost" in hint
