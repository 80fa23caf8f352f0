"""Errors of the library in the words of the command line. Nothing heavy is imported here."""

import re
from ast import literal_eval
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ..core.parameters import PARAMETERS
from ..errors import UNSAID, CannotGoOn, InvalidInput, ThresherError
from ..text.naming import Naming, worded_naming
from ..text.quantities import Quantity

NAMES = {  # parameters whose options have other names
    "executor": "--engine",
    "resources": "--resource",
    "scores": "--policy module:function",
    "thresher.custom": "module:function",
}


def error_in_options(error: ThresherError) -> str:
    """The text of an error, with parameters named as options."""
    return worded_naming(error.text, spelled_in_error)


def spelled_in_error(name: str, value: str | None = None) -> str:
    """The option of a parameter, and its value unless that is None.

    >>> spelled_in_error("at_least"), spelled_in_error("clip", "True")
    ('--at-least', '--clip')
    >>> spelled_in_error("confidence", "None"), spelled_in_error("bounds", "(0, 1)")
    ('--confidence off', '--bounds 0:1')
    """
    option = option_in_error(name)
    if value is None or value == "True" or name in NAMES:
        return option
    if value == "None":
        return f"{option} {PARAMETERS[name].none if name in PARAMETERS else 'none'}"
    return f"{option} {written_in_error(literal_eval(value))}"


def option_in_error(name: str) -> str:
    """The option of a parameter.

    >>> option_in_error("at_least")
    '--at-least'
    """
    return NAMES.get(name) or f"--{name.replace('_', '-')}"


def written_in_error(value: object) -> object:
    """A number, a range or a list as people write it.

    >>> written_in_error(95.0), written_in_error(0.5), written_in_error("95.0")
    (95, 0.5, '95.0')
    >>> written_in_error((0.0, 0.5)), written_in_error([0.5, 1.0])
    ('0:0.5', '0.5,1')
    """
    if isinstance(value, tuple | list) and value and all(isinstance(number, float | int) for number in value):
        is_range = isinstance(value, tuple) and len(value) == 2
        return (":" if is_range else ",").join(f"{number:.12g}" for number in value)
    whole = type(value) is float and value.is_integer() and abs(value) < 1e15
    return Quantity(value, "", f"{value:.0f}") if whole else value  # type: ignore[arg-type]  # a float


@contextmanager
def naming_options_in_errors(options: Mapping[str, Any]) -> Iterator[None]:
    """Within this, an error about the value of an option begins with that option."""
    try:
        yield
    except InvalidInput as error:
        if error.what not in options:
            raise
        value = UNSAID if error.value is None or error.value is True else written_in_error(error.value)
        raise InvalidInput(option_in_error(error.what), value, error.rule, error.remedy) from None


@contextmanager
def wording_engine_options_in_errors(options: Mapping[str, Any]) -> Iterator[None]:
    """Within this, an error about the engine, its workers or resources begins with the option as the user wrote it."""
    try:
        yield
    except (InvalidInput, CannotGoOn) as error:
        values = {
            "engine": options["engine"],
            "executor": options["engine"],
            "workers": options["workers"],
            "resources": " ".join(f"{name}={amount:g}" for name, amount in (options["resources"] or {}).items()),
        }
        if error.what not in values:
            raise
        option, value = option_in_error(error.what), values[error.what]
        raise type(error)(option, value, error.rule, error.remedy) from error.__cause__


@contextmanager
def suggesting_exit_code_in_errors(options: Mapping[str, Any]) -> Iterator[None]:
    """Within this, a run that ends because COMMAND exited with 1 says how that can be an answer."""
    try:
        yield
    except CannotGoOn as error:
        from ..run.command.program_end import program_end_in_words

        could_be = not options["stay"] and options["reward"] == "last-float"
        if not could_be or not re.search(rf"{program_end_in_words(1)}(?!\d)", error.rule):
            raise
        remedy = Naming("{remedy}; if exit 1 is an answer: --reward exit-code", remedy=error.remedy)
        raise CannotGoOn(error.what, rule=error.rule, remedy=remedy) from error.__cause__
