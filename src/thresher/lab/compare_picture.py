"""The picture of a comparison: for each family, the share of arms right, and how far each policy is from the first."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .comparing import Comparison
from .pictures import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, band, percent, picture

STYLES = ((GREY, "--"), (BLUE, "-"), (ORANGE, "-."), (GREEN, "-"), (RED, "--"), (PURPLE, ":"))


def draw(found: Sequence[Comparison], path: Path) -> None:
    """Above, accuracy against pulls; below, the differences from the first policy, with two standard errors."""
    columns = len(found)
    with picture(path, 2, columns, (max(6.0, 3.6 * columns), 6.2), sharex="col", sharey="row") as (figure, axes):
        for column, one in enumerate(found):
            _curves(axes[0, column], one)
            _differences(axes[1, column], one)
        axes[0, 0].set_ylabel("share of arms right, ± 1 s.e.")
        first = next(iter(found[0].results))
        axes[1, 0].set_ylabel(f"better than {first} by, ± 2 s.e.")
        lines, names = axes[0, 0].get_legend_handles_labels()
        figure.legend(lines, names, loc="outside lower center", ncols=min(3, len(names)))


def _curves(axis: Any, one: Comparison) -> None:
    axis.set_title(one.family)
    axis.set_xscale("log")
    axis.yaxis.set_major_formatter(percent())
    for (name, result), (colour, dash) in zip(one.results.items(), _styles(one), strict=True):
        axis.plot(one.pulls, result.accuracy, color=colour, linestyle=dash, label=name, linewidth=1.8)
        band(axis, one.pulls, list(result.accuracy), list(result.accuracy_se), colour)


def _differences(axis: Any, one: Comparison) -> None:
    axis.axhline(0.0, color=GREY, linestyle="--", linewidth=1.2)
    axis.set_xlabel("pulls")
    axis.set_xticks(one.pulls[::2] if len(one.pulls) > 6 else one.pulls)
    axis.minorticks_off()
    axis.xaxis.set_major_formatter("{x:,.0f}")
    axis.tick_params(axis="x", rotation=30)
    axis.yaxis.set_major_formatter(percent(decimals=None))
    for (name, _), (colour, dash) in list(zip(one.results.items(), _styles(one), strict=True))[1:]:
        apart = one.difference(name, "accuracy")
        axis.plot(one.pulls, apart.mean, color=colour, linestyle=dash, linewidth=1.8)
        low, high = apart.mean - 2 * apart.error, apart.mean + 2 * apart.error
        axis.fill_between(one.pulls, low, high, color=colour, alpha=0.18, linewidth=0)


def _styles(one: Comparison) -> list[tuple[str, str]]:
    return [STYLES[index % len(STYLES)] for index in range(len(one.results))]
