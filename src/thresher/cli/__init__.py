"""The command line. A command's module is imported only when it is called, so ``thresher --version`` is quick."""

import contextlib
import importlib
import inspect
import io
import os
import signal
import sys
from collections.abc import Iterator
from typing import Any

import click

from .._version import __version__
from ..errors import CannotGoOn, InvalidInput, StoreFailed, StudyDeleted, ThresherError, shown
from ..text.masking import masked
from .output import drain_cli_output, is_output_written, output_cause_of_error, say, standard_output

GROUPS = {  # commands by heading, each with its module and a line for the list, which imports none of them
    "Ask a question": {
        "run": ("run_command", "Find out which arms reach a bar, with any program."),
        "demo": ("demo", "See a real study: which compression settings save enough?"),
        "plan": ("lab_commands", "Estimate how many pulls, and how much time, a problem will need."),
    },
    "Look": {
        "studies": ("study_commands", "List the studies in a store."),
        "status": ("read_commands", "Show how far a study is, and who works on it."),
        "verdict": ("read_commands", "Print the answer of a study so far."),
        "diff": ("diff_command", "Show what changed between two revisions of a study."),
        "cases": ("read_commands", "List the cases of a study, the hardest first."),
        "log": ("read_commands", "Print the events of a study."),
        "serve": ("serve_commands", "Serve a live page of all studies, and an HTTP API for agents."),
        "report": ("serve_commands", "Write a report of a study to one HTML file."),
    },
    "Share the work": {
        "create": ("study_commands", "Create a study without running it."),
        "ask": ("agent_commands", "Hand out the next pull of a study."),
        "tell": ("agent_commands", "Tell the reward of a pull."),
        "renew": ("agent_commands", "Renew the leases of pulls."),
        "drop": ("agent_commands", "Drop pulls."),
    },
    "Laboratory": {
        "simulate": ("lab_commands", "Measure how often a policy's answers are right."),
        "compare": ("lab_commands", "Compare policies on the same simulated draws."),
    },
    "Look after a study or a store": {
        "extend": ("study_commands", "Give a study a larger budget."),
        "retire": ("study_commands", "Stop pulling an arm."),
        "restore": ("study_commands", "Let a retired arm take pulls again."),
        "import": ("import_export", "Read a study, or results that you already have."),
        "export": ("import_export", "Write a study as CSV or JSON."),
        "verify": ("read_commands", "Check every decision of a study."),
        "doctor": ("read_commands", "Check the installation and a store."),
        "delete": ("study_commands", "Delete a study and its log."),
    },
}
COMMANDS = {name: entry for group in GROUPS.values() for name, entry in group.items()}

LONGEST = 2000  # characters of an error message: a value that it quotes may be a megabyte
FINISHED, NOT_MET, WRONG_USE, COULD_NOT_GO_ON = 0, 1, 2, 3
UNREAD = 128 + signal.SIGPIPE  # the reader of standard output has ended


class NobodyReads(Exception):
    """The reader of standard output, such as head, has ended."""


@contextlib.contextmanager
def _broken_pipes_noticed() -> Iterator[None]:
    """Within this, a broken pipe raises `NobodyReads`: click and rich would exit with 1, which is a negative answer."""
    try:
        yield
    except click.exceptions.Exit:  # help or the version was printed, unless standard output is closed
        standard_output()
        raise
    except BrokenPipeError:
        drain_cli_output(sys.stdout)
        raise NobodyReads from None
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):
            raise NobodyReads from None
        raise


def _examples_as_written(text: str | None) -> str:
    r"""A help text in which paragraphs with indented lines keep their lines: click joins them unless \b comes first."""
    paragraphs = inspect.cleandoc(text or "").split("\n\n")
    return "\n\n".join(f"\b\n{part}" if "\n  " in part and part[0] != "\b" else part for part in paragraphs)


class Commands(click.Group):
    """Commands, each imported when it is needed."""

    def make_context(self, *args: Any, **more: Any) -> click.Context:
        """Parse the command line, which may print help."""
        with _broken_pipes_noticed():
            return super().make_context(*args, **more)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        with _broken_pipes_noticed():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order of the table."""
        return list(COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands in their groups, without importing them."""
        width = max(map(len, COMMANDS))
        for heading, group in GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), about) for name, (_, about) in group.items()])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, whose module is imported now."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f".{COMMANDS[cmd_name][0]}", __package__)
        command: click.Command = getattr(module, "import_" if cmd_name == "import" else cmd_name)
        command.help, command.epilog = _examples_as_written(command.help), _examples_as_written(command.epilog)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command. The error about an unknown one suggests those with a similar name."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from ..core.checks import name_check_remedy  # here: only mistakes need it

            hint = name_check_remedy(args[0], COMMANDS) or "thresher --help lists the commands"
            raise InvalidInput("command", args[0], "there is no such command", hint)
        return super().resolve_command(ctx, args)


HELP = """Find which of K noisy options clear a bar, with as few evaluations as possible.

Try it:
  thresher demo
  thresher run --at-least 0.9 --arms prompts.txt -- ./evaluate.sh {arm}
  thresher run --at-least 90% --tolerance 2% --arms prompts.txt \\
    --cases questions.jsonl -- python ask.py {arm} {case}
  thresher run --at-most 50ms --reward seconds --arms cmds.txt -- sh -c {arm}

Each command has a help page with examples: thresher COMMAND --help
"""
SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 110, "show_default": True}


@click.group(cls=Commands, help=_examples_as_written(HELP), context_settings=SETTINGS)
@click.version_option(__version__, message="thresher %(version)s")
def cli() -> None:
    """The group of all commands."""


def main() -> None:
    """Run the command line. An error is one line on standard error and an exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal without ▲ gets its code instead of a traceback
            stream.reconfigure(errors="backslashreplace")
    try:
        status = cli.main(prog_name="thresher", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        status = WRONG_USE
    except click.MissingParameter as error:
        status = _complain(_missing(error), WRONG_USE)
    except click.ClickException as error:
        status = _complain(_wrong_use(error), WRONG_USE)
    except (CannotGoOn, StoreFailed, StudyDeleted) as error:
        if isinstance(error, CannotGoOn) and error.__cause__ is not None:
            output_cause_of_error(error)
        status = _complain(error, COULD_NOT_GO_ON)
    except ThresherError as error:
        status = _complain(error, WRONG_USE)
    except (click.Abort, KeyboardInterrupt):
        status = 130
    except NobodyReads:
        status = UNREAD
    except Exception as error:
        if os.environ.get("THRESHER_TRACEBACK"):
            from ..run.evaluator_errors import traceback_text

            say(traceback_text(error))
        printed = is_output_written()  # if not, that was the error, and it has been reported
        status = _complain(_unexpected(error), COULD_NOT_GO_ON) if printed else COULD_NOT_GO_ON
    status = status if isinstance(status, int) else FINISHED  # a command that returns nothing
    sys.exit(status if is_output_written() else status or COULD_NOT_GO_ON)


def _unexpected(error: Exception) -> str:
    """An unexpected error in one line."""
    if isinstance(error, OSError) and error.strerror:
        where = shown(error.filename) if error.filename else "standard output"  # stores name their own files
        return f"{where}: cannot be {'used' if error.filename else 'written'} ({error.strerror})"
    remedy = "please report it with the traceback that THRESHER_TRACEBACK=1 shows"
    return f"unexpected {type(error).__name__}: {masked(str(error))[:300]}; {remedy}"


def _missing(error: click.MissingParameter) -> str:
    """An argument is missing: if it names a study, the studies that exist are listed."""
    context, studies = error.ctx, ""
    if context and context.info_name != "create" and error.param and error.param.name == "name":
        from .options import studies_to_name_in_option

        studies = studies_to_name_in_option(context.params.get("storage"))
    path = context.command_path if context else "thresher"
    return "; ".join(filter(None, [error.format_message().rstrip("."), studies, f"{path} --help has an example"]))


def _wrong_use(error: click.ClickException) -> str:
    """Another error of click. For an unknown option or argument, it suggests the nearest, or where they are listed."""
    text, context = error.format_message(), getattr(error, "ctx", None)
    if isinstance(error, click.NoSuchOption) and error.possibilities:
        from ..core.checks import name_check_remedy  # here: only mistakes need it

        return f"No such option {shown(error.option_name)}; {name_check_remedy(error.option_name, error.possibilities)}"
    if isinstance(error, click.NoSuchOption) or text.startswith("Got unexpected extra argument"):
        text = f"{text.rstrip('.')}; {context.command_path if context else 'thresher'} --help lists them"
    return text


def _complain(error: str | ThresherError, status: int) -> int:
    """Say on standard error what is wrong, with parameters named as options, and return the exit status."""
    if isinstance(error, ThresherError):
        from .error_wording import error_in_options

        error = error_in_options(error)
    line = " ".join(masked(error).split())
    say(f"error: {line if len(line) <= LONGEST else f'{line[:LONGEST]}…'}")
    return status
