"""Eval sets, error rate and find: a live study that is told the laboratory's rewards holds the same bits."""

from typing import Any

import pytest
from lab_replay import compare, live

from thresher.lab import Setup, trace
from thresher.study import peek

PROBLEM = Setup(family="bernoulli", arms=11, means=(0.5, 1.0), at_least=0.8, confidence=0.95)
WORKERS = "workers:9:failures:5"
# each line of a group uses the same machine code
RUNS: dict[str, list[Setup]] = {
    "cases, at once": [
        PROBLEM.but(cases=150, budget=1650),
        PROBLEM.but(cases=1, budget=22),
        PROBLEM.but(cases=77, budget=847, tolerance=0.05),
    ],
    "cases, delayed": [
        PROBLEM.but(cases=150, budget=1650, delay=WORKERS),
        PROBLEM.but(cases=150, budget=3000, delay=WORKERS, lost=(0.3, 0.1)),
        PROBLEM.but(cases=60, budget=660, delay="workers:25:exponential", lost=(0.2, 0.0), hung=0.02),
        PROBLEM.but(cases=40, budget=440, delay="batch:16", tolerance=0.05),
    ],
    "rate, at once": [PROBLEM.but(guarantee="rate", budget=4000, tolerance=0.05)],
    "find, delayed": [
        PROBLEM.but(policy=None, find=2, budget=4000, delay=WORKERS),
        PROBLEM.but(policy=None, find=9, budget=2000, delay=WORKERS, lost=(0.3, 0.1), hung=0.01),
    ],
    "rate, delayed": [
        PROBLEM.but(guarantee="rate", budget=2000, delay=WORKERS),
        PROBLEM.but(guarantee="rate", budget=2000, delay=WORKERS, lost=(0.1, 0.05), tolerance=0.1),
        PROBLEM.but(guarantee="rate", budget=2000, delay="workers:25:exponential", hung=0.01),
    ],
    "cases and rate, delayed": [
        PROBLEM.but(guarantee="rate", cases=150, budget=1650, delay=WORKERS),
        PROBLEM.but(guarantee="rate", cases=90, budget=2000, delay=WORKERS, lost=(0.3, 0.1), tolerance=0.05),
        PROBLEM.but(guarantee="rate", cases=90, budget=990, delay="workers:25:exponential", hung=0.02),
    ],
    "find with cases, delayed": [
        PROBLEM.but(policy=None, find=2, cases=150, budget=1650, delay=WORKERS),
        PROBLEM.but(policy=None, find=9, cases=60, budget=900, delay=WORKERS, lost=(0.3, 0.1), hung=0.01),
        PROBLEM.but(policy=None, find=11, cases=60, budget=660, delay="fifo:3"),
    ],
}


@pytest.mark.parametrize("name", RUNS)
def test_compiled_eval_sets_rates_and_searches_equal_a_live_study_bit_for_bit(
    name: str, request: pytest.FixtureRequest
) -> None:
    """One of them is interpreted, as `test_interpreted.py` compares it."""
    if name == "rate, at once":
        request.getfixturevalue("interpreted")
    seen: dict[str, Any] = {"settled": 0, "over": 0}
    for setup in RUNS[name]:
        for repetition in (0, 1):
            played = trace(setup, repetition=repetition, seed=8)
            study = live(setup, played)
            peek(study, lambda ledger, played=played: compare(ledger, played))  # type: ignore[misc]
            seen["settled"] += sum(label != 0 for label in played.proof.docket.settled)
            seen["over"] += study.done
    assert seen["settled"] >= 5  # something is compared
    assert seen["over"] >= 2
