"""Errors about rewards outside the bounds in the words of the command line. Nothing heavy is imported here."""

from collections.abc import Iterator
from contextlib import contextmanager

from ..core.spec import REAL_BOUNDS
from ..errors import START_OVER, CannotGoOn, OutsideBounds

TAKE, COUNT = "that rewards can really take", "to count such rewards as the bound"


def of_study(text: str) -> str:
    """The library's text in the words of commands for a study that another command created."""
    return text.replace(REAL_BOUNDS, f"create the study with the --bounds {TAKE}, or with --clip {COUNT}")


def of_run(text: str) -> str:
    """The same in the words of ``thresher run``, which creates its study itself."""
    words = text.replace(REAL_BOUNDS, f"give the --bounds {TAKE}, or --clip {COUNT}")
    return words.replace(START_OVER, "start over (--fresh): ") if words != text else text


@contextmanager
def naming_options() -> Iterator[None]:
    """Within this, an error about a reward outside the bounds names the options."""
    try:
        yield
    except OutsideBounds as error:
        raise OutsideBounds(error.what, error.value, error.rule, of_study(error.remedy)) from None
    except CannotGoOn as error:
        if REAL_BOUNDS not in error.rule:
            raise
        raise CannotGoOn(error.what, rule=of_run(error.rule), remedy=error.remedy) from error.__cause__
