"""Checks of single values from outside. Each returns the value in its proper type, or raises `InvalidInput`."""

import math
import numbers
import sys
from collections.abc import Iterable, Sequence
from decimal import Decimal

from ..errors import InvalidInput, UnknownArm, shown
from ..text.phrasing import listed_phrase
from ..text.quantities import PERCENT, read_quantity

LARGEST = sys.float_info.max  # stands for infinity in a log, because not every store has it
MAX_WHOLE = 2**63 - 1  # databases use 64 bits
MAX_SECONDS = 1e9  # 31 years; later dates overflow in databases
MAX_NAME = 1000  # characters: names are printed in tables


def checked_name(kind: str, value: object) -> str:
    """A name of a study or an arm.

    >>> checked_name("arm", "zlib-6")
    'zlib-6'
    """
    if not isinstance(value, str):
        raise InvalidInput(kind, value, "must be a string")
    if not value.strip():
        raise InvalidInput(kind, value, "must not be empty", "give it a name")
    is_study = kind == "study"  # which has no parameters
    if len(value) > MAX_NAME:
        remedy = "give it a shorter name" if is_study else "put the long text into a parameter"
        raise InvalidInput(kind, value, f"must not be longer than {MAX_NAME} characters", remedy)
    if not value.isprintable():
        remedy = "leave out tabs, line breaks and the like" if is_study else "put the text into a parameter"
        raise InvalidInput(kind, value, "must be printable, on one line", remedy)
    return value


def checked_text(name: str, value: object) -> str:
    """A string."""
    if not isinstance(value, str):
        raise InvalidInput(name, value, "must be a string")
    return value


def checked_whole(name: str, value: object, *, least: int, most: int = MAX_WHOLE, remedy: str = "") -> int:
    """A whole number from ``least`` to ``most``; no bool.

    >>> checked_whole("repetitions", 0, least=1)
    Traceback (most recent call last):
    thresher.errors.InvalidInput: repetitions 0: must be a whole number of at least 1
    """
    if type(value) is int and least <= value <= most:  # the usual case
        return value
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
        raise InvalidInput(name, value, f"must be a whole number of at least {least}", remedy)
    if int(value) > most:
        raise InvalidInput(name, value, f"must be a whole number of at most {most:,}", remedy)
    return int(value)


def checked_number(
    name: str, value: object, low: float = -math.inf, high: float = math.inf, *, remedy: str = ""
) -> float:
    """A finite number from ``low`` to ``high``; no bool."""
    amount = None if isinstance(value, bool) else as_float(value)
    if amount is None or math.isnan(amount) or math.isinf(amount):
        raise InvalidInput(name, value, "must be a finite number", percent_remedy(value) or remedy)
    if not low <= amount <= high:
        within = f"of at least {low:g}" if high == math.inf else f"from {low:g} to {high:g}"
        raise InvalidInput(name, value, f"must be a number {within}", remedy)
    return amount


def checked_pair(name: str, value: object) -> tuple[float, float]:
    """Two finite numbers.

    >>> checked_pair("bounds", (0, 1))
    (0.0, 1.0)
    """
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise InvalidInput(name, value, "must be two numbers")
    return checked_number(name, value[0]), checked_number(name, value[1])


def checked_share(name: str, value: object, *, remedy: str = "") -> float:
    """A number strictly between 0 and 1."""
    amount = None if isinstance(value, bool) else as_float(value)
    if amount is None or not 0 < amount < 1:
        remedy = (
            f"write {amount / 100:g}" if amount is not None and 2 <= amount < 100 else percent_remedy(value) or remedy
        )
        raise InvalidInput(name, value, "must lie strictly between 0 and 1", remedy)
    return amount


def percent_remedy(value: object) -> str:
    """The remedy for a percentage that was given as text; empty for anything else."""
    amount = read_quantity(value.strip()) if isinstance(value, str) and value.rstrip().endswith(PERCENT) else None
    return "" if amount is None else f"write {amount:g}"


def checked_seconds(name: str, value: object) -> float:
    """A length of time."""
    length = None if isinstance(value, bool) else as_float(value)
    if length is None or not 0 < length <= MAX_SECONDS:
        raise InvalidInput(name, value, f"must be a number of seconds above 0, and at most {MAX_SECONDS:,.0f}")
    return length


def as_float(value: object) -> float | None:
    """Numbers and bools, Python's and numpy's, as floats; None for everything else.

    >>> as_float(True), as_float("1"), as_float(1j), as_float(-(10**400))
    (1.0, None, None, -inf)
    """
    if type(value) is float:  # the usual case
        return value
    if isinstance(value, numbers.Real | Decimal):
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf  # type: ignore[operator]
        except ValueError:  # a signalling NaN
            return None
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):  # a numpy scalar, a tensor of no dimension
        return as_float(value.item())
    return None


def checked_finite(number: float) -> float:
    """A number that every store can keep: no infinity, no negative zero.

    >>> checked_finite(-0.0), checked_finite(float("inf")) == LARGEST
    (0.0, True)
    """
    return min(max(number, -LARGEST), LARGEST) + 0.0


def arm_check_error(name: object, arms: Sequence[str]) -> UnknownArm:
    """The error for a name that no arm has.

    >>> str(arm_check_error("terze", ["terse", "long"]))
    "arm 'terze': is not an arm of this study; did you mean 'terse'?"
    """
    remedy = name_check_remedy(name, arms) or f"its arms are {listed_phrase(list(arms), show=shown)}"
    return UnknownArm("arm", name, "is not an arm of this study", remedy)


def name_check_remedy(name: object, known: Iterable[str]) -> str:
    """A remedy that asks whether a similar name was meant; empty if none is similar."""
    from difflib import get_close_matches  # here: only mistakes need it

    near = get_close_matches(name, list(known)) if isinstance(name, str) else []
    return f"did you mean {listed_phrase(near, show=shown)}?" if near else ""
