"""Durations as people type them, and the colours of labels. Nothing heavy is imported here."""

import re

import click

from ..core.checks import MAX_SECONDS
from ..errors import shown

COLOURS = {"above": "green", "below": "red", "close": "yellow", "undecided": "dim", "retired": "magenta"}
STYLES = {**COLOURS, "strong": "bold", "quiet": "dim", "notice": "yellow", "failure": "magenta"}
UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


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
