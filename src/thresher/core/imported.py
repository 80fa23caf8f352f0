"""Imported rewards: their order cannot be trusted, so all of them are committed, then the capital is looked at once.

If it were looked at after each of them, a file sorted by reward could settle any arm. The products do not depend on the
order.
"""

from collections.abc import MutableSequence

from .docket import Docket, advance
from .evidence import SMALLEST, UNREACHED, Stakes, label_now
from .places import Sheet

STEP = float(1 << 64)  # a power of 2: multiplying by it rounds nothing
MOST = 1e300  # an imported product counts for no more than this


def weigh_imported(docket: Docket, sheet: Sheet, arm: int, capital: MutableSequence[float], stakes: Stakes) -> None:
    """Commit everything that was imported for the arm, then look at its capitals once.

    A product may grow or shrink beyond the range of floats on the way, so its powers of STEP are counted separately.
    Otherwise the result would depend on the order of the rewards.
    """
    blind = Stakes(stakes.threshold, stakes.tolerance, stakes.level, UNREACHED, stakes.upward, stakes.downward)
    steps = [0] * len(capital)
    while docket.first[arm] != 0:
        advance(docket, sheet, arm, capital, blind)
        for at in range(len(capital)):
            if capital[at] > STEP:
                capital[at] /= STEP
                steps[at] += 1
            elif 0.0 < capital[at] < 1.0 / STEP:
                capital[at] *= STEP
                steps[at] -= 1
    for at in range(len(capital)):
        while steps[at] > 0 and capital[at] < MOST:
            capital[at] = min(capital[at] * STEP, MOST)
            steps[at] -= 1
        while steps[at] < 0 and capital[at] > 0.0:
            capital[at] /= STEP
            steps[at] += 1
        if capital[at] < SMALLEST:
            capital[at] = 0.0
    docket.settled[arm] = label_now(capital, stakes)
