"""Options that several commands share: numbers and durations, policies, formats, and where studies are stored."""

import functools
import importlib
import os
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeVar, get_args, get_origin

import click

from ..core import policies
from ..core.checks import MAX_SECONDS, name_check_remedy
from ..core.parameters import PARAMETERS, TYPES
from ..core.policies import Policy
from ..create import open_study
from ..errors import DamagedStudy, InvalidInput, ThresherError, UnknownStudy, error_line, shown
from ..log.reader import unknown_study_for_reader
from ..log.store import MemoryStore, Store, open_store
from ..study import Study
from ..text.naming import Naming, worded_naming
from ..text.phrasing import listed_phrase
from ..text.quantities import DURATIONS, PERCENT, UNITS, Quantity, read_quantity, read_quantity_of_seconds
from .error_wording import option_in_error, spelled_in_error, written_in_error

DEFAULT = "sqlite:///thresher.db"
VARIABLE = "THRESHER_STORAGE"
POLICY_EXAMPLE = "write --policy module:function, with the file module.py in this folder"
WORD_FOR_PERCENT = re.compile(r"\s*(points?|pp|pct|percent)$")
FORMATS = ("table", "json", "csv", "markdown")  # of a verdict
Command = TypeVar("Command", bound=Callable[..., Any])
Status = TypeVar("Status", int, None)  # what a command returns


class Number(click.ParamType[float]):
    """A number. A percentage or a decimal comma gets a suggestion.

    >>> Number().convert("0.9", None, None)
    0.9
    """

    name = "number"
    units = False  # whether it may have one

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number that the text says."""
        text = str(value).strip()
        number = read_quantity(text)
        if number is None or (isinstance(number, Quantity) and not self.units):
            self._refuse(text, param, ctx)
        return number

    def _refuse(self, text: str, param: click.Parameter | None, ctx: click.Context | None) -> NoReturn:
        near = read_quantity(WORD_FOR_PERCENT.sub(PERCENT, text.replace(",", ".")))
        meant = near if isinstance(near, Quantity) and self.units else None if near is None else f"{near:g}"
        hint = "" if meant is None else f"; did you mean {meant}?"
        if near is None:
            hint = f"; {UNITS}" if self.units and text[:1].isdigit() else "; write one such as 0.9"
        self.fail(f"{shown(text, 60)} is not a number{hint}", param, ctx)


class Amount(Number):
    """A number that may have a unit: a `Quantity` then, and `question_options` says whether the unit fits.

    >>> Amount().convert("200ms", None, None) == 0.2
    True
    """

    units = True


class Or(click.ParamType[Any]):
    """A value of another type, or a word.

    >>> Or("off", Amount()).convert("off", None, None), Or("off", Amount()).convert("0.9", None, None)
    ('off', 0.9)
    """

    def __init__(self, word: str, other: click.ParamType[Any]) -> None:
        self._word, self._other, self.name = word, other, other.name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The word, or the value that the text says."""
        return self._word if value == self._word else self._other.convert(value, param, ctx)


class Bounds(Amount):
    """Two numbers with a colon between them, each of which may have a unit.

    >>> Bounds().convert("-1:0.5", None, None)
    (-1.0, 0.5)
    """

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The two ends."""
        ends = str(value).split(":")
        if len(ends) != 2:
            self.fail(f"{shown(value, 60)} must be two numbers with a colon between them, such as 0:100", param, ctx)
        return tuple(super(Bounds, self).convert(end, param, ctx) for end in ends)


class Whole(click.ParamType[int]):
    """A whole number. A thousands separator or a unit gets a suggestion.

    >>> Whole().convert("2000", None, None)
    2000
    """

    name = "whole number"

    def __init__(self, least: int | None = None, most: int | None = None) -> None:
        self._least, self._most = least, most  # None: the library checks it

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number that the text says."""
        text = str(value).strip()
        if not re.fullmatch(r"[+-]?[0-9]{1,4000}", text):
            self._refuse(text, param, ctx)
        number = int(text)
        if self._least is not None and number < self._least:
            self.fail(f"{shown(number, 60)} is too small; give at least {self._least}", param, ctx)
        if self._most is not None and number > self._most:
            self.fail(f"{shown(number, 60)} is too large; give at most {self._most}", param, ctx)
        return number

    def _refuse(self, text: str, param: click.Parameter | None, ctx: click.Context | None) -> NoReturn:
        plain, factor = text.replace(",", "").replace("_", "").lower(), 1
        if plain.endswith(("k", "m")):
            plain, factor = plain[:-1], {"k": 1000, "m": 1_000_000}[plain[-1]]
        near = float(read_quantity(plain) or 0.5) * factor
        if param is not None and param.name in ("arms", "cases") and Path(text).suffix:
            rest = f"give the number of {param.name} here, not a file"
            self.fail(f"{shown(text, 60)} is not a whole number; {rest}", param, ctx)
        meant = near.is_integer() and abs(near) < 1e15
        hint = f"; did you mean {int(near)}?" if meant else "; write one such as 100"
        self.fail(f"{shown(text, 60)} is not a whole number{hint}", param, ctx)


class Duration(click.ParamType[float]):
    """Seconds, or a number with a unit of time.

    >>> Duration().convert("1.5h", None, None)
    5400.0
    """

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The length in seconds."""
        if isinstance(value, int | float):
            return float(value)
        length = read_quantity_of_seconds(str(value), most=MAX_SECONDS)
        if length is None:
            self.fail(f"{shown(value, 60)} {DURATIONS}", param, ctx)
        return length


class PolicyName(click.ParamType[Any]):
    """The name of a policy, or module:NAME for a score function or a policy in a module.

    A function is passed to `custom` with its defaults; for other settings, name a policy that the module makes.
    """

    name = "policy"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The policy; a plain name stays as it is, for the library to look up."""
        return import_policy_option(value) if isinstance(value, str) and ":" in value else value


def import_policy_option(text: str) -> Policy:
    """The policy at module:name, which is imported now: only what a command line names is ever imported."""
    module, _, name = text.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), *name.split("."))):
        raise InvalidInput("--policy", text, "must be a name, or module:function", POLICY_EXAMPLE)
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        target: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise InvalidInput("--policy", text, f"there is no module {error.name!r}", POLICY_EXAMPLE) from None
    except (Exception, SystemExit) as error:  # a script without a main guard may exit: nothing was done yet
        raise InvalidInput(
            "--policy", text, f"importing it raised {error_line(error)}", "correct the module"
        ) from error
    for part in name.split("."):
        if not hasattr(target, part):
            raise InvalidInput("--policy", text, f"{module} has no {name}", POLICY_EXAMPLE)
        target = getattr(target, part)
    if isinstance(target, Policy):
        return target
    try:
        return policies.custom(target)
    except InvalidInput as error:  # about the object: say where it is
        raise InvalidInput("--policy", text, error.rule, error.remedy) from None


def option(usage: str, text: str, *, to: str = "", **more: Any) -> Callable[[Command], Command]:
    """An option as its help shows it, such as ``--arms FILE``, or ``--clip`` for a flag; ``to`` names its parameter."""
    name, _, metavar = usage.partition(" ")
    names = [name, to] if to else [name]
    more |= {"metavar": metavar} if metavar else {"is_flag": True}
    return click.option(*names, help=text, **more)


def option_of_parameter(name: str, text: str = "") -> Callable[[Command], Command]:
    """The option of a question's parameter, from its row of the table; ``text`` replaces its help."""
    parameter = PARAMETERS[name]
    text = text or worded_naming(Naming(parameter.help), spelled_in_error)
    if not parameter.metavar:
        return option(option_in_error(name), text)
    default = (
        written_in_error(parameter.default)
        if parameter.none
        else worded_naming(Naming(parameter.without), spelled_in_error)
    )
    settings: dict[str, Any] = {"type": _type_of(name)}
    if default:  # whether the option was given matters, so click has no default of its own
        return option(f"{option_in_error(name)} {parameter.metavar}", f"{text}  [default: {default}]", **settings)
    return option(f"{option_in_error(name)} {parameter.metavar}", text, default=parameter.default, **settings)


def _type_of(name: str) -> click.ParamType[Any]:
    """What reads the text of a parameter's option: numbers of some scale may have units."""
    kinds = TYPES[name], *get_args(TYPES[name])
    if any(get_origin(kind) is Literal for kind in kinds) or kinds[1:2] == (str,):
        return click.STRING
    if Policy in kinds:
        return PolicyName()
    if int in kinds:
        return Whole()
    number = Bounds() if tuple[float, float] in kinds else Amount() if PARAMETERS[name].scale else Number()
    return Or(PARAMETERS[name].none, number) if PARAMETERS[name].none else number


def combined_options(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Several options as one, in this order."""

    def add(command: Command) -> Command:
        for option_ in reversed(options):
            command = option_(command)
        return command

    return add


storage_option = option(
    "--storage URL",
    f"sqlite:///FILE, postgresql://… or memory.  [default: ${VARIABLE}, else thresher.db in this folder]",
)
name_argument = click.argument("name", metavar="NAME")
scores_option = option(
    "--policy MODULE:FUNCTION",
    "The score function of a study that was created with one; repeat it for more. Reading does not need it.",
    to="scores",
    type=PolicyName(),
    multiple=True,
)


def format_option(*styles: str, text: str = "How to print.") -> Callable[[Command], Command]:
    """``--format``; the first style is the default."""
    return click.option("--format", "style", type=click.Choice(styles), default=styles[0], help=text)


def store_of_option(storage: "str | Store | None") -> Store:
    """The store that the option, the environment or the default names."""
    return open_store(storage or os.environ.get(VARIABLE) or DEFAULT)


def address_in_storage_option(store: Store) -> str:
    """Where a store is, without a password."""
    return str(getattr(store, "path", getattr(store, "url", "memory")))


def study_of_option(
    name: str,
    storage: "str | Store | None",
    *,
    remedy: str = "go to the folder where it was made",
    revision: int | None = None,
) -> Study:
    """Open a study, perhaps as it was in a revision.

    If it does not exist, the error lists those that do, or has the remedy if the store is new.
    """
    store = store_of_option(storage)
    try:
        return open_study(name, storage=store, revision=revision)
    except UnknownStudy:
        path = getattr(store, "path", None)
        if path is not None and not path.exists():
            other = f"{remedy}, or name its store with --storage or {VARIABLE}"
            raise UnknownStudy("study", name, f"there is no file {path}", other) from None
        others = store.studies()
        other = name_check_remedy(name, others) or f"{_there_are(others)}; --storage or {VARIABLE} names another store"
        raise unknown_study_for_reader(name, address_in_storage_option(store), other) from None


def _there_are(names: Sequence[str]) -> str:
    listing = listed_phrase(names, show=lambda name: shown(name, 40))
    return f"there {'is' if len(names) == 1 else 'are'} {listing}" if names else "it is empty"


def studies_to_name_in_option(storage: str | None) -> str:
    """The studies in a store, for a command that lacks a name; nothing if there are none, or they cannot be read."""
    with suppress(ThresherError):
        store = store_of_option(storage)
        path = getattr(store, "path", None)
        names = store.studies() if path is None or path.exists() else []
        return f"{_there_are(names)} in {address_in_storage_option(store)}" if names else ""
    return ""


def with_name_and_storage_options(command: Callable[..., Status]) -> Callable[..., Status]:
    """Give a command NAME and ``--storage``, and open that study for it."""

    @name_argument
    @storage_option
    @functools.wraps(command)
    def call(name: str, storage: str | None, **options: Any) -> Status:
        return command(study_of_option(name, storage), **options)

    return call


revision_option = option(
    "--revision N", "The study as it was at the end of this revision [default: the present one].", type=Whole(1)
)


def with_revision_options(command: Callable[..., Status]) -> Callable[..., Status]:
    """The same as `with_name_and_storage_options`, with ``--revision``."""

    @name_argument
    @revision_option
    @storage_option
    @functools.wraps(command)
    def call(name: str, revision: int | None, storage: str | None, **options: Any) -> Status:
        return command(study_of_option(name, storage, revision=revision), **options)

    return call


def study_of_option_or_damage(name: str, store: Store) -> tuple[Study | None, str]:
    """The study, or how it is damaged: a damaged study does not hide the others."""
    try:
        return open_study(name, storage=store), ""
    except (DamagedStudy, InvalidInput) as error:  # InvalidInput: a name that no study can have
        return None, error.rule


def is_kept_by_storage_option(study: Study) -> bool:
    """Whether the study is stored beyond this process."""
    return not isinstance(study.store, MemoryStore)
