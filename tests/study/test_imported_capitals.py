"""What an import adds to the capitals of an arm: exactly what its rewards say, however extreme they are on the way."""

import math
from typing import Any

import pytest

import thresher
from thresher.core.evidence import BETS, capital_bets, reset_capital
from thresher.study import peek_study

ONES, ZEROS = [1.0] * 80, [0.0] * 30  # products leave the range in which they are kept, and come back into it


def imported(rewards: "list[float]", **given: Any) -> thresher.Study:
    study = thresher.create_study("s", arms=["a"], at_least=0.5, **given)
    study.add_many(("a", reward) for reward in rewards)
    study.ask()
    return study


@pytest.mark.parametrize("rewards", [ONES + ZEROS, ZEROS + ONES])
@pytest.mark.parametrize("mirrored", [False, True])
def test_the_capitals_of_an_import_are_the_products_of_its_bets(rewards: "list[float]", mirrored: bool) -> None:
    rewards = [1.0 - reward for reward in rewards] if mirrored else rewards
    found = peek_study(imported(rewards), lambda ledger: list(ledger.capitals[0]))
    stakes = [0.0] * (2 * BETS)
    reset_capital(stakes)
    for side in range(2):
        for bet, size in enumerate(capital_bets(0.5)):
            gains = [(reward - 0.5) * (1 - 2 * side) for reward in rewards]
            expected = stakes[side * BETS + bet] * math.prod(1.0 + size * gain for gain in gains)
            assert found[side * BETS + bet] == pytest.approx(expected, rel=1e-9, abs=1e-290)


@pytest.mark.parametrize(("reward", "reached"), [(0.5, True), (0.499, False)])
def test_an_import_within_the_tolerance_gets_the_side_of_its_mean(reward: float, reached: bool) -> None:
    """Both capitals reach the level, and are looked at once."""
    (row,) = imported([reward] * 400, tolerance=0.2).verdict().rows
    assert (row.reached, row.certified) == (reached, True)


@pytest.mark.parametrize("first", [0.0, 1.0])
def test_products_that_leave_the_range_of_floats_come_back_from_it(first: float) -> None:
    """However extreme the capitals are on the way, the order of what was imported does not matter."""
    falls, rises = 500, 1400
    counts = {0.0: falls, 1.0: rises}
    rewards = [first] * int(counts[first]) + [1.0 - first] * int(counts[1.0 - first])
    found = peek_study(imported(rewards), lambda ledger: list(ledger.capitals[0]))
    stakes = [0.0] * (2 * BETS)
    reset_capital(stakes)
    kept = 0
    for bet, size in enumerate(capital_bets(0.5)):
        if size < 2.0:  # the first loses all
            power = math.log(stakes[bet]) + falls * math.log1p(-size / 2) + rises * math.log1p(size / 2)
            kept += -690.0 < power < 690.0
            expected = 0.0 if power < -690.7 else 1e300 if power > 690.7 else math.exp(power)
            assert found[bet] == pytest.approx(expected, rel=1e-6)
    assert kept > 5, "most are within the range at the end"
