"""The verdict on standard output, for people and for programs."""

import io
import json
import sys

from rich.console import Console
from rich.text import Text

from ..core.verdict import Verdict
from ..errors import CannotGoOn
from . import drain, put, read_in_part, say, standard_output

COLOURS = {
    "above": "green",
    "below": "red",
    "close": "yellow",
    "undecided": "dim",
    "retired": "magenta",
    "baseline": "cyan",
}
STYLES = {**COLOURS, "strong": "bold", "quiet": "dim", "notice": "yellow", "failure": "magenta"}


NOTHING_RUN = "Nothing was run: this answer is from earlier rewards."


def print_verdict(verdict: Verdict, style: str, *, ran: bool | None = None) -> None:
    """Print it in one of the formats of `options.FORMATS`; ``ran`` says of a run whether it made any pull."""
    if style == "csv" and verdict.origin:
        say(verdict.origin)  # rows have no place for it
    makers = {
        "table": lambda: _coloured(verdict) if standard_output().isatty() else str(verdict),
        "json": lambda: _json(verdict, ran),
        "csv": verdict.to_csv,
        "markdown": verdict.to_markdown,
    }
    text = makers[style]()
    if ran is False and style in ("table", "markdown"):
        text = f"{NOTHING_RUN}\n\n{text}"
    try:
        with read_in_part():
            put(text, end="" if text.endswith("\n") else "\n", styled=style == "table")
    except OSError as error:
        drain(sys.stdout)
        rule = f"cannot be written ({error.strerror}), and the verdict is lost"
        raise CannotGoOn("standard output", rule=rule) from None


def _json(verdict: Verdict, ran: bool | None) -> str:
    data = verdict.to_dict() if ran is None else {**verdict.to_dict(), "ran": ran}
    return json.dumps(data, indent=2, ensure_ascii=False)


def _coloured(verdict: Verdict) -> str:
    """The verdict for a terminal, as text: rich itself would end the program if its output is not read."""
    width, text = Console().width, io.StringIO()
    console = Console(file=text, force_terminal=True, width=width, highlight=False)
    for line in verdict.lines(width):
        console.print(Text.assemble(*((part, STYLES.get(style, "")) for part, style in line)))
    return text.getvalue()
