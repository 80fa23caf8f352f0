"""A reply needs one read of the store, and a damaged study has one status."""

from pathlib import Path

import apsw
import pytest
from asgi import server
from coins import COINS, get, post
from stores import CountingStore

from thresher.log.store import open_store


@pytest.mark.parametrize("headers", [{}, {"idempotency-key": "job"}], ids=["plain", "with a key"])
def test_asking_and_telling_look_at_the_store_once_each(headers: dict[str, str]) -> None:
    store = CountingStore()
    app = server(store)
    post(app, "", COINS)
    post(app, "/coins/ask", {"n": 1}, **{"idempotency-key": "first"})  # which opens the study and reads its log
    store.reads.clear()
    assert len(post(app, "/coins/ask", {"n": 2}, **headers).data["pulls"]) == 2
    assert store.reads == ["head"]
    store.reads.clear()
    assert post(app, "/coins/tell", {"pull": 1, "reward": 1}).data["late"] is False
    assert store.reads == ["head"]


@pytest.mark.parametrize("table", ["events", "heads", "leases"])
def test_a_damaged_study_has_the_same_status_whatever_is_asked_of_it(tmp_path: Path, table: str) -> None:
    store = open_store(tmp_path / "s.db")
    post(server(store), "", COINS)
    post(server(store), "/coins/ask", {"n": 2})
    store.close()
    overwrite(tmp_path / "s.db", table)
    app = server(open_store(tmp_path / "s.db"))
    replies = [post(app, "/coins/ask"), post(app, "/coins/tell", {"pull": 1, "reward": 1})]
    if table != "leases":  # which the log is read without
        replies += [get(app, "/coins"), post(app, "/coins/extend", {"budget": 50})]
    assert [(reply.status, reply.data["value"]) for reply in replies] == [(500, "coins")] * len(replies)
    assert all(b"s.db" not in reply.body for reply in replies)
    assert all("retry-after" not in reply.headers for reply in replies)


def overwrite(path: Path, table: str) -> None:
    """Overwrite the first page of a table, so that SQLite finds it damaged."""
    connection = apsw.Connection(str(path))
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    root = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)).get
    size = connection.pragma("page_size")
    connection.close()
    with path.open("r+b") as file:
        file.seek((root - 1) * size)
        file.write(b"\xff" * size)
