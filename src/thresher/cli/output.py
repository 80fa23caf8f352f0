"""The verdict on standard output, for people and for programs."""

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..verdict import LABELS, Row, Verdict
from .words import COLOURS, number

FORMATS = ("table", "json", "csv", "markdown")
MOST_ROWS = 300  # of a table for people; the other formats have all


def print_verdict(verdict: Verdict, style: str) -> None:
    """Print it in one of FORMATS."""
    if style == "table":
        _print_table(verdict)
    else:
        text = {"json": verdict.json, "csv": verdict.csv, "markdown": verdict.markdown}[style]()
        click.echo(text, nl=not text.endswith("\n"))


def _print_table(verdict: Verdict) -> None:
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=max(120, console.width))
    rows = sorted(verdict.rows, key=lambda row: (LABELS.index(row.label), -(row.mean or 0.0)))
    console.print(_table(rows[:MOST_ROWS]))
    if len(rows) > MOST_ROWS:
        console.print(f"… and {len(rows) - MOST_ROWS:,} more arms: --format csv has all", style="dim")
    console.print()
    console.print(Text(verdict.question, style="bold").append(f" {verdict.answer}", style="not bold"))
    console.print(verdict.guarantee, style="dim")


def _table(rows: list[Row]) -> Table:
    has = {name: any(getattr(row, name) for row in rows) for name in ("pending", "failures", "reason")}
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("arm", overflow="fold")
    table.add_column("verdict", no_wrap=True)
    for name, shown in (("mean", True), ("pulls", True), ("under way", has["pending"]), ("failed", has["failures"])):
        if shown:
            table.add_column(name, justify="right", no_wrap=True)
    if has["reason"]:
        table.add_column("reason", overflow="fold")
    for row in rows:
        cells: list[Text | str] = [
            Text(row.name),
            Text(row.label, style=COLOURS[row.label]),
            number(row.mean),
            f"{row.seen:,}",
        ]
        cells += [str(row.pending or "")] if has["pending"] else []
        cells += [str(row.failures or "")] if has["failures"] else []
        cells += [Text(row.reason or "")] if has["reason"] else []
        table.add_row(*cells)
    return table
