"""The tables of an SQLite store."""

from .store import SCHEMA

APPLICATION = 0x74687273  # "thrs", in the file's header
_LOG = """
CREATE TABLE events (
    study TEXT NOT NULL, seq INTEGER NOT NULL, kind TEXT NOT NULL, pull INTEGER, arm INTEGER, reward REAL, reason TEXT,
    cause TEXT, late INTEGER, budget INTEGER, spec TEXT, key TEXT, time REAL, agent TEXT, digest BLOB NOT NULL,
    PRIMARY KEY (study, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE heads (study TEXT NOT NULL PRIMARY KEY, seq INTEGER NOT NULL, digest BLOB NOT NULL) STRICT, WITHOUT ROWID;
"""
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
