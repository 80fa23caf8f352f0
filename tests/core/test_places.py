"""The order in which an arm meets its cases: a permutation without a pattern; and what places do."""

import math
import random
from types import FunctionType
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.core import columns, places
from thresher.core.places import (
    FAILED,
    FREE,
    KNOWN,
    OUT,
    Sheet,
    are_places_used_up,
    case_at_place,
    fill_place,
    free_place,
    place_key,
    take_place,
)

SIZES = [2, 3, 5, 8, 16, 31, 64, 65, 100, 200, 257, 500]


@pytest.fixture(scope="module")
def orders() -> Any:
    """Orders of many studies, compiled: a row for each seed, of the first arm or of the first arms."""
    inner = dict(vars(places))

    def compiled(name: str) -> Any:
        return numba.njit(FunctionType(getattr(places, name).__code__, inner, name))

    for name in ("stirred_place_word", "mixed_place_word", "place_key", "case_at_place"):  # in the order of their calls
        inner[name] = compiled(name)
    key, at = inner["place_key"], inner["case_at_place"]

    @numba.njit
    def found(cases: int, count: int, length: int, by_arm: bool, begin: int) -> Any:
        rows = np.empty((count, length), np.int64)
        for row in range(count):
            arm, seed = (row, begin) if by_arm else (0, begin + row)
            first, second = key(2 * arm, seed), key(2 * arm + 1, seed)
            for place in range(length):
                rows[row, place] = at(place, cases, first, second)
        return rows

    return found


def quantile(freedom: int, chances: float = 4.9) -> float:
    """What chi-squared exceeds less than once in a million and more tests (Wilson and Hilferty)."""
    share = 2.0 / (9.0 * freedom)
    return freedom * (1.0 - share + (chances + 1.2) * math.sqrt(share)) ** 3


def test_an_order_has_every_case_once(orders: Any) -> None:
    for cases in (*range(1, 131), *SIZES):
        assert sorted(orders(cases, 1, cases, False, cases)[0]) == list(range(cases))
    assert sorted(orders(100_003, 1, 100_003, False, 5)[0]) == list(range(100_003))


def test_the_compiled_order_is_the_live_one(orders: Any) -> None:
    for cases, seed in ((5, 0), (500, 7), (70_000, 2**31)):
        live = [case_at_place(place, cases, place_key(0, seed), place_key(1, seed)) for place in range(5)]
        assert list(orders(cases, 1, 5, False, seed)[0]) == live


@pytest.mark.parametrize("by_arm", [False, True])
@pytest.mark.parametrize("cases", SIZES)
def test_every_case_is_equally_often_first(orders: Any, cases: int, by_arm: bool) -> None:
    """Over seeds, and over the arms of one study; so are the second and the last place, and the first two together."""
    count = 40_000 if cases > 8 else 20_000
    rows = orders(cases, count, min(cases, 2), by_arm, 0)
    for place in range(rows.shape[1]):
        seen = np.bincount(rows[:, place], minlength=cases)
        assert float(((seen - count / cases) ** 2).sum()) * cases / count < quantile(cases - 1)
    if cases <= 100:
        pairs = np.bincount(rows[:, 0] * cases + rows[:, 1], minlength=cases * cases)
        expected = count / (cases * (cases - 1))
        off = pairs.reshape(cases, cases)[~np.eye(cases, dtype=bool)]
        freedom = cases * (cases - 1) - 1
        assert np.trace(pairs.reshape(cases, cases)) == 0
        # with few expected in a cell the statistic's own variance is larger: 2 · freedom + cells / expected
        spread = math.sqrt((2.0 * freedom + (freedom + 1) / expected) / (2.0 * freedom)) if freedom else 1.0
        statistic = float(((off - expected) ** 2).sum()) / expected
        assert statistic - freedom < spread * (quantile(max(freedom, 1)) - freedom)


@pytest.mark.parametrize("by_arm", [False, True])
@pytest.mark.parametrize("cases", [cases for cases in SIZES if cases > 2])
def test_sums_of_prefixes_vary_as_they_do_without_replacement(orders: Any, cases: int, by_arm: bool) -> None:
    """With 4 rounds they varied 17 % too much. Half of the cases pass: the first half, and every second one."""
    count = 6_000
    for length in sorted({max(2, cases // 10), cases // 2}):
        rows = orders(cases, count, length, by_arm, 10**6)
        for passes in (np.arange(cases) < cases // 2, np.arange(cases) % 2 == 0):
            sums, share = passes[rows].sum(axis=1), passes.mean()
            variance = length * share * (1 - share) * (cases - length) / (cases - 1)
            if variance == 0:
                continue
            squares = (sums - length * share) ** 2
            error = squares.std() / math.sqrt(count)
            assert abs(squares.mean() - variance) < 5.5 * error + 1e-9, (length, squares.mean() / variance)
            assert abs(sums.mean() - length * share) < 5.5 * math.sqrt(variance / count)


def test_arms_and_seeds_have_their_own_orders() -> None:
    seeds = [0, 1, 7, 2**32, 7 + 2**32, 2**64, 7 + 2**64, 1 + 2**96, 2**128 - 1]
    found = set()
    for seed in seeds:
        for arm in range(50):
            keys = place_key(2 * arm, seed), place_key(2 * arm + 1, seed)
            found.add(tuple(case_at_place(place, 500, *keys) for place in range(8)))
    assert len(found) == 50 * len(seeds)


def test_two_arms_of_a_study_meet_the_cases_independently(orders: Any) -> None:
    """Where one arm's place n is, says nothing about the other's: 20 cases, the same place, 30,000 pairs of arms."""
    rows = orders(20, 60_000, 3, True, 3)
    for place in range(3):
        pairs = np.bincount(rows[0::2, place] * 20 + rows[1::2, place], minlength=400)
        assert float(((pairs - 75.0) ** 2).sum()) / 75.0 < quantile(399)


# -- places ------------------------------------------------------------------------------------------------------


def sheet_of(cases: int, arms: int = 2) -> Sheet:
    sheet = columns.blank_sheet_columns(arms, cases, 1000)
    for arm in range(arms):
        sheet.state[arm].extend([FREE] * cases)
        sheet.entry[arm].extend([0] * cases)
    return sheet


def test_a_pull_takes_the_lowest_free_place() -> None:
    sheet = sheet_of(3)
    assert [take_place(sheet, 0, pull) for pull in (1, 2)] == [True, True]
    free_place(sheet, 0, 0)
    assert take_place(sheet, 0, 3) is False  # a second try
    assert (sheet.place[3], sheet.entry[0][0]) == (0, 1)
    fill_place(sheet, 0, 0, KNOWN)
    fill_place(sheet, 0, 1, FAILED)
    assert take_place(sheet, 0, 4)
    assert sheet.place[4] == 2
    assert are_places_used_up(sheet, 0)
    assert not are_places_used_up(sheet, 1)


def test_without_cases_nothing_is_used_up() -> None:
    assert not are_places_used_up(columns.blank_sheet_columns(3, 0), 0)


@given(st.integers(1, 6), st.lists(st.tuples(st.sampled_from(["take", "free", "known", "failed"]), st.integers(0, 5))))
def test_places_follow_a_simple_model(cases: int, steps: list[tuple[str, int]]) -> None:
    sheet, model, tried, pull = sheet_of(cases), [FREE] * cases, set(), 0
    for step, place in steps:
        if step == "take" and FREE in model:
            pull += 1
            lowest = model.index(FREE)
            assert take_place(sheet, 1, pull) is (lowest not in tried)
            assert sheet.place[pull] == lowest
            model[lowest] = OUT
            tried.add(lowest)
        elif step == "free" and place < cases and model[place] == OUT:
            free_place(sheet, 1, place)
            model[place] = FREE
        elif step in ("known", "failed") and place in tried:
            model[place] = KNOWN if step == "known" else FAILED
            fill_place(sheet, 1, place, model[place])
        assert list(sheet.state[1]) == model
        assert sheet.lowest[1] == (model.index(FREE) if FREE in model else cases)
        assert are_places_used_up(sheet, 1) is (FREE not in model)
        assert all((sheet.entry[1][at] > 0) is (at in tried) for at in range(cases))
    assert list(sheet.state[0]) == [FREE] * cases  # the other arm's


def test_an_order_of_a_million_cases_is_walked_at_once() -> None:
    """Cycle walking tries 4 positions at most on average."""
    chance = random.Random(1)
    keys = chance.getrandbits(32), chance.getrandbits(32)
    assert len({case_at_place(place, 1_000_000, *keys) for place in range(2000)}) == 2000
