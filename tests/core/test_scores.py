"""Scores of one's own in a live study: the same decisions, the names they go by, and what is refused."""

import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import rewritten
from hypothesis import given, settings
from hypothesis import strategies as st
from test_decisions import ALL, GOLDEN, study_of, trace

import thresher
from thresher.core import policies
from thresher.core.policies import custom
from thresher.errors import InvalidInput, ScoreFailed


@pytest.mark.parametrize("name", ALL)
def test_a_policy_written_again_decides_as_thresher_s_own_always_did(name: str) -> None:
    again = rewritten.rewritten(10)[name]
    assert again.is_custom
    assert trace(again) == [int(word) for word in (GOLDEN / f"{name}.txt").read_text().split()]


@settings(max_examples=30)
@given(st.sampled_from(sorted(ALL)), st.lists(st.floats(0.0, 1.0), min_size=40, max_size=40))
def test_a_policy_written_again_decides_alike_for_any_rewards(name: str, rewards: list[float]) -> None:
    one, two = study_of(ALL[name], 4, 40), study_of(rewritten.rewritten(4)[name], 4, 40)
    for reward in rewards:
        pull = one.ask()
        assert pull is not None
        assert (two.ask() or ())[:-1] == pull[:-1], "all but the tag"
        one.tell(pull, reward)
        two.tell(pull.id, reward)


def test_thresher_s_own_policies_take_the_same_path() -> None:
    from thresher.core import board

    assert custom(board.evt_formula, pending_weight=0.0) == policies.evt()
    assert custom(board.evt_formula, exploration="doubling") == policies.anytime_evt()
    assert not custom(board.evt_formula).is_custom


def test_a_budget_that_grows_changes_the_exploration_at_once() -> None:
    def share(gap: float, scatter: float, seen: int, weight: float, exploration: float) -> float:
        asked.append(exploration)
        return weight

    asked: list[float] = []
    study = study_of(custom(share), 2, 8)
    for _ in range(8):
        study.tell(study.ask() or pytest.fail("no pull"), 0.5)
    study.extend(budget=20)
    study.ask()
    assert asked[0] == 4.0
    assert asked[-1] == 10.0


# -- what is refused -----------------------------------------------------------------------------------------------


def broken(value: Any) -> Callable[..., Any]:
    def score(gap: float, scatter: float, seen: int, weight: float, exploration: float) -> Any:
        return value() if callable(value) else value

    return score


BAD: dict[str, tuple[Any, str]] = {
    "nan": (math.nan, "returned nan"),
    "negative": (-0.5, r"returned -0\.5"),
    "minus infinity": (-math.inf, "returned -inf"),
    "exception": (lambda: dict[str, float]()["x"], "raised KeyError: 'x'"),
    "division": (lambda: 1 / 0, "raised ZeroDivisionError: division by zero"),
    "text": ("0.5", r"returned '0\.5'"),
    "nothing": (None, "returned None"),
    "bool": (True, "returned True"),
    "complex": (1 + 2j, r"returned \(1\+2j\)"),
    "list": ([0.5], r"returned \[0\.5\]"),
    "huge": (10**400, "raised OverflowError: int too large to convert to float"),
    "array": (np.zeros(2), r"returned array\(\[0\., 0\.\]\)"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_score_stops_the_ask_with_one_line_and_writes_nothing(name: str) -> None:
    value, words = BAD[name]
    study = study_of(custom(broken(value)), 2, 20)
    for pull in study.ask_many(4):  # the warm-up needs no scores
        study.tell(pull, 0.25)
    before = study.events()
    arguments = r"for arm 'arm 0' with gap=0\.35, scatter=0\.0, seen=2, weight=2\.0, exploration=10\.0; "
    rule = "a score must be a number of at least 0, or infinity$"
    with pytest.raises(ScoreFailed, match=f"broken.<locals>.score': {words} {arguments}{rule}") as raised:
        study.ask()
    assert "\n" not in str(raised.value)
    assert study.events() == before
    assert study.verdict().told == 4


@pytest.mark.parametrize(
    "value", [0, 0.0, -0.0, 5, math.inf, np.float64(0.5), np.int64(3), np.float32(2), Fraction(1, 2)]
)
def test_other_numbers_are_scores(value: Any) -> None:
    study = study_of(custom(broken(value)), 2, 6)
    for pull in study.ask_many(4):
        study.tell(pull, 0.25)
    assert study.ask() is not None


def test_a_study_continues_once_its_function_works_again() -> None:
    works = False

    def score(gap: float, scatter: float, seen: int, weight: float, exploration: float) -> float:
        return weight if works else math.nan

    study = study_of(custom(score), 2, 20)
    first, *others = study.ask_many(4)
    for pull in others:
        study.tell(pull, 0.5)
    with pytest.raises(ScoreFailed):
        study.ask()
    study.tell(first, 0.25)  # telling needs no score
    works = True
    assert [pull.arm for pull in study.ask_many(4)] == ["arm 0", "arm 1", "arm 0", "arm 1"]
    assert thresher.verify(study.events()).sound


def test_a_batch_that_fails_halfway_issues_nothing() -> None:
    def score(gap: float, scatter: float, seen: int, weight: float, exploration: float) -> float:
        return weight if weight < 4.0 else -1.0

    study = study_of(custom(score), 2, 20)
    for pull in study.ask_many(4):
        study.tell(pull, 0.5)
    with pytest.raises(ScoreFailed, match=r"returned -1\.0 for arm 'arm 0'"):
        study.ask_many(6)
    assert len(study.events()) == 9
    assert study.verdict().issued == 4
    assert len(study.ask_many(3)) == 3


class Scorer:
    def score(self, gap: float, scatter: float, seen: int, weight: float, exploration: float) -> float:
        return gap


@pytest.mark.parametrize(
    ("score", "words"),
    [
        (Scorer().score, "must be a plain function; write def score"),
        (functools.partial(rewritten.thirds), "must be a plain function"),
        ("evt", "must be a plain function"),
        (None, "must be a plain function"),
        (math.sqrt, "must be a plain function"),
        (lambda gap: gap, r"must take five arguments; write def score\(gap, scatter, seen, weight, exploration\)"),
        (lambda: 0.0, "must take five arguments"),
    ],
)
def test_a_score_must_be_a_function_of_five_arguments(score: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        custom(score)


@pytest.mark.parametrize(
    "given", [{"exploration": "double"}, {"exploration": 0.0}, {"pending_weight": 2.0}, {"warmup": 0}, {"slack": -1.0}]
)
def test_bad_settings_are_refused(given: dict[str, Any]) -> None:
    (name,) = given
    with pytest.raises(InvalidInput, match=f"^{name} "):
        custom(rewritten.thirds, **given)


@pytest.mark.parametrize("method", ["ask", "extend", "retire", "tell"])
def test_a_score_cannot_change_its_own_study(method: str) -> None:
    calls: dict[str, Callable[[], Any]] = {}

    def score(gap: float, scatter: float, seen: int, weight: float, exploration: float) -> float:
        calls.get(method, lambda: None)()
        return weight + study.verdict().told  # reading is allowed

    study = study_of(custom(score), 2, 20)
    first, *others = study.ask_many(4)
    for pull in others:
        study.tell(pull, 0.25)
    calls["ask"] = study.ask
    calls["extend"] = lambda: study.extend(budget=(study.verdict().budget or 0) + 1)
    calls["retire"] = lambda: study.retire("arm 0")
    calls["tell"] = lambda: study.tell(first, 0.5)
    before = study.events()
    with pytest.raises(ScoreFailed, match="cannot be changed by its own score; a score may only read its arguments"):
        study.ask()
    assert study.events() == before
    calls.clear()
    assert study.ask() is not None
    assert thresher.verify(study.events()).sound
