"""The first checkpoint at which a mean over repetitions reaches a level, and resampling for its error."""

import numpy as np

Rows = np.ndarray[tuple[int, int], np.dtype[np.float64]]
BOOTSTRAPS = 200
RANGE = (0.05, 0.95)  # quantiles: nine of ten repetitions


def first_reached(rows: Rows, level: float) -> int | None:
    """The first column whose mean reaches the level.

    >>> first_reached(np.array([[0.0, 0.9, 1.0], [0.0, 1.0, 1.0]]), 0.95)
    1
    """
    index = first_columns(rows.mean(axis=0, keepdims=True), level)[0]
    return int(index) if np.isfinite(index) else None


def first_columns(means: Rows, level: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The first column of each row that reaches the level (up to rounding); infinite if none does."""
    reached = means >= level - 1e-12
    return np.where(reached.any(axis=1), reached.argmax(axis=1), np.inf)


def resampled(rows: Rows, seed: int) -> Rows:
    """Means over resampled repetitions, with replacement; the same seed draws the same repetitions."""
    count = len(rows)
    weights = np.random.default_rng(seed).multinomial(count, np.full(count, 1.0 / count), size=BOOTSTRAPS)
    means: Rows = weights @ rows / count
    return means
