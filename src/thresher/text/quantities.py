"""Numbers with units, as people write them on a command line: 90%, 200ms, 1.5s, 2min."""

import re
from decimal import Decimal

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
        found = super().__new__(cls, value)
        found.unit, found.text = unit, text
        return found

    def __repr__(self) -> str:
        return self.text

    __str__ = __repr__


def read(text: str) -> float | None:
    """The number in a text, a `Quantity` if it has a unit; None if it is not a number.

    Exactly rounded: 90% is 0.9, and 1.1ms is 0.0011.

    >>> read("200ms"), read("200ms") == 0.2, read("0.9"), read("high")
    (200ms, True, 0.9, None)
    """
    text = text.strip()
    if found := WITH_UNIT.fullmatch(text):
        number, unit = found.groups()
        return Quantity(float(Decimal(number) * SCALES[unit]), unit, text) if unit in SCALES else None
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def seconds(text: str, *, most: float) -> float | None:
    """A length of time in seconds, above 0 and at most ``most``; None if it is not one: then the error is `DURATIONS`.

    >>> seconds("1.5h", most=1e9), seconds("90", most=1e9), seconds("1e3", most=1e9), seconds("5%", most=1e9)
    (5400.0, 90.0, None, None)
    """
    found = None if "e" in text.lower() else read(text)  # 1e3 is no length of time
    if found is None or not 0 < found <= most or getattr(found, "unit", "s") == PERCENT:
        return None
    return float(found)
