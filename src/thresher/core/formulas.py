"""The formulas of the scores, and what a score depends on besides its arm.

A formula takes (gap, scatter, seen, weight, exploration), with seen ≥ 1 and weight = T + δτ ≥ seen, and returns a
score. The rules of this file are those of `board.py`.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

FAR = 1e280  # a cost above every budget, below the score of an arm that must wait
UNBOUNDED = 1e300  # the pending ratio that allows any number of pending pulls, once there is a reward

Formula = Callable[[float, float, int, float, float], float]


class Rule(NamedTuple):
    """What a score depends on, besides its arm: a formula, and scalars."""

    formula: Formula
    bar: float  # b, scaled
    exploration: float  # a; for `cheapest` its constant c
    pending_weight: float  # δ
    warmup: int
    slack: float  # added to the gap
    pending_ratio: float = UNBOUNDED  # η: an arm with more pending pulls than this per reward seen waits
    most: float = UNBOUNDED  # for `cheapest`: what settles an arm for certain, all cases
    finds: bool = False  # the arm with the most evidence that it reaches the bar comes first
    doubles: bool = False  # the exploration doubles whenever the number of pulls has
    alternates: bool = False  # even pulls follow a second rule, in a tournament of its own


def uniform_formula(gap: float, scatter: float, seen: int, weight: float, exploration: float) -> float:
    """Pulls every arm equally often."""
    return weight


def apt_formula(gap: float, scatter: float, seen: int, weight: float, exploration: float) -> float:
    """√e · Δ̂: Locatelli et al. 2016, called ATP in the paper.

    >>> apt_formula(0.5, 0.0, 4, 4.0, 1.0)
    1.0
    """
    return math.sqrt(weight) * gap


def evt_formula(gap: float, scatter: float, seen: int, weight: float, exploration: float) -> float:
    """Δ̂ / (a/e + √(a/e) σ̂): eq:S_k; with pending pulls in the weight it is AP-EVT, eq:S_k-2; σ̂ in its 1/T form, eq:var.

    >>> evt_formula(0.5, 1.0, 4, 4.0, 4.0)
    0.3333333333333333
    """
    ratio = exploration / weight
    return gap / (ratio + math.sqrt(ratio) * math.sqrt(scatter / seen))


def evt_supplement_formula(gap: float, scatter: float, seen: int, weight: float, exploration: float) -> float:
    """Δ̂ / (3a/e + √(2σ̂² a/e)): B_i(t) of the supplement.

    >>> evt_supplement_formula(0.5, 2.0, 4, 4.0, 4.0)
    0.125
    """
    ratio = exploration / weight
    return gap / (3.0 * ratio + math.sqrt(2.0 * (scatter / seen) * ratio))


def evt_pf_formula(gap: float, scatter: float, seen: int, weight: float, exploration: float) -> float:
    """√e (√(σ̂² + Δ̂) − σ̂), the parameter-free B_k(t), in the form that keeps its digits at small gaps.

    >>> evt_pf_formula(0.5625, 1.0, 1, 4.0, 1.0)
    0.5
    """
    if gap <= 0.0:
        return 0.0
    variance = scatter / seen
    return math.sqrt(weight) * gap / (math.sqrt(variance + gap) + math.sqrt(variance))


def lsa_formula(gap: float, scatter: float, seen: int, weight: float, exploration: float) -> float:
    """α e Δ̂² + ½ ln e with α = 1.35: Tao et al. 2019.

    >>> lsa_formula(0.5, 0.0, 1, 1.0, 1.0)
    0.3375
    """
    return 1.35 * weight * gap * gap + 0.5 * math.log(weight)


def cheapest_formula(gap: float, scatter: float, seen: int, weight: float, exploration: float) -> float:
    """About how many pulls settle the arm, ``c (s²/gap² + 1/gap)``, but no fewer than it has had.

    s² = (scatter + 1/4) / (seen + 1) keeps two equal rewards from looking like no noise; c is ``exploration``.

    >>> cheapest_formula(0.5, 0.25, 1, 1.0, 2.0)
    6.0
    """
    if gap < 1e-100:
        return FAR
    cost = exploration * ((scatter + 0.25) / (seen + 1) / (gap * gap) + 1.0 / gap)
    if cost > FAR:
        return FAR
    return max(weight, cost)


def apply_formula(rule: Rule, gap: float, scatter: float, seen: int, weight: float) -> float:
    """The value of the rule's formula. Compiled code has another one of that name: see `lab/compiled_scores.py`."""
    return rule.formula(gap, scatter, seen, weight, rule.exploration)


def doubled_formula_exploration(exploration: float, issued: int, arms: int) -> float:
    """The exploration a = 2^j while 2^j ≤ max(1, issued/K) < 2^(j+1); ``exploration`` is the value before.

    >>> [doubled_formula_exploration(1.0, issued, 10) for issued in (19, 20, 80)]
    [1.0, 2.0, 8.0]
    """
    while issued >= 2.0 * exploration * arms:
        exploration *= 2.0
    return exploration


FORMULAS: dict[str, Formula] = {  # by the names that policies give them
    "uniform": uniform_formula,
    "apt": apt_formula,
    "evt": evt_formula,
    "evt_pf": evt_pf_formula,
    "lsa": lsa_formula,
    "cheapest": cheapest_formula,
}
