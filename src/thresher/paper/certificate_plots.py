"""Pictures of certificates: how many pulls they take, and why the guarantee needs the order of issue."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..lab.pictures import BLUE, GREY, ORANGE, RED, percent, picture
from .figures import Row
from .guarantee import LEVEL, SLOWER, Growth
from .kano import BENCHMARKS, OURS, RIVALS
from .plots import note


def certificates(rows: Sequence[Row], path: Path) -> None:
    """Pulls until every arm is settled, a panel for each benchmark."""
    names = [*OURS, *RIVALS]
    colours = [BLUE] * len(OURS) + [ORANGE] * len(RIVALS)
    with picture(path, 1, 3, (10.5, 3.3), sharey=True) as (figure, axes):
        for axis, number in zip(axes[0], BENCHMARKS, strict=True):
            mine = {row["algorithm"]: row for row in rows if row["benchmark"] == number}
            pulls = [mine[name]["pulls"] for name in names]
            errors = [mine[name]["pulls_se"] or 0.0 for name in names]
            axis.barh(names, pulls, xerr=errors, color=colours, height=0.7, error_kw={"ecolor": "#333333"})
            for index, value in enumerate(pulls):
                note(axis, f"{value:,.0f}", (value, index), (6, 0), va="center")
            title = f"Benchmark {number}: {len(BENCHMARKS[number][0])} arms, bar {BENCHMARKS[number][1]:g}"
            axis.set(title=title, xlim=(0, 1.22 * max(pulls)), xlabel="pulls")
            axis.locator_params(axis="x", nbins=4)
            axis.xaxis.set_major_formatter("{x:,.0f}")
            axis.grid(visible=False, axis="y")
        axes[0, 0].invert_yaxis()
        figure.suptitle(
            "Pulls until every arm is settled, confidence 0.95; blue: thresher's rule, orange: the literature's",
            fontsize=10.5,
        )


def guarantee(rows: Sequence[Row], runs: Sequence[Growth], path: Path) -> None:
    """Left: evidence that grows until it crosses the level. Right: order of issue against order of arrival."""
    with picture(path, 1, 2, (10.5, 4.2)) as (_, axes):
        _growth(axes[0, 0], runs)
        _orders(axes[0, 1], rows)


def _orders(axis: Any, rows: Sequence[Row]) -> None:
    for slower, mark in zip(SLOWER, ("s", "o"), strict=True):
        mine = [row for row in rows if row["slower"] == slower]
        workers = [row["workers"] for row in mine]
        worst = slower == SLOWER[-1]
        for column, colour in (("arrival", RED), ("issue", BLUE)):
            style = {"color": colour, "marker": mark, "markersize": 5, "linewidth": 1.6}
            share = [row[column] for row in mine]
            axis.plot(workers, share, markerfacecolor=colour if worst else "white", **style)
        at = next((row["workers"], row["arrival"]) for row in mine if row["workers"] == (20 if worst else 50))
        beside: dict[str, Any] = {"offset": (-8, 4), "ha": "right"} if worst else {"offset": (9, -6), "ha": "left"}
        note(axis, f"failures {slower}×\nslower", at, va="center", color=RED, **beside)
    axis.axhline(0.05, color=GREY, linewidth=1.0, linestyle=(0, (4, 3)))
    note(axis, "allowed: 5 %", (1, 0.05), (0, 4), color="#505050")
    note(axis, "counted as they come back", (1, 0.93), color=RED, fontsize=9.5, weight="bold")
    note(axis, "counted in the order of issue", (13, -0.062), color=BLUE, fontsize=9.5, weight="bold", va="center")
    axis.set_xscale("log")
    axis.set_xticks([1, 2, 5, 10, 20, 50, 100, 200], ["1", "2", "5", "10", "20", "50", "100", "200"])
    axis.minorticks_off()
    axis.set(ylim=(-0.11, 1.04), yticks=[0, 0.25, 0.5, 0.75, 1.0])
    axis.yaxis.set_major_formatter(percent())
    what = "workers, all on one arm of mean 0.45 against 0.5"
    axis.set(xlabel=what, title='Studies that wrongly settle on "above"')


def _growth(axis: Any, runs: Sequence[Growth]) -> None:
    middle = sorted(runs, key=lambda run: len(run.above))[len(runs) // 2]
    for run in runs:
        strong = run is middle
        style = {"linewidth": 1.8 if strong else 0.8, "alpha": 1.0 if strong else 0.35, "zorder": 3 if strong else 2}
        axis.plot(range(len(run.above)), run.above, color=BLUE, **style)
        axis.plot(len(run.above) - 1, run.above[-1], "o", color=BLUE, markersize=6.5 if strong else 3.5, zorder=4)
    pulls = len(middle.above) - 1
    axis.plot(range(pulls + 1), middle.below, color=ORANGE, linewidth=1.6)
    note(axis, "its capital that\nbets on “below”", (pulls, middle.below[-1]), (6, -9), color="#8A5F00")
    note(axis, f"settled after {pulls:,} pulls", (pulls, middle.above[-1]), (0, 8), color=BLUE)
    axis.axhline(LEVEL, color=GREY, linewidth=1.0, linestyle=(0, (4, 3)))
    note(axis, "the level: K / risk = 10 / 0.05 = 200", (4, 330), color="#505050")
    axis.set(yscale="log", ylim=(0.15, 1200), xlim=(0, 1.06 * max(len(run.above) for run in runs)))
    axis.set_yticks([1, 10, 100, 1000], ["1", "10", "100", "1,000"])
    axis.minorticks_off()
    title = 'Capital that bets on "above": twelve such arms'
    axis.set(xlabel="pulls of an arm of mean 0.6 against 0.5", title=title)
