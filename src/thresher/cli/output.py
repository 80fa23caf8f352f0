"""The verdict on standard output, for people and for programs."""

import io
import sys

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..core.verdict import LABELS, Row, Verdict
from ..errors import CannotGoOn
from . import drain, put, say
from .words import COLOURS, SIGNS, clean, head_text, number, span

FORMATS = ("table", "json", "csv", "markdown")
MOST_ROWS, MOST_REASONS = 300, 20  # of a table for people; the other formats have all


def print_verdict(verdict: Verdict, style: str) -> None:
    """Print it in one of FORMATS."""
    if style == "csv" and verdict.origin:
        say(verdict.origin)  # rows have no place for it
    makers = {"table": lambda: _drawn(verdict), "json": verdict.json, "csv": verdict.csv, "markdown": verdict.markdown}
    text = makers[style]()
    try:
        put(text, end="" if text.endswith("\n") else "\n", styled=style == "table")
    except BrokenPipeError:  # whoever read it, as head does, had enough; the exit status still tells
        drain(sys.stdout)
    except OSError as error:
        drain(sys.stdout)
        rule = f"cannot be written ({error.strerror}), and the verdict is lost"
        raise CannotGoOn("standard output", rule=rule) from None


def _drawn(verdict: Verdict) -> str:
    """The table as text: rich would end the program itself if nobody reads what it writes."""
    screen, text = Console(), io.StringIO()
    terminal = sys.stdout.isatty()
    width = screen.width if terminal else max(120, screen.width)
    _print_table(verdict, Console(file=text, force_terminal=terminal, width=width, highlight=False))
    return text.getvalue()


def _print_table(verdict: Verdict, console: Console) -> None:
    rows = sorted(verdict.rows, key=lambda row: (LABELS.index(row.label), -(row.mean or 0.0)))
    console.print(_table(rows[:MOST_ROWS]))
    if len(rows) > MOST_ROWS:
        console.print(Text(f"… and {len(rows) - MOST_ROWS:,} more arms: --format csv has all", style="dim"))
    console.print()
    for line in _troubles(rows):
        console.print(line)
    console.print(Text(verdict.question, style="bold").append(f" {verdict.answer}", style="not bold"))
    if verdict.origin:
        console.print(Text(verdict.origin, style="yellow"))
    console.print(Text(verdict.guarantee, style="dim"))
    console.print(Text(head_text(verdict.events, verdict.head), style="dim"))
    for hint in verdict.hints:
        console.print(Text(f"{hint[0].upper()}{hint[1:]}.", style="yellow"))


def _table(rows: list[Row]) -> Table:
    columns = {
        "arm": [Text(row.name) for row in rows],
        "": [Text(f"{SIGNS[row.label]} {row.label}", style=COLOURS[row.label]) for row in rows],
        "certain": [certainty(row) for row in rows],
        "mean": [Text(number(row.mean)) for row in rows],
        "between": [Text(span(row.low, row.high), style="dim") for row in rows],
        "pulls": [Text(f"{row.seen:,}") for row in rows],
        "under way": [Text(f"{row.pending or ''}") for row in rows],
        "failed": [Text(f"{row.failures or ''}") for row in rows],
        "charged": [Text(f"{row.charged or ''}") for row in rows],
    }
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
    shown = [head for head, cells in columns.items() if head in ("arm", "mean", "pulls") or any(map(str, cells))]
    for head in shown:
        left = head in ("arm", "")
        table.add_column(head, justify="left" if left else "right", no_wrap=head != "arm", overflow="fold")
    for cells in zip(*(columns[head] for head in shown), strict=True):
        table.add_row(*cells)
    return table


def certainty(row: Row) -> Text:
    """A tick where the label is certain, else the share of the way there."""
    if row.certified:
        return Text("✓", style="green")
    return Text("" if row.progress is None or row.label == "retired" else f"{row.progress:.0%}", style="dim")


def _troubles(rows: list[Row]) -> list[Text]:
    """Why arms were retired, each; and one word on failures that were survived."""
    retired = [row for row in rows if row.label == "retired"]
    lines = [f"{SIGNS['retired']} {row.name}: {clean(row.reason or '')}" for row in retired[:MOST_REASONS]]
    if len(retired) > MOST_REASONS:
        lines.append(f"… and {len(retired) - MOST_REASONS:,} more retired arms: --format csv has all")
    failing = [row for row in rows if row.failures and row.label != "retired"]
    if failing:
        worst = max(failing, key=lambda row: row.failures)
        count = sum(row.failures for row in failing)
        lines.append(f"{count:,} pulls of {len(failing):,} arms failed; {worst.name}: {clean(worst.reason or '')}")
    return [Text(line, style="magenta") for line in lines] + ([Text("")] if lines else [])
