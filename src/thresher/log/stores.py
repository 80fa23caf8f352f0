"""Stores: where a study's log is kept. ``open_store`` opens the one that a user names."""

import os
from pathlib import Path
from urllib.parse import parse_qsl

from ..errors import InvalidInput, StoreFailed, lacks
from .memory import MemoryStore
from .store import Store

__all__ = ["MemoryStore", "Storage", "Store", "open_store"]

KINDS = "memory, sqlite:///file.db or postgresql://user@host/database"


Storage = str | os.PathLike[str] | Store | None  # a URL, a path to an SQLite file, a store, or None for memory


def open_store(storage: Storage) -> Store:
    """The store at a URL or a path; None or ``"memory"`` keeps the log in this process.

    >>> open_store(None).studies()
    []
    """
    if storage is None or storage == "memory":
        return MemoryStore()
    if isinstance(storage, os.PathLike):
        return _sqlite_file(os.fspath(storage), str(storage), "full")
    if not isinstance(storage, str):
        if not (hasattr(storage, "read") and hasattr(storage, "append")):
            raise InvalidInput("storage", storage, "is not a store", f"use {KINDS}")
        return storage
    scheme = storage.partition("://")[0]
    if scheme == "sqlite":
        return _sqlite(storage)
    if scheme in ("postgresql", "postgres"):
        return _postgres(storage)
    from ..text.masking import masked

    account, at, location = storage.rpartition("@")
    shown = masked(storage) if "://" in account or not at else f"***@{location}"
    is_file = storage and shown == storage and not any(sign in storage for sign in ":=@")
    remedy = f"write sqlite:///{storage} for a file, or use {KINDS}" if is_file else f"use {KINDS}"
    raise InvalidInput("storage", shown, "is not a store that this version knows", remedy)


def _sqlite(url: str) -> Store:
    """``sqlite:///relative.db`` or ``sqlite:////absolute.db``, with ``?durability=normal`` for faster writes."""
    from ..text.masking import masked

    location, _, query = url.removeprefix("sqlite://").partition("?")
    options = dict(parse_qsl(query, keep_blank_values=True))
    durability = options.pop("durability", "full")
    path = location[1:]
    if not location.startswith("/") or not path or path.endswith("/") or path == ":memory:":
        remedy = "write sqlite:///file.db for a file here, sqlite:////folder/file.db for any other"
        raise InvalidInput("storage", masked(url), "names no file", remedy)
    if options or durability not in ("full", "normal"):
        rule = "has an option that SQLite stores do not have"
        raise InvalidInput("storage", masked(url), rule, "?durability=normal is one")
    return _sqlite_file(path, masked(url), durability)


def _sqlite_file(path: str, said: str, durability: str) -> Store:
    """The store in a file that a user named as ``said``."""
    if not isinstance(path, str) or not path.isprintable():
        raise InvalidInput("storage", said, "must be printable, on one line", "name another file")
    from .sqlite import SqliteStore

    return SqliteStore(Path(path), durability=durability)


def _postgres(url: str) -> Store:
    try:
        from .postgres import PostgresStore
    except ImportError as error:
        raise StoreFailed("storage", "postgresql://…", *lacks(error, "postgres")) from None
    return PostgresStore(url)
