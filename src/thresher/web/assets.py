"""What pages and reports are made of: the files in static/, and plotly's script, which needs none of its Python."""

import html
import string
from pathlib import Path
from typing import Any

import plotly

from ..text.phrasing import breakable

STATIC = Path(__file__).parent / "static"
PLOTLY = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
PLOTLY_VERSION: str = plotly.__version__
_PAGES = {
    file.stem: file.read_text(encoding="utf-8") for file in STATIC.glob("*.html")
}  # now: later, descriptors may run out
_TEMPLATES = {name: string.Template(text.replace("$head\n", _PAGES["head"])) for name, text in _PAGES.items()}


def filled(name: str, markup: dict[str, str] | None = None, /, **values: Any) -> str:
    """A page with its blanks filled in. Values are text, and escaped; only ``markup`` is HTML already.

    The names of a study and an arm are also there in a form that a browser may break: ``$study_name``, ``$arm_name``.
    """
    texts = {key: html.escape(str(value)) for key, value in values.items()}
    names = {f"{key}_name": breakable(values[key]) for key in ("study", "arm") if key in values}
    return _TEMPLATES[name].substitute(texts | names | (markup or {}))
