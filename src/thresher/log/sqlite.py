"""Studies in an SQLite file."""

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from ..core.events import Event
from .chain import Head
from .sqlite_connection import SqliteConnection
from .sqlite_file import examine
from .store import COLUMNS, beaten, begun_and_over, from_row, queries, taken, to_row

_MARKS = ", ".join("?" * len(Event._fields))
_READ, _HEAD, _NAMES = queries("", "?")
_BEGIN = """INSERT INTO heads SELECT ?1, ?2, ?3 WHERE NOT EXISTS (SELECT 1 FROM events WHERE study = ?1)
ON CONFLICT DO NOTHING"""
_MOVE = "UPDATE heads SET seq = ?2, digest = ?3 WHERE study = ?1 AND seq = ?4"
_INSERT = f"INSERT INTO events (study, {COLUMNS}) VALUES (?, {_MARKS})"  # noqa: S608


class SqliteStore(SqliteConnection):
    """Logs in one file, for any number of processes of one machine. Durable: a commit is on the disk."""

    leased = True

    # -- the log ------------------------------------------------------------------------------------------------

    def read(self, study: str, after: int = 0, limit: int | None = None) -> Sequence[Event]:
        return [from_row(row) for row in self._rows(_READ, study, after, -1 if limit is None else limit)]

    def head(self, study: str) -> Head | None:
        found = self._rows(_HEAD, study)
        return Head(*found[0]) if found else None

    def _rows(self, query: str, study: str | None = None, *values: object) -> list[Any]:
        if self._is_missing():
            return []
        with self._use(study) as connection:
            return connection.execute(query, () if study is None else (study, *values)).fetchall()  # type: ignore[no-any-return]

    def append(self, study: str, events: Sequence[Event], *, lease: float | None = None) -> None:
        """Write all of the events, or raise and write none: only if the log's head is the event before the first."""
        rows, first, last = [(study, *to_row(event)) for event in events], events[0].seq, events[-1]
        begun, over = begun_and_over(events)
        with self._write(study) as connection:
            head = (study, last.seq, last.digest)
            if first == 1:
                connection.execute(_BEGIN, head)
            else:
                connection.execute(_MOVE, (*head, first - 1))
            if not connection.changes():
                raise beaten(first)
            connection.executemany(_INSERT, rows)
            if lease is not None and begun:
                leases = [(study, pull, time.time() + lease) for pull in begun]
                connection.executemany("INSERT OR REPLACE INTO leases VALUES (?, ?, ?)", leases)
            if over:
                pulls = [(study, pull) for pull in over]
                connection.executemany("DELETE FROM leases WHERE study = ? AND pull = ?", pulls)

    def studies(self) -> list[str]:
        return sorted(name for (name,) in self._rows(_NAMES))

    def turn(self, study: str) -> AbstractContextManager[object]:
        """One queue per file, because SQLite allows one writer per file."""
        if self._session is None:
            with self._use():  # a missing folder gives a clearer error here than as a lock that cannot be created
                pass
        return self._turns.turn()

    def rename(self, study: str, name: str) -> None:
        with self._write(study) as connection:
            if (name,) in connection.execute(_NAMES).fetchall():
                raise taken(name)
            for table in ("heads", "events", "leases", "agents"):
                connection.execute(f"UPDATE {table} SET study = ? WHERE study = ?", (name, study))  # noqa: S608
        self.flush()

    def delete(self, study: str) -> None:
        if self._is_missing():
            return
        with self._write(study) as connection:
            for table in ("heads", "events", "leases", "agents"):
                connection.execute(f"DELETE FROM {table} WHERE study = ?", (study,))  # noqa: S608
        self.flush()

    # -- beside the log -----------------------------------------------------------------------------------------

    def renew(self, study: str, pulls: Iterable[int], seconds: float) -> None:
        """Renew by the machine's clock, which all its processes share."""
        until = time.time() + seconds
        with self._write(study) as connection:
            query = "UPDATE leases SET until = ? WHERE study = ? AND pull = ?"
            connection.executemany(query, [(until, study, pull) for pull in pulls])

    def expired(self, study: str) -> list[int]:
        query = "SELECT pull FROM leases WHERE study = ? AND until < ?"
        return sorted(pull for (pull,) in self._rows(query, study, time.time()))

    def note(self, study: str, agent: str, command: str) -> None:
        with self._write(study) as connection:
            row = (study, agent, command, time.time())
            connection.execute("INSERT OR REPLACE INTO agents VALUES (?, ?, ?, ?)", row)

    def notes(self, study: str) -> Mapping[str, str]:
        return dict(self._rows("SELECT agent, command FROM agents WHERE study = ? ORDER BY time", study))

    def describe(self) -> Mapping[str, str]:
        if self._is_missing():
            return {"! file": f"{self.path} is not there"}
        with self._use() as connection:
            return examine(self.path, connection, self.durability)
