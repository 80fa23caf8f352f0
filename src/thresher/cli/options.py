"""Options that several commands share: what is asked (arms, bar, confidence), and where studies are stored."""

import difflib
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click

from ..core import policies
from ..core.checks import MAX_SECONDS
from ..core.spec import Params, Spec
from ..create import open_study
from ..errors import UNSAID, DamagedStudy, InvalidInput, UnknownStudy, shown
from ..log.memory import MemoryStore
from ..log.store import Store
from ..log.stores import open_store
from ..study import Study
from ..text.plural import listed
from . import say
from .arms import checked, read_arms
from .cautions import arms_caution

DEFAULT = "sqlite:///thresher.db"
VARIABLE = "THRESHER_STORAGE"
UNIT = (0.0, 1.0)  # the bounds, unless others are given
UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
Command = TypeVar("Command", bound=Callable[..., Any])


class Number(click.ParamType[float]):
    """A number. A percentage or a decimal comma gets a suggestion.

    >>> Number().convert("0.9", None, None)
    0.9
    """

    name = "number"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number that the text says."""
        text = str(value).strip()
        found = _float(text)
        if found is None or "_" in text:
            self._refuse(text, param, ctx)
        return found

    def _refuse(self, text: str, param: click.Parameter | None, ctx: click.Context | None) -> NoReturn:
        if param is not None and param.nargs == 2:
            self.fail(f"{shown(text, 60)} is not a number; give two, as in --{param.name} 0 1", param, ctx)
        share, comma = _float(text.removesuffix("%")), _float(text.replace(",", "."))
        near = share / 100 if text.endswith("%") and share is not None else comma
        hint = "" if near is None or "_" in text else f"; did you mean {near:g}?"
        self.fail(f"{shown(text, 60)} is not a number{hint}", param, ctx)


class Whole(click.ParamType[int]):
    """A whole number. A thousands separator or a unit gets a suggestion.

    >>> Whole().convert("2000", None, None)
    2000
    """

    name = "whole number"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number that the text says."""
        text = str(value).strip()
        if not re.fullmatch(r"[+-]?[0-9]{1,4000}", text):
            self._refuse(text, param, ctx)
        return int(text)

    def _refuse(self, text: str, param: click.Parameter | None, ctx: click.Context | None) -> NoReturn:
        plain, factor = text.replace(",", "").replace("_", "").lower(), 1
        if plain.endswith(("k", "m")):
            plain, factor = plain[:-1], {"k": 1000, "m": 1_000_000}[plain[-1]]
        near = (_float(plain) or 0.5) * factor
        if param is not None and param.name == "arms" and Path(text).suffix:
            self.fail(f"{shown(text, 60)} is not a whole number; give the number of arms here, not a file", param, ctx)
        hint = f"; did you mean {int(near)}?" if near.is_integer() and abs(near) < 1e15 else ""
        self.fail(f"{shown(text, 60)} is not a whole number{hint}", param, ctx)


class Duration(click.ParamType[float]):
    """Seconds, or a number with s, m, h or d behind it.

    >>> Duration().convert("1.5h", None, None)
    5400.0
    """

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The length in seconds."""
        if isinstance(value, int | float):
            return float(value)
        found = re.fullmatch(r"(\d+\.?\d*|\.\d+)\s*([smhd]?)", str(value).strip())
        if not found or not 0 < float(found[1]) * UNITS[found[2]] <= MAX_SECONDS:
            rule = "is not a length of time above 0 and below 31 years; write 90, 90s, 10m, 2h or 1d"
            self.fail(f"{shown(value, 60)} {rule}", param, ctx)
        return float(found[1]) * UNITS[found[2]]


class BoundsCommand(click.Command):
    """A command whose ``--bounds`` takes two numbers or the word none."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Turn ``--bounds none`` into a flag."""
        takes = {name: option.nargs for option in self.params if not _is_flag(option) for name in option.opts}
        at = 0
        while at < len(args) and args[at] != "--" and (self.allow_interspersed_args or args[at].startswith("-")):
            name, equals, value = args[at].partition("=")
            if name == "--bounds" and "none" in (value, *args[at + 1 : at + 2]):
                rest = args[at + (1 if equals else 2) :]
                return super().parse_args(ctx, [*args[:at], "--no-bounds", *rest])
            at += 1 if equals else 1 + takes.get(name, 0)
        return super().parse_args(ctx, args)


def _is_flag(option: click.Parameter) -> bool:
    return isinstance(option, click.Option) and option.is_flag


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def option(usage: str, text: str, *, to: str = "", **more: Any) -> Callable[[Command], Command]:
    """An option as its help shows it, such as ``--arms FILE``, or ``--clip`` for a flag; ``to`` names its parameter."""
    name, _, metavar = usage.partition(" ")
    names = [name, to] if to else [name]
    more |= {"metavar": metavar} if metavar else {"is_flag": True}
    return click.option(*names, help=text, **more)


storage_option = option(
    "--storage URL",
    f"sqlite:///FILE, postgresql://… or memory.  [default: ${VARIABLE}, else thresher.db in this folder]",
)
name_argument = click.argument("name", metavar="NAME")


def format_option(*styles: str, text: str | None = None) -> Callable[[Command], Command]:
    """``--format``; the first style is the default."""
    return click.option("--format", "style", type=click.Choice(styles), default=styles[0], help=text)


def store_at(storage: "str | Store | None") -> Store:
    """The store that the option, the environment or the default names."""
    return open_store(storage or os.environ.get(VARIABLE) or DEFAULT)


def place_of(store: Store) -> str:
    """Where a store is, without a password."""
    return str(getattr(store, "path", getattr(store, "url", "memory")))


def study_at(name: str, storage: "str | Store | None") -> Study:
    """Open a study; if it does not exist, the error lists those that do."""
    store = store_at(storage)
    try:
        return open_study(name, storage=store)
    except UnknownStudy:
        others = store.studies()
        there = f"there are {listed(others, show=lambda other: shown(other, 40))}" if others else "it is empty"
        remedy = f"{there}; --storage or {VARIABLE} names another store"
        if near := difflib.get_close_matches(name, others, n=1):
            remedy = f"did you mean {shown(near[0])}?"
        raise UnknownStudy("study", name, f"is not in {place_of(store)}", remedy) from None


def study_or_damage(name: str, store: Store) -> tuple[Study | None, str]:
    """The study, or how it is damaged: a damaged study does not hide the others."""
    try:
        return open_study(name, storage=store), ""
    except (DamagedStudy, InvalidInput) as error:  # InvalidInput: a name that no study can have
        return None, error.rule


def is_kept(study: Study) -> bool:
    """Whether the study is stored beyond this process."""
    return not isinstance(study.store, MemoryStore)


ARM_OPTIONS = (
    option("--threshold B", "The bar that an arm's mean must reach.", type=Number(), required=True),
    option(
        "--arms FILE",
        "A file of arms: one name per line (# begins a comment line), or CSV or JSON; - is stdin.",
        to="file",
    ),
    option("--arm NAME", "An arm; repeat it for more.", to="names", multiple=True),
    option("--cases FILE|N", "An eval set: a file of cases, written like --arms, or how many there are."),
    option("--tries N", "How often a case is tried that fails.", type=Whole(), default=3),
    option("--budget N", "Pulls in total.  [default: until every arm is settled]", type=Whole()),
    option("--bounds LO HI", "The range of rewards, or none.  [default: 0 1]", type=Number(), nargs=2),
    option("--no-bounds", "The same as --bounds none.", hidden=True),
    option("--clip", "Count a reward outside the bounds as the nearest bound. Without this, it retires its arm."),
    option("--policy P", f"How to choose the next arm: {', '.join(policies.CONSTRUCTORS)}."),
    option("--confidence C", "How sure to be of all labels.  [default: 0.95]", type=Number()),
    option("--no-confidence", "Do not certify labels."),
    option(
        "--guarantee [all|rate]",
        "Certify that no label is wrong, or that few are on average, which takes far fewer pulls for many arms.",
        type=click.Choice(["all", "rate"]),
        default="all",
    ),
    option("--find M", "End when M arms are certified to reach the bar.", type=Whole()),
    option("--tolerance T", "An arm provably within ± T of the bar is settled as close.", type=Number(), default=0.0),
    option("--failure REWARD", "What a failed pull counts as: worst, ignore, or a reward.", default="worst"),
    option("--max-failures N", "Retire an arm after N failures in a row.", type=Whole(), default=3),
    option(
        "--seed S",
        "The pulls' seeds and the order of cases follow from it.  [default: 0; with --cases, a new one]",
        type=Whole(),
    ),
)


def arm_options(command: Command) -> Command:
    """Add the options that define a study's question."""
    for add in reversed(ARM_OPTIONS):
        command = add(command)
    return command


def question(arms: dict[str, Params], given: dict[str, Any], *, evaluator: str | None = None) -> Spec:
    """What `arm_options` ask, once their files are read. An error names the option."""
    _check_bounds(given)
    same = ("threshold", "budget", "policy", "tolerance", "seed", "max_failures", "clip")
    more = ("cases", "tries", "guarantee", "find")
    try:
        return Spec(
            arms=arms,
            bounds=None if given["no_bounds"] else given["bounds"] or UNIT,
            confidence=_confidence(given["confidence"], given["no_confidence"], given["no_bounds"]),
            failure=reward_of_failure(given["failure"]),
            evaluator=evaluator,
            **{name: given[name] for name in (*same, *more)},
        )
    except InvalidInput as error:
        if error.what not in given:
            raise
        value = UNSAID if error.value is None or error.value is True else error.value
        raise InvalidInput(f"--{error.what.replace('_', '-')}", value, error.rule, error.remedy) from None


def _check_bounds(given: dict[str, Any]) -> None:
    """Raise if the bounds do not fit exit codes, which are 0 or 1."""
    low, high = given["bounds"] or UNIT
    if given.get("reward") == "exit-code" and (given["no_bounds"] or (low, high) != UNIT):
        shown_bounds = "none" if given["no_bounds"] else f"{low:g} {high:g}"
        rule = "must be 0 1 with --reward exit-code, whose rewards are 0 and 1"
        raise InvalidInput("--bounds", shown_bounds, rule, "leave it out, and give the bar as a share, as in 0.9")


def arms_given(file: str | None, names: tuple[str, ...]) -> dict[str, Params]:
    """The arms of `arm_options`."""
    if file and names:
        raise InvalidInput("--arm", names[0], "the arms already come from --arms FILE", "use one of the two")
    if file:
        return read_arms(file)
    if not names:
        raise InvalidInput("arms", rule="there are none", remedy="name them with --arms FILE or --arm NAME")
    if caution := arms_caution(names):
        say(f"warning: {caution}")
    return checked(("--arm", name, {}) for name in names)


def _confidence(given: float | None, without: bool, no_bounds: bool) -> float | None:
    if not without and not no_bounds:
        return 0.95 if given is None else given
    if given is not None:
        other = "--no-confidence" if without else "--bounds none"
        raise InvalidInput("--confidence", given, f"there are no certificates with {other}", "use one of the two")
    return None


def reward_of_failure(text: str) -> Any:
    """The meaning of ``--failure``: a number, or a word."""
    try:
        return float(text)
    except ValueError:
        return text
