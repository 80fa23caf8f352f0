"""What pages and reports are made of: the files in static/, and plotly's script, which needs none of its Python."""

import html
import string
from functools import cache
from pathlib import Path
from typing import Any

import plotly

from ..text.pieces import breakable

STATIC = Path(__file__).parent / "static"
PLOTLY = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
PLOTLY_VERSION: str = plotly.__version__


@cache
def _template(name: str) -> string.Template:
    head = (STATIC / "head.html").read_text()
    return string.Template((STATIC / f"{name}.html").read_text().replace("$head\n", head))


def filled(name: str, markup: dict[str, str] | None = None, /, **values: Any) -> str:
    """A page with its places filled in. Values are text, and escaped; only ``markup`` is HTML already.

    The names of a study and an arm are also there in a form that a browser may break: ``$study_name``, ``$arm_name``.
    """
    texts = {key: html.escape(str(value)) for key, value in values.items()}
    names = {f"{key}_name": breakable(values[key]) for key in ("study", "arm") if key in values}
    return _template(name).substitute(texts | names | (markup or {}))
