"""The files in static/, the templates among them, and the path of plotly's script."""

import html
import string
from pathlib import Path
from typing import Any

import plotly

from ..text.naming import breakable_name

STATIC = Path(__file__).parent / "static"
PLOTLY = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
PLOTLY_VERSION: str = plotly.__version__
# All templates are read at once, because descriptors may run out later.
_PAGES = {file.stem: file.read_text(encoding="utf-8") for file in STATIC.glob("*.html")}
_TEMPLATES = {name: string.Template(text.replace("$head\n", _PAGES["head"])) for name, text in _PAGES.items()}


def fill_asset_template(name: str, markup: dict[str, str] | None = None, /, **values: Any) -> str:
    """A template with its values. Values are text and escaped; only ``markup`` is already HTML.

    ``$study_name`` and ``$arm_name`` are the names of a study and an arm in a form that a browser may break into lines.
    """
    texts = {key: html.escape(str(value)) for key, value in values.items()}
    names = {f"{key}_name": breakable_name(values[key]) for key in ("study", "arm") if key in values}
    return _TEMPLATES[name].substitute(texts | names | (markup or {}))
