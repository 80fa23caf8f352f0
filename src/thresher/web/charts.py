"""The charts of a study. Their look is defined in static/figures.json, which the live page uses, too."""

import html
import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import plotly.graph_objects as go

from ..core.rows import ORDER, Row, Standing
from ..core.verdict import Verdict
from ..errors import InvalidInput
from ..study import Study
from ..text.naming import folded_name
from .assets import STATIC
from .json_shapes import axis_json_shape, bar_lines_json, hover_json_shape, short_json, ticks_json_shape
from .log_follower import LogFollower, Point

MANY = 500  # arms; with more, whiskers are thin and points are small
DATA = "application/vnd.plotly.v1+json"
CROWD = 2000  # arms; with more, a line replaces the points
LINE = 28  # characters of a name in a line of a hover text


class Figure(go.Figure):  # type: ignore[misc]
    """A plotly figure that an exported notebook shows, too.

    Plotly's own figure leaves only data in a notebook, which Jupyter draws and an exported page does not. This one adds
    HTML with plotly's JavaScript, so that the page works offline. This takes 5 MB for each figure.
    """

    _ipython_display_ = None  # this would display only the data

    def _repr_mimebundle_(self, include: object = None, exclude: object = None, **_: object) -> dict[str, Any]:
        """The forms that a notebook keeps. A viewer shows the first one that it knows."""
        config = {"displayModeBar": False, "responsive": True}
        page = self.to_html(full_html=False, include_plotlyjs=True, config=config)
        return {DATA: json.loads(self.to_json()), "text/html": page, "text/plain": repr(self)}

    def __repr__(self) -> str:
        title = self.layout.title.text
        return f"<Figure {html.unescape(title)!r}>" if title else "<Figure>"


def chart_of_study(study: Study, kind: str = "arms") -> Figure:
    """A chart of a study: ``"arms"`` against the bar, or the ``"history"`` of the answer."""
    if kind not in ("arms", "history"):
        raise InvalidInput("figure", kind, "is not a figure", 'use "arms" or "history"')
    if kind == "history":
        return history_figure(LogFollower(study.name, study.store).points)
    return chart_of_arms(study.verdict())


def chart_of_arms(verdict: Verdict, *, theme: str = "light") -> Figure:
    """Every arm against the bar, the best first, with its interval; underneath, the pulls of each arm.

    With a baseline, the chart shows differences from it, against zero and the margin.
    """
    wording = verdict.wording
    sign = -1.0 if wording.lower_is_better and wording.asks != "share" else 1.0
    rows = [row for row in verdict.rows if row.standing != "baseline"]
    rows.sort(key=lambda row: float("inf") if row.estimate is None else -sign * row.estimate)
    ranked = list(enumerate(rows, start=1))
    is_many = len(rows) > MANY
    whiskers = [_whiskers(standing, ranked, 1 if is_many else 2) for standing in ORDER]
    waiting = [(rank, row.estimate) for rank, row in ranked if row.pending and row.estimate is not None]
    ranks, seen = [rank for rank, _ in ranked], [row.seen for row in rows]
    traces = [
        *(_points_of(standing, ranked, 4 if is_many else 7, hover_json_shape(wording)) for standing in ORDER[1:]),
        _styled_part("ring", x=[rank for rank, _ in waiting], y=[value for _, value in waiting]),
        _styled_part("pulls", x=ranks, y=seen, hovertemplate="%{y:,} rewards<extra></extra>"),
        _styled_part("pending", x=ranks, y=[row.seen + row.pending for row in rows]),
    ]
    title = {"text": html.escape(f"{verdict.study}: {verdict.question}"), "font": {"color": "@ink", "size": 15}}
    across = {"range": [0.5, len(rows) + 0.5], "anchor": "y2", "showgrid": False}
    layout = {
        "height": 480,
        "margin": {"t": 40},
        "title": title,
        "xaxis": _styled_part("axis", **across, **_ticks([row.arm for row in rows])),
        "yaxis": _styled_part("axis", domain=[0.3, 1], **axis_json_shape(wording)),
        "yaxis2": _styled_part("axis", domain=[0, 0.2], title={"text": "pulls"}, rangemode="tozero"),
        "shapes": [*filter(None, whiskers), *(_styled_part(kind, **line) for kind, line in bar_lines_json(wording))],
    }
    return _figure_of(traces, layout, theme)


def history_figure(points: Sequence[Point], *, theme: str = "light") -> Figure:
    """How many arms reached the bar, missed it and were open, over the pulls."""
    lines = {"reached": "@reaches", "missed": "@misses", "open": "@open"}
    traces = [
        _styled_part(
            "line",
            x=[point.issued for point in points],
            y=[getattr(point, name) for point in points],
            name=name,
            line={"color": colour, "dash": "dot" if name == "open" else "solid"},
        )
        for name, colour in lines.items()
    ]
    layout = {
        "height": 300,
        "showlegend": True,
        "legend": {"orientation": "h", "y": 1.15, "x": -0.08, "font": {"size": 11}},
        "xaxis": _styled_part("axis", title={"text": "pulls"}, rangemode="tozero"),
        "yaxis": _styled_part("axis", title={"text": "arms"}, rangemode="tozero"),
    }
    return _figure_of(traces, layout, theme)


def _ticks(names: list[str]) -> dict[str, Any]:
    """The axis under the arms: their names if there are few, otherwise their ranks."""
    ticks = ticks_json_shape(names)
    if ticks is None:
        return {"title": {"text": "rank"}}
    texts = ["<br>".join(html.escape(line, quote=False) for line in tick.split("\n")) for tick in ticks]
    return _styled_part("names", tickvals=[*range(1, len(names) + 1)], ticktext=texts)


def _rows_with(standing: Standing, ranked: list[tuple[int, Row]]) -> list[tuple[int, Row]]:
    return [(rank, row) for rank, row in ranked if row.standing == standing and row.estimate is not None]


def _whiskers(standing: Standing, ranked: list[tuple[int, Row]], width: float) -> dict[str, Any]:
    """All intervals of a colour as one path, because plotly makes a node for every piece of a line with gaps."""
    rows = [(rank, row) for rank, row in _rows_with(standing, ranked) if row.low is not None]
    path = "".join(f"M{rank},{short_json(row.low)}V{short_json(row.high)}" for rank, row in rows)
    return _styled_part("whisker", path=path, line={"color": f"@{standing}", "width": width}) if path else {}


def _points_of(standing: Standing, ranked: list[tuple[int, Row]], size: float, hover: str) -> dict[str, Any]:
    rows = _rows_with(standing, ranked)
    marker = {
        "color": f"@{standing}",
        "size": size,
        "symbol": ["diamond" if row.certified else "circle" for _, row in rows],
    }
    crowd = {"mode": "lines", "line": {"color": f"@{standing}", "width": 3}}  # because each point would be a node
    return _styled_part(
        "point",
        x=[rank for rank, _ in rows],
        y=[row.estimate for _, row in rows],
        text=[_hover(row.arm) for _, row in rows],
        name=standing,
        hovertemplate=f"%{{text}}<br>{hover}<extra>{standing}</extra>",
        **(crowd if len(ranked) > CROWD else {"marker": marker}),
    )


def _hover(name: str) -> str:
    """A name in lines that fit a phone, escaped because plotly takes < for markup."""
    return "<br>".join(html.escape(line, quote=False) for line in folded_name(name, LINE))


@cache
def figure_styles() -> dict[str, Any]:
    styles: dict[str, Any] = json.loads((STATIC / "figures.json").read_text())
    return styles


def _styled_part(kind: str, /, **more: Any) -> dict[str, Any]:
    """A part of a figure as figures.json describes it, with more settings."""
    return _merged(figure_styles()[kind], more)


def _figure_of(traces: list[dict[str, Any]], layout: dict[str, Any], theme: str) -> Figure:
    colours, layout = figure_styles()["themes"][theme], _styled_part("layout", **layout)
    return Figure(data=[_with_colours(trace, colours) for trace in traces], layout=_with_colours(layout, colours))


def _merged(base: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Both mappings together. Where both have a value, ``more`` counts.

    >>> _merged({"a": {"b": 1, "c": 2}}, {"a": {"c": 3}})
    {'a': {'b': 1, 'c': 3}}
    """
    both = dict(base)
    for key, value in more.items():
        inner = both.get(key)
        both[key] = _merged(inner, value) if isinstance(inner, Mapping) and isinstance(value, Mapping) else value
    return both


def _with_colours(value: Any, colours: Mapping[str, str]) -> Any:
    """Replace names of colours, which begin with @, by the theme's colours."""
    if isinstance(value, str):
        return colours[value[1:]] if value.startswith("@") else value
    if isinstance(value, Mapping):
        # users' names and texts are never colours, even if they begin with @
        return {key: part if key == "text" else _with_colours(part, colours) for key, part in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], Mapping):
        return [_with_colours(part, colours) for part in value]
    return value
