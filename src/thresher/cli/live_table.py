"""The progress of a run: a live table on a terminal, a line now and then elsewhere."""

import heapq
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress

import click
from rich.cells import cell_len
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ..core import sentences
from ..core.forecast import forecast_left
from ..core.row_text import row_text_cells
from ..core.rows import Row, row_of, row_openness, standing_in_row
from ..core.sentences import SIGNS, SentenceWording, sentence_wording
from ..core.state import State
from ..core.verdict import verdict_full_run
from ..run.loop import Progress
from ..study import Study, peek_study
from ..text.logs import evaluators
from ..text.naming import distinct_names
from ..text.phrasing import plural
from ..text.quantities import duration_text, speed_quantity_text
from .output import COLOURS, STYLES, output_log_records_on_cli, say

REDRAW = 0.25  # seconds
SHARE = 20  # drawing takes at most 1/20 of the time
SHORTEST_GAUGE, LONGEST_GAUGE = 12, 41  # characters
HOW_FAR, FAR = "how far", 8  # the heading of the bars of how far arms are, and their width
MANY = 1000  # arms: of more, only names that are shown together need to differ
SHORTEST_NAME = 8  # characters, however narrow the terminal is
FIRST_LINE, NEXT_LINES = 2.0, 15.0  # seconds between lines when there is no terminal


@contextmanager
def watching_live_table(study: Study, *, quiet: bool) -> Iterator[Callable[[Progress], object]]:
    """Show the progress and the warnings of a run on standard error."""
    console = Console(stderr=True, highlight=False)
    if quiet or not sys.stderr.isatty() or console.is_dumb_terminal:  # rich alone would trust FORCE_COLOR
        with output_log_records_on_cli(say, "thresher"), output_log_records_on_cli(_echo, evaluators.name):
            yield (lambda progress: None) if quiet else Lines(study)
    else:
        lock = threading.RLock()  # without it, a line between rich's read and its write duplicates the table

        def show(text: str) -> None:
            with lock:
                console.print(Text(text))

        with (
            Live(console=console, auto_refresh=False, transient=True) as live,
            output_log_records_on_cli(lambda text: show(f"thresher: {text}"), "thresher"),
            output_log_records_on_cli(show, evaluators.name),
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
        self._began = time.monotonic()
        self._next = self._began + FIRST_LINE

    def __call__(self, progress: Progress) -> None:
        """Print a line if it is time."""
        if (now := time.monotonic()) >= self._next:
            self._next = now + NEXT_LINES
            answer, parts = peek_study(
                self._study, lambda ledger: (live_answer(ledger), live_table_pace(ledger, progress))
            )
            say(f"{answer} {', '.join(parts)}")


class Screen:
    """Redraws a table: the question, how far the study is, and the arms that are most open."""

    def __init__(self, study: Study, live: Live, lock: AbstractContextManager[object]) -> None:
        self._study, self._live, self._lock = study, live, lock
        self._next, self._began = 0.0, time.monotonic()

    def __call__(self, progress: Progress) -> None:
        """Draw if it is time."""
        began = time.monotonic()
        if began >= self._next:
            picture = peek_study(self._study, lambda ledger: self.picture(ledger, progress))
            with self._lock:
                self._live.update(picture, refresh=True)
            done = time.monotonic()
            self._next = done + max(REDRAW, SHARE * (done - began))

    def picture(self, ledger: State, progress: Progress) -> Group:
        """The question, the answer so far, the pulls, and a table of arms."""
        width, height = self._live.console.size
        arms = range(len(ledger.spec.arms))
        low = height < 8  # arms then replace the answer, the bar and the note
        question = Text(sentences.question_sentence_of(ledger.spec), style="bold")
        lines = len(question.wrap(self._live.console, width))
        room = max(1, height - (3 if low else 6) - lines)
        most_open = heapq.nsmallest(room, arms, key=lambda arm: (row_openness(ledger, arm), arm))
        rows = [row_of(ledger, arm) for arm in most_open]
        more = len(arms) - len(rows)
        note = _line(f"… and {plural(more, 'more arm')}, less open" if more else "")
        used = f"{duration_text(time.monotonic() - self._began, rounded=True)} used"
        state, table = _fitting([*live_table_pace(ledger, progress), used], width), live_arms_table(rows, ledger, width)
        if low:
            return Group(question, state, table)
        answer = Text(live_answer(ledger), no_wrap=True, overflow="ellipsis")
        return Group(question, answer, state, _bar(ledger), table, note)


def _line(text: str) -> Text:
    return Text(text, style="dim", no_wrap=True, overflow="ellipsis")


def live_answer(ledger: State) -> str:
    """How many arms reach the bar, miss it and are open, in a sentence."""
    wording, arms = sentence_wording(ledger.spec), range(len(ledger.spec.arms))
    standings = [standing_in_row(ledger, arm) for arm in arms]
    counts = Counter(standings)
    missed, others = counts["misses"], counts["open"] + counts["retired"]
    if wording.find is not None:
        names = [ledger.spec.arms[arm] for arm in arms if standings[arm] == "reaches"]
        return sentences.found_sentence(names, wording.find, missed, others, done=ledger.done)
    return sentences.answer_sentence(wording, counts["reaches"], missed, others, certifies=ledger.certifies)


def live_table_pace(ledger: State, progress: Progress) -> list[str]:
    """The pulls, what is left, the speed and the cost, as far as they are known, the most important first."""
    full = verdict_full_run(ledger)
    parts = [sentences.pulls_in_sentence(ledger.issued, ledger.budget, full)]
    if progress.paused:
        parts.append("paused")
    elif rest := _rest(ledger, progress):
        parts.append(rest)
    parts.append(f"{ledger.pending:,} pending")
    if progress.rate and not progress.paused:
        parts.append(speed_quantity_text(progress.rate))
    if ledger.cost is not None:
        parts.append(f"cost {sentences.cost_in_sentence(ledger.cost, ledger.issued, full)}")
    return parts


def _rest(ledger: State, progress: Progress) -> str:
    """About how many pulls are left, and how long they take; nothing if there is no telling."""
    pulls = forecast_left(ledger)
    waits = [] if progress.seconds_left is None else [progress.seconds_left]
    if pulls is not None and progress.rate:
        waits.append(pulls / progress.rate)
    parts = [sentences.remaining_in_sentence(pulls).removesuffix(" left")] if pulls else []
    parts += [duration_text(float(f"{min(waits):.2g}"), rounded=True)] if waits else []
    return f"{', '.join(parts)} left" if parts else ""


def _fitting(parts: list[str], width: int) -> Text:
    """As many parts as fit."""
    while len(" · ".join(parts)) > width and len(parts) > 1:
        parts.pop()
    return _line(" · ".join(parts))


def _bar(ledger: State) -> Group:
    """How far the study is, if there is any telling."""
    pulls, done = forecast_left(ledger), ledger.issued - ledger.pending
    total = ledger.budget if pulls is None else ledger.issued + pulls
    bars = [] if total is None else [ProgressBar(total, done)]
    return Group(*bars, Text(""))  # the bar does not end its own line


def live_arms_table(rows: list[Row], ledger: State, width: int) -> Table:
    """Arms as a table that fits the width. The least important columns are left out, or a gauge fills the rest."""
    wording = sentence_wording(ledger.spec)
    arms = ledger.spec.arms  # an arm has the same short name in every picture, whatever other arms are in it
    names = arms if len(arms) <= MANY else tuple(row.arm for row in rows)
    columns = _fitted(_columns(rows, wording, certifies=ledger.certifies), rows, names, width)
    means = [row.estimate for row in rows if row.estimate is not None and row.standing != "baseline"]
    bar = wording.bar
    farthest = max((abs(mean - bar) for mean in means), default=0.0)
    left_over = width - _needed(columns) - 2
    if left_over >= SHORTEST_GAUGE:
        ends = bar - 1.25 * farthest, bar + 1.25 * farthest
        gauges = [live_gauge(row, bar, *ends, width=min(LONGEST_GAUGE, left_over)) for row in rows]
        columns = {**columns, f"against {wording.estimate(bar)}"[:left_over]: gauges}
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
    for head in columns:
        beginning = head in ("arm", "", HOW_FAR) or head.startswith("against")
        table.add_column(head, justify="left" if beginning else "right", no_wrap=True)
    for row in zip(*columns.values(), strict=True):
        table.add_row(*row)
    return table


def _columns(rows: list[Row], wording: SentenceWording, *, certifies: bool) -> dict[str, list[Text]]:
    """The cells by column, without the names. Some columns are left out if they are empty."""
    names = ("estimate", "seen", "pending", "failures")
    columns = row_text_cells(rows, wording, names, keep=("estimate", "seen", "pending"))
    texts = {
        head: [Text(text, style=STYLES.get(style, "")) for text, style in column] for head, column in columns.items()
    }
    far = {HOW_FAR: [_how_far(row) for row in rows]} if certifies else {}
    return {"": [_standing(row) for row in rows], **texts, **far}


def _standing(row: Row, *, short: bool = False) -> Text:
    """Where an arm stands; what is not certified is a leaning, in lighter type."""
    word: str = row.standing
    if row.standing == "open" and row.reached is not None:
        leaning = SIGNS["reaches" if row.reached else "misses"]
        word = leaning if short else f"so far {leaning}"
    elif short:
        word = ""
    return Text(f"{SIGNS[row.standing]} {word}".rstrip(), style=COLOURS[row.standing])


def _how_far(row: Row) -> Text:
    """A bar of the pulls that an arm has had, of those that will settle it."""
    if row.left is None or row.standing in ("baseline", "retired"):
        return Text("")
    full = FAR * row.seen // (row.seen + row.left) if row.seen else 0
    return Text("█" * full + "░" * (FAR - full), style="dim" if row.left else COLOURS[row.standing])


def _fitted(
    columns: dict[str, list[Text]], rows: list[Row], names: tuple[str, ...], width: int
) -> dict[str, list[Text]]:
    """The columns that fit. Numbers are left out first, then names become shorter; the sign always stays."""
    longest = max((cell_len(row.arm) for row in rows), default=0)
    usual = min(longest, max(10, width // 3))

    def room() -> int:
        return width - _needed(columns) - 2

    for head in ("failed", "pending", HOW_FAR):
        if room() < usual:
            columns.pop(head, None)
    if room() < usual:
        columns[""] = [_standing(row, short=True) for row in rows]
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


def live_gauge(row: Row, bar: float, low: float, high: float, *, width: int = 25) -> Text:
    """A horizontal line with a stroke at the bar, a thick part for the interval, and a dot at the mean."""

    def column(value: float) -> int:
        return round((min(max(value, low), high) - low) / (high - low) * (width - 1)) if high > low else width // 2

    text = Text("─" * width, style="dim")
    colour = "" if row.standing == "open" else COLOURS[row.standing]  # an open arm's is lighter
    if row.low is not None and row.high is not None and row.seen:
        first, last = column(row.low), column(row.high)
        text = text[:first] + Text("━" * (last - first + 1), style=f"dim {colour}".strip()) + text[last + 1 :]
    mean = None if row.standing == "baseline" else row.estimate  # the baseline is not compared with the bar
    for value, sign, style in ((bar, "┼", "not dim"), (mean, "●", f"not dim {colour}".strip())):
        if value is not None:
            text = text[: column(value)] + Text(sign, style=style) + text[column(value) + 1 :]
    return text
