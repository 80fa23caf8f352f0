"""What a person sees while a run goes on: a live table on a terminal, elsewhere a line now and then."""

import heapq
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ..ledger import Ledger
from ..progress import Progress
from ..study import Study
from ..verdict import Row, openness, row_of
from .words import COLOURS, duration, number

REDRAW = 0.25  # seconds
FIRST_LINE, NEXT_LINES = 2.0, 15.0  # seconds until a line is printed where there is no terminal


@contextmanager
def watching(study: Study, *, quiet: bool) -> Iterator[Callable[[Progress], object]]:
    """Show the progress of a run on standard error, and what thresher has to say meanwhile."""
    console = Console(stderr=True, highlight=False)
    if quiet or not console.is_terminal:
        with _spoken(lambda text: click.echo(text, err=True)):
            yield (lambda progress: None) if quiet else Lines(study)
    else:
        with (
            Live(console=console, auto_refresh=False, transient=True) as live,
            _spoken(lambda text: console.print(Text(text))),
        ):
            yield Screen(study, live)


@contextmanager
def _spoken(say: Callable[[str], object]) -> Iterator[None]:
    """Warnings of the run as lines of this program."""
    handler, logger = logging.Handler(), logging.getLogger("thresher")
    handler.emit = lambda record: say(f"thresher: {record.getMessage()}")  # type: ignore[method-assign,assignment]
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = True


class Lines:
    """A line now and then."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self._next = time.monotonic() + FIRST_LINE

    def __call__(self, progress: Progress) -> None:
        """Print a line if it is time for one."""
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + NEXT_LINES
            answer = self._study.verdict().answer
            speed = f"{progress.rate:.3g} a second, {duration(progress.seconds_left)} left"
            click.echo(f"thresher: {answer} {speed}", err=True)


class Screen:
    """A table that is drawn again and again: the question, the answer so far, and the arms that are most open."""

    def __init__(self, study: Study, live: Live) -> None:
        self._study, self._live = study, live
        self._drawn = 0.0

    def __call__(self, progress: Progress) -> None:
        """Draw, if it is time to."""
        now = time.monotonic()
        if now - self._drawn >= REDRAW:
            self._drawn = now
            self._live.update(self._study.look(lambda ledger: self._picture(ledger, progress)), refresh=True)

    def _picture(self, ledger: Ledger, progress: Progress) -> Group:
        width, height = self._live.console.size
        arms = range(len(ledger.spec.arms))
        most_open = heapq.nsmallest(max(3, height - 7), arms, key=lambda arm: (openness(ledger, arm), arm))
        rows = [row_of(ledger, arm) for arm in most_open]
        more = len(arms) - len(rows)
        note = Text(f"  … and {more:,} arms that are less open" if more else "", style="dim")
        return Group(
            _headline(ledger, progress), _progress_line(ledger, progress), arms_table(rows, ledger, width), note
        )


def _headline(ledger: Ledger, progress: Progress) -> Text:
    speed = f"{progress.rate:.3g} pulls a second, {duration(progress.seconds_left)} left"
    text = Text(f"Which of {len(ledger.spec.arms):,} arms reach {ledger.spec.threshold:g}?  ", style="bold")
    return text.append(f"{ledger.issued:,} pulls, {ledger.pending:,} under way, {speed}", style="not bold dim")


def _progress_line(ledger: Ledger, progress: Progress) -> ProgressBar | Text:
    if ledger.budget is None:
        return Text("")
    return ProgressBar(total=ledger.budget, completed=ledger.issued - ledger.pending)


def arms_table(rows: list[Row], ledger: Ledger, width: int) -> Table:
    """Arms as a table, the most telling columns first; a gauge shows the mean against the bar where there is room."""
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("arm", no_wrap=True, max_width=max(12, width // 3))
    table.add_column("so far", no_wrap=True)
    table.add_column("mean", justify="right")
    room = width >= 90
    if room:
        table.add_column(f"against {ledger.spec.threshold:g}", no_wrap=True)
    for name in ("pulls", "under way", "failed"):
        table.add_column(name, justify="right")
    means = [row.mean for row in rows if row.mean is not None]
    low, high = min([*means, ledger.spec.threshold]), max([*means, ledger.spec.threshold])
    for row in rows:
        gauge = [gauge_of(row.mean, ledger.spec.threshold, low, high)] if room else []
        label = Text(row.label, style=COLOURS[row.label])
        counts = [f"{row.seen:,}", str(row.pending or ""), str(row.failures or "")]
        table.add_row(Text(row.name), label, number(row.mean), *gauge, *counts)
    return table


def gauge_of(mean: float | None, bar: float, low: float, high: float, width: int = 25) -> Text:
    """The mean as a dot on a line, the bar as a stroke.

    >>> gauge_of(0.9, 0.8, 0.7, 0.9, width=9).plain
    '────┼───●'
    """
    cells = ["─"] * width
    if high > low:
        cells[round((bar - low) / (high - low) * (width - 1))] = "┼"
        if mean is not None:
            cells[round((mean - low) / (high - low) * (width - 1))] = "●"
    style = "dim" if mean is None else COLOURS["above" if mean >= bar else "below"]
    return Text("".join(cells), style=style)
