"""The largest numbers that a specification takes, and the first that it refuses."""

from typing import Any

import pytest

import thresher
from thresher.core import spec as specs


def specified(**given: Any) -> specs.Spec:
    asked: dict[str, Any] = {"arms": ["a", "b"], "at_least": 0.5, "budget": 10}
    return specs.Spec(**asked | given)


@pytest.mark.parametrize("bounds", [(-1e100, 1.0), (0.0, 1e100), (-1e100, 1e100)])
def test_bounds_up_to_1e100_are_taken(bounds: tuple[float, float]) -> None:
    assert specified(bounds=bounds, confidence=None).bounds == bounds


@pytest.mark.parametrize("bounds", [(-1.1e100, 1.0), (0.0, 1.1e100), (-1.1e100, 1.1e100), (-1.7e308, 1.7e308)])
def test_bounds_beyond_1e100_on_either_side_are_refused(bounds: tuple[float, float]) -> None:
    with pytest.raises(thresher.InvalidInput, match="must lie within ±1e"):
        specified(bounds=bounds, confidence=None)


def test_a_seed_has_at_most_128_bits() -> None:
    assert specified(seed=2**128 - 1).seed == 2**128 - 1
    with pytest.raises(thresher.InvalidInput, match="seed"):
        specified(seed=2**128)


def test_a_budget_has_at_most_15_zeros() -> None:
    assert specified(budget=10**15).budget == 10**15
    with pytest.raises(thresher.InvalidInput, match="budget"):
        specified(budget=10**15 + 1)


def test_what_identifies_an_evaluator_has_at_most_10_000_characters() -> None:
    assert specified(evaluator="x" * 10_000).evaluator == "x" * 10_000
    for text in ("x" * 10_001, "", "  ", 5):
        with pytest.raises(thresher.InvalidInput, match="must be a text of 1 to 10,000 characters; name the command"):
            specified(evaluator=text)


def test_there_are_at_most_a_billion_cases() -> None:
    assert specified(cases=10**9, budget=None).case_count == 10**9
    with pytest.raises(thresher.InvalidInput, match="cases"):
        specified(cases=10**9 + 1, budget=None)


def test_a_unit_has_at_most_16_characters() -> None:
    assert specified(unit="x" * 16).unit == "x" * 16
    for unit in ("x" * 17, ""):
        with pytest.raises(thresher.InvalidInput, match="must be a text of 1 to 16 characters; write s, for example"):
            specified(unit=unit)
