"""About how many pulls are left: an estimate for people, which decides nothing.

It assumes that an arm's rewards go on as they were. Then each bet grows at a known rate, and what is left is how long
the arm's capital takes to reach the level. The estimate is within a factor of 2 in most studies from half time on;
an arm that is nearly on the bar may take much longer.
"""

import math
from collections.abc import Sequence

from .board import SHUT
from .evidence import BETS, OPEN
from .state import State

LUCK = 4.0  # where a few arms are to be found: how many rewards on the bar their luck is worth


def forecast_left(study: State, by_arm: Sequence[int | None] | None = None) -> int | None:
    """About how many pulls the study still takes; None if there is no telling.

    ``by_arm`` is what `forecast_arm_left` said of each arm, if somebody keeps that.
    """
    if not study.certifies:
        return None if study.budget is None else study.budget - study.issued
    arms = range(len(study.spec.arms))
    if study.done:
        return 0
    if study.awaits:  # the baseline goes first; of the others nothing is known
        return None
    pulled = [arm for arm in arms if study.board.shut[arm] != SHUT]
    waits = [forecast_arm_left(study, arm) if by_arm is None else by_arm[arm] for arm in pulled]
    known = sorted(pulls for pulls in waits if pulls is not None)
    if study.spec.find is not None:
        known = known[: study.spec.find - study.found]
    elif len(known) < len(waits):
        return None
    if not known:
        return None
    budget = math.inf if study.budget is None else study.budget - study.issued
    return round(min(sum(known), budget))


def forecast_arm_left(study: State, arm: int) -> int | None:
    """About how many pulls settle the arm from here: 0 if it is settled; None before its first reward.

    Where a few arms are to be found, only that they reach the bar counts.
    """
    if not study.certifies or arm == study.base:
        return None
    if study.docket.settled[arm] != OPEN:
        return 0
    seen = study.board.seen[arm]
    if not seen:
        return None
    stakes, mean, remaining = study.stakes_of(arm), study.board.mean[arm], math.inf
    variance = (study.board.scatter[arm] + 0.25) / (seen + 1)
    low_bar, high_bar = stakes.low_edge, stakes.high_edge
    doubt = variance / seen  # the variance of the mean
    if study.cases is not None:
        sheet, docket = study.sheet, study.docket
        remaining = sheet.places[arm] - docket.committed[arm] - docket.charged[arm]
        if remaining <= 0:
            return 0
        low_bar = (sheet.cases * stakes.low_edge - sheet.least[arm]) / remaining
        high_bar = (sheet.cases * stakes.high_edge - sheet.most[arm]) / remaining
        doubt *= remaining / (remaining + seen)
    if study.spec.find is not None:  # the first arms to look good are those that were lucky
        mean, doubt = (seen * mean + LUCK * stakes.bar) / (seen + LUCK), 0.0
    capital, level = study.capitals.get(arm, study.untouched), stakes.level
    if study.ranking.level:
        level /= max(1, *study.ranking.reached)
    pulls = _until(capital[:BETS], stakes.bets[:BETS], low_bar, mean - low_bar, variance, doubt, level)
    if study.spec.find is None:
        room = 1.0 - high_bar
        pulls = min(pulls, _until(capital[BETS:], stakes.bets[BETS:], room, high_bar - mean, variance, doubt, level))
    if remaining < math.inf:  # the fewer cases remain, the more each of them says
        pulls = remaining if math.isinf(pulls) else pulls * remaining / (remaining + pulls)
    return None if math.isinf(pulls) else math.ceil(pulls)


def _until(
    products: Sequence[float],
    bets: Sequence[float],
    edge: float,
    distance: float,
    variance: float,
    doubt: float,
    level: float,
) -> float:
    """How many pulls one capital takes to the level, if rewards lie ``distance`` beyond its edge on average.

    The mean may be farther from the edge than it seems, or nearer; the ``doubt`` keeps it from looking as if it were
    on it. A bet grows by log(1 + λ d) − λ² s² / 2 (1 + λ d)² a pull.
    """
    distance = math.sqrt(max(distance, 0.0) ** 2 + doubt)
    growing = []
    for product, bet in zip(products, bets, strict=True):
        share = min(bet, 0.98 / edge) if edge > 0.0 else bet
        gain = 1.0 + share * distance
        growth = math.log(gain) - (share / gain) ** 2 * variance / 2.0
        if growth > 0.0 and product > 0.0:
            growing.append((growth, product))
    total, pulls = 0.0, math.inf
    for growth, product in sorted(growing, reverse=True):  # those that grow at least as fast reach the level together
        total += product
        pulls = min(pulls, max(0.0, math.log(level * BETS / total)) / growth)
    return pulls
