"""How soon arms are settled: the default policy, Kano et al.'s benchmarks, single arms, and arms near the bar.

Seeded; margins are such that an honest change of seed would fail less than once in a million.
"""

import math

import pytest

from bench.kano import benchmark, play_rival
from thresher.lab import Setup, simulate

BETA_1_10 = [1 - (1 - (arm + 0.5) / 100) ** 0.1 for arm in range(100)]  # its quantiles
PROBLEMS = {
    "40 prompts, means U(.7, .99), bar .9": Setup(arms=40, family="bernoulli", means=(0.7, 0.99), at_least=0.9),
    "100 arms, means Beta(1, 10), bar .05": Setup(arms=100, family="bernoulli", means=BETA_1_10, at_least=0.05),
    "100 arms, means U(0, 1), bar .5": Setup(arms=100, family="bernoulli", means=(0.0, 1.0), at_least=0.5),
}
SURE = 5.0


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_default_policy_settles_as_many_arms_as_uniform_that_skips_with_fewer_wrong_labels(name: str) -> None:
    """After 250 pulls per arm."""
    problem = PROBLEMS[name]
    pulls = 250 * problem.arms
    setup = problem.but(budget=pulls, checkpoints=(pulls,), confidence=0.95)
    mine = simulate(setup.but(policy="balanced"), repetitions=500, seed=31).measures
    equal = simulate(setup.but(policy="uniform"), repetitions=500, seed=31).measures
    assert mine.settled.mean() >= equal.settled.mean()
    assert mine.wrong.mean() < equal.wrong.mean()


@pytest.mark.parametrize(("number", "most", "theirs"), [(1, 3600, 10_250), (2, 3100, 9950), (3, 15_500, 46_000)])
def test_benchmarks_take_a_third_of_the_pulls_of_other_stopping_rules(number: int, most: int, theirs: int) -> None:
    for policy in ("balanced", "uniform"):
        result = simulate(benchmark(number, policy), repetitions=400, seed=32).certificates
        assert result is not None
        pulls, _ = result.pulls_to_settle
        assert pulls is not None
        assert pulls <= most
    for name in ("HDoC", "LUCB-G", "APT-G"):
        used, still, wrong = play_rival(name, benchmark(number), repetitions=200, seed=32)
        assert still.max() == 0
        assert (wrong > 0).mean() <= 0.05
        error = used.std(ddof=1) / math.sqrt(200)
        assert used.mean() == pytest.approx(theirs, abs=SURE * error + 0.03 * theirs)  # "about"


ALONE = {  # family, mean, half-width, bar: mean pulls at level 200, from an independent simulation
    ("bernoulli", 0.9, 0.0, 0.5): 19.75,
    ("bernoulli", 0.55, 0.0, 0.5): 1369,
    ("bernoulli", 0.97, 0.0, 0.95): 1421,
    ("uniform", 0.72, 0.2, 0.7): 455,
}


@pytest.mark.parametrize(("family", "mean", "spread", "bar"), ALONE)
def test_pulls_to_settle_one_arm(family: str, mean: float, spread: float, bar: float) -> None:
    """The reference does not say how many runs it used: allow 3 % for that, and one pull for rounding."""
    setup = Setup("balanced", family, 1, bar, mean, spread, 100_000, "workers:1", confidence=0.995)
    result = simulate(setup, repetitions=2000, seed=33).certificates
    assert result is not None
    pulls, error = result.pulls_to_settle
    assert pulls is not None
    assert error is not None
    reference = ALONE[family, mean, spread, bar]
    assert pulls == pytest.approx(reference, abs=SURE * error + 0.03 * reference + 1)


@pytest.mark.parametrize(("arms", "tolerance"), [(1, 0.1), (1, 0.05), (10, 0.1)])
def test_with_a_tolerance_an_arm_on_the_bar_is_settled_after_a_bounded_number_of_pulls(
    arms: int, tolerance: float
) -> None:
    """The bound is for the hardest arm, half a tolerance from the bar; an arm on the bar takes fewer pulls."""
    bound = arms * 2 * math.log(16 * arms / 0.05) * 0.25 / (tolerance / 2) ** 2
    setup = Setup("balanced", "bernoulli", arms, 0.5, 0.5, 0.0, 400_000, confidence=0.95, tolerance=tolerance)
    for shift, most in ((0.0, 0.5), (tolerance / 2, 1.25)):
        result = simulate(setup.but(means=0.5 + shift), repetitions=200, seed=34).certificates
        assert result is not None
        pulls, _ = result.pulls_to_settle
        assert pulls is not None
        assert pulls < most * bound


def test_without_a_tolerance_an_arm_on_the_bar_stays_open() -> None:
    setup = Setup("uniform", "bernoulli", 1, 0.5, 0.5, 0.0, 20_000, confidence=0.95)
    result = simulate(setup, repetitions=200, seed=35).certificates
    assert result is not None
    assert result.finished < 0.3
    assert result.pulls_to_settle == (None, None)
