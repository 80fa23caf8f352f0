"""Real programs that thresher times itself, against a limit and against a baseline."""

import pytest
from timing import FAST, SLOW, against_baseline, against_limit, busy_cores


@pytest.mark.alone
def test_half_of_the_runs_within_the_limit() -> None:
    verdict = against_limit(share=0.5)
    assert verdict.missed == list(SLOW)
    assert verdict.reached == list(FAST)
    assert all(row.certified for row in verdict.rows)


@pytest.mark.alone
def test_the_mean_within_the_limit_with_explicit_bounds() -> None:
    verdict = against_limit(bounds=(0.0, 0.12), clip=True, budget=2000)
    assert verdict.missed == list(SLOW)
    assert verdict.reached == list(FAST)


def test_p95_within_the_limit_is_missed_by_slow_programs() -> None:
    """What fast ones do at their 95th percentile depends on the machine: `bench/questions.py` runs them to the end."""
    verdict = against_limit(share=0.95, budget=150)
    assert set(SLOW) <= set(verdict.missed)
    assert all(verdict[arm].certified for arm in SLOW)


@pytest.mark.parametrize("reward", ["seconds", "cpu-seconds"])
def test_pairs_stay_right_while_something_else_keeps_the_cores_busy(reward: str) -> None:
    with busy_cores():
        verdict = against_baseline(reward)
    assert (verdict.reached, verdict.missed) == (["faster"], ["slower"])
    assert verdict["faster"].certified
    assert verdict["slower"].certified
