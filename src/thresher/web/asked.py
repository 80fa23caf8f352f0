"""What a study asks, as pages and pictures show it: headings, axes, and how numbers on them are written."""

import html
from typing import Any

from ..core.layout import further, head_of
from ..core.wording import Look
from ..text.escapes import visible

LONGEST_NAME = 20  # characters of the baseline's name on an axis


def asked_json(look: Look) -> dict[str, Any]:
    """The question as data, with the words by which pages show it."""
    names = ("threshold", "lower_is_better", "share", "baseline", "ratio", "unit", "asks", "bar")
    texts = {
        "bar_text": look.estimate(look.bar),
        "estimate_head": head_of(look),
        "details": further(look),
        "failing": failing(look),
    }
    return {**{name: getattr(look, name) for name in names}, **texts, "axis": axis_of(look), "hover": hover_of(look)}


def failing(look: Look) -> str:
    """When an arm failed a case, in a sentence."""
    if look.asks != "difference":
        return "An arm failed a case if its reward there, by itself, does not reach the bar."
    margin = f" by more than {look.amount(-look.threshold)}" if look.threshold < 0 else ""
    return f"An arm failed a case if its reward there is worse than the baseline's{margin}."


def title_of(look: Look) -> str:
    """What arms are compared by.

    >>> title_of(Look(0.2, lower_is_better=True, share=0.95, unit="s")), title_of(Look(0.0, baseline="current"))
    ('share within 200 ms', 'difference from current')
    """
    if look.asks == "mean":
        return "mean"
    base = "" if look.baseline is None else visible(look.baseline)
    base = base if len(base) <= LONGEST_NAME else "the baseline"
    if look.asks == "difference":
        return f"difference from {base}"
    if base and look.ratio is None:
        return f"share better by {look.amount(look.threshold)}"
    limit = f"{look.ratio:g} × {base}" if base else look.amount(look.threshold)
    return f"share {'within' if look.lower_is_better else 'of at least'} {limit}"


def axis_of(look: Look) -> dict[str, Any]:
    """The axis on which arms are compared with the bar, for plotly."""
    title = html.escape(title_of(look), quote=False)  # plotly takes < for markup
    if look.asks == "share":
        return {"title": {"text": title}, "tickformat": ".0%"}
    return {"title": {"text": title}, **amounts_of(look)}


def amounts_of(look: Look) -> dict[str, Any]:
    """How an axis writes rewards, for plotly: seconds as ms or µs where they are short."""
    if look.unit == "s":
        return {"tickformat": "~s", "ticksuffix": "s", "automargin": True}
    return {"ticksuffix": f" {html.escape(look.unit, quote=False)}", "automargin": True} if look.unit else {}


def hover_of(look: Look) -> str:
    """What is compared with the bar, where the pointer rests on it, for plotly."""
    if look.asks == "share":
        return "%{y:.2%}"
    sign = "+" if look.asks == "difference" else ""
    if look.unit == "s":
        return f"%{{y:{sign}.4s}}s"
    return f"%{{y:{sign}.4g}}" + (f" {html.escape(look.unit, quote=False)}" if look.unit else "")
