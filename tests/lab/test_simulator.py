"""The simulator: the same seed gives the same numbers, whatever the threads; delays behave as described."""

import math
from typing import Any

import numpy as np
import pytest
from draws import drawn

from thresher.core import policies
from thresher.lab import Result, Setup, simulate
from thresher.lab.simulator import instances


def same(first: Result, other: Result) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(first.measures, other.measures, strict=True))


@pytest.mark.parametrize("delay", ["none", "workers:5:exponential"])
def test_results_do_not_depend_on_the_number_of_threads(delay: str) -> None:
    setup = Setup(policy="evt", arms=20, budget=400, delay=delay, checkpoints=(100, 250, 400))
    alone, two, seven = (simulate(setup, repetitions=37, seed=5, threads=threads) for threads in (1, 2, 7))
    assert same(alone, two)
    assert same(alone, seven)
    assert not same(alone, simulate(setup, repetitions=37, seed=6, threads=2))
    assert np.array_equal(alone.measures.wrong[:11], simulate(setup, repetitions=11, seed=5).measures.wrong)


def test_one_worker_a_batch_of_one_and_no_slack_are_the_sequential_run() -> None:
    setup = Setup(policy="evt", arms=20, budget=400)
    none = simulate(setup, repetitions=20)
    for delay in ("workers:1", "batch:1", "fifo:0", "random:0"):
        other = simulate(setup.but(delay=delay), repetitions=20)
        assert np.array_equal(none.measures.wrong, other.measures.wrong)
        assert np.array_equal(none.measures.issued, other.measures.issued)
        assert other.measures.in_flight.max() == 0


@pytest.mark.parametrize(("delay", "most"), [("fifo:30", 30), ("random:30", 30), ("workers:30", 29), ("batch:30", 29)])
def test_no_decision_is_made_with_more_pending_pulls_than_the_delay_allows(delay: str, most: int) -> None:
    result = simulate(Setup(policy="ap-evt", arms=20, budget=500, delay=delay), repetitions=5)
    assert result.measures.in_flight.tolist() == [[most]] * 5
    assert (result.measures.ratio > 0).all()


def test_equal_allocation_pulls_every_arm_equally_often() -> None:
    result = simulate(Setup(policy="uniform", arms=7, budget=70), repetitions=4)
    assert result.pulls_per_arm[-1].tolist() == [10.0] * 7


def test_asynchronous_workers_finish_sooner_than_synchronous_batches() -> None:
    setup = Setup(policy="uniform", arms=10, budget=4000)
    pool = simulate(setup.but(delay="workers:10:exponential"), repetitions=10)
    batch = simulate(setup.but(delay="batch:10:exponential"), repetitions=10)
    assert pool.clock is not None
    assert batch.clock is not None
    assert pool.clock[-1] == pytest.approx(400, rel=0.05)  # 4,000 pulls of one second, by ten workers
    harmonic = sum(1 / k for k in range(1, 11))  # a batch takes as long as the slowest of ten
    assert batch.clock[-1] == pytest.approx(400 * harmonic, rel=0.05)
    assert pool.idle is not None
    assert batch.idle is not None
    assert pool.idle < 0.05 < batch.idle


def test_slow_failures_make_a_run_take_longer() -> None:
    setup = Setup(policy="uniform", family="bernoulli", arms=10, budget=20_000, at_least=0.5, means=0.5)
    quick = simulate(setup.but(delay="workers:4:exponential"), repetitions=2).clock
    slow = simulate(setup.but(delay="workers:4:failures:5"), repetitions=2).clock
    assert quick is not None
    assert slow is not None
    assert slow[-1] / quick[-1] == pytest.approx(3.0, rel=0.05)  # half of the pulls take five times as long


MOMENTS = {
    "uniform": (0.6, 0.2, 0.6, 0.2 / math.sqrt(3)),
    "bernoulli": (0.6, 0.2, 0.6, math.sqrt(0.24)),
    "beta": (0.6, 0.2, 0.6, 0.2),
    "normal": (0.6, 0.2, 0.6, 0.2),
    "constant": (0.6, 0.2, 0.6, 0.0),
}


@pytest.mark.parametrize("family", [*MOMENTS, "clipped"])
def test_rewards_have_the_mean_and_spread_that_the_family_states(family: str) -> None:
    pulls = 40_000
    setup = Setup(policy="uniform", family=family, arms=1, means=0.6, spreads=0.2, budget=pulls)
    if family == "clipped":
        setup = setup.but(spreads=0.5)
    rewards, mean, spread = drawn(setup, pulls)
    if family != "clipped":
        assert (mean, spread) == pytest.approx(MOMENTS[family][2:])
    margin = 6.0 * spread / math.sqrt(pulls) + 1e-12  # six standard errors
    assert rewards.mean() == pytest.approx(mean, abs=margin)
    assert rewards.std() == pytest.approx(spread, abs=0.02)
    if family in ("bernoulli", "beta", "clipped"):
        assert rewards.min() >= 0.0
        assert rewards.max() <= 1.0


def test_a_clipped_arm_is_labelled_by_its_true_mean() -> None:
    """Mean .9 and standard deviation .5, clipped to [0, 1], have a true mean below .78."""
    setup = Setup(policy="uniform", family="clipped", arms=1, means=0.9, spreads=0.5, at_least=0.78, budget=20_000)
    rewards, mean, _ = drawn(setup, 200_000)
    assert rewards.mean() < 0.78
    assert mean < 0.78


def test_each_repetition_draws_a_new_instance_the_same_for_every_policy() -> None:
    setup = Setup(arms=50, budget=100)
    (first, _), (second, _) = instances(setup, repetitions=2, seed=9)
    assert not np.array_equal(first, second)
    assert ((first >= 0.6) & (first < 0.8)).all()
    again = instances(setup.but(policy="uniform"), repetitions=1, seed=9)[0][0]
    assert np.array_equal(first, again)


def test_progress_counts_every_pull() -> None:
    seen: list[int] = []
    simulate(Setup(arms=5, budget=50), repetitions=9, progress=seen.append)
    assert sum(seen) == 9 * 50


def test_standard_errors_are_those_of_the_mean_over_repetitions() -> None:
    result = simulate(Setup(policy="uniform", arms=10, budget=50), repetitions=64)
    shares = 1.0 - result.measures.wrong[:, -1] / 10
    assert result.accuracy[-1] == pytest.approx(shares.mean())
    assert result.accuracy_se[-1] == pytest.approx(shares.std(ddof=1) / 8)


def test_both_losses_are_measured_any_arm_wrong_and_any_arm_wrong_by_more_than_the_tolerance() -> None:
    settings: dict[str, Any] = {"family": "bernoulli", "arms": 4, "means": [0.49, 0.45, 0.51, 0.56], "at_least": 0.5}
    certified = simulate(
        Setup(**settings, budget=20_000, confidence=0.95, tolerance=0.05), repetitions=100, seed=1
    )  # two arms lie within the tolerance, where either answer is right
    assert certified.certificates is not None
    assert certified.certificates.any_wrong[-1] <= 0.05
    assert certified.success_within[-1] >= 0.95
    assert 0.3 < certified.success[-1] < certified.success_within[-1] - 0.05
    assert certified.accuracy[-1] < certified.accuracy_within[-1]
    last = certified.rows()[-1]
    assert (last["success"], last["success_within"]) == (certified.success[-1], certified.success_within[-1])
    slack = simulate(Setup(**settings, policy=policies.apt(slack=0.05), budget=4000), repetitions=100, seed=1)
    assert slack.setup.within == 0.05
    assert slack.success[-1] < slack.success_within[-1]
    exact = simulate(Setup(**settings, policy="apt", budget=4000), repetitions=100, seed=1)
    assert (exact.success == exact.success_within).all()
    assert "success_within" not in exact.rows()[-1]
