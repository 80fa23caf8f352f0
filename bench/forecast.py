"""How good the estimate of the pulls that are left is: at half time, within a factor of 2 of what was left."""

import random
from collections.abc import Iterator
from typing import Any

import thresher
from thresher.core.forecast import forecast_left
from thresher.study import peek_study

from .report import Figure

KINDS: dict[str, dict[str, Any]] = {
    "500 cases": {"cases": 500},
    "500 cases, ± .02": {"cases": 500, "tolerance": 0.02},
    "500 cases, ± .02, rate": {"cases": 500, "tolerance": 0.02, "guarantee": "rate"},
    "draws, ± .03": {"tolerance": 0.03},
    "draws, ± .05": {"tolerance": 0.05},
    "draws, ± .05, rate": {"tolerance": 0.05, "guarantee": "rate"},
    "500 cases, ± .02, find 3": {"cases": 500, "tolerance": 0.02, "find": 3},
}
ARMS, STUDIES, SHARE = 20, 60, 0.8


def at_half_time(seed: int, *, arms: int = ARMS, **asked: Any) -> float:
    """What was estimated to be left after half of a study's pulls, divided by what was left."""
    chance = random.Random(seed)
    means = {f"arm {number}": chance.uniform(0.7, 0.99) for number in range(arms)}
    study = thresher.create_study("s", arms=list(means), at_least=0.9, seed=seed, **asked)
    estimates = [peek_study(study, forecast_left)]
    while pulls := study.ask_many(10):
        for pull in pulls:
            study.tell(pull, chance.random() < means[pull.arm])
        estimates.append(peek_study(study, forecast_left))
    issued, half = study.verdict().issued, len(estimates) // 2
    return (estimates[half] or 0) / max(1, issued - 10 * half)


def share_within(factors: "list[float]") -> float:
    """The share of estimates within a factor of 2."""
    return sum(0.5 <= factor <= 2.0 for factor in factors) / len(factors)


def figures() -> Iterator[Figure]:
    for name, asked in KINDS.items():
        factors = sorted(at_half_time(seed, **asked) for seed in range(STUDIES))
        yield Figure(f"pulls left at half time, {name}: within a factor of 2", share_within(factors), "", SHARE)
        yield Figure(f"pulls left at half time, {name}: median ÷ truth", factors[len(factors) // 2], "times")
