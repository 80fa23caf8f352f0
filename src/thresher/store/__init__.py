"""Stores: where a study's log lives. ``open_store`` turns what a user wrote into one."""

from ..errors import InvalidInput
from .base import Store
from .memory import MemoryStore

__all__ = ["MemoryStore", "Store", "open_store"]


def open_store(storage: "str | Store | None") -> Store:
    """The store at a URL; None or ``"memory"`` keeps the log in this process.

    >>> open_store(None).studies()
    []
    """
    if storage is None or storage == "memory":
        return MemoryStore()
    if not isinstance(storage, str):
        return storage
    raise InvalidInput("storage", storage, "is not a store that this version knows", "use None for memory")
