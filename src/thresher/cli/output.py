"""What commands write: data and verdicts on standard output, messages and log records on standard error."""

import contextlib
import io
import json
import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TextIO

import click

from ..errors import CannotGoOn, EvaluationFailed, shown
from ..text.escapes import escaped_visible
from ..text.masking import masked, masked_printable
from ..text.naming import worded_naming

if TYPE_CHECKING:
    from ..core.verdict import Verdict

COLOURS = {  # of where an arm stands
    "reaches": "green",
    "misses": "red",
    "open": "dim",
    "retired": "magenta",
    "baseline": "cyan",
}
STYLES = {**COLOURS, "strong": "bold", "quiet": "dim", "notice": "yellow", "failure": "magenta"}
NOTHING_RUN = "Nothing was run."


def say(text: str) -> None:
    """Write a line to standard error, without secrets. If it cannot be written, work continues."""
    with contextlib.suppress(OSError):
        click.echo(f"thresher: {escaped_visible(masked(text))}", err=True, color=True)


def say_done(study: str, change: str) -> None:
    """Say what a command changed in a study."""
    say(f"study {shown(study)}: {change}")


def standard_output() -> TextIO:
    """Standard output, or an error if it is closed."""
    if sys.stdout is None:
        raise CannotGoOn("standard output", rule="is closed")
    return sys.stdout


def put_output(text: str, *, end: str = "\n", styled: bool = False) -> None:
    """Write text to standard output: unchanged to files and pipes, with control characters escaped on a terminal.

    ``styled`` text contains terminal codes on purpose; text from others was escaped when it was built.
    """
    plain = styled or not standard_output().isatty()
    click.echo(
        f"{text if plain else escaped_visible(text)}{end}", nl=False, color=True
    )  # else click would remove codes


def drain_cli_output(stream: TextIO) -> None:
    """Discard what a closed stream still holds, so that it does not fail again when Python exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def print_lines(lines: Iterable[str]) -> None:
    """Write lines to standard output; fail loudly if they cannot be written."""
    out = standard_output()
    try:
        for line in lines:
            put_output(line)
    except OSError as error:
        drain_cli_output(out)
        raise CannotGoOn("standard output", rule=f"cannot be written ({error.strerror})") from None


@contextlib.contextmanager
def cli_output_read_in_part() -> Iterator[None]:
    """Within this, the reader of standard output, such as head, may stop early without an error."""
    try:
        yield
    except BrokenPipeError:
        drain_cli_output(sys.stdout)


def is_output_written() -> bool:
    """Whether everything printed was written. Python itself would report it too late, with a traceback."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        drain_cli_output(sys.stdout)
        say(f"error: standard output: cannot be written ({error.strerror})")
        return False
    return True


def print_verdict(verdict: "Verdict", style: str, *, ran: bool | None = None) -> None:
    """Print it in one of the formats of `options.FORMATS`; ``ran`` says whether this run made any pull."""
    if style == "csv" and verdict.origin:
        say(verdict.origin)  # rows have no place for it
    if style == "json":
        data = verdict.to_dict() if ran is None else {**verdict.to_dict(), "ran": ran}
        text = json.dumps(data, indent=2, ensure_ascii=False)
    elif style == "csv":
        text = verdict.to_csv()
    else:
        is_coloured = style == "table" and standard_output().isatty()
        text = verdict.to_markdown() if style == "markdown" else _coloured(verdict) if is_coloured else str(verdict)
        if ran is False:
            begins_with_origin = style == "table" and verdict.origin is not None
            text = f"{NOTHING_RUN} {text}" if begins_with_origin else f"{NOTHING_RUN}\n\n{text}"
    try:
        with cli_output_read_in_part():
            put_output(text, end="" if text.endswith("\n") else "\n", styled=style == "table")
    except OSError as error:
        drain_cli_output(sys.stdout)
        rule = f"cannot be written ({error.strerror}), and the verdict is lost"
        raise CannotGoOn("standard output", rule=rule) from None


def _coloured(verdict: "Verdict") -> str:
    """The verdict for a terminal, as text: rich itself would end the program if nobody reads its output."""
    from rich.console import Console
    from rich.text import Text

    width, text = Console().width, io.StringIO()
    console = Console(file=text, force_terminal=True, width=width, highlight=False)
    for line in verdict.lines(width):
        console.print(Text.assemble(*((part, STYLES.get(style, "")) for part, style in line)))
    return text.getvalue()


@contextlib.contextmanager
def output_log_records_on_cli(speak: Callable[[str], object], *names: str) -> Iterator[None]:
    """Pass the records of these loggers, with tracebacks, to ``speak``, without secrets and control characters.

    A forked child writes them directly: a thread of its parent may have held a lock on the terminal.
    """
    from .error_wording import spelled_in_error

    handler, format_, owner = logging.Handler(), logging.Formatter().format, os.getpid()

    def emit(record: logging.LogRecord) -> None:
        record.msg = worded_naming(vars(record).get("naming", record.msg), spelled_in_error)
        text = masked_printable(format_(record))
        if os.getpid() == owner:
            speak(text)
        else:
            with contextlib.suppress(OSError):
                os.write(2, f"{text}\n".encode())

    loggers = [logging.getLogger(name) for name in names]
    handler.emit = emit  # type: ignore[method-assign]
    for logger in loggers:
        logger.addHandler(handler)
        logger.propagate = False
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(handler)
            logger.propagate = True


def output_cause_of_error(error: BaseException) -> None:
    """Print on standard error what caused an error, unless the error itself says it."""
    from ..run.evaluator_errors import traceback_text

    cause = error.__cause__
    if cause is None:
        return
    if text := traceback_text(cause):
        say(f"what the evaluator raised:\n{masked_printable(text)}")
    elif isinstance(cause, EvaluationFailed):
        lines = masked_printable(cause.output).splitlines()
        if len(lines) > 1 or not all(line.strip() in str(error) for line in lines):
            say("\n  ".join(["the last lines of the command's output:", *lines]))
