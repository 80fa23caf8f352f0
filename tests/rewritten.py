"""The scores of thresher's own policies, written again as a user would write them."""

import math
from dataclasses import replace

from thresher.core.policies import Policy, custom, settling_policy_constant

A_THIRD = 1 / 3


def uniform_again(gap: float, scatter: float, seen: int, weight: float, exploration: float) -> float:
    return weight


def apt_again(gap: float, scatter: float, seen: int, weight: float, exploration: float) -> float:
    return gap * math.sqrt(weight)


def deviation(scatter: float, seen: int) -> float:
    return math.sqrt(scatter / seen)


def evt_again(gap: float, scatter: float, seen: int, weight: float, exploration: float) -> float:
    share = exploration / weight
    width = share + math.sqrt(share) * deviation(scatter, seen)
    return gap / width


def supplement_again(gap: float, scatter: float, seen: int, weight: float, exploration: float) -> float:
    share = exploration / weight
    return gap / (3 * share + math.sqrt(2 * (scatter / seen) * share))


def free_again(gap: float, scatter: float, seen: int, weight: float, exploration: float) -> float:
    if gap <= 0:
        return 0
    variance = scatter / seen
    return math.sqrt(weight) * gap / (math.sqrt(variance + gap) + math.sqrt(variance))


def lsa_again(gap: float, scatter: float, seen: int, weight: float, exploration: float) -> float:
    return 1.35 * weight * gap * gap + 0.5 * math.log(weight)


def cheapest_again(gap: float, scatter: float, seen: int, weight: float, exploration: float) -> float:
    if gap < 1e-100:
        return 1e280
    cost = exploration * ((scatter + 0.25) / (seen + 1) / (gap * gap) + 1 / gap)
    return max(min(cost, 1e280), weight)


def thirds(gap: float, scatter: float, seen: int, weight: float, exploration: float) -> float:
    """A score of no policy that thresher has."""
    return A_THIRD * gap * weight + deviation(scatter, seen)


DOUBLING = custom(evt_again, exploration="doubling")


def rewritten(arms: int) -> dict[str, Policy]:
    """By the name of the policy in tests/core/golden."""
    return {
        "uniform": custom(uniform_again),
        "apt": custom(apt_again, pending_weight=0.0),
        "apt-slack": custom(apt_again, pending_weight=0.0, slack=0.05),
        "evt": custom(evt_again, pending_weight=0.0),
        "evt-a-7": custom(evt_again, pending_weight=0.0, exploration=7.0),
        "evt-supplement": custom(supplement_again, pending_weight=0.0),
        "ap-evt": custom(evt_again),
        "ap-evt-half": custom(evt_again, pending_weight=0.5),
        "evt-pf": custom(free_again, pending_weight=0.0),
        "ap-evt-pf": custom(free_again),
        "lsa": custom(lsa_again),
        "anytime-evt": DOUBLING,
        "anytime-warmup-4": replace(DOUBLING, warmup=4),
        "balanced": replace(DOUBLING, second="cheapest", pending_ratio=1 / 32),
        "balanced-unbounded": replace(DOUBLING, second="cheapest"),
        "cheapest": custom(cheapest_again, exploration=settling_policy_constant(arms, None), warmup=1),
    }
