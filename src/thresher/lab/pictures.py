"""Pictures of comparisons and plans, as PNG and PDF, in colours that colour-blind people can tell apart."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..errors import ThresherError, missing_package
from ..text.files import Kind
from .comparing import Comparison
from .planning import ALL_RIGHT, ALL_SETTLED, SETTLED, TARGETS, Need, Plan

# Okabe and Ito's palette
BLUE, ORANGE, GREEN, RED, GREY, PURPLE = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#6E6E6E", "#CC79A7"
FORMATS = (".png", ".pdf")
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


def check_ready() -> None:
    """Raise if matplotlib is missing, before any work is done."""
    if find_spec("matplotlib") is None:
        rule, remedy = missing_package(ModuleNotFoundError(name="matplotlib"), "lab")
        raise ThresherError(f"a picture {rule}", remedy=remedy)


@contextmanager
def picture(path: Path, rows: int, columns: int, size: tuple[float, float], **options: Any) -> Iterator[Any]:
    """A figure with axes, saved as PNG and PDF if ``path`` has no suffix, otherwise in the format of its suffix."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with plt.rc_context(LOOK):
        figure, axes = plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False, **options)
        try:
            yield figure, axes
            for target in [path] if path.suffix else [path.with_suffix(suffix) for suffix in FORMATS]:
                dated = {"metadata": {"CreationDate": None}} if target.suffix == ".pdf" else {}
                figure.savefig(target, dpi=160, **dated)
                figure.set_layout_engine("none")  # the next format has the same layout
        finally:
            plt.close(figure)


def band(axis: Any, xs: Sequence[float], ys: Sequence[float], errors: Sequence[float], colour: str) -> None:
    """A shaded band of a standard error on both sides."""
    low = [max(y - error, 1e-6) for y, error in zip(ys, errors, strict=True)]
    high = [y + error for y, error in zip(ys, errors, strict=True)]
    axis.fill_between(xs, low, high, color=colour, alpha=0.15, linewidth=0)


def percent(*, decimals: int | None = 0) -> Any:
    """Ticks in percent; None: with as many decimals as the axis needs."""
    from matplotlib.ticker import PercentFormatter

    return PercentFormatter(xmax=1.0, decimals=decimals)


# The picture of a comparison: by family, the share of arms right, and how far every policy is from the first.

COMPARISON_STYLES = ((GREY, "--"), (BLUE, "-"), (ORANGE, "-."), (GREEN, "-"), (RED, "--"), (PURPLE, ":"))


def draw_comparison(comparisons: Sequence[Comparison], path: Path) -> None:
    """Above, accuracy against pulls; below, the differences from the first policy, with two standard errors."""
    columns = len(comparisons)
    with picture(path, 2, columns, (max(6.0, 3.6 * columns), 6.2), sharex="col", sharey="row") as (figure, axes):
        for column, comparison in enumerate(comparisons):
            _curves(axes[0, column], comparison)
            _differences(axes[1, column], comparison)
        axes[0, 0].set_ylabel("share of arms right, ± 1 s.e.")
        first = next(iter(comparisons[0].results))
        axes[1, 0].set_ylabel(f"better than {first} by, ± 2 s.e.")
        lines, names = axes[0, 0].get_legend_handles_labels()
        figure.legend(lines, names, loc="outside lower center", ncols=min(3, len(names)))


def _curves(axis: Any, comparison: Comparison) -> None:
    axis.set_title(comparison.family)
    axis.set_xscale("log")
    axis.yaxis.set_major_formatter(percent())
    for (name, result), (colour, dash) in zip(comparison.results.items(), _styles(comparison), strict=True):
        axis.plot(comparison.pulls, result.accuracy, color=colour, linestyle=dash, label=name, linewidth=1.8)
        band(axis, comparison.pulls, list(result.accuracy), list(result.accuracy_se), colour)


def _differences(axis: Any, comparison: Comparison) -> None:
    axis.axhline(0.0, color=GREY, linestyle="--", linewidth=1.2)
    axis.set_xlabel("pulls")
    axis.set_xticks(comparison.pulls[::2] if len(comparison.pulls) > 6 else comparison.pulls)
    axis.minorticks_off()
    axis.xaxis.set_major_formatter("{x:,.0f}")
    axis.tick_params(axis="x", rotation=30)
    axis.yaxis.set_major_formatter(percent(decimals=None))
    for (name, _), (colour, dash) in list(zip(comparison.results.items(), _styles(comparison), strict=True))[1:]:
        apart = comparison.difference(name, "accuracy")
        axis.plot(comparison.pulls, apart.mean, color=colour, linestyle=dash, linewidth=1.8)
        low, high = apart.mean - 2 * apart.error, apart.mean + 2 * apart.error
        axis.fill_between(comparison.pulls, low, high, color=colour, alpha=0.18, linewidth=0)


def _styles(comparison: Comparison) -> list[tuple[str, str]]:
    return [COMPARISON_STYLES[index % len(COMPARISON_STYLES)] for index in range(len(comparison.results))]


# The picture of a plan.

PICTURE = Kind("a picture", lambda head: head.startswith((b"\x89PNG", b"%PDF", b"<?xml")))
PLAN_STYLES = ((BLUE, "-"), (GREY, "--"), (ORANGE, "-."))
LEVELS = dict((*TARGETS, ALL_RIGHT, SETTLED))


def draw_plan(plan: Plan, path: Path) -> None:
    """Share of arms right, chance of all right and, with certificates, share of arms settled against pulls."""
    certifies = any(curve.settled for curve in plan.curves.values())
    styles = dict(zip(plan.curves, PLAN_STYLES, strict=False))
    with picture(path, 1, 2 + certifies, (14.0 if certifies else 10.0, 4.0), sharex=True) as (_, axes):
        titles = ("share of arms right", "chance that all arms are right", "share of arms settled")
        for axis, title in zip(axes[0], titles, strict=False):
            axis.set_title(title)
            axis.set_xscale("log")
            axis.set_xlabel("pulls")
            axis.yaxis.set_major_formatter(percent())
            axis.xaxis.set_major_formatter("{x:,.0f}")
        for name, curve in plan.curves.items():
            colour, dash = styles[name]
            style = {"color": colour, "linestyle": dash, "label": name, "linewidth": 1.8}
            axes[0, 0].plot(curve.pulls, curve.accuracy, **style)
            band(axes[0, 0], curve.pulls, curve.accuracy, curve.accuracy_se, colour)
            axes[0, 1].plot(curve.pulls, curve.success, **style)
            if curve.settled:
                axes[0, 2].plot(curve.pulls, curve.settled, **style)
        for target, level in LEVELS.items():
            if certifies or target != SETTLED[0]:
                _panel(axes, target).axhline(level, color="#B5B5B5", linewidth=0.8, zorder=0)
        for need in plan.needs:
            if need.low is not None and need.target != ALL_SETTLED[0]:
                _mark(_panel(axes, need.target), list(plan.curves).index(need.policy), need)
        axes[0, 0].set_ylim(top=1.005)
        axes[0, 0].legend(loc="lower right")


def _panel(axes: Any, target: str) -> Any:
    return axes[0, {ALL_RIGHT[0]: 1, SETTLED[0]: 2}.get(target, 0)]


def _mark(axis: Any, index: int, need: Need) -> None:
    """A dot where the target is met, on a bar from ``low`` to ``high``, which ends in an arrow if it goes on.

    The bars of later policies are thinner, so that all are seen where they overlap. The first two policies have their
    number of pulls, too: a third would overlap.
    """
    colour, level = PLAN_STYLES[index][0], LEVELS[need.target]
    bar = {"color": colour, "alpha": 0.4, "linewidth": 8.0 - 3.0 * index, "solid_capstyle": "butt"}
    axis.plot([need.low, need.high or need.beyond], [level, level], **bar)
    if need.high is None:
        axis.plot(need.beyond, level, marker=">", color=colour, markersize=7)
    if need.pulls is None:
        return
    axis.plot(need.pulls, level, marker="o", color=colour, markersize=5)
    if index == 0:
        words = {"xytext": (-5, 6), "ha": "right"}
    elif index == 1 or need.target == SETTLED[0]:
        words = {"xytext": (5, -13), "ha": "left"}
    else:
        return
    axis.annotate(f"{need.pulls:,}", (need.pulls, level), textcoords="offset points", fontsize=8, color=colour, **words)
