"""The progress of a run: a live table on a terminal, a line now and then elsewhere."""

import heapq
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress

import click
from rich.cells import cell_len
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ..core.row_text import cells, style_of
from ..core.rows import Row, openness, row_of
from ..core.sentences import Wording, pulls_made, question_of, wording_of
from ..core.state import State
from ..run.loop import Progress
from ..study import Study, peek
from ..text.logs import evaluators
from ..text.phrasing import distinct_names, plural
from ..text.quantities import duration, speed
from .output import COLOURS, STYLES, log_records, say

REDRAW = 0.25  # seconds
SHARE = 20  # drawing takes at most 1/20 of the time
SHORTEST_GAUGE, LONGEST_GAUGE = 12, 41  # characters
MANY = 1000  # arms: of more, only names that are shown together need to differ
SHORTEST_NAME = 8  # characters, however narrow the terminal is
FIRST_LINE, NEXT_LINES = 2.0, 15.0  # seconds between lines when there is no terminal


@contextmanager
def watching(study: Study, *, quiet: bool) -> Iterator[Callable[[Progress], object]]:
    """Show the progress and the warnings of a run on standard error."""
    console = Console(stderr=True, highlight=False)
    if quiet or not sys.stderr.isatty() or console.is_dumb_terminal:  # rich alone would trust FORCE_COLOR
        with log_records(say, "thresher"), log_records(_echo, evaluators.name):
            yield (lambda progress: None) if quiet else Lines(study)
    else:
        lock = threading.RLock()  # without it, a line between rich's read and its write duplicates the table

        def show(text: str) -> None:
            with lock:
                console.print(Text(text))

        with (
            Live(console=console, auto_refresh=False, transient=True) as live,
            log_records(lambda text: show(f"thresher: {text}"), "thresher"),
            log_records(show, evaluators.name),
        ):
            yield Screen(study, live, lock)


def _echo(text: str) -> None:
    """Show a line of an evaluator's standard error. If it cannot be written, work continues."""
    with suppress(OSError):
        click.echo(text, err=True)


class Lines:
    """Prints a line now and then."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self._next = time.monotonic() + FIRST_LINE

    def __call__(self, progress: Progress) -> None:
        """Print a line if it is time."""
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + NEXT_LINES
            say(f"{self._study.verdict().answer}{''.join(f' {part},' for part in pace(progress))[:-1]}")


class Screen:
    """Redraws a table: the question, the progress, and the arms that are most open."""

    def __init__(self, study: Study, live: Live, lock: AbstractContextManager[object]) -> None:
        self._study, self._live, self._lock = study, live, lock
        self._next = 0.0

    def __call__(self, progress: Progress) -> None:
        """Draw if it is time."""
        began = time.monotonic()
        if began >= self._next:
            picture = peek(self._study, lambda ledger: self.picture(ledger, progress))
            with self._lock:
                self._live.update(picture, refresh=True)
            done = time.monotonic()
            self._next = done + max(REDRAW, SHARE * (done - began))

    def picture(self, ledger: State, progress: Progress) -> Group:
        width, height = self._live.console.size
        arms = range(len(ledger.spec.arms))
        low = height < 8  # an arm then replaces the progress bar and the note
        question = Text(question_of(ledger.spec), style="bold")
        lines = len(question.wrap(self._live.console, width))
        room = max(1, height - (3 if low else 5) - lines)
        most_open = heapq.nsmallest(room, arms, key=lambda arm: (openness(ledger, arm), arm))
        rows = [row_of(ledger, arm) for arm in most_open]
        more = len(arms) - len(rows)
        note = Text(f"… and {plural(more, 'more arm')}, less open" if more else "", style="dim", no_wrap=True)
        state, table = _state(ledger, progress, width), arms_table(rows, ledger, width)
        return Group(question, state, table) if low else Group(question, state, _bar(ledger), table, note)


def pace(progress: Progress) -> list[str]:
    """The speed and the time left, if they are known, or that the run is paused."""
    if progress.paused:
        return ["paused"]
    parts = [speed(progress.rate)] if progress.rate else []
    return parts if progress.seconds_left is None else [*parts, f"{duration(progress.seconds_left)} left"]


def _state(ledger: State, progress: Progress, width: int) -> Text:
    """The numbers of the run, as many as fit, the most important first."""
    parts = [pulls_made(ledger.issued, ledger.budget), f"{ledger.pending:,} pending", *reversed(pace(progress))]
    while len(" · ".join(parts)) > width and len(parts) > 1:
        parts.pop()
    return Text(" · ".join(parts), style="dim", no_wrap=True, overflow="ellipsis")


def _bar(ledger: State) -> Group:
    bars = [] if ledger.budget is None else [ProgressBar(ledger.budget, ledger.issued - ledger.pending)]
    return Group(*bars, Text(""))  # the bar does not end its own line


def arms_table(rows: list[Row], ledger: State, width: int) -> Table:
    """Arms as a table that fits the width. The least important columns are left out, or a gauge fills the rest."""
    wording = wording_of(ledger.spec)
    arms = ledger.spec.arms  # an arm has the same short name in every picture, whatever other arms are in it
    names = arms if len(arms) <= MANY else tuple(row.arm for row in rows)
    columns = _fitted(_columns(rows, wording), rows, names, width)
    bar, means = wording.bar, [row.estimate for row in rows if row.estimate is not None and row.label != "baseline"]
    farthest = max((abs(mean - bar) for mean in means), default=0.0)
    left = width - _needed(columns) - 2
    if left >= SHORTEST_GAUGE:
        ends = bar - 1.25 * farthest, bar + 1.25 * farthest
        gauges = [gauge_of(row, bar, *ends, width=min(LONGEST_GAUGE, left)) for row in rows]
        columns = {**columns, f"against {wording.estimate(bar)}"[:left]: gauges}
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
    for head in columns:
        beginning = head in ("arm", "") or head.startswith("against")
        table.add_column(head, justify="left" if beginning else "right", no_wrap=True)
    for row in zip(*columns.values(), strict=True):
        table.add_row(*row)
    return table


def _columns(rows: list[Row], wording: Wording) -> dict[str, list[Text]]:
    """The cells by column, without the names. Some columns are left out if they are empty."""
    names = ("sign", "certified", "estimate", "seen", "pending", "failures")
    columns = cells(rows, wording, names, keep=("sign", "estimate", "seen", "pending"))
    return {
        head: [Text(text, style=STYLES.get(style, "")) for text, style in column] for head, column in columns.items()
    }


def _fitted(
    columns: dict[str, list[Text]], rows: list[Row], names: tuple[str, ...], width: int
) -> dict[str, list[Text]]:
    """The columns that fit. Numbers are left out first, then names become shorter; label and tick always stay."""
    longest = max((cell_len(row.arm) for row in rows), default=0)
    usual = min(longest, max(10, width // 3))

    def room() -> int:
        return width - _needed(columns) - 2

    for head in ("failed", "pending"):
        if room() < usual:
            columns.pop(head, None)
    if room() < usual:
        columns = {"✓" if head == "certified" else head: cells for head, cells in columns.items()}
    if room() < usual and "cases" in columns:
        columns["cases"] = [Text(f"{row.seen:,}") for row in rows]
    for head in ("pulls", "cases", "mean", "within", "share", "difference"):
        if room() < min(longest, SHORTEST_NAME):
            columns.pop(head, None)
    gauge = room() >= usual + 2 + SHORTEST_GAUGE
    short = distinct_names(names, usual if gauge else max(1, room()))
    return {"arm": [Text(short[row.arm]) for row in rows], **columns}


def _needed(columns: Mapping[str, Sequence[Text]]) -> int:
    """The width of a table."""
    texts = {head: "\n".join([head, *(cell.plain for cell in cells)]) for head, cells in columns.items()}
    widths = [max(map(cell_len, text.split("\n"))) for text in texts.values()]
    return sum(widths) + 2 * len(widths) - 2


def gauge_of(row: Row, bar: float, low: float, high: float, *, width: int = 25) -> Text:
    """A horizontal line with a stroke at the bar, a thick part for the interval, and a dot at the mean."""

    def column(value: float) -> int:
        return round((min(max(value, low), high) - low) / (high - low) * (width - 1)) if high > low else width // 2

    text = Text("─" * width, style="dim")
    colour = COLOURS[style_of(row)]
    if row.low is not None and row.high is not None and row.seen:
        first, last = column(row.low), column(row.high)
        text = text[:first] + Text("━" * (last - first + 1), style=f"dim {colour}") + text[last + 1 :]
    mean = None if row.label == "baseline" else row.estimate  # the baseline is not compared with the bar
    for value, sign, style in ((bar, "┼", "not dim"), (mean, "●", f"not dim {colour}")):
        if value is not None:
            text = text[: column(value)] + Text(sign, style=style) + text[column(value) + 1 :]
    return text
