"""A live study that is told the simulator's rewards, in the same order, asks for the same arms and has its bits."""

import pytest
from lab_replay import compare, live

from thresher.core import policies
from thresher.core.ledger import fold_ledger
from thresher.core.state import State
from thresher.lab import Setup, trace

POLICIES = {
    "uniform": policies.uniform(),
    "apt": policies.apt(slack=0.01),
    "evt": policies.evt(),
    "evt supplement": policies.evt(variant="supplement"),
    "ap-evt": policies.ap_evt(warmup=3),
    "ap-evt half": policies.ap_evt(5.0, pending_weight=0.5),
    "evt-pf": policies.evt_pf(),
    "ap-evt-pf": policies.ap_evt_pf(),
    "lsa": policies.lsa(),
    "anytime-evt": policies.anytime_evt(),
    "balanced": policies.balanced(),
}
DELAYS = ("fifo:7", "random:12", "batch:5", "workers:6:failures:5", "workers:4:lognormal:0.5")
INTERPRETED = ("evt supplement", "lsa")  # at once; `test_interpreted.py` compares that with compiled loops


def replay(setup: Setup, *, repetition: int, seed: int = 8) -> State:
    """The state of a live study, folded from its log, after it was compared with a repetition."""
    played = trace(setup, repetition=repetition, seed=seed)
    state = fold_ledger(live(setup, played).events())
    state.score_stale()
    compare(state, played)
    return state


@pytest.mark.parametrize("delays", [("none",), DELAYS], ids=["at once", "delayed"])
@pytest.mark.parametrize("name", POLICIES)
def test_a_live_study_asks_for_the_arms_of_the_simulator(
    name: str, delays: tuple[str, ...], request: pytest.FixtureRequest
) -> None:
    if delays == ("none",) and name in INTERPRETED:
        request.getfixturevalue("interpreted")
    for delay in delays:
        setup = Setup(policy=POLICIES[name], arms=13, budget=600, delay=delay, spreads=(0.05, 0.2))
        replay(setup, repetition=2, seed=3)


@pytest.mark.parametrize("delay", ["none", "fifo:3"])
def test_other_bounds_are_scaled_as_a_live_study_scales_them(delay: str) -> None:
    setup = Setup(arms=9, budget=300, bounds=(-3.0, 11.0), at_least=2.5, means=(0.0, 6.0), spreads=(0.5, 2.0))
    replay(setup.but(policy="anytime-evt", delay=delay), repetition=2, seed=3)


def test_a_trace_has_every_pull_asked_and_told_once() -> None:
    played = trace(Setup(policy="evt", arms=5, budget=100, delay="random:9"))
    assert sorted(played.pull) == [*range(-100, 0), *range(1, 101)]
    waiting = [sum(1 if pull > 0 else -1 for pull in played.pull[: index + 1]) for index in range(200)]
    assert (max(waiting), min(waiting)) == (10, 0)


MEANS = (0.05, 0.1, 0.25, 0.55, 0.8, 0.85, 0.95)
SETTLING = Setup(
    family="bernoulli", arms=7, means=list(MEANS), at_least=0.5, budget=900, confidence=0.95, policy="balanced"
)
PASSES = Setup(family="bernoulli", arms=11, means=(0.5, 1.0), at_least=0.8, confidence=0.95)
WORKERS = "workers:9:failures:5"
LOSSES = {"lost": (0.3, 0.1), "hung": 0.005}
MEASURED = Setup(
    arms=11, means=(0.3, 0.7), spreads=(0.0, 0.3), at_least=0.5, budget=3000, confidence=0.95, delay=WORKERS
)
AGAINST = MEASURED.but(baseline=4)
# the lines of a group use the same machine code
RUNS: dict[str, list[Setup]] = {
    "at once": [
        SETTLING.but(budget=9000),
        SETTLING.but(tolerance=0.2),
        SETTLING.but(bounds=(-3.0, 5.0), at_least=1.0, means=[8 * mean - 3 for mean in MEANS], tolerance=2),
    ],
    "delayed": [
        SETTLING.but(delay="workers:9:failures:20"),
        SETTLING.but(delay="workers:9:failures:20", tolerance=0.2),
        SETTLING.but(delay=WORKERS, lost=(0.1, 0.05), failure="ignore"),
    ],
    "lost or hung": [
        SETTLING.but(delay=WORKERS, lost=(0.1, 0.05)),
        SETTLING.but(delay="workers:40:exponential", hung=0.02),
    ],
    "cases, at once": [
        PASSES.but(cases=150, budget=1650),
        PASSES.but(cases=1, budget=22),
        PASSES.but(cases=77, budget=847, tolerance=0.05),
    ],
    "cases, delayed": [
        PASSES.but(cases=150, budget=1650, delay=WORKERS),
        PASSES.but(cases=150, budget=3000, delay=WORKERS, lost=(0.3, 0.1)),
        PASSES.but(cases=60, budget=660, delay="workers:25:exponential", lost=(0.2, 0.0), hung=0.02),
        PASSES.but(cases=40, budget=440, delay="batch:16", tolerance=0.05),
    ],
    "rate, at once": [PASSES.but(guarantee="rate", budget=4000, tolerance=0.05)],
    "find, delayed": [
        PASSES.but(policy=None, find=2, budget=4000, delay=WORKERS),
        PASSES.but(policy=None, find=3, budget=4000, delay=WORKERS, tolerance=0.05),
        PASSES.but(policy=None, find=9, budget=2000, delay=WORKERS, lost=(0.3, 0.1), hung=0.01),
    ],
    "rate, delayed": [
        PASSES.but(guarantee="rate", budget=2000, delay=WORKERS),
        PASSES.but(guarantee="rate", budget=2000, delay=WORKERS, lost=(0.1, 0.05), tolerance=0.1),
        PASSES.but(guarantee="rate", budget=2000, delay="workers:25:exponential", hung=0.01),
    ],
    "cases and rate, delayed": [
        PASSES.but(guarantee="rate", cases=150, budget=1650, delay=WORKERS),
        PASSES.but(guarantee="rate", cases=90, budget=2000, delay=WORKERS, lost=(0.3, 0.1), tolerance=0.05),
        PASSES.but(guarantee="rate", cases=90, budget=990, delay="workers:25:exponential", hung=0.02),
    ],
    "find with cases, delayed": [
        PASSES.but(policy=None, find=2, cases=150, budget=1650, delay=WORKERS),
        PASSES.but(policy=None, find=9, cases=60, budget=900, delay=WORKERS, lost=(0.3, 0.1), hung=0.01),
        PASSES.but(policy=None, find=11, cases=60, budget=660, delay="fifo:3"),
        PASSES.but(policy=None, find=3, cases=60, budget=660, delay=WORKERS, tolerance=0.05),
    ],
    "questions: delayed": [
        MEASURED.but(at_most=0.5, bounds=(0.0, 1.3)),
        MEASURED.but(at_most=0.5, tolerance=0.03),
        MEASURED.but(share=0.6, delay="batch:16", tolerance=0.1),
        MEASURED.but(share=0.7, at_most=0.52, **LOSSES),
        AGAINST.but(margin=0.05, bounds=(-0.2, 1.1)),
        AGAINST.but(margin=-0.05, lower_is_better=True, tolerance=0.03, **LOSSES),
        AGAINST.but(find=3, delay="fifo:5"),
    ],
    "questions: cases, delayed": [
        MEASURED.but(at_most=0.5, cases=150),
        MEASURED.but(share=0.6, cases=90, delay="random:12"),
        AGAINST.but(cases=150, margin=0.02),
        AGAINST.but(cases=90, lower_is_better=True, tolerance=0.05, lost=(0.3, 0.1)),
        AGAINST.but(cases=60, find=3, **LOSSES),
        AGAINST.but(cases=60, share=0.6, delay="fifo:3", tolerance=0.1),
        AGAINST.but(cases=120, ratio=1.1, lower_is_better=True, delay="batch:16"),
        AGAINST.but(cases=1),
    ],
    "questions: cases and rate, delayed": [
        AGAINST.but(cases=150, guarantee="rate"),
        AGAINST.but(cases=90, guarantee="rate", margin=-0.02, lower_is_better=True, lost=(0.3, 0.1), tolerance=0.05),
        MEASURED.but(cases=90, guarantee="rate", share=0.6),
    ],
}


@pytest.mark.parametrize("name", RUNS)
def test_compiled_certificates_equal_those_of_a_live_study_bit_for_bit(
    name: str, request: pytest.FixtureRequest
) -> None:
    """Some are interpreted, as `test_interpreted.py` compares that with compiled loops."""
    if name in ("rate, at once", "questions: cases and rate, delayed"):
        request.getfixturevalue("interpreted")
    states = [replay(setup, repetition=repetition) for setup in RUNS[name] for repetition in (0, 1)]
    assert sum(label != 0 for state in states for label in state.docket.settled) >= 5  # something is compared
    assert sum(state.done for state in states) >= 2 or name == "lost or hung"
    if name == "at once":  # it ended when all were settled
        assert all(state.issued < setup.budget for state, setup in zip(states[::2], RUNS[name], strict=True))
    if name == "lost or hung":
        assert all(sum(state.docket.charged) > 0 for state in states)


def test_each_pull_of_a_pair_draws_both_rewards_and_the_baseline_takes_none() -> None:
    played = trace(AGAINST.but(margin=0.05), seed=8)
    assert 4 not in played.arm
    assert len(set(played.other)) > 100


def test_with_cases_the_baseline_goes_first_through_all_of_them() -> None:
    played = trace(AGAINST.but(cases=150, lost=(0.1, 0.1)), seed=8)
    ends = [at for at, (pull, arm) in enumerate(zip(played.pull, played.arm, strict=True)) if pull < 0 and arm == 4]
    assert set(played.arm[: ends[-1]]) == {4}
    assert 4 not in played.arm[ends[-1] + 1 :]
