"""PgBouncer in transaction mode: each transaction of an agent may have another session, which others had before."""

import contextlib
import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from logs import append
from postgres import Server, at_statement, leave_unflushed
from program import until

import thresher
from thresher.core.events import Event
from thresher.core.replay import verify
from thresher.errors import Conflict, Interrupted, StoreFailed
from thresher.log import postgres
from thresher.log.store import open_store

PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
SESSION = ("synchronous_commit", "lock_timeout", "plan_cache_mode", "search_path", "default_transaction_isolation")
TOO_LONG = "SET LOCAL statement_timeout = '1ms'; SELECT pg_sleep(1)"
pytestmark = pytest.mark.skipif(PGBOUNCER is None, reason="PgBouncer is not installed")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One that brings nothing to its disk of its own accord: for ten seconds, a crash loses what nobody waited for."""
    server = Server()
    with psycopg.connect(server.url, autocommit=True) as session:
        session.execute("ALTER SYSTEM SET wal_writer_delay = '10s'")
    server.stop_at_once()
    server.start()
    yield server
    server.close()


@pytest.fixture
def url(server: Server, tmp_path: Path) -> Iterator[str]:
    """The URL of a database behind a pool of one session."""
    with psycopg.connect(server.url, autocommit=True) as session:
        session.execute("DROP DATABASE IF EXISTS pooled WITH (FORCE)")
        session.execute("CREATE DATABASE pooled")
    folder = server.folder / "pool"  # which other users may enter, and whose name is short enough for a socket
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    folder.chmod(0o777)
    (folder / "pool.ini").write_text(
        f"""[databases]
pooled = host={server.folder}/data user=postgres
[pgbouncer]
unix_socket_dir = {folder}
listen_port = 6432
auth_type = any
pool_mode = transaction
default_pool_size = 1
server_login_retry = 1
logfile = {folder}/pool.log
"""
    )
    owner = (server.folder / "data").owner()  # as whom the server runs: neither runs as root
    user = ["-u", owner] if os.getuid() == 0 else []
    pooler = subprocess.Popen([str(PGBOUNCER), "-q", *user, str(folder / "pool.ini")], stderr=subprocess.DEVNULL)
    try:
        with socket.socket(socket.AF_UNIX) as client:
            until(lambda: client.connect_ex(f"{folder}/.s.PGSQL.6432") == 0, "the pooler listens")
        yield f"postgresql://postgres@/pooled?host={folder}&port=6432"
    finally:
        pooler.kill()
        pooler.wait()


def settings(url: str) -> list[object]:
    """What a foreign client sees: its settings, the locks that somebody holds, and prepared statements."""
    with psycopg.connect(url, autocommit=True, prepare_threshold=None) as foreign:
        found: list[object] = [foreign.execute(f"SHOW {name}").fetchone() for name in SESSION]
        found += foreign.execute("SELECT pid FROM pg_locks WHERE locktype = 'advisory'").fetchall()
        found += foreign.execute("SELECT name FROM pg_prepared_statements").fetchall()
    return found


def agents(url: str) -> list[thresher.Study]:
    first = thresher.create_study("s", arms=["a", "b"], at_least=0.5, budget=200, confidence=None, storage=url)
    return [first, thresher.open_study("s", storage=url)]


def test_nothing_acknowledged_is_lost_and_others_see_their_own_settings(server: Server, url: str) -> None:
    before = settings(url)
    studies, acknowledged = agents(url), list[int]()
    for turn in range(6):
        for study in studies:
            for _ in range(8):  # more often than it takes until a driver prepares its statements
                pull = study.ask() or pytest.fail("no pull")
                study.tell(pull, 1)
                acknowledged.append(pull.id)
            assert settings(url) == before
        if turn % 2:
            server.kill()
    with thresher.open_study("s", storage=server.url.replace("/postgres?", "/pooled?")) as direct:
        assert [row.id for row in direct.pulls() if row.reward == 1] == acknowledged
        assert verify(direct.events()).sound
    for study in studies:
        study.close()


def test_agents_at_once_share_a_pool_of_one(url: str) -> None:
    def work(study: thresher.Study) -> int:
        count = 0
        while pull := study.ask():
            study.tell(pull, pull.seed % 2)
            count += 1
        study.close()
        return count

    studies = agents(url)
    with ThreadPoolExecutor(2) as pool:
        assert sum(pool.map(work, studies)) == 200


@pytest.fixture(params=["direct", "pooled"])
def either_url(server: Server, url: str, request: pytest.FixtureRequest) -> str:
    return url if request.param == "pooled" else server.url.replace("/postgres?", "/pooled?")


def kinds(study: thresher.Study) -> list[str]:
    """The kinds of all events, in a log that verifies."""
    assert verify(study.events()).sound
    return [event.kind for event in study.events()]


def test_a_crash_between_the_commit_and_the_disk_loses_nothing_acknowledged(
    server: Server, either_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(session: "psycopg.Connection[Any]", _: Callable[[], Any]) -> Any:
        monkeypatch.undo()
        session.execute("COMMIT")
        server.kill()
        session.close()
        raise psycopg.OperationalError("the connection is lost")

    study, other = agents(either_url)
    pull = study.ask() or pytest.fail("no pull")
    at_statement("COMMIT; SELECT", crash, monkeypatch)
    study.tell(pull, 1)
    server.kill()
    assert kinds(other) == kinds(study) == ["created", "asked", "told"]
    study.close()
    other.close()


@pytest.mark.parametrize("turns", [True, False])
@pytest.mark.parametrize("rival", [True, False])
def test_nothing_follows_an_event_that_was_lost_in_a_crash(
    server: Server, either_url: str, turns: bool, rival: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if the agent has read it, the pooler hides the crash, and the place of the event is taken again."""
    study, other = agents(either_url)
    pull = study.ask() or pytest.fail("no pull")
    dies = open_store(either_url)
    leave_unflushed(monkeypatch)
    (lost,) = append(dies, "s", [Event(3, "retired", arm=1, key="k", time=1.0, agent="a")])
    assert study.verdict()["b"].retired
    server.kill()
    if rival:
        other.extend(budget=300)
    if not turns:
        monkeypatch.setattr(type(dies), "turn", lambda self, study: contextlib.nullcontext())
    assert dies.studies() == ["s"], "it connects again"
    with pytest.raises(Conflict), dies.turn("s"):
        dies.append("s", [Event(4, "told", 1, 0, 1.0, digest=b"x" * 16)], before=lost.digest)
    with pytest.raises(Interrupted):
        study.store.flush("s", lost)
    study.tell(pull, 1)
    assert not study.verdict()["b"].retired
    assert kinds(study) == ["created", "asked", *["extended"] * rival, "told"]
    assert study.verdict() == other.verdict()
    for closing in (dies, study, other):
        closing.close()


def test_what_another_agent_wrote_is_on_the_disk_before_a_repeated_call_returns(
    server: Server, either_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    study, other = agents(either_url)
    pull = study.ask() or pytest.fail("no pull")
    leave_unflushed(monkeypatch)
    append(other.store, "s", [Event(3, "told", pull.id, 0, 1.0, key="k", time=1.0, agent="a")])
    study.tell(pull, 1)
    server.kill()
    assert kinds(other) == ["created", "asked", "told"]
    study.close()
    other.close()


def test_what_another_program_left_in_the_session_does_not_matter(server: Server, url: str) -> None:
    (study, other), acknowledged = agents(url), list[int]()
    other.close()
    for _ in range(5):
        with psycopg.connect(url, autocommit=True, prepare_threshold=None) as foreign:
            foreign.execute("SET synchronous_commit = off; SET search_path = pg_temp")
        pull = study.ask() or pytest.fail("no pull")
        study.tell(pull, 1)
        acknowledged.append(pull.id)
    server.kill()
    assert [row.id for row in study.pulls() if row.reward == 1] == acknowledged
    study.close()


def test_a_cancelled_write_is_looked_for_and_done_once(server: Server, url: str) -> None:
    (study, other) = agents(url)
    other.close()
    pull = study.ask() or pytest.fail("no pull")
    with psycopg.connect(server.url.replace("/postgres?", "/pooled?"), autocommit=True) as session:
        session.execute(
            """CREATE SEQUENCE writes;
            CREATE FUNCTION cancelled() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                IF nextval('writes') = 1 THEN RAISE EXCEPTION 'cancelled' USING ERRCODE = '57014'; END IF;
                RETURN NEW;
            END $$;
            CREATE TRIGGER cancels BEFORE INSERT ON thresher_events FOR EACH ROW EXECUTE FUNCTION cancelled()"""
        )
    study.tell(pull, 1)
    assert [event.kind for event in study.events()] == ["created", "asked", "told"]
    study.close()


def test_a_cancelled_read_is_read_again(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def cancel(session: "psycopg.Connection[Any]", go_on: Callable[[], Any]) -> Any:
        monkeypatch.undo()
        return session.execute(TOO_LONG)

    study, other = agents(url)
    other.close()
    at_statement("FROM thresher_events", cancel, monkeypatch)
    assert [event.kind for event in study.events()] == ["created"]
    study.close()


def test_a_read_that_is_always_cancelled_is_an_error_in_the_end(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    study, other = agents(url)
    other.close()
    monkeypatch.setattr(postgres, "PATIENCE", 0.1)
    at_statement("FROM thresher_events", lambda session, _: session.execute(TOO_LONG), monkeypatch)
    with pytest.raises(StoreFailed, match="canceling statement due to statement timeout"):
        study.events()
    study.close()
