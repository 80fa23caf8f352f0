"""Two scores that are not in the paper.

Compare them with EVT, in this folder:

    thresher compare --policy evt --policy scores:shrunken --policy scores:hopeful --picture scores.png

A score is a function of five numbers; the arm with the smallest is pulled next (docs/how-to/write-your-own-policy.md).
"""

from math import sqrt

GUESS = 0.2  # the variance to expect before any reward: that of a coin that mostly shows one side
WORTH = 4.0  # how many rewards the guess counts for
SURE = 16.0  # squared standard errors from the bar at which an arm is hopeless: its answer will not change
LAST = 1e6  # above the score of every other arm


def evt(gap: float, variance: float, weight: float, exploration: float) -> float:
    """EVT's score, for any estimate of the variance."""
    ratio = exploration / weight
    return gap / (ratio + sqrt(ratio * variance))


def shrunken(gap: float, scatter: float, seen: int, weight: float, exploration: float) -> float:
    """EVT with a variance shrunk towards a guess: a few rewards that agree do not make an arm look certain."""
    variance = (scatter + WORTH * GUESS) / (seen + WORTH)
    return evt(gap, variance, weight, exploration)


def hopeful(gap: float, scatter: float, seen: int, weight: float, exploration: float) -> float:
    """EVT that ignores hopeless arms: one four standard errors from the bar waits until all others are, too."""
    careful = (scatter + 0.25) / (seen + 1)  # not zero for equal rewards
    if gap * gap * seen > SURE * careful:
        return LAST + weight
    return evt(gap, scatter / seen, weight, exploration)
