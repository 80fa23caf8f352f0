"""The simulator agrees with reference numbers from two independent simulations.

Seeded, so these tests pass or fail for good; the margins are such that an honest change of seed would fail less than
once in a million: five standard errors of both sides together, of which the reference's own are given.
"""

import math
from functools import cache

import pytest

from paper.figures import algorithm_42, setup_41
from paper.figures import reach as played
from thresher.core import policies
from thresher.lab import Setup, simulate
from thresher.lab.simulator import simulated_kind

reach = cache(played)  # a speedup is a ratio to the same run
SURE = 5.0
ALL_RIGHT = {  # n = 20,000, share of 400 runs: setting, policy
    ("small", "apt"): 0.10,
    ("small", "evt-pf"): 0.26,
    ("median", "evt"): 0.17,
    ("large", "evt"): 0.05,
}


@pytest.mark.parametrize(("setting", "name"), ALL_RIGHT)
def test_section_41_all_arms_right(setting: str, name: str) -> None:
    result = simulate(setup_41(setting, policies.policy(name), 20_000), repetitions=1000, seed=11)
    reference = ALL_RIGHT[setting, name]
    theirs = math.sqrt(reference * (1 - reference) / 400) + 0.005  # printed with two digits
    assert result.success[-1] == pytest.approx(reference, abs=SURE * math.hypot(theirs, result.success_se[-1]))


def test_section_41_evt_to_three_digits() -> None:
    """135,168 reference repetitions: all right .3635 ± .0013, share of arms wrong .01055."""
    result = simulate(setup_41("small", policies.evt(), 20_000), repetitions=2000, seed=12)
    assert result.success[-1] == pytest.approx(0.3635, abs=SURE * math.hypot(0.0013, result.success_se[-1]))
    assert 1 - result.accuracy[-1] == pytest.approx(0.01055, abs=SURE * result.accuracy_se[-1] + 0.00005)


WRONG = {  # share of arms wrong at n = 20,000: small, large
    "uniform": (0.033, 0.066),
    "apt": (0.043, 0.10),
    "evt-pf": (0.019, 0.087),
    "evt": (0.011, 0.030),
}


@pytest.mark.parametrize("name", WRONG)
def test_section_41_share_of_arms_wrong(name: str) -> None:
    for setting, reference in zip(("small", "large"), WRONG[name], strict=True):
        result = simulate(setup_41(setting, policies.policy(name), 20_000), repetitions=400, seed=13)
        rounding = 0.005 if reference == 0.10 else 0.0005
        margin = SURE * math.sqrt(2) * result.accuracy_se[-1] + rounding  # the reference had 400 runs too
        assert 1 - result.accuracy[-1] == pytest.approx(reference, abs=margin)


BERNOULLI = {  # share of arms wrong after 20, 50, 100 pulls an arm
    "uniform": (0.093, 0.057, 0.040),
    "evt-pf": (0.107, 0.091, 0.074),
    "evt": (0.050, 0.025, 0.014),
    "anytime-evt": (0.051, 0.026, 0.014),
}


@pytest.mark.parametrize("name", BERNOULLI)
def test_bernoulli_arms(name: str) -> None:
    """Where other tests use the loop with certificates and delayed rewards, it is played here too: the same numbers."""
    shares = name in ("uniform", "evt")
    for per_arm, reference in zip((20, 50, 100), BERNOULLI[name], strict=True):
        setup = Setup(
            policy=name,
            family="bernoulli",
            means=(0.0, 1.0),
            at_least=0.5,
            budget=100 * per_arm,
            checkpoints=(100 * per_arm,),
            delay="workers:1" if shares else "none",
        )
        result = simulate(
            setup, repetitions=1000, seed=14, played_as=simulated_kind(setup.but(confidence=0.95)) if shares else None
        )
        margin = SURE * 1.12 * result.accuracy_se[-1] + 0.0005  # the reference had 4,096 repetitions
        assert 1 - result.accuracy[-1] == pytest.approx(reference, abs=margin)


PULLS_TO_95 = {"AP-EVT": (300, 450, 700), "AP-EVT_pf": (300, 550, 1000)}


@pytest.mark.parametrize("name", PULLS_TO_95)
def test_section_42_pulls_to_95_percent_with_rewards_seen_at_once(name: str) -> None:
    """The reference measured every fifty pulls, in 200 runs."""
    for setting, reference in zip(("small", "median", "large"), PULLS_TO_95[name], strict=True):
        line = reach(setting, algorithm_42(name, 0.0), 0, 200, 15)
        assert line.pulls is not None
        error = line.resampled.std(ddof=1) * math.sqrt(2)
        assert reference - 50 - SURE * error <= line.pulls <= reference + SURE * error


SPEEDUPS = {  # τ = 100 and 500, small and large variance
    ("AP-EVT", 0.0): ((25, 16), (32, 19)),
    ("AP-EVT", 1.0): ((67, 56), (167, 152)),
    ("AP-EVT_pf", 1.0): ((55, 53), (120, 137)),
}


@pytest.mark.parametrize(("name", "delta"), SPEEDUPS)
def test_section_42_speedups(name: str, delta: float) -> None:
    """Ratios of two numbers of pulls, each read to fifty in the reference."""
    for tau, references in zip((100, 500), SPEEDUPS[name, delta], strict=True):
        for setting, reference in zip(("small", "large"), references, strict=True):
            if (tau == 500) != (setting == "large"):  # `python -m paper figure2` plays all of them
                continue
            alone = reach(setting, algorithm_42(name, delta), 0, 200, 16)
            line = reach(setting, algorithm_42(name, delta), tau, 200, 16)
            assert line.pulls is not None
            assert alone.pulls is not None
            speed, resampled = alone.pulls / line.pulls * tau, alone.resampled / line.resampled * tau
            rounding = 50 / alone.pulls + 50 / line.pulls
            margin = SURE * math.sqrt(2) * resampled.std(ddof=1) + rounding * reference
            assert speed == pytest.approx(reference, abs=margin)


def test_the_speedup_saturates_unless_pending_pulls_count() -> None:
    never = reach("large", algorithm_42("AP-EVT_pf", 0.0), 500, 200, 16)
    assert never.pulls is None or never.pulls > 18_000  # the reference: never within 20,000
    counted = reach("large", algorithm_42("AP-EVT_pf", 1.0), 500, 200, 16)
    assert counted.pulls is not None
    assert counted.pulls < 6000
