"""The pictures: the same look for all, colours that colour-blind people tell apart, PNG and PDF."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..errors import ThresherError
from .figures import DELTAS, SPREADS_41, SPREADS_42, Row

# Okabe and Ito's palette
BLUE, ORANGE, GREEN, RED, GREY, PURPLE = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#6E6E6E", "#CC79A7"
LOOK: Any = {
    "font.size": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "savefig.facecolor": "white",
    "pdf.fonttype": 42,
}
LINES_41 = {
    "EVT": (BLUE, "-", "o"),
    "anytime EVT": (PURPLE, "--", "D"),
    "EVT_pf": (GREEN, "-", "s"),
    "ATP": (RED, "-", "^"),
    "uniform": (GREY, ":", "v"),
}
LINES_42 = {0.0: (RED, "^"), 0.5: (ORANGE, "s"), 1.0: (BLUE, "o")}


def check_ready() -> None:
    """Raise, before any work is done, where there is nothing to draw with."""
    if find_spec("matplotlib") is None:
        words = "pictures need matplotlib, which is not installed"
        raise ThresherError(words, remedy="pip install 'thresher[lab]'")


@contextmanager
def picture(path: Path, rows: int, columns: int, size: tuple[float, float], **options: Any) -> Iterator[Any]:
    """A figure with axes, saved as PNG and PDF where ``path`` has no ending, else in the format of its ending."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with plt.rc_context(LOOK):
        figure, axes = plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False, **options)
        try:
            yield figure, axes
            targets = [path] if path.suffix else [path.with_suffix(".png"), path.with_suffix(".pdf")]
            for target in targets:
                dated = {"metadata": {"CreationDate": None}} if target.suffix == ".pdf" else {}
                figure.savefig(target, dpi=160, **dated)
        finally:
            plt.close(figure)


def _name(algorithm: str) -> str:
    return algorithm.replace("_pf", r"$_{pf}$")


def figure1(rows: Sequence[Row], path: Path) -> None:
    """Figure 1: all arms right, and the share of arms wrong, against n."""
    with picture(path, 2, 3, (10.5, 6.4), sharex=True, sharey="row") as (figure, axes):
        for column, setting in enumerate(SPREADS_41):
            low, high = SPREADS_41[setting]
            top, bottom = axes[0, column], axes[1, column]
            for algorithm, (colour, dash, mark) in LINES_41.items():
                mine = [row for row in rows if row["setting"] == setting and row["algorithm"] == algorithm]
                pulls = [row["n"] for row in mine]
                style = {"color": colour, "linestyle": dash, "marker": mark, "markersize": 3.5, "linewidth": 1.4}
                share, error = [row["success"] for row in mine], [row["success_se"] for row in mine]
                top.plot(pulls, share, label=_name(algorithm), **style)
                _band(top, pulls, share, error, colour)
                share, error = [1 - row["accuracy"] for row in mine], [row["accuracy_se"] for row in mine]
                bottom.plot(pulls, share, **style)
                _band(bottom, pulls, share, error, colour)
            top.set_title(f"{setting} variance, r ~ U({low:g}, {high:g})")
            top.set_xscale("log")
            bottom.set_yscale("log")
            bottom.set_xlabel("pulls n")
            bottom.set_yticks([0.003, 0.01, 0.03, 0.1, 0.3], ["0.3 %", "1 %", "3 %", "10 %", "30 %"])
            bottom.minorticks_off()
            bottom.set_xticks([1000, 10_000, 100_000], ["1,000", "10,000", "100,000"])
        axes[0, 0].set_ylabel("runs with all arms right")
        axes[0, 0].yaxis.set_major_formatter(_percent())
        axes[1, 0].set_ylabel("share of arms wrong")
        axes[0, 0].legend(loc="upper left")
        figure.suptitle("Section 4.1: K = 100, bar 0.7, means U(.6, .8); bands are ± one standard error", fontsize=10.5)


def figure2(rows: Sequence[Row], path: Path) -> None:
    """Figure 2: the speed-up against τ, for each δ."""
    with picture(path, 2, 3, (10.5, 6.6), sharex=True, sharey=True) as (figure, axes):
        for line, algorithm in enumerate(("AP-EVT", "AP-EVT_pf")):
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
                    taus, speeds = [row["tau"] for row in mine], [row["speedup"] for row in mine]
                    axis.plot(taus, speeds, color=colour, marker=mark, markersize=3.5, linewidth=1.4)
                    _band(axis, taus, speeds, [row["speedup_se"] or 0.0 for row in mine], colour)
                    words = f"δ = {delta:g}" if taus[-1] == 1000 else f"δ = {delta:g},\nthen never"
                    axis.annotate(
                        words,
                        (taus[-1], speeds[-1]),
                        textcoords="offset points",
                        xytext=(6, {0.0: 0, 0.5: -5, 1.0: 6}[delta]),
                        color=colour,
                        fontsize=8.5,
                        va="center",
                    )
                axis.set_xlim(0.8, 6000)
                axis.set_xscale("log")
                axis.set_yscale("log")
                axis.set_title(f"{_name(algorithm)}, {setting} variance")
                axis.set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1,000"])
                axis.set_yticks([1, 10, 100, 1000], ["1", "10", "100", "1,000"])
                axis.minorticks_off()
        axes[0, 0].annotate("linear", (3.6, 5.2), rotation=43, color="#707070", fontsize=8.5)
        for axis in axes[1]:
            axis.set_xlabel("most rewards unobserved, τ")
        for axis in axes[:, 0]:
            axis.set_ylabel("speed-up to 95 % of arms right")
        figure.suptitle(
            "Section 4.2: K = 100, bar 0.5, means U(.3, .7), first in, first out; bands are ± one standard error",
            fontsize=10.5,
        )


def table1(rows: Sequence[Row], path: Path) -> None:
    """Table 1 as a picture: what the theorems ask for beside what simulation needed."""
    groups = list(dict.fromkeys((row["section"], row["setting"]) for row in rows))
    colours = {"ATP": RED, "EVT": BLUE, "EVT_pf": GREEN}
    with picture(path, 1, 1, (8.2, 4.4)) as (_, axes):
        axis = axes[0, 0]
        for place, group in enumerate(groups):
            mine = [row for row in rows if (row["section"], row["setting"]) == group]
            for shift, row in zip((-0.22, 0.0, 0.22), mine, strict=True):
                colour, high = colours[row["algorithm"]], place + shift
                axis.plot(row["hardness"], high, marker="|", markersize=11, markeredgewidth=2, color=colour)
                if row["rounds_corrected"]:
                    axis.plot(row["rounds_corrected"], high, marker="D", markersize=5, color=colour)
                found = row["rounds_simulated"] or row["most_pulls"]
                full = colour if row["rounds_simulated"] else "white"
                mark = "o" if row["rounds_simulated"] else ">"
                axis.plot(found, high, marker=mark, markersize=6, color=colour, markerfacecolor=full)
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


def _band(axis: Any, xs: Sequence[float], ys: Sequence[float], errors: Sequence[float], colour: str) -> None:
    low = [max(y - error, 1e-6) for y, error in zip(ys, errors, strict=True)]
    high = [y + error for y, error in zip(ys, errors, strict=True)]
    axis.fill_between(xs, low, high, color=colour, alpha=0.15, linewidth=0)


def _percent() -> Any:
    from matplotlib.ticker import PercentFormatter

    return PercentFormatter(xmax=1.0, decimals=0)
