"""How far a count may stray by chance: tests of probabilities that fail less than once in a million."""

import math


def most(trials: int, share: float, *, chance: float = 1e-6) -> int:
    """The largest count that is not surprising when each of the trials has at most that share."""
    logs = [
        math.lgamma(trials + 1)
        - math.lgamma(hits + 1)
        - math.lgamma(trials - hits + 1)
        + hits * math.log(share)
        + (trials - hits) * math.log1p(-share)
        for hits in range(trials + 1)
    ]
    beyond, hits = 0.0, trials
    while hits > 0 and beyond + math.exp(logs[hits]) <= chance:
        beyond += math.exp(logs[hits])
        hits -= 1
    return hits
