"""Commands in this process: for what does not depend on a process of its own."""

from pathlib import Path

import click
from click.testing import CliRunner, Result

from thresher.cli import cli
from thresher.cli.error_wording import error_in_options
from thresher.errors import ThresherError


def inside(*args: str, storage: str | Path = "memory") -> Result:
    """What a command prints, and its status as the return value. An error is raised."""
    url = storage if isinstance(storage, str) else f"sqlite:///{storage}/thresher.db"
    done = CliRunner(env={"THRESHER_STORAGE": url}).invoke(cli, list(args), standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return done


def refused(*args: str, storage: str | Path = "memory") -> str:
    """The line with which a command is refused."""
    try:
        done = inside(*args, storage=storage)
    except ThresherError as error:
        line = error_in_options(error)
    except click.ClickException as error:
        line = error.format_message()
    else:
        raise AssertionError(f"was not refused: {done.output}")
    assert "\n" not in line
    assert "at_least" not in line
    assert "at_most" not in line
    assert "lower_is_better" not in line
    return line
