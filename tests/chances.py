"""How far a count may deviate by chance, for tests of probabilities that fail less than once in a million runs."""

import math


def most(trials: int, share: float, *, chance: float = 1e-6) -> int:
    """The largest plausible count of hits, if each trial hits with at most this probability."""
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
