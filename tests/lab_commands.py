"""Calls a command of the laboratory and gives what it prints."""

import click
from click.testing import CliRunner

from thresher.cli.lab_commands import compare, plan, simulate

GROUP = click.Group(commands={command.name or "": command for command in (simulate, plan, compare)})


def run(*words: str) -> str:
    result = CliRunner().invoke(GROUP, words, catch_exceptions=True)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout
