"""Small words for people: numbers, lengths of time, and reading them. Nothing heavy is imported here."""

import re

import click

from ..core.checks import MAX_SECONDS
from ..errors import shown
from ..text.escapes import visible
from ..text.masking import masked

COLOURS = {"above": "green", "below": "red", "close": "yellow", "undecided": "dim", "retired": "magenta"}
SIGNS = {"above": "▲", "below": "▼", "close": "≈", "undecided": "·", "retired": "✕"}  # for those who see no colours
UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def duration(seconds: float | None) -> str:
    """A length of time, to two units.

    >>> duration(0.42), duration(75), duration(7300), duration(None)
    ('0.4 s', '1 min 15 s', '2 h 1 min', '?')
    """
    if seconds is None:
        return "?"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, days = minutes // 60, minutes // 1440
    if days:
        return f"{days} d {hours % 24} h"
    if hours:
        return f"{hours} h {minutes % 60} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def speed(rate: float) -> str:
    """So many a second, or whichever unit makes a number that one can picture.

    >>> speed(1234.5), speed(2.345), speed(0.05)
    ('1,234 a second', '2.3 a second', '3 a minute')
    """
    for unit, seconds in (("second", 1), ("minute", 60), ("hour", 3600)):
        count = rate * seconds
        if count >= 1 or unit == "hour":
            break
    return f"{count:,.0f} a {unit}" if count >= 10 else f"{count:.2g} a {unit}"


def clean(text: str) -> str:
    r"""A text of somebody else's on one line for people: what a failing program said may hold anything.

    >>> print(clean("out of\n memory\x1b[31m, password=secret"))
    out of memory\x1b[31m, password=***
    """
    return visible(" ".join(masked(text).split()))


def head_text(events: int, head: str | None) -> str:
    """Where a log ends, by which two people can see that they have the same.

    >>> head_text(6001, "3f2a")
    'Head of the log: event 6,001, 3f2a'
    """
    return f"Head of the log: event {events:,}{f', {head}' if head else ''}"


def number(value: float | None) -> str:
    """A mean, to four digits."""
    return "–" if value is None else f"{value:.4g}"


def span(low: float | None, high: float | None) -> str:
    """An interval.

    >>> span(0.25, 0.75), span(None, None)
    ('0.25 – 0.75', '')
    """
    return "" if low is None or high is None else f"{number(low)} – {number(high)}"


class Duration(click.ParamType[float]):
    """Seconds, or a number with s, m, h or d behind it.

    >>> Duration().convert("1.5h", None, None)
    5400.0
    """

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The length in seconds."""
        if isinstance(value, int | float):
            return float(value)
        found = re.fullmatch(r"(\d+\.?\d*|\.\d+)\s*([smhd]?)", str(value).strip())
        if not found or not 0 < float(found[1]) * UNITS[found[2]] <= MAX_SECONDS:
            self.fail(
                f"{shown(value, 60)} is not a length of time above 0 and below 31 years; write 90, 90s, 10m, 2h or 1d",
                param,
                ctx,
            )
        return float(found[1]) * UNITS[found[2]]
