"""Studies of times on simulated machines that drift: 26 % between jobs, 0.3 % within a pair. Used by tests and bench.

A job is a stretch of work on one machine at one speed. The second run of a pair is 0.3 % slower than the first, always:
only a random order makes that fair.
"""

import math
import random
from typing import Any

import thresher

BETWEEN, WITHIN, NOISE = 0.26, 0.003, 0.03  # of log times: between jobs, second in a pair, and of each run
SECONDS = 0.2


class Machines:
    """The times of runs whose arms are slower than the baseline by these factors."""

    def __init__(self, seed: int, slower: dict[str, float], *, noise: float = NOISE) -> None:
        self._random, self._slower, self._noise = random.Random(seed), slower, noise
        self.new_job()

    def new_job(self) -> None:
        """Another machine, or the same at another time."""
        self._speed = math.exp(self._random.gauss(0.0, BETWEEN))

    def seconds(self, arm: str, *, second: bool = False) -> float:
        noise = math.exp(self._random.gauss(0.0, self._noise) + (WITHIN if second else 0.0))
        return SECONDS * self._speed * self._slower[arm] * noise

    def pair(self, pull: thresher.Pull) -> tuple[float, float]:
        """Both sides of a pull, in a job of their own."""
        self.new_job()
        found = {one.arm: self.seconds(one.arm, second=at == 1) for at, one in enumerate(pull.both())}
        return found[pull.arm], found[str(pull.baseline)]


def slower(arms: int, factor: float = 1.0) -> dict[str, float]:
    """The baseline, then arms that take as long, the first of them by a factor longer."""
    return {"base": 1.0, **{f"arm {number}": factor if number == 0 else 1.0 for number in range(arms)}}


def paired(seed: int, factors: dict[str, float], *, budget: int, **given: Any) -> thresher.Study:
    """A study in which every pull is a pair."""
    machines = Machines(seed, factors)
    settings: dict[str, Any] = {"baseline": "base", "ratio": 1.0, "lower_is_better": True, "unit": "s", "seed": seed}
    study = thresher.create_study("pairs", arms=list(factors), budget=budget, **settings | given)
    while pull := study.ask():
        study.tell(pull, machines.pair(pull))
    return study


def unpaired(seed: int, factors: dict[str, float], *, budget: int, ratio: float, first: int = 30) -> thresher.Study:
    """A study against the median of runs of the baseline, where each arm has a worker of its own."""
    machines = Machines(seed, factors)
    before = sorted(machines.seconds("base") for _ in range(first))
    workers = {}
    for number, arm in enumerate(factors):
        workers[arm] = Machines(1000 * seed + number + 1, factors)
    limit = ratio * before[first // 2]
    names = [arm for arm in factors if arm != "base"]
    study = thresher.create_study("limit", arms=names, at_most=limit, share=0.5, unit="s", budget=budget, seed=seed)
    while pull := study.ask():
        study.tell(pull, workers[pull.arm].seconds(pull.arm))
    return study


def says_slower(study: thresher.Study, arms: list[str]) -> bool:
    """Whether one of these is certified not to keep up with the baseline."""
    verdict = study.verdict()
    return any(verdict[arm].certified and verdict[arm].reached is False for arm in arms)


def pairs_until_found(seed: int, *, ratio: float, arms: int, factor: float = 1.1, noise: float = NOISE) -> int:
    """How many pairs an arm takes until it is certified to be slower than the ratio allows."""
    factors = slower(arms, factor)
    machines, slow = Machines(seed, factors, noise=noise), "arm 0"
    given: dict[str, Any] = {"ratio": ratio, "lower_is_better": True, "unit": "s", "seed": seed}
    study = thresher.create_study("found", arms=list(factors), baseline="base", budget=arms * 400, **given)
    count = 0
    while pull := study.ask():
        study.tell(pull, machines.pair(pull))
        count += pull.arm == slow
        if pull.arm == slow and study.verdict()[slow].certified:
            break
    assert says_slower(study, [slow])
    return count
