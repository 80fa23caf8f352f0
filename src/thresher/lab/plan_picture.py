"""The picture of a plan."""

from pathlib import Path
from typing import Any

from ..text.files import Kind
from .pictures import BLUE, GREY, ORANGE, band, percent, picture
from .planning import ALL_RIGHT, ALL_SETTLED, SETTLED, TARGETS, Need, Plan

PICTURE = Kind("a picture", lambda head: head.startswith((b"\x89PNG", b"%PDF", b"<?xml")))
STYLES = ((BLUE, "-"), (GREY, "--"), (ORANGE, "-."))
LEVELS = dict((*TARGETS, ALL_RIGHT, SETTLED))


def draw(plan: Plan, path: Path) -> None:
    """Share of arms right, chance of all right and, with certificates, share of arms settled against pulls."""
    certifies = any(curve.settled for curve in plan.curves.values())
    styles = dict(zip(plan.curves, STYLES, strict=False))
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
    colour, level = STYLES[index][0], LEVELS[need.target]
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
