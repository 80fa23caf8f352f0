"""Errors of the library in the words of the command line."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ..core import parameters, policies
from ..errors import UNSAID, CannotGoOn, InvalidInput
from ..run.command.exit_status import ending
from ..run.engines import NAME_CLUSTER
from ..text.quantities import Quantity

ARGUMENTS = re.compile(rf"\b({'|'.join(parameters.BARS)}|lower_is_better)\b")
PAIR = re.compile(r"\(([^(), ]+), ([^(), ]+)\)")
WORDS = {  # the library's text: the command line's
    parameters.NAME_BASELINE: "name one of the arms with --baseline",
    parameters.MARGIN_TOO: "--margin is given too",
    parameters.MARGIN_OR_RATIO: "give --margin or --ratio",
    parameters.WARM_UP: "give a larger --budget or fewer arms",
    parameters.GIVE_BUDGET: "give a --budget, or --policy anytime-evt",
    policies.YOUR_OWN: "or module:function, a score of your own",
    parameters.NO_GUARANTEE: "leave --guarantee out",
    NAME_CLUSTER: "leave it out, or name a cluster with --engine",
}


@contextmanager
def rewording(given: Mapping[str, Any]) -> Iterator[None]:
    """Within this, an error about one of these arguments names the option: --at-least for at_least."""
    try:
        yield
    except InvalidInput as error:
        if error.what not in given:
            raise
        value = UNSAID if error.value is None or error.value is True else as_written(error.value)
        remedy = PAIR.sub(r"\1:\2", error.remedy) if error.what == "bounds" else error.remedy
        raise InvalidInput(option_of(error.what), value, _reworded(error.rule), _reworded(remedy)) from None


@contextmanager
def of_engine(given: Mapping[str, Any]) -> Iterator[None]:
    """Within this, an error about the engine, its workers or resources names the option and what was given with it."""
    try:
        yield
    except (InvalidInput, CannotGoOn) as error:
        engine, workers = ("--engine", given["engine"]), ("--workers", given["workers"])
        resources = "--resource", _amounts(given["resources"])
        options = {"engine": engine, "executor": engine, "workers": workers, "resources": resources}
        if error.what not in options:
            raise
        raise type(error)(*options[error.what], error.rule, _reworded(error.remedy)) from error.__cause__


@contextmanager
def of_exits(given: Mapping[str, Any]) -> Iterator[None]:
    """Within this, a run that ends because COMMAND exited with 1 says how that can be an answer."""
    try:
        yield
    except CannotGoOn as error:
        if given["stay"] or given["reward"] != "last-float" or not re.search(rf"{ending(1)}(?!\d)", error.rule):
            raise
        remedy = f"{error.remedy}; if exit 1 is an answer: --reward exit-code"
        raise CannotGoOn(error.what, rule=error.rule, remedy=remedy) from error.__cause__


def _amounts(resources: Mapping[str, float] | None) -> str:
    return " ".join(f"{name}={amount:g}" for name, amount in (resources or {}).items())


def option_of(name: str) -> str:
    """The option of a parameter.

    >>> option_of("at_least")
    '--at-least'
    """
    return f"--{name.replace('_', '-')}"


def as_written(value: object) -> object:
    """A number, a range or a list as people write it.

    >>> as_written(95.0), as_written(0.5), as_written("95.0"), as_written((0.0, 0.5)), as_written([0.5, 1.0])
    (95, 0.5, '95.0', '0:0.5', '0.5,1')
    """
    if isinstance(value, tuple | list) and value and all(isinstance(each, float) for each in value):
        is_range = isinstance(value, tuple) and len(value) == 2
        return (":" if is_range else ",").join(f"{each:.12g}" for each in value)
    whole = type(value) is float and value.is_integer() and abs(value) < 1e15
    return Quantity(value, "", f"{value:.0f}") if whole else value  # type: ignore[arg-type]  # a float


def _reworded(text: str) -> str:
    for words, instead in WORDS.items():
        text = text.replace(words, instead)
    return ARGUMENTS.sub(lambda found: option_of(found[1]), text)
