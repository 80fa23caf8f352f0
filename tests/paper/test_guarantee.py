"""Wrong settled labels in at most ``risk`` of studies: on the bar, close to it, with slow failures and lost pulls.

Seeded. A test fails when its count would be that large less than once in a million times, were the true rate the risk;
`bench/certificates.py` plays the same with more repetitions.
"""

import chances
import pytest

from paper.guarantee import label_by_arrival
from thresher.core.evidence import ABOVE
from thresher.lab import Setup, simulate

RISK = 0.05
ALONE = Setup(policy="uniform", family="bernoulli", arms=1, means=0.45, at_least=0.5, budget=3000, confidence=0.95)


def wrong(setup: Setup, repetitions: int, seed: int) -> int:
    """The number of repetitions with a wrong settled label."""
    return int((simulate(setup, repetitions=repetitions, seed=seed).measures.mislabelled[:, -1] > 0).sum())


@pytest.mark.parametrize("name", ["uniform", "ap-evt", "balanced", "cheapest"])
def test_policies_of_every_kind_keep_the_promise_on_the_bar_and_next_to_it(name: str) -> None:
    """On the bar only "below" is wrong, next to it only "above". One worker is the sequential run.

    The proof does not mention the policy: here are equal allocation, an index, two tournaments in turn, and the policy
    of searches. `bench/certificates.py` plays all policies.
    """
    for delay in ("workers:1", "workers:50:failures:5"):
        for mean in (0.5, 0.4999):
            setup = Setup(
                policy=name,
                family="bernoulli",
                arms=4,
                means=mean,
                at_least=0.5,
                budget=2000,
                confidence=0.95,
                delay=delay,
                checkpoints=(2000,),
            )
            assert wrong(setup, 200, 21) <= chances.most(200, RISK)


FAMILIES = {"bernoulli": 0.0, "uniform": 0.25, "beta": 0.3}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_keeps_the_promise(family: str) -> None:
    for delay in ("workers:1", "workers:50:failures:5"):
        for mean in (0.5, 0.4999, 0.49):
            setup = ALONE.but(
                policy="balanced", family=family, arms=2, means=mean, spreads=FAMILIES[family], delay=delay
            )
            assert wrong(setup, 300, 22) <= chances.most(300, RISK)


@pytest.mark.parametrize("workers", [10, 50, 100])
@pytest.mark.parametrize("mean", [0.45, 0.48])
def test_slow_failures_do_not_make_an_arm_look_good(workers: int, mean: float) -> None:
    for slower in (5, 10, 20):
        setup = ALONE.but(means=mean, delay=f"workers:{workers}:failures:{slower}")
        assert wrong(setup, 400, 23) <= chances.most(400, RISK)


def test_in_order_of_arrival_slow_failures_would_break_the_guarantee() -> None:
    """Why rewards are committed in the order of issue: 50 workers, failures 20 times slower, mean .45 against .5."""
    setup, runs = ALONE.but(delay="workers:50:failures:20", budget=600), 150
    above = sum(label_by_arrival(setup, repetition=run, seed=24) == ABOVE for run in range(runs))
    assert runs - above <= chances.most(runs, 0.02)  # 98.6 % of 500 other runs
    assert wrong(setup, runs, 24) <= chances.most(runs, RISK)


def test_workers_that_die_on_bad_rewards_do_not_break_the_guarantee() -> None:
    for lost in ((0.5, 0.0), (0.2, 0.05)):
        for delay in ("workers:50:exponential", "workers:50:failures:20"):
            for mean in (0.45, 0.5):
                setup = ALONE.but(means=mean, delay=delay, lost=lost)
                assert wrong(setup, 400, 25) <= chances.most(400, RISK)


def test_ignoring_lost_pulls_needs_an_assumption() -> None:
    """If half of the bad pulls are lost and left out, an arm below the bar is nearly always settled above."""
    setup = ALONE.but(delay="workers:50:exponential", lost=(0.5, 0.0), failure="ignore")
    assert wrong(setup, 400, 26) > 380


def test_hung_pulls_do_not_block_an_arm_forever() -> None:
    """0.2 % of evaluations never return; mean .6 against .5, 50 workers."""
    setup = ALONE.but(means=0.6, delay="workers:50:exponential", hung=0.002, budget=20_000)
    result = simulate(setup, repetitions=1000, seed=27).certificates
    assert result is not None
    pulls, error = result.pulls_to_settle
    assert pulls is not None  # every run settles its arm
    assert error is not None
    assert pulls + 5 * error < 900
