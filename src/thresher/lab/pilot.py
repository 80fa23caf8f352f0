"""A pilot: a few rewards of each arm, from which each repetition of a plan draws the arms anew.

Twenty rewards do not say where an arm's mean is, and the pulls that it needs grow with one over the square of its
distance from the bar. So a plan that takes the pilot's means for the true ones says little. Here each repetition draws
every arm from its posterior, by a Bayesian bootstrap: rewards get random weights, and two more rewards that count half
are the prior. For passes and failures these are one of each, so the chance of a pass is Beta(½ + passes, ½ + failures).
Otherwise they differ from the arm's mean as two rewards of the pilot do from the means of their arms.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .families import Reals
from .recorded import Recorded
from .setup import Setup

CHANCES, REWARDS = "pilot_chances", "pilot_rewards"  # families
DRAWS, FEWEST = 1000, 16  # of each arm from its posterior
SIZE = 64  # rewards that stand for a drawn distribution
MOST = 8_000_000  # numbers in all
PRIOR = 0.5  # the weight of each of the two rewards of the prior; with 1, arms that never failed were planned too long
Rows = np.ndarray[tuple[int, int], np.dtype[np.float64]]


@dataclass(frozen=True)
class Pilot(Recorded):
    """Draws of each arm from its posterior.

    >>> pilot = Pilot(("a", "b"), ((1.0, 1.0, 1.0), (0.0, 1.0)))
    >>> [round(float(chances.mean()), 1) for chances in pilot.samples.reshape(2, -1)]
    [0.9, 0.5]
    """

    low: float = 0.0  # the bounds of the rewards
    high: float = 1.0

    @property
    def family(self) -> str:
        """How the laboratory draws from it."""
        return CHANCES if self.pass_or_fail and (self.low, self.high) == (0.0, 1.0) else REWARDS

    @cached_property
    def draws(self) -> int:
        """How many draws there are of each arm."""
        each = 1 if self.family == CHANCES else SIZE + 1
        return min(DRAWS, max(FEWEST, MOST // (each * len(self.names))))

    @cached_property
    def samples(self) -> Reals:
        """Arm after arm, its draws: a chance each, or SIZE rewards after their mean."""
        random, pool, arms = np.random.default_rng(0), self._deviations(), list[Any]()
        for rewards in self.rewards:
            if self.family == CHANCES:
                passes = sum(rewards)
                arms.append(random.beta(PRIOR + passes, PRIOR + len(rewards) - passes, self.draws))
            else:
                arms.append(self._drawn(np.array(rewards), pool, random).ravel())
        return np.concatenate(arms)

    @property
    def counts(self) -> Reals:
        """How many rewards stand for a draw."""
        return np.full(len(self.names), 0.0 if self.family == CHANCES else float(SIZE))

    @property
    def begins(self) -> Reals:
        """The number of each arm's first draw."""
        return np.arange(len(self.names), dtype=np.float64) * self.draws

    @property
    def ends(self) -> Reals:
        """The end of each arm's draws, which rounding must not reach."""
        return self.begins + (self.draws - 1e-3)

    def _deviations(self) -> Reals:
        """How far rewards are from their arm's mean, over all arms with more than one reward."""
        found = [
            (np.array(rewards) - np.mean(rewards)) * np.sqrt(len(rewards) / (len(rewards) - 1))
            for rewards in self.rewards
            if len(rewards) > 1
        ]
        pool: Reals = np.concatenate(found) if found else np.zeros(1)
        return pool

    def _drawn(self, rewards: Reals, pool: Reals, random: np.random.Generator) -> Rows:
        """A row for each draw: the mean of its rewards, then SIZE of them, at even steps of their weights."""
        more = np.clip(rewards.mean() + random.choice(pool, (self.draws, 2)), self.low, self.high)
        known = np.hstack([np.tile(rewards, (self.draws, 1)), more])
        shapes = np.array([1.0] * len(rewards) + [PRIOR] * 2)
        order = np.argsort(known, axis=1)
        known = np.take_along_axis(known, order, axis=1)
        weights = random.standard_gamma(shapes[order])
        upto = np.cumsum(weights, axis=1) / weights.sum(axis=1, keepdims=True)
        steps = (np.arange(SIZE) + 0.5) / SIZE
        rows = np.stack([row[np.searchsorted(edges, steps)] for row, edges in zip(known, upto[:, :-1], strict=True)])
        means = (known * weights).sum(axis=1) / weights.sum(axis=1)
        rows = np.clip(rows + (means - rows.mean(axis=1))[:, None], self.low, self.high)
        return np.hstack([rows.mean(axis=1, keepdims=True), rows])


def pilot_setup(data: Recorded, **settings: Any) -> Setup:
    """A setup whose arms are drawn from what the rewards of a pilot leave possible.

    If pulls of the pilot were lost, the plan loses the share (lost + ½) / (pulls + 1) of its pulls.

    >>> pilot_setup(Recorded(("a", "b"), ((1.0, 1.0), (0.2, 0.4))), at_least=0.5, budget=10).family
    'pilot_rewards'
    """
    low, high = settings.get("bounds", (0.0, 1.0))
    data.check_bounds(low, high)
    if data.lost:
        share = (data.lost + 0.5) / (data.pulls + 1)
        settings = {**settings, "lost": (share, share), "delay": "workers:1"}  # pulls can be lost only with workers
    pilot = Pilot(data.names, data.rewards, data.pulls, data.lost, data.unseen, low, high)
    return Setup(family=pilot.family, recorded=pilot, **settings)
