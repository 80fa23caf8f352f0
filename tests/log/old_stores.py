"""Stores that version 0.1 wrote, in SQLite and PostgreSQL."""

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from thresher.core.replay import verify
from thresher.log.store import Store
from thresher.log.stores import open_store
from thresher.log.tail import pages
from thresher.log.versions import OLD_COLUMNS as FIELDS

STORED = Path(__file__).parent.parent / "study" / "stored" / "0.1.db.gz"
POSTGRES = """
CREATE TABLE thresher_events (
    study text COLLATE "C" NOT NULL, seq bigint NOT NULL, kind text NOT NULL, pull bigint, arm bigint,
    reward double precision, reason text, cause text, late bigint, budget bigint, spec text, key text,
    time double precision, agent text,
    PRIMARY KEY (study, seq)
);
CREATE TABLE thresher_leases (
    study text COLLATE "C" NOT NULL, pull bigint NOT NULL, until timestamptz NOT NULL, PRIMARY KEY (study, pull)
);
CREATE TABLE thresher_agents (
    study text COLLATE "C" NOT NULL, agent text NOT NULL, command text NOT NULL,
    time timestamptz NOT NULL DEFAULT clock_timestamp(), PRIMARY KEY (study, agent)
);
CREATE TABLE thresher_schema (version bigint NOT NULL);
INSERT INTO thresher_schema VALUES (1);
"""  # as version 0.1 made them
STUDY = "until-settled"


class Old:
    """A store that version 0.1 wrote, and its tables as an agent of 0.1 uses them."""

    def __init__(self, url: str) -> None:
        self.url, self.prefix = url, "" if url.startswith("sqlite") else "thresher_"

    @contextmanager
    def agent(self) -> Iterator[Any]:
        """A connection of an agent of version 0.1; gives what runs a query."""
        if not self.prefix:
            connection = apsw.Connection(self.url.removeprefix("sqlite:///"))
            yield lambda query, values=(): connection.execute(query, values).fetchall()
            connection.close()
        else:
            psycopg = pytest.importorskip("psycopg")
            with psycopg.connect(self.url, autocommit=True) as session:
                yield lambda query, values=(): session.execute(query.replace("?", "%s"), values)

    @property
    def write(self) -> str:
        """How 0.1 writes an event."""
        return f"INSERT INTO {self.prefix}events (study, {FIELDS}) VALUES (?{', ?' * 13})"

    def schema(self) -> int:
        with self.agent() as run:
            query = "SELECT version FROM thresher_schema" if self.prefix else "PRAGMA user_version"
            return int(next(iter(run(query)))[0])


@pytest.fixture(name="old")
def an_old_store(url: str) -> Old:
    path = Path(url.removeprefix("sqlite:///")) if url.startswith("sqlite") else None
    if path is not None:
        path.write_bytes(gzip.decompress(STORED.read_bytes()))
        return Old(url)
    psycopg = pytest.importorskip("psycopg")
    import tempfile

    with tempfile.TemporaryDirectory() as folder, psycopg.connect(url, autocommit=True) as session:
        file = Path(folder) / "old.db"
        file.write_bytes(gzip.decompress(STORED.read_bytes()))
        session.execute(POSTGRES)
        rows = apsw.Connection(str(file)).execute(f"SELECT study, {FIELDS} FROM events").fetchall()
        with session.cursor().copy(f"COPY thresher_events (study, {FIELDS}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
    return Old(url)


@pytest.fixture(name="opened")
def an_opened_store(old: Old) -> Iterator[Store]:
    store = open_store(old.url)
    yield store
    store.close()


def digests(store: Store, *names: str) -> dict[str, tuple[int, str | None, str | None]]:
    """The digests of states and the heads, by study; of all studies if none is named."""
    found = {}
    for name in names or store.studies():
        report = verify(event for page in pages(store, name) for event in page)
        found[name] = (report.events, report.digest, report.head)
    return found


def sqlite_store(tmp_path: Path) -> Path:
    path = tmp_path / "thresher.db"
    path.write_bytes(gzip.decompress(STORED.read_bytes()))
    return path
