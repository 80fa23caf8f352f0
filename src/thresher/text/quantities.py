"""Numbers with units, as people write them on a command line (90%, 200ms, 1.5s, 2min), and as they read them."""

import re
import sys
from decimal import Decimal

# Numbers and JSON from others, with our own error for whole numbers of thousands of digits, which Python refuses.


def read_whole_quantity(text: str) -> int:
    """A whole number.

    >>> read_whole_quantity("17")
    17
    """
    try:
        return int(text)
    except ValueError:
        digits, most = sum(map(str.isdigit, text)), sys.get_int_max_str_digits()
        if not 0 < most < digits:
            raise
        words = f"a whole number in it has {digits:,} digits, more than the {most:,} that can be read"
        raise ValueError(words) from None


PERCENT = "%"
SCALES = {  # unit: what one of it is, as a share or in seconds
    PERCENT: Decimal("0.01"),
    "us": Decimal("0.000001"),
    "µs": Decimal("0.000001"),  # the micro sign
    "μs": Decimal("0.000001"),  # the Greek letter, which looks the same
    "ms": Decimal("0.001"),
    "s": Decimal(1),
    "m": Decimal(60),
    "min": Decimal(60),
    "h": Decimal(3600),
    "d": Decimal(86400),
}
UNITS = "units are %, us, ms, s, min, h and d"  # for people
DURATIONS = "is not a length of time above 0 and below 31 years; write 90, 90s, 500ms, 10m, 2h or 1d"
WITH_UNIT = re.compile(r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))\s*(%|[a-zµμ]{1,3})")


class Quantity(float):
    """A number that was written with a unit: a share, or seconds. Errors show it as it was written."""

    unit: str
    text: str

    def __new__(cls, value: float, unit: str, text: str) -> "Quantity":
        quantity = super().__new__(cls, value)
        quantity.unit, quantity.text = unit, text
        return quantity

    def __repr__(self) -> str:
        return self.text

    __str__ = __repr__


def read_quantity(text: str) -> float | None:
    """The number in a text, a `Quantity` if it has a unit; None if it is not a number.

    Exactly rounded: 90% is 0.9, and 1.1ms is 0.0011.

    >>> read_quantity("200ms"), read_quantity("200ms") == 0.2, read_quantity("0.9"), read_quantity("high")
    (200ms, True, 0.9, None)
    """
    text = text.strip()
    if match := WITH_UNIT.fullmatch(text):
        number, unit = match.groups()
        return Quantity(float(Decimal(number) * SCALES[unit]), unit, text) if unit in SCALES else None
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def read_quantity_of_seconds(text: str, *, most: float) -> float | None:
    """A length of time in seconds, above 0 and at most ``most``; None if it is not one: then the error is `DURATIONS`.

    >>> [read_quantity_of_seconds(text, most=1e9) for text in ("1.5h", "90", "1e3", "5%")]
    [5400.0, 90.0, None, None]
    """
    length = None if "e" in text.lower() else read_quantity(text)  # 1e3 is no length of time
    if length is None or not 0 < length <= most or getattr(length, "unit", "s") == PERCENT:
        return None
    return float(length)


def number_text(value: float, *, exact: bool = False) -> str:
    """A number to four digits; ``exact``, as somebody wrote it: a bar of 0.99995 must not read as 1.

    >>> number_text(0.99995), number_text(0.99995, exact=True)
    ('1', '0.99995')
    >>> number_text(12345.6, exact=True), number_text(0.1 + 0.2, exact=True)
    ('12345.6', '0.3')
    """
    return f"{value:.12g}" if exact else f"{value:.4g}"


def amount_text(value: float | None, unit: str | None = None, *, exact: bool = False) -> str:
    """A number as `number_text` writes it, with its unit; seconds in the unit that reads best.

    >>> amount_text(0.00005, "s"), amount_text(0.2, "s"), amount_text(90, "s"), amount_text(0.9, "%"), amount_text(None)
    ('50 µs', '200 ms', '90 s', '90 %', '–')
    """
    if value is None:
        return "–"
    if unit == PERCENT:
        return percent_text(value, exact=exact)
    if unit == "s" and 0.0 < abs(value) < 1.0:
        small = abs(value) < 0.00099995
        return f"{number_text(value * (1e6 if small else 1e3), exact=exact)} {'µs' if small else 'ms'}"
    return f"{number_text(value, exact=exact)}{f' {unit}' if unit else ''}"


def edges_quantity_text(value: float, distance: float) -> tuple[float, float]:
    """A number less and plus another, both as they are written in decimal: in floats 0.95 − 0.02 is 0.9299999999999999.

    >>> edges_quantity_text(0.95, 0.02)
    (0.93, 0.97)
    """
    exact, far = Decimal(repr(float(value))), Decimal(repr(float(distance)))
    return float(exact - far), float(exact + far)


def percent_text(share: float, *, exact: bool = False) -> str:
    """A share in a sentence; tables have no room for the blank.

    >>> percent_text(0.95), percent_text(1 / 3), percent_text(0.99999, exact=True)
    ('95 %', '33.33 %', '99.999 %')
    """
    return f"{number_text(100 * share, exact=exact)} %"


def points_quantity_text(share: float, *, exact: bool = False) -> str:
    """A difference between two percentages.

    >>> points_quantity_text(0.02), points_quantity_text(-0.01)
    ('2 points', '-1 point')
    """
    count = number_text(100 * share, exact=exact)
    return f"{count} point{'' if count in ('1', '-1') else 's'}"


def duration_text(seconds: float | None, *, rounded: bool = False) -> str:
    """A length of time, to two units; a ``rounded`` one without what is zero.

    >>> duration_text(0.42), duration_text(75), duration_text(7300), duration_text(None)
    ('0.4 s', '1 min 15 s', '2 h 1 min', '?')
    >>> duration_text(600), duration_text(600, rounded=True), duration_text(2, rounded=True)
    ('10 min 0 s', '10 min', '2 s')
    """
    if seconds is None:
        return "?"
    if rounded:
        return re.sub(r"(?<=\D) 0 \w+$|\.0(?= s$)", "", duration_text(seconds))
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, days = minutes // 60, minutes // 1440
    if days:
        return f"{days} d {hours % 24} h"
    if hours:
        return f"{hours} h {minutes % 60} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def speed_quantity_text(rate: float) -> str:
    """A rate per second, or in the unit that makes it a number one can picture.

    >>> speed_quantity_text(1234.5), speed_quantity_text(2.345), speed_quantity_text(0.05)
    ('1,234 a second', '2.3 a second', '3 a minute')
    """
    for unit, seconds in (("second", 1), ("minute", 60), ("hour", 3600)):
        count = rate * seconds
        if count >= 1 or unit == "hour":
            break
    return f"{count:,.0f} a {unit}" if count >= 10 else f"{count:.2g} a {unit}"
