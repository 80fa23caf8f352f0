"""The command line. A command's module is imported when it is called, so that ``thresher --version`` is quick."""

import contextlib
import importlib
import io
import os
import sys
from typing import TextIO

import click

from .._version import __version__
from ..errors import CannotGoOn, StoreFailed, ThresherError

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
    except (CannotGoOn, StoreFailed) as error:
        status = _complain(str(error), COULD_NOT_GO_ON)
    except ThresherError as error:
        status = _complain(str(error), WRONG_USE)
    except (click.Abort, KeyboardInterrupt):
        status = 130
    sys.exit(status if isinstance(status, int) else FINISHED)


def say(text: str) -> None:
    """A line on standard error. Should nobody read it, the work goes on nevertheless."""
    with contextlib.suppress(OSError):
        click.echo(f"thresher: {text}", err=True)


def drain(stream: TextIO) -> None:
    """Let what is written to a stream that nobody reads any more vanish, rather than fail again when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _complain(message: str, status: int) -> int:
    say(f"error: {' '.join(message.split())}")
    return status
