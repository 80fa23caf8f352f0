"""Where studies are: the option that says so, and opening what is there."""

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from ..create import open_study
from ..errors import UnknownStudy, shown
from ..log.memory import MemoryStore
from ..log.store import Store
from ..log.stores import open_store
from ..study import LEASE, Study

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
