"""Options that several commands share: what is asked (arms, bar, confidence), and where studies are stored."""

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from ..core import policies
from ..core.spec import Params
from ..create import open_study
from ..errors import InvalidInput, UnknownStudy, shown
from ..log.memory import MemoryStore
from ..log.store import Store
from ..log.stores import open_store
from ..study import LEASE, Study
from .arms import checked_arms, read_arms

DEFAULT = "sqlite:///thresher.db"
VARIABLE = "THRESHER_STORAGE"
Command = TypeVar("Command", bound=Callable[..., Any])

storage_option = click.option(
    "--storage",
    metavar="URL",
    help=f"sqlite:///FILE, postgresql://… or memory.  [default: ${VARIABLE}, or thresher.db in this folder]",
)
name_argument = click.argument("name", metavar="NAME")


def format_option(*styles: str) -> Callable[[Command], Command]:
    """``--format``, the first being the default."""
    return click.option("--format", "style", type=click.Choice(styles), default=styles[0], show_default=True)


def store_at(storage: "str | Store | None") -> Store:
    """The store that the option, the environment or the default names."""
    return open_store(storage or os.environ.get(VARIABLE) or DEFAULT)


def place_of(store: Store) -> str:
    """Where a store is, in words that hold no password."""
    return str(getattr(store, "path", getattr(store, "url", "memory")))


def study_at(name: str, storage: "str | Store | None", *, lease: float = LEASE) -> Study:
    """A study that is there."""
    store = store_at(storage)
    try:
        return open_study(name, storage=store, lease=lease)
    except UnknownStudy:
        others = store.studies()
        there = (
            f"there are {', '.join(shown(other, 40) for other in others[:5])}{' …' if len(others) > 5 else ''}"
            if others
            else "it is empty"
        )
        rule = f"is not in {place_of(store)}"
        remedy = f"{there}; --storage or {VARIABLE} names another store"
        raise UnknownStudy("study", name, rule, remedy) from None


def is_kept(study: Study) -> bool:
    """Whether the study outlives this process."""
    return not isinstance(study.store, MemoryStore)


def arm_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say what is asked."""
    options = [
        click.option("--threshold", type=float, required=True, metavar="B", help="The bar: which means reach it?"),
        click.option(
            "--arms", "file", metavar="FILE", help="Arms: a name a line, or CSV or JSON with a name; - is stdin."
        ),
        click.option("--arm", "names", multiple=True, metavar="NAME", help="An arm; may be given several times."),
        click.option("--budget", type=int, metavar="N", help="Pulls, in all. Without one: until every arm is settled."),
        click.option(
            "--bounds",
            type=float,
            nargs=2,
            default=(0.0, 1.0),
            metavar="LO HI",
            help="Where rewards can lie, or none.  [default: 0 1]",
        ),
        click.option("--no-bounds", is_flag=True, hidden=True),
        click.option(
            "--clip",
            is_flag=True,
            help="Count rewards outside the bounds as the bound. Without it such a reward retires its arm.",
        ),
        click.option("--policy", metavar="P", help=f"Which arm comes next: {', '.join(policies.CONSTRUCTORS)}."),
        click.option("--confidence", type=float, metavar="C", help="How sure to be.  [default: 0.95]"),
        click.option("--no-confidence", is_flag=True, help="Go without certificates."),
        click.option(
            "--tolerance",
            type=float,
            default=0.0,
            show_default=True,
            metavar="T",
            help="An arm provably within ± this of the bar is close, and done.",
        ),
        click.option(
            "--failure",
            default="worst",
            show_default=True,
            metavar="REWARD",
            help="worst, ignore, or the reward of a failure.",
        ),
        click.option(
            "--max-failures", type=int, default=3, show_default=True, metavar="N", help="In a row: the arm is retired."
        ),
        click.option(
            "--seed", type=int, default=0, show_default=True, metavar="S", help="Keys the seeds of the pulls."
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def question(arms: dict[str, Params], given: dict[str, Any]) -> dict[str, Any]:
    """What `arm_options` ask, as arguments of `create_study`."""
    return {
        "arms": arms,
        "threshold": given["threshold"],
        "bounds": None if given["no_bounds"] else given["bounds"],
        "budget": given["budget"],
        "policy": given["policy"],
        "confidence": _confidence(given["confidence"], given["no_confidence"], given["no_bounds"]),
        "tolerance": given["tolerance"],
        "failure": _failure(given["failure"]),
        "seed": given["seed"],
        "max_failures": given["max_failures"],
        "clip": given["clip"],
    }


def arms_given(file: str | None, names: tuple[str, ...]) -> dict[str, Params]:
    """The arms of `arm_options`."""
    if file and names:
        raise InvalidInput("--arm", names[0], "the arms come from --arms FILE already", "use one of the two")
    if file:
        return read_arms(file)
    if not names:
        raise InvalidInput("arms", "", "there are none", "name them with --arms FILE or --arm NAME")
    return checked_arms(("--arm", name, {}) for name in names)


def _confidence(given: float | None, without: bool, no_bounds: bool) -> float | None:
    if given is not None and (without or no_bounds):
        option = "--no-confidence" if without else "--bounds none"
        raise InvalidInput("--confidence", given, f"certificates are not to be had with {option}", "use one of the two")
    if without or no_bounds:
        return None
    return 0.95 if given is None else given


def _failure(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text
