"""A bet can lose almost everything but no more than it has, and wins nothing on average: whatever the bars are."""

import pytest

from thresher.core.evidence import BETS, UNREACHED, Stakes, bet_capital, capital_bets, fresh_capital

BARS = [0.001, 0.1, 0.25, 0.5, 0.75, 0.9, 0.999]


def stakes(threshold: float, tolerance: float = 0.0) -> Stakes:
    levels = (40.0, UNREACHED)
    edges = threshold - tolerance, threshold + tolerance
    bets = [*capital_bets(edges[0], tolerance), *capital_bets(1.0 - edges[1], tolerance)]
    return Stakes(threshold, *edges, *levels, bets)


def after(one: Stakes, reward: float, low_bar: float, high_bar: float) -> list[float]:
    """By how much each product grows with one reward; a product of 0 counts as 0."""
    capital = fresh_capital()
    before = list(capital)
    bet_capital(capital, one, reward, reward, low_bar, high_bar)
    return [new / old for new, old in zip(capital[: 2 * BETS], before[: 2 * BETS], strict=True)]


@pytest.mark.parametrize(("threshold", "tolerance"), [(0.1, 0.0), (0.5, 0.0), (0.9, 0.0), (0.5, 0.4999), (0.9, 0.0999)])
@pytest.mark.parametrize("bar", BARS)
def test_the_worst_reward_takes_all_but_a_fiftieth_at_most_and_a_fair_one_gives_nothing(
    threshold: float, tolerance: float, bar: float
) -> None:
    one = stakes(threshold, tolerance)
    lost, won = after(one, 0.0, bar, bar), after(one, 1.0, bar, bar)
    up, down = slice(1, BETS), slice(BETS + 1, None)
    assert min(lost[up]) >= 0.02 - 1e-12
    assert min(won[down]) >= 0.02 - 1e-12
    assert min(lost[0], won[BETS]) >= 0.0
    for falls, rises in zip(lost, won, strict=True):
        assert (1.0 - bar) * falls + bar * rises == pytest.approx(1.0, abs=1e-9), (
            "a reward of 1 has the chance of the bar"
        )


@pytest.mark.parametrize(("threshold", "bar"), [(0.1, 0.9), (0.5, 0.999)])
def test_a_bet_that_would_lose_more_than_it_has_is_cut(threshold: float, bar: float) -> None:
    upward = after(stakes(threshold), 0.0, bar, bar)
    assert upward[:2] == pytest.approx([0.0, 0.02], abs=1e-12)
    downward = after(stakes(1.0 - threshold), 1.0, 1.0 - bar, 1.0 - bar)
    assert downward[BETS : BETS + 2] == pytest.approx([0.0, 0.02], abs=1e-12)


def test_bars_at_the_bounds_are_no_division_by_zero() -> None:
    one = stakes(0.5)
    grown = after(one, 0.5, 0.0, 1.0)
    assert grown[:2] == [1.0 + one.bets[0] * 0.5, 1.0 + one.bets[1] * 0.5], "nothing is below 0: it is free to bet"
    assert grown[BETS : BETS + 2] == [1.0 + one.bets[BETS] * 0.5, 1.0 + one.bets[BETS + 1] * 0.5]
