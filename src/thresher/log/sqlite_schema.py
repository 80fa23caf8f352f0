"""The tables of an SQLite store, and the upgrade from version 0.1."""

import apsw

from ..core.events import Event
from ..errors import StoreFailed
from .chain import Head
from .versions import OLD_COLUMNS, OLDEST, SCHEMA, TOO_OLD, not_upgraded, sealed

APPLICATION = 0x74687273  # "thrs", in the file's header
_LOG = f"""
CREATE TABLE events (
    study TEXT NOT NULL, seq INTEGER NOT NULL, kind TEXT NOT NULL, pull INTEGER, arm INTEGER, reward REAL, reason TEXT,
    cause TEXT, late INTEGER, budget INTEGER, spec TEXT, key TEXT, time REAL, agent TEXT, digest BLOB NOT NULL,
    PRIMARY KEY (study, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE heads (study TEXT NOT NULL PRIMARY KEY, seq INTEGER NOT NULL, digest BLOB NOT NULL) STRICT, WITHOUT ROWID;
CREATE TRIGGER deletes_head_first BEFORE DELETE ON events
WHEN old.seq = 1 AND EXISTS (SELECT 1 FROM heads WHERE study = old.study) BEGIN SELECT RAISE(ABORT, '{TOO_OLD}'); END;
CREATE TRIGGER renames_head_first BEFORE UPDATE OF study ON events
WHEN old.seq = 1 AND EXISTS (SELECT 1 FROM heads WHERE study = old.study) BEGIN SELECT RAISE(ABORT, '{TOO_OLD}'); END;
"""  # noqa: S608 - of our own words
_BESIDE = """
CREATE TABLE leases (
    study TEXT NOT NULL, pull INTEGER NOT NULL, until REAL NOT NULL, PRIMARY KEY (study, pull)
) STRICT, WITHOUT ROWID;
CREATE TABLE agents (
    study TEXT NOT NULL, agent TEXT NOT NULL, command TEXT NOT NULL, time REAL NOT NULL, PRIMARY KEY (study, agent)
) STRICT, WITHOUT ROWID;
"""
_MARKS = f"PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {SCHEMA};"
NEW = f"{_LOG} {_BESIDE} {_MARKS}"


def version_of(connection: apsw.Connection) -> int:
    """The schema that the file has now."""
    version = int(connection.pragma("user_version"))
    if version == OLDEST and connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'heads'").fetchone():
        rule = f"is damaged: it says that its schema is {version}, but it has the heads of schema {SCHEMA}"
        raise StoreFailed("storage", connection.filename, rule, "restore it from a copy")
    return version


def upgrade(connection: apsw.Connection) -> None:
    """Give a store of version 0.1 digests and heads, in the caller's transaction: see `versions.py`."""
    if version_of(connection) == SCHEMA:  # another process was quicker
        return
    heads: dict[str, Head] = {}
    connection.execute(f"ALTER TABLE events RENAME TO old_events; {_LOG}")
    rows = connection.execute(f"SELECT study, {OLD_COLUMNS} FROM old_events ORDER BY study, seq")  # noqa: S608
    try:
        connection.executemany(f"INSERT INTO events VALUES (?{', ?' * len(Event._fields)})", sealed(rows, heads))  # noqa: S608
    except (apsw.CorruptError, UnicodeDecodeError):
        raise not_upgraded(heads) from None
    connection.executemany("INSERT INTO heads VALUES (?, ?, ?)", ((study, *head) for study, head in heads.items()))
    connection.execute(f"DROP TABLE old_events; {_MARKS}")
