"""PostgreSQL servers that are not there yet, and locks that others hold: the wait is logged, and Ctrl-C ends it."""

import contextlib
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import storm
from postgres import Server
from waiters import ASK, RUN, THRESHER, ends_at_once, said_by, started

import thresher
from thresher.errors import StoreFailed
from thresher.log.locks import LockPatience
from thresher.log.postgres import is_temporary_in_postgres
from thresher.log.postgres_schema import KEY
from thresher.log.store import open_store

AT_SOCKET = 'connection failed: connection to server on socket "/run/does not exist/.s.PGSQL.5432" failed: '


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One that is stopped and started."""
    server = Server()
    yield server
    server.close()


@pytest.fixture
def stopped(server: Server) -> Iterator[Server]:
    """A server with a study, and stopped."""
    storage = thresher.create_study(
        "s", arms=["a", "b"], at_least=0.5, budget=100, storage=server.url, if_exists="join"
    )
    storage.store.close()
    server.stop_at_once()
    yield server
    server.start()


def test_an_agent_that_starts_before_its_server_waits_for_it(stopped: Server) -> None:
    with started([*ASK, stopped.url]) as agent:
        line = said_by(agent)
        assert "waiting for postgresql://" in line
        assert "Is the server running" in line
        stopped.start()
        out, said = agent.communicate(timeout=60)
        assert (agent.returncode, said) == (0, ""), said
        assert out


def test_an_agent_that_waits_for_its_server_ends_with_ctrl_c(stopped: Server) -> None:
    with started([*ASK, stopped.url]) as agent:
        assert "waiting for" in said_by(agent)
        assert ends_at_once(agent, signal.SIGINT).strip() == "", "it is logged once"
        assert agent.returncode == 130


def test_a_server_that_never_comes_is_given_up(stopped: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("thresher.log.postgres.PATIENCE", 0.3)
    with pytest.raises(StoreFailed, match=r"cannot be reached, for \d+ s: .*Is the server running") as caught:
        open_store(stopped.url).studies()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("/postgres?", "/nowhere?"), "does not exist"),
        (("postgres:@", "nobody:@"), "does not exist"),
        (("?host=", "?sslmode=nonsense&host="), "sslmode"),
    ],
)
def test_a_permanent_error_is_reported_at_once(server: Server, change: tuple[str, str], words: str) -> None:
    began = time.monotonic()
    with pytest.raises(StoreFailed, match=words):
        open_store(server.url.replace(*change)).studies()
    assert time.monotonic() - began < 20.0, "a server is waited for 60 s"


@pytest.mark.parametrize("host", ["no..host", "x" * 300])
def test_an_invalid_host_name_is_reported_at_once(host: str) -> None:
    with pytest.raises(StoreFailed, match="cannot be used"):
        open_store(f"postgresql://me@{host}/db").studies()


@pytest.mark.parametrize(
    "words",
    [
        "Connection refused\n\tIs the server running on that host and accepting TCP/IP connections?",
        "No such file or directory\n\tIs the server running locally and accepting connections on that socket?",
        "timeout expired",
        "FATAL:  the database system is starting up",
        "FATAL:  the database system is shutting down",
        "FATAL:  the database system is in recovery mode",
        "FATAL:  the database system is not yet accepting connections",
        "FATAL:  sorry, too many clients already",
        "FATAL:  remaining connection slots are reserved for roles with the SUPERUSER attribute",
        "server closed the connection unexpectedly",
    ],
)
def test_temporary_errors_are_waited_for(words: str) -> None:
    assert is_temporary_in_postgres(psycopg.OperationalError(AT_SOCKET + words))


@pytest.mark.parametrize(
    "words",
    [
        'FATAL:  password authentication failed for user "recovery"',
        "fe_sendauth: no password supplied",
        'FATAL:  database "starting up" does not exist',
        'FATAL:  no pg_hba.conf entry for host "10.0.0.1", user "me", database "db", no encryption',
        'FATAL:  role "me" is not permitted to log in',
        "server does not support SSL, but SSL was required",
    ],
)
def test_permanent_errors_are_not_waited_for(words: str) -> None:
    assert not is_temporary_in_postgres(psycopg.OperationalError(AT_SOCKET + words))
    assert not is_temporary_in_postgres(ValueError(words))


@contextlib.contextmanager
def locked(url: str, statement: str) -> Iterator["psycopg.Connection[tuple[object, ...]]"]:
    """A session that holds a lock until it is told to release it."""
    with psycopg.connect(f"{url}&application_name=maintenance") as holder:
        holder.execute(statement)
        yield holder


@pytest.fixture
def study_url(postgres_url: str) -> str:
    study = thresher.create_study("s", arms=["a", "b"], at_least=0.5, budget=100, storage=postgres_url)
    study.ask()
    study.store.close()
    return postgres_url


@pytest.mark.parametrize("table", ["schema", "events", "leases"])
def test_a_lock_on_a_table_is_waited_for_and_its_holder_is_named(study_url: str, table: str) -> None:
    with (
        locked(study_url, f"LOCK TABLE thresher_{table} IN ACCESS EXCLUSIVE MODE") as holder,
        started([*ASK, study_url]) as agent,
    ):
        line = said_by(agent)
        assert f"(server process {holder.info.backend_pid}, maintenance), for up to" in line
        holder.commit()
        out, said = agent.communicate(timeout=60)
        assert (agent.returncode, said) == (0, ""), said
        assert out.startswith("2")


@pytest.mark.parametrize(
    ("table", "number", "status"), [("schema", signal.SIGINT, 130), ("events", signal.SIGTERM, -signal.SIGTERM)]
)
def test_waiting_for_a_lock_ends_with_a_signal(study_url: str, table: str, number: signal.Signals, status: int) -> None:
    with (
        locked(study_url, f"LOCK TABLE thresher_{table} IN ACCESS EXCLUSIVE MODE"),
        started([*ASK, study_url]) as agent,
    ):
        assert "waiting for another session" in said_by(agent)
        assert ends_at_once(agent, number).strip() == ""
        assert agent.returncode == status


def test_a_row_that_is_locked_is_waited_for(study_url: str) -> None:
    with locked(study_url, "SELECT * FROM thresher_leases FOR UPDATE") as holder:
        argv = [*THRESHER, "tell", "s", "1", "1", "--storage", study_url]
        with started(argv) as agent:
            assert "waiting for another session" in said_by(agent)
            holder.rollback()
            _, said = agent.communicate(timeout=60)
            assert (agent.returncode, said) == (0, "")
    assert [event.kind for event in open_store(study_url).read("s")] == ["created", "asked", "told"]


def test_a_lock_that_is_never_released_is_named_in_the_end(study_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("thresher.log.postgres.TURN", 0.1)
    monkeypatch.setattr("thresher.log.postgres.PATIENCE", 0.3)
    study = thresher.open_study("s", storage=study_url)
    with locked(study_url, "LOCK TABLE thresher_events IN SHARE ROW EXCLUSIVE MODE") as holder:
        rule = rf"another session holds a lock on its tables \(server process {holder.info.backend_pid}, maintenance\)"
        with pytest.raises(StoreFailed, match=rule):
            study.tell(1, 1)
    study.tell(1, 1)
    study.store.close()


def test_a_run_that_waits_for_a_lock_ends_with_ctrl_c(study_url: str, tmp_path: Path) -> None:
    with started([sys.executable, "-c", RUN, study_url, str(tmp_path)]) as run:
        storm.until(lambda: len(list(tmp_path.glob("began-*"))) == 2, 60)
        with locked(study_url, "LOCK TABLE thresher_events IN ACCESS EXCLUSIVE MODE"):
            (tmp_path / "go").touch()
            assert "waiting for another session" in said_by(run)
            ends_at_once(run, signal.SIGINT, seconds=5.0)  # a statement waits for two seconds at most
            assert run.returncode != 0


def test_deleting_waits_for_a_lock_and_says_so(study_url: str) -> None:
    argv = [*THRESHER, "delete", "s", "--yes", "--storage", study_url]
    with (
        locked(study_url, "LOCK TABLE thresher_events IN ROW EXCLUSIVE MODE") as holder,
        started(argv) as agent,
    ):
        assert "waiting for another session" in said_by(agent)
        holder.rollback()
        agent.communicate(timeout=60)
        assert agent.returncode == 0
    assert open_store(study_url).studies() == []


def test_the_pauses_between_tries_to_connect_grow_to_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses = list[float]()

    class Waits(LockPatience):
        def pause(self, seconds: float, what: object) -> bool:
            pauses.append(seconds)
            return len(pauses) < 7

    def refuses(*_: object, **__: object) -> None:
        raise psycopg.OperationalError("Connection refused")

    monkeypatch.setattr("thresher.log.postgres.LockPatience", Waits)
    monkeypatch.setattr(psycopg, "connect", refuses)
    with pytest.raises(StoreFailed, match="cannot be reached"):
        open_store("postgresql://nobody@localhost/none").studies()
    assert pauses == [0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0]


@pytest.mark.parametrize(("long", "gives_up"), [(0.0, True), (60.0, False)])
def test_after_an_interrupted_wait_for_a_server_it_is_not_waited_for_again(
    long: float, gives_up: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("thresher.log.postgres.LONG", long)
    monkeypatch.setattr(psycopg, "connect", interrupted)
    store = open_store("postgresql://nobody@127.0.0.1:1/nothing")
    with pytest.raises(KeyboardInterrupt):
        store.studies()
    expected = StoreFailed if gives_up else KeyboardInterrupt
    with pytest.raises(expected, match="was being waited for when" if gives_up else None):
        store.studies()


def test_an_agent_that_waited_in_vain_for_its_turn_takes_it_only_if_it_is_free(
    study_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("thresher.log.postgres.TURN", 0.5)
    holder, impatient = open_store(study_url), open_store(study_url)
    with holder.turn("s"):
        assert turns_held(study_url) == 1
        for waits in (True, False, False):
            began = time.monotonic()
            with impatient.turn("s"):
                assert (time.monotonic() - began >= 0.5) == waits
                assert turns_held(study_url) == 1
    with impatient.turn("s"):
        assert turns_held(study_url) == 1, "it was free"
    assert turns_held(study_url) == 0, "it was given back"
    holder.close()
    impatient.close()


def turns_held(url: str) -> int:
    with psycopg.connect(url) as session:
        query = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND classid = %s"
        found = session.execute(query, (KEY,)).fetchone()
    return int(found[0]) if found else 0
