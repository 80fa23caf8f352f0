"""Stopping rules of the literature, for comparison: HDoC, LUCB-G and APT-G (Kano et al. 2019).

An arm leaves when its mean ± √(ln(4KT²/risk) / 2T) clears the bar; the three differ in which arm is pulled next.
Rewards lie in [0, 1] and are seen at once. Live studies do not offer them.
"""

import math

from thresher.lab.families import Reals
from thresher.lab.loops import draw_loop_instance, drawn_in_loop
from thresher.lab.repetition import Arms, Counts, Table
from thresher.lab.streams import REWARDS, Words, start_stream

HDOC, LUCB_G, APT_G = 0, 1, 2


def radius(seen: int, arms: int, risk: float) -> float:
    """√(ln(4KT²/risk) / 2T).

    >>> round(radius(100, 10, 0.05), 4)
    0.2819
    """
    return math.sqrt(math.log(4.0 * arms * seen * seen / risk) / (2.0 * seen))


def rival_score(rule: int, mean: float, seen: int, pulls: int, arms: int, risk: float, bar: float) -> float:
    """The arm with the largest score is pulled next."""
    if rule == HDOC:
        return mean + math.sqrt(math.log(pulls) / (2.0 * seen))
    if rule == LUCB_G:
        return mean + radius(seen, arms, risk)
    return -math.sqrt(seen) * abs(mean - bar)


def next_arm(rule: int, seen: Counts, total: Reals, left: Counts, pulls: int, risk: float, bar: float) -> int:
    """The arm to pull, or −1 if all have left; at first each is pulled once."""
    best, chosen = -math.inf, -1
    for arm in range(len(seen)):
        if left[arm]:
            continue
        if seen[arm] == 0:
            return arm
        score = rival_score(rule, total[arm] / seen[arm], seen[arm], pulls, len(seen), risk, bar)
        if score > best:
            best, chosen = score, arm
    return chosen


def run_rivals(
    seed: int,
    begin: int,
    end: int,
    rule: int,
    risk: float,
    budget: int,
    arms: Arms,
    seen: Counts,
    total: Reals,
    left: Counts,
    used: Table,
    open_arms: Table,
    wrong: Table,
    state: Words,
) -> None:
    """Play the repetitions from ``begin`` to ``end`` until every arm has left."""
    for row in range(begin, end):
        draw_loop_instance(arms, seed, row, state)
        start_stream(state, seed, row, REWARDS)
        for arm in range(len(seen)):
            seen[arm] = 0
            total[arm] = 0.0
            left[arm] = 0
        open_arms[row, 0] = len(seen)
        wrong[row, 0] = 0
        pulls = 0
        while open_arms[row, 0] > 0 and pulls < budget:
            arm = next_arm(rule, seen, total, left, pulls, risk, arms.bar)
            pulls += 1
            seen[arm] += 1
            total[arm] += drawn_in_loop(arms, arm, state)
            ahead = total[arm] / seen[arm] - arms.bar
            if abs(ahead) >= radius(seen[arm], len(seen), risk):
                left[arm] = 1
                open_arms[row, 0] -= 1
                wrong[row, 0] += (ahead > 0.0) != (arms.mean[arm] >= arms.bar)
        used[row, 0] = pulls
