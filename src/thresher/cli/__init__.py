"""The command line. A command's module is imported when it is called, so that ``thresher --version`` is quick."""

import contextlib
import importlib
import io
import os
import sys
from collections.abc import Iterable
from typing import TextIO

import click

from .._version import __version__
from ..errors import CannotGoOn, StoreFailed, StudyDeleted, ThresherError, shown
from ..text.escapes import visible
from ..text.masking import masked

COMMANDS = {  # command: the module that has it
    "run": "run",
    "demo": "demo",
    "plan": "lab",
    "simulate": "lab",
    "paper": "lab",
    "studies": "studies",
    "create": "studies",
    "status": "studies",
    "verdict": "studies",
    "log": "log",
    "ask": "agents",
    "tell": "agents",
    "renew": "agents",
    "drop": "agents",
    "extend": "studies",
    "delete": "studies",
    "import": "transfer",
    "export": "transfer",
    "verify": "checkup",
    "doctor": "checkup",
    "serve": "serve",
    "report": "serve",
}

LONGEST = 2000  # characters of a complaint: what was given may be a megabyte
FINISHED, NOT_MET, WRONG_USE, COULD_NOT_GO_ON = 0, 1, 2, 3


class Commands(click.Group):
    """Commands that are imported when they are needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command's module, and take the command of that name from it."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f".{COMMANDS[cmd_name]}", __package__)
        command: click.Command = getattr(module, "import_" if cmd_name == "import" else cmd_name)
        return command


HELP = """Find which of K noisy options clear a bar, with as few evaluations as possible.

\b
Try it:
  thresher demo
  thresher run --threshold 0.9 --arms prompts.txt --budget 2000 --workers 8 -- ./evaluate.sh {arm}
"""


@click.group(
    cls=Commands, help=HELP, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.version_option(__version__, message="thresher %(version)s")
def cli() -> None:
    """Hold the commands together."""


def main() -> None:
    """Run the command line; bad input ends with one line on standard error and a status that tells."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that knows no ▲ gets its code rather than a traceback
            stream.reconfigure(errors="backslashreplace")
    try:
        status = cli.main(prog_name="thresher", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        status = WRONG_USE
    except click.ClickException as error:
        status = _complain(error.format_message(), WRONG_USE)
    except (CannotGoOn, StoreFailed, StudyDeleted) as error:
        if isinstance(error, CannotGoOn) and error.__cause__ is not None:
            importlib.import_module(".causes", __package__).show_cause(error)
        status = _complain(str(error), COULD_NOT_GO_ON)
    except ThresherError as error:
        status = _complain(str(error), WRONG_USE)
    except (click.Abort, KeyboardInterrupt):
        status = 130
    except Exception as error:
        if os.environ.get("THRESHER_TRACEBACK"):
            say(importlib.import_module("..run.tracebacks", __package__).traceback_text(error))
        printed = _is_written()  # else that was it, and is said
        status = _complain(_unexpected(error), COULD_NOT_GO_ON) if printed else COULD_NOT_GO_ON
    status = status if isinstance(status, int) else FINISHED
    sys.exit(status if _is_written() else status or COULD_NOT_GO_ON)


def say(text: str) -> None:
    """A line on standard error, without secrets. Should nobody read it, the work goes on nevertheless."""
    with contextlib.suppress(OSError):
        click.echo(f"thresher: {visible(masked(text))}", err=True, color=True)


def put(text: str, *, end: str = "\n", styled: bool = False) -> None:
    """Text on standard output: as it is into files and pipes, on a terminal with control characters shown as codes.

    ``styled`` text has codes for the terminal of its own; what others wrote is made harmless before it gets there.
    """
    plain = styled or sys.stdout is None or not sys.stdout.isatty()
    click.echo(f"{text if plain else visible(text)}{end}", nl=False, color=True)  # else click would remove codes


def drain(stream: TextIO) -> None:
    """Let what is written to a stream that nobody reads any more vanish, rather than fail again when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def print_lines(lines: Iterable[str]) -> None:
    """Lines on standard output, all of which must get there: of what cannot be written nobody may think it was."""
    if sys.stdout is None:
        raise CannotGoOn("standard output", rule="is closed")
    try:
        for line in lines:
            put(line)
        sys.stdout.flush()
    except OSError as error:
        drain(sys.stdout)
        raise CannotGoOn("standard output", rule=f"cannot be written ({error.strerror})") from None


def _unexpected(error: Exception) -> str:
    """An error that nobody thought of, in one line."""
    if isinstance(error, OSError) and error.strerror:
        where = shown(error.filename) if error.filename else "standard output"  # stores speak of their own files
        return f"{where}: cannot be {'used' if error.filename else 'written'} ({error.strerror})"
    remedy = "please report it, with what THRESHER_TRACEBACK=1 shows"
    return f"unexpected {type(error).__name__}: {masked(str(error))[:300]}; {remedy}"


def _is_written() -> bool:
    """Whether standard output took all that was printed; Python itself would say it too late, in many lines."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        drain(sys.stdout)
        say(f"error: standard output: cannot be written ({error.strerror})")
        return False
    return True


def _complain(message: str, status: int) -> int:
    line = " ".join(masked(message).split())
    say(f"error: {line if len(line) <= LONGEST else f'{line[:LONGEST]}…'}")
    return status
