"""What all pictures share: one style, colours that colour-blind people can tell apart, PNG and PDF."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..errors import ThresherError, lacks

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
        rule, remedy = lacks(ModuleNotFoundError(name="matplotlib"), "lab")
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
    """A shaded band of one standard error on each side."""
    low = [max(y - error, 1e-6) for y, error in zip(ys, errors, strict=True)]
    high = [y + error for y, error in zip(ys, errors, strict=True)]
    axis.fill_between(xs, low, high, color=colour, alpha=0.15, linewidth=0)


def percent(*, decimals: int | None = 0) -> Any:
    """Ticks in percent; None: with as many decimals as the axis needs."""
    from matplotlib.ticker import PercentFormatter

    return PercentFormatter(xmax=1.0, decimals=decimals)
