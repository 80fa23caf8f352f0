"""The pictures of the paper's figures and table."""

from collections.abc import Iterable, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

from thresher.lab.pictures import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, band, percent, picture

from .figures import ALGORITHMS_42, DELTAS, SPREADS_41, SPREADS_42, Row

LINES_41 = {
    "EVT": (BLUE, "-", "o"),
    "anytime EVT": (PURPLE, "--", "D"),
    "EVT_pf": (GREEN, "-", "s"),
    "ATP": (RED, "-", "^"),
    "uniform": (GREY, ":", "v"),
}
ADDED = ((ORANGE, "-", "P"), ("#56B4E9", "-", "X"), ("black", "-.", "*"), ("#B8A800", "--", "d"))  # users' policies
LINES_42 = {0.0: (RED, "^"), 0.5: (ORANGE, "s"), 1.0: (BLUE, "o")}


def note(axis: Any, text: str, at: tuple[float, float], offset: tuple[float, float] = (0, 0), **style: Any) -> None:
    """A small text beside a point; the offset is in points."""
    axis.annotate(text, at, textcoords="offset points", xytext=offset, **{"fontsize": 8.5, **style})


def _name(algorithm: str) -> str:
    return algorithm.replace("_pf", r"$_{pf}$") if algorithm in ("EVT_pf", "AP-EVT_pf") else algorithm


def _added(rows: Sequence[Row], known: Iterable[str]) -> list[str]:
    """The policies in these rows that are not the paper's."""
    return [name for name in dict.fromkeys(row["algorithm"] for row in rows) if name not in known]


def figure1(rows: Sequence[Row], path: Path) -> None:
    """Figure 1: all arms right, and the share of arms wrong, against n."""
    lines = LINES_41 | dict(zip(_added(rows, LINES_41), cycle(ADDED), strict=False))
    with picture(path, 2, 3, (10.5, 6.4), sharex=True, sharey="row") as (figure, axes):
        for column, setting in enumerate(SPREADS_41):
            low, high = SPREADS_41[setting]
            top, bottom = axes[0, column], axes[1, column]
            for algorithm, (colour, dash, mark) in lines.items():
                mine = [row for row in rows if row["setting"] == setting and row["algorithm"] == algorithm]
                pulls = [row["n"] for row in mine]
                style = {"color": colour, "linestyle": dash, "marker": mark, "markersize": 3.5, "linewidth": 1.4}
                right, wrong = [row["success"] for row in mine], [1 - row["accuracy"] for row in mine]
                for axis, shares, name in ((top, right, "success_se"), (bottom, wrong, "accuracy_se")):
                    axis.plot(pulls, shares, label=_name(algorithm), **style)
                    band(axis, pulls, shares, [row[name] for row in mine], colour)
            top.set(title=f"{setting} variance, r ~ U({low:g}, {high:g})", xscale="log")
            bottom.set(yscale="log", xlabel="pulls n")
            bottom.set_yticks([0.003, 0.01, 0.03, 0.1, 0.3], ["0.3 %", "1 %", "3 %", "10 %", "30 %"])
            bottom.minorticks_off()
            bottom.set_xticks([1000, 10_000, 100_000], ["1,000", "10,000", "100,000"])
        axes[0, 0].set_ylabel("runs with all arms right")
        axes[0, 0].yaxis.set_major_formatter(percent())
        axes[1, 0].set_ylabel("share of arms wrong")
        axes[0, 0].legend(loc="upper left")
        figure.suptitle("Section 4.1: K = 100, bar 0.7, means U(.6, .8); bands are ± one standard error", fontsize=10.5)


def figure2(rows: Sequence[Row], path: Path) -> None:
    """Figure 2: the speed-up against τ, for each δ."""
    algorithms = (*ALGORITHMS_42, *_added(rows, ALGORITHMS_42))
    size = (10.5, 3.3 * len(algorithms))
    with picture(path, len(algorithms), 3, size, sharex=True, sharey=True) as (figure, axes):
        for line, algorithm in enumerate(algorithms):
            for column, setting in enumerate(SPREADS_42):
                axis = axes[line, column]
                axis.plot([1, 1000], [1, 1000], color="#9A9A9A", linewidth=0.9, linestyle=(0, (4, 3)))
                for delta in DELTAS:
                    colour, mark = LINES_42[delta]
                    mine = [
                        row
                        for row in rows
                        if (row["setting"], row["algorithm"], row["delta"]) == (setting, algorithm, delta)
                        and row["tau"] > 0
                        and row["speedup"] is not None
                    ]
                    if not mine:
                        continue  # it never reaches the level
                    taus, speeds = [row["tau"] for row in mine], [row["speedup"] for row in mine]
                    axis.plot(taus, speeds, color=colour, marker=mark, markersize=3.5, linewidth=1.4)
                    band(axis, taus, speeds, [row["speedup_se"] or 0.0 for row in mine], colour)
                    words = f"δ = {delta:g}" if taus[-1] == 1000 else f"δ = {delta:g},\nthen never"
                    shift = (6, {0.0: 0, 0.5: -5, 1.0: 6}[delta])
                    note(axis, words, (taus[-1], speeds[-1]), shift, color=colour, va="center")
                title = f"{_name(algorithm)}, {setting} variance"
                axis.set(xlim=(0.8, 6000), xscale="log", yscale="log", title=title)
                axis.set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1,000"])
                axis.set_yticks([1, 10, 100, 1000], ["1", "10", "100", "1,000"])
                axis.minorticks_off()
        note(axes[0, 0], "linear", (3.6, 5.2), rotation=43, color="#707070")
        for axis in axes[-1]:
            axis.set_xlabel("most pending pulls, τ")
        for axis in axes[:, 0]:
            axis.set_ylabel("speed-up to 95 % of arms right")
        figure.suptitle(
            "Section 4.2: K = 100, bar 0.5, means U(.3, .7), first in, first out; bands are ± one standard error",
            fontsize=10.5,
        )


def table1(rows: Sequence[Row], path: Path) -> None:
    """Table 1 as a picture: what the theorems require, and what simulation needed."""
    groups = list(dict.fromkeys((row["section"], row["setting"]) for row in rows))
    colours = {"ATP": RED, "EVT": BLUE, "EVT_pf": GREEN}
    colours |= {name: style[0] for name, style in zip(_added(rows, colours), cycle(ADDED), strict=False)}
    step = 0.66 / len(colours)
    with picture(path, 1, 1, (8.2, 4.4)) as (_, axes):
        axis = axes[0, 0]
        for index, group in enumerate(groups):
            mine = [row for row in rows if (row["section"], row["setting"]) == group]
            for number, row in enumerate(mine):
                colour, high = colours[row["algorithm"]], index + step * (number - (len(mine) - 1) / 2)
                if row["hardness"]:
                    axis.plot(row["hardness"], high, marker="|", markersize=11, markeredgewidth=2, color=colour)
                if row["rounds_corrected"]:
                    axis.plot(row["rounds_corrected"], high, marker="D", markersize=5, color=colour)
                rounds = row["rounds_simulated"] or row["most_pulls"]
                full = colour if row["rounds_simulated"] else "white"
                mark = "o" if row["rounds_simulated"] else ">"
                axis.plot(rounds, high, marker=mark, markersize=6, color=colour, markerfacecolor=full)
        axis.set_xscale("log")
        axis.set_yticks(range(len(groups)), [f"{section} {setting}" for section, setting in groups])
        axis.invert_yaxis()
        axis.set_xlabel("pulls")
        axis.grid(visible=False, axis="y")
        for name, colour in colours.items():
            axis.plot([], [], color=colour, linewidth=4, label=_name(name))
        for mark, words, face in (
            ("|", "H, median instance", None),
            ("o", "pulls that simulation needed", None),
            (">", "more than that", "white"),
            ("D", "rounds by the theorem, corrected", None),
        ):
            axis.plot([], [], marker=mark, linestyle="", color=GREY, markerfacecolor=face or GREY, label=words)
        axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
        axis.set_title("All arms right with probability 0.95")
