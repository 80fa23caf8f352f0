"""What every number that comes from outside must be, before anything is compiled or played."""

import math
from numbers import Real

from ..errors import InvalidInput

MOST_REPETITIONS = 100_000_000


def whole(name: str, value: object, low: int, high: int, remedy: str = "") -> int:
    """A whole number from ``low`` to ``high``.

    >>> whole("repetitions", 0, 1, 1000)
    Traceback (most recent call last):
    thresher.errors.InvalidInput: repetitions 0: must be a whole number from 1 to 1,000
    """
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InvalidInput(name, value, f"must be a whole number from {low:,} to {high:,}", remedy)
    return value


def number(name: str, value: object) -> float:
    """A finite number.

    >>> number("threshold", "high")
    Traceback (most recent call last):
    thresher.errors.InvalidInput: threshold 'high': must be a finite number
    """
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise InvalidInput(name, value, "must be a finite number")
    return float(value)


def pair(name: str, value: object) -> tuple[float, float]:
    """Two finite numbers.

    >>> pair("bounds", (0, 1))
    (0.0, 1.0)
    """
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise InvalidInput(name, value, "must be two numbers")
    return number(name, value[0]), number(name, value[1])


def seed(value: object) -> int:
    """What a stream of random numbers begins with."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise InvalidInput("seed", value, "must be a whole number from 0 to 2**63 − 1")
    return value
