"""PostgreSQL: lost connections, passwords that are never shown, and other people's tables."""

import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

import thresher
from thresher.core.events import Event
from thresher.errors import Conflict, StoreFailed
from thresher.log import postgres_schema
from thresher.log.store import open_store
from thresher.text.masking import masked

SECRET = "s3cr3t-Pa55"


def make(url: str) -> thresher.Study:
    return thresher.create_study("s", arms=["a", "b"], at_least=0.5, budget=1000, storage=url)


def end_all_sessions(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'thresher' AND pid <> pg_backend_pid()"
        )


def test_a_lost_connection_is_opened_again(postgres_url: str) -> None:
    study = make(postgres_url)
    for number in range(1, 6):
        end_all_sessions(postgres_url)
        pull = study.ask() or pytest.fail("no pull")
        assert pull.id == number
        end_all_sessions(postgres_url)
        study.tell(pull, 1)
    assert [event.kind for event in study.events()] == ["created", *["asked", "told"] * 5]
    study.store.close()


def test_a_connection_lost_within_a_turn_decides_again(postgres_url: str) -> None:
    study = make(postgres_url)
    with study.store.turn("s"):
        end_all_sessions(postgres_url)
        assert study.store.studies() == ["s"]
    assert study.ask()
    study.store.close()


def test_a_turn_that_is_never_released_blocks_nobody(postgres_url: str) -> None:
    study, other = make(postgres_url), thresher.open_study("s", storage=postgres_url)
    with study.store.turn("s"):
        for number in (1, 2, 3):
            assert (other.ask() or pytest.fail("no pull")).id == number
    for each in (study, other):
        each.store.close()


@pytest.mark.parametrize("version", [0, 2, 99])
def test_another_schema_is_refused(postgres_url: str, version: int) -> None:
    make(postgres_url).store.close()
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("UPDATE thresher_schema SET version = %s", (version,))
    with pytest.raises(
        StoreFailed, match=f"has schema {version}, but this thresher knows only schema 1; update thresher"
    ):
        open_store(postgres_url).studies()


@pytest.fixture
def guarded(postgres: str) -> Iterator[str]:
    """The URL of a user with a password."""
    if "postgres:@" not in postgres:
        pytest.skip("this server is not ours")
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE guarded LOGIN PASSWORD '{SECRET}'")
        connection.execute("GRANT CREATE ON SCHEMA public TO guarded")
        yield postgres.replace("postgres:@", f"guarded:{SECRET}@")
        connection.execute("DROP OWNED BY guarded; DROP ROLE guarded")


def unreachable(url: str) -> str:
    with pytest.raises((StoreFailed, thresher.InvalidInput)) as caught:
        open_store(url).studies()
    text = str(caught.value)
    assert "\n" not in text
    assert SECRET not in text
    assert SECRET not in repr(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    return text


def test_a_wrong_password_is_reported_at_once_and_not_shown(guarded: str) -> None:
    study = make(guarded)
    assert study.ask()
    study.store.close()
    message = unreachable(guarded.replace(SECRET, f"{SECRET}x"))
    assert "password authentication failed" in message
    assert "guarded:***@" in message


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://me:{SECRET}@127.0.0.1:1/db",
        f"postgres://me:{SECRET}@127.0.0.1:1/db?connect_timeout=2",
        f"postgresql://127.0.0.1:1/db?user=me&password={SECRET}",
        f"postgresql://me:{SECRET}@127.0.0.1:notaport/db",
        f"postgresql://me:a@b:{SECRET}@127.0.0.1:1/db",
        f"postgresql://me:{SECRET}@[::1/db",
        f"postgresql://me:a%20{SECRET}@127.0.0.1:1/db",
        f"postgresql://me:{SECRET}@127.0.0.1:1/db?unheard_of=1",
    ],
)
def test_passwords_are_never_shown(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("thresher.log.postgres.PATIENCE", 0.1)
    unreachable(url)


def test_masking_keeps_the_rest() -> None:
    assert masked(f"postgresql://me:{SECRET}@host:5432/db?sslmode=require") == (
        "postgresql://me:***@host:5432/db?sslmode=require"
    )
    assert masked("postgresql:///db?host=/run") == "postgresql:///db?host=/run"


def test_an_unknown_database_is_reported_at_once(postgres: str) -> None:
    assert "does not exist" in unreachable(postgres.replace("/postgres?", "/nowhere?"))


def test_without_psycopg_one_line_says_what_to_install() -> None:
    script = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from thresher.log.store import open_store\n"
        "from thresher import ThresherError\n"
        f"try: open_store('postgresql://me:{SECRET}@host/db')\n"
        "except ThresherError as error: print(error)"
    )
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60).stdout
    assert "pip install 'thresher[postgres]'" in out
    assert SECRET not in out
    assert len(out.splitlines()) == 1


def test_an_append_that_meets_a_deletion_writes_nothing(postgres_url: str) -> None:
    study = make(postgres_url)
    store, last = study.store, study.events()[-1]
    with psycopg.connect(postgres_url) as deleting, ThreadPoolExecutor(1) as pool:
        deleting.execute("LOCK TABLE thresher_events IN SHARE ROW EXCLUSIVE MODE")
        deleting.execute("DELETE FROM thresher_heads WHERE study = 's'")
        deleting.execute("DELETE FROM thresher_events WHERE study = 's'")
        late = pool.submit(store.append, "s", [Event(last.seq + 1, "asked", 1, 0)], before=last.digest)
        for _ in range(100):  # in any case it must write nothing; usually it waits for the lock by now
            if deleting.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchone():
                break
            time.sleep(0.01)
        deleting.commit()
        with pytest.raises(Conflict):
            late.result(60)
    assert store.studies() == []
    with pytest.raises(thresher.StudyDeleted):
        study.ask()
    store.close()


def test_an_append_that_a_damaged_head_would_allow_replaces_no_event(postgres_url: str) -> None:
    study = make(postgres_url)
    study.ask_many(3)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("UPDATE thresher_heads SET seq = 2")
    before = study.store.read("s")
    with pytest.raises(Conflict):
        study.store.append("s", [before[2]._replace(arm=1)], before=before[3].digest)
    assert study.store.read("s") == before
    study.store.close()


def test_what_a_server_says_is_told_in_one_line(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(postgres_url)
    with monkeypatch.context() as broken:
        broken.setattr(postgres_schema, "NAMES", "SELECT nonsense")
        with pytest.raises(StoreFailed, match=r'column "nonsense" does not exist.*; run thresher doctor'):
            store.studies()
    assert store.studies() == []
    store.close()


@pytest.mark.parametrize("off", [0, 1, 2, None])
def test_the_doctor_says_so_if_a_crash_of_the_server_may_lose_rewards(off: int | None) -> None:
    switches = ["off" if off == at else "on" for at in range(3)]
    row = ("18.1", *switches, "8 kB", 0.0, 2)
    connection: Any = SimpleNamespace(execute=lambda _: SimpleNamespace(fetchone=lambda: row))
    assert ("! durability" in postgres_schema.examine_postgres_schema(connection)) == (off is not None)
