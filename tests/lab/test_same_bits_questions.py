"""At most, shares, pairs and baselines: a live study that is told the laboratory's rewards holds the same bits."""

import pytest
from lab_replay import compare, live

from thresher.lab import Setup, trace
from thresher.study import peek

WORKERS = "workers:9:failures:5"
PROBLEM = Setup(
    arms=11, means=(0.3, 0.7), spreads=(0.0, 0.3), at_least=0.5, budget=3000, confidence=0.95, delay=WORKERS
)
AGAINST = PROBLEM.but(baseline=4)
LOSSES = {"lost": (0.3, 0.1), "hung": 0.005}
# each line of a group uses the same machine code
RUNS: dict[str, list[Setup]] = {
    "delayed": [
        PROBLEM.but(at_most=0.5, bounds=(0.0, 1.3)),
        PROBLEM.but(share=0.6, delay="batch:16", tolerance=0.1),
        PROBLEM.but(share=0.7, at_most=0.52, **LOSSES),
        AGAINST.but(margin=0.05, bounds=(-0.2, 1.1)),
        AGAINST.but(margin=-0.05, lower_is_better=True, tolerance=0.03, **LOSSES),
        AGAINST.but(find=3, delay="fifo:5"),
    ],
    "cases, delayed": [
        PROBLEM.but(at_most=0.5, cases=150),
        PROBLEM.but(share=0.6, cases=90, delay="random:12"),
        AGAINST.but(cases=150, margin=0.02),
        AGAINST.but(cases=90, lower_is_better=True, tolerance=0.05, lost=(0.3, 0.1)),
        AGAINST.but(cases=60, find=3, **LOSSES),
        AGAINST.but(cases=60, share=0.6, delay="fifo:3"),
        AGAINST.but(cases=120, ratio=1.1, lower_is_better=True, delay="batch:16"),
        AGAINST.but(cases=1),
    ],
    "cases and rate, delayed": [
        AGAINST.but(cases=150, guarantee="rate"),
        AGAINST.but(cases=90, guarantee="rate", margin=-0.02, lower_is_better=True, lost=(0.3, 0.1), tolerance=0.05),
        PROBLEM.but(cases=90, guarantee="rate", share=0.6),
    ],
}


@pytest.mark.parametrize("name", RUNS)
def test_compiled_questions_equal_a_live_study_bit_for_bit(name: str, request: pytest.FixtureRequest) -> None:
    """The last of them are interpreted, as `test_interpreted.py` compares it."""
    if name == "cases and rate, delayed":
        request.getfixturevalue("interpreted")
    settled, over = 0, 0
    for setup in RUNS[name]:
        for repetition in (0, 1):
            played = trace(setup, repetition=repetition, seed=8)
            study = live(setup, played)
            peek(study, lambda ledger, played=played: compare(ledger, played))  # type: ignore[misc]
            settled += sum(label != 0 for label in played.proof.docket.settled)
            over += study.done
    assert settled >= 5  # something is compared
    assert over >= 2


def test_each_pull_of_a_pair_draws_both_rewards_and_the_baseline_takes_none() -> None:
    played = trace(AGAINST.but(margin=0.05), seed=8)
    assert 4 not in played.arm
    assert len(set(played.other)) > 100


def test_with_cases_the_baseline_goes_first_through_all_of_them() -> None:
    played = trace(AGAINST.but(cases=150, lost=(0.1, 0.1)), seed=8)
    ends = [at for at, (pull, arm) in enumerate(zip(played.pull, played.arm, strict=True)) if pull < 0 and arm == 4]
    assert set(played.arm[: ends[-1]]) == {4}
    assert 4 not in played.arm[ends[-1] + 1 :]
