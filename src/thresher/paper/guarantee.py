"""Why the guarantee needs the order of issue, measured; and how evidence grows.

`thresher paper guarantee` draws both; docs/explanation/guarantee.md shows the picture.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from ..core import evidence
from ..core.evidence import ABOVE, BETS, OPEN
from ..lab.setup import Setup
from ..lab.simulator import simulate, trace

WORKERS = (1, 2, 5, 10, 20, 50, 100, 200)
SLOWER = (5, 20)  # how many times longer a failure takes than a success
BUDGET = 2000
RUNS = 12  # drawn
LEVEL = 10 / 0.05  # of ten arms at confidence 0.95


def bad_arm(workers: int, slower: int) -> Setup:
    """One arm of mean .45 against a bar of .5, pulled by all workers; exponential times, longer for failures."""
    return Setup(
        policy="uniform",
        family="bernoulli",
        arms=1,
        means=0.45,
        threshold=0.5,
        budget=BUDGET,
        checkpoints=(BUDGET,),
        confidence=0.95,
        delay=f"workers:{workers}:failures:{slower}",
    )


def label_by_arrival(setup: Setup, *, repetition: int, seed: int = 0) -> int:
    """The label of a setup's only arm if rewards are committed as they come back; OPEN, ABOVE, BELOW or CLOSE.

    Certificates must not do this: if bad rewards take longer, the first ones back are good ones, and an arm below the
    bar looks as if it were above.

    >>> sure = Setup("uniform", "bernoulli", 1, 0.5, means=1.0, budget=99, confidence=0.95, delay="workers:4")
    >>> label_by_arrival(sure, repetition=0) == evidence.ABOVE
    True
    """
    played = trace(setup.but(confidence=None, tolerance=0.0, policy=setup.policy), repetition=repetition, seed=seed)
    stakes, (low, high) = setup.stakes, setup.bounds
    capital = evidence.fresh(stakes)
    for pull, reward in zip(played.pull, played.reward, strict=True):
        if pull < 0 and reward == reward:  # NaN: lost
            scaled = (reward - low) / (high - low)
            label = evidence.commit(capital, stakes, scaled, scaled)
            if label != OPEN:
                return label
    return OPEN


def orders(repetitions: int, seed: int) -> Iterator[dict[str, Any]]:
    """The share of repetitions in which the arm is wrongly settled "above", by the order in which rewards count."""
    for slower in SLOWER:
        for workers in WORKERS:
            setup = bad_arm(workers, slower)
            arrival = sum(label_by_arrival(setup, repetition=run, seed=seed) == ABOVE for run in range(repetitions))
            issue = simulate(setup, repetitions=repetitions, seed=seed).measures.mislabelled[:, -1].sum()
            yield {
                "slower": slower,
                "workers": workers,
                "repetitions": repetitions,
                "arrival": arrival / repetitions,
                "issue": float(issue) / repetitions,
            }


class Growth(NamedTuple):
    """One arm's capitals after each of its rewards, until it is settled."""

    above: list[float]
    below: list[float]


def growth(seed: int, run: int) -> Growth:
    """One of ten arms of mean .6 against a bar of .5."""
    setup = Setup(policy="uniform", family="bernoulli", arms=1, means=0.6, threshold=0.5, budget=BUDGET)
    setup = setup.but(delay="workers:1")  # the same as no delay, in machine code that exists already
    stakes = setup.but(confidence=0.95).stakes._replace(level=LEVEL)
    capital = evidence.fresh(stakes)
    found = Growth([1.0], [1.0])
    played = trace(setup, repetition=run, seed=seed)
    for reward in played.reward[::2]:  # every reward is in the trace twice: asked, told
        label = evidence.commit(capital, stakes, reward, reward)
        found.above.append(evidence.mean_of(capital, 0))
        found.below.append(evidence.mean_of(capital, BETS))
        if label != OPEN:
            break
    return found
