"""What certificates must not do: commit rewards in the order in which they came back.

This module only measures what that would break. If bad rewards take longer, the first ones back are good ones, and an
arm below the bar looks as if it were above.
"""

from ..core import evidence
from ..lab.setup import Setup
from ..lab.simulator import trace


def label_by_arrival(setup: Setup, *, repetition: int, seed: int = 0) -> int:
    """The label of a setup's only arm if rewards are committed as they come back; OPEN, ABOVE, BELOW or CLOSE.

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
            if label != evidence.OPEN:
                return label
    return evidence.OPEN
