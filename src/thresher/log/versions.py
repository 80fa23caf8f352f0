"""Versions of the tables of the durable stores: which can be read, and how those of version 0.1 get their digests.

A process of version 0.1 that has a store open while it is upgraded can still read, but no longer change a log: an event
without a digest is refused, and so is the deletion or renaming of a log that still has its head, which 0.1 does not
know about.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..core.events import Event
from ..errors import UNSAID, StoreFailed, shown
from .chain import SIZE, START, Head, link
from .store import COLUMNS, from_row

SCHEMA = 2  # the version of the tables; increases with every change of their columns
OLDEST = 1  # the oldest that can be read: version 0.1 wrote it, without digests and heads
OLD_COLUMNS = ", ".join(Event._fields[:-1])  # of schema 1
# The error for a process of version 0.1 that has a store open while it is upgraded; see the triggers of the schemas.
TOO_OLD = "a newer version of thresher upgraded this store, so update this one"
# From one name to the next, by the primary key: never every event.
_NAMES = """WITH RECURSIVE names (study) AS (
    SELECT min(study) FROM {events}
    UNION ALL SELECT (SELECT min(study) FROM {events} WHERE study > names.study) FROM names WHERE study IS NOT NULL
) SELECT study FROM names WHERE study IS NOT NULL"""


def queries(prefix: str, mark: str) -> tuple[str, str, str, dict[str, str]]:
    """How to read a log, its head and the names of all studies; and each query's form for schema 1.

    Tables have that prefix, and ``mark`` stands for a parameter.
    """
    events, heads = f"{prefix}events", f"{prefix}heads"
    read = f"SELECT {COLUMNS} FROM {events} WHERE study = {mark} AND seq > {mark} ORDER BY seq LIMIT {mark}"  # noqa: S608
    head = f"SELECT seq, digest FROM {heads} WHERE study = {mark}"  # noqa: S608
    old_names = _NAMES.format(events=events)
    names = f"{old_names} UNION SELECT study FROM {heads}"  # noqa: S608
    old_read = read.replace(COLUMNS, f"{OLD_COLUMNS}, NULL")
    old_head = f"SELECT seq, NULL FROM {events} WHERE study = {mark} ORDER BY seq DESC LIMIT 1"  # noqa: S608
    return read, head, names, {read: old_read, head: old_head, names: old_names}


def check_schema(version: int, location: object = UNSAID) -> None:
    """Raise unless tables of that version can be read."""
    if not OLDEST <= version <= SCHEMA:
        older = version < OLDEST
        rule = f"has schema {version}, {'older' if older else 'newer'} than the {SCHEMA} of this thresher"
        raise StoreFailed("storage", location, rule, "restore it from a copy" if older else "update thresher")


def schema_text(version: int) -> str:
    """A version of the tables, for people.

    >>> schema_text(1)
    '1, of version 0.1: without digests; the first write upgrades it'
    """
    old = ", of version 0.1: without digests; the first write upgrades it"
    return f"{version}{'' if version == SCHEMA else old}"


def sealed(rows: Iterable[Sequence[Any]], heads: dict[str, Head]) -> Iterator[tuple[Any, ...]]:
    """Rows of schema 1, each with its study's name first, as rows of schema 2; ``heads`` gets where each study ends.

    The chain begins here: it proves what was there at this moment, whatever happened to it before. A row that is
    not an event gets a digest that never matches, so reading it reports damage.
    """
    for study, *row in rows:
        before = heads[study].digest if study in heads else START
        assert before is not None
        try:
            digest = link(before, from_row([*row, None]))
        except (AttributeError, TypeError, ValueError):
            digest = bytes(SIZE)
        heads[study] = Head(row[0], digest)
        yield (study, *row, digest)


def not_upgraded(heads: dict[str, Head]) -> StoreFailed:
    """The error for a row that cannot be read; ``heads`` has the studies before it."""
    after = f", in study {shown(next(reversed(heads)))} or the next" if heads else ""
    remedy = "it can still be read; delete the study that thresher doctor names, or restore it from a copy"
    return StoreFailed("storage", rule=f"cannot be upgraded from schema 1: it is damaged{after}", remedy=remedy)
