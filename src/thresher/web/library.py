"""The charts' library for browsers, from the installed package: to serve it, none of its Python is loaded."""

from pathlib import Path

import plotly

VERSION: str = plotly.__version__


def plotly_script() -> Path:
    return Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
