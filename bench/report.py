"""Figures against bars, as a table and as JSON."""

import json
import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Figure:
    """One thing measured."""

    what: str
    measured: float
    unit: str
    bar: float | None = None  # None: for orientation only
    at_most: bool = False  # else at least
    within: float | None = None  # else no further from the bar than this

    @property
    def held(self) -> bool:
        if self.bar is None:
            return True
        if self.within is not None:
            return abs(self.measured - self.bar) <= self.within
        return self.measured <= self.bar if self.at_most else self.measured >= self.bar

    def __str__(self) -> str:
        promise = "" if self.bar is None else f"{'at most' if self.at_most else 'at least'} {self.bar:,g}"
        if self.within is not None:
            promise = f"{self.bar:,g} ± {self.within:g}"
        verdict = "" if self.bar is None else ("held" if self.held else "MISSED")
        return f"{self.what:<70} {self.measured:>12,.4g} {self.unit:<10} {promise:<18} {verdict}"


def write_json(figures: list[Figure], file: Path) -> None:
    rows = [asdict(figure) | {"held": figure.held} for figure in figures]
    machine = {"python": platform.python_version(), "machine": platform.machine(), "system": platform.system()}
    file.write_text(json.dumps({"format": 1, **machine, "figures": rows}, indent=2) + "\n")


def fastest(*sides: Callable[[], float], turns: int = 5) -> list[float]:
    """The best of several turns of each side; the sides alternate, so noise affects all of them."""
    best = [float("inf")] * len(sides)
    for _ in range(turns):
        best = [min(before, side()) for before, side in zip(best, sides, strict=True)]
    return best
