"""Stores of version 0.1: read as they are, upgraded by the first write, and then closed to agents of version 0.1."""

import gzip
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

import thresher
from thresher.cli import cli
from thresher.core.events import Event
from thresher.core.replay import verify
from thresher.errors import StoreFailed
from thresher.log.chain import chained
from thresher.log.rows import OLD_COLUMNS
from thresher.log.store import Store
from thresher.log.stores import open_store
from thresher.log.tail import pages
from thresher.study import look

STORED = Path(__file__).parent.parent / "study" / "stored" / "0.1.db.gz"
FIELDS = OLD_COLUMNS.removesuffix(", NULL")
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


@pytest.fixture
def old(url: str) -> Old:
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
        session.cursor().executemany(f"INSERT INTO thresher_events (study, {FIELDS}) VALUES (%s{', %s' * 13})", rows)
    return Old(url)


@pytest.fixture
def opened(old: Old) -> Iterator[Store]:
    store = open_store(old.url)
    yield store
    store.close()


def event(seq: int) -> tuple[Any, ...]:
    return (STUDY, *Event(seq, "asked", 1, 0)[:-1])


def digests(store: Store) -> dict[str, tuple[int, str | None, str | None]]:
    """The digests of states and the heads, by study."""
    found = {}
    for name in store.studies():
        report = verify(event for page in pages(store, name) for event in page)
        found[name] = (report.events, report.digest, report.head)
    return found


def test_an_old_store_is_read_without_being_changed(old: Old, opened: Store) -> None:
    names = opened.studies()
    assert len(names) > 10
    assert all(event.digest is None for event in opened.read(STUDY))
    study = thresher.open_study(STUDY, storage=opened)
    assert look(study, lambda ledger: ledger.issued)  # a verdict would drop pulls whose leases ran out
    assert study.events()[-1].digest is not None, "readers know the digests that it will have"
    head = opened.head(STUDY)
    assert head is not None
    assert (head.seq, head.digest) == (len(study.events()), None)
    assert "first write upgrades it" in opened.describe()["schema"]
    assert opened.head("nobody") is None
    assert old.schema() == 1


def test_the_first_write_upgrades_all_studies_and_changes_no_state(old: Old, opened: Store) -> None:
    before = digests(opened)
    raw = {name: list(opened.read(name)) for name in opened.studies()}
    thresher.create_study("new", arms=["a"], threshold=0.5, storage=opened)
    assert old.schema() == 2
    after = digests(opened)
    assert after.pop("new")[0] == 1
    assert after == before, "states and heads are what they were"
    for name, events in raw.items():
        assert list(opened.read(name)) == chained(events)
    assert opened.describe()["schema"] == "2"


def test_an_old_study_continues_in_a_chain(old: Old, opened: Store) -> None:
    study, reader = (thresher.open_study(STUDY, storage=open_store(old.url)) for _ in range(2))
    seen = len(reader.events()) + study.sweep()
    study.extend(budget=(look(study, lambda ledger: ledger.budget) or 0) + 50)
    for pull in study.ask_many(5):
        study.tell(pull, 1)
    assert len(reader.events()) == seen + 11, "a reader of the old store reads the new one"
    assert reader.verdict().head == study.verdict().head
    again = thresher.open_study(STUDY, storage=opened)
    assert look(again, lambda ledger: ledger.state()) == look(study, lambda ledger: ledger.state())
    for each in (study, reader):
        each.store.close()


def test_an_agent_of_0_1_that_had_the_store_open_cannot_write_any_more(old: Old, opened: Store) -> None:
    with old.agent() as run:
        last = len(opened.read(STUDY))
        run(old.write, event(last + 1))
        assert len(opened.read(STUDY)) == last + 1
        thresher.create_study("new", arms=["a"], threshold=0.5, storage=opened)
        with pytest.raises(Exception, match=r"(?i)not.null constraint"):
            run(old.write, event(last + 2))
    assert len(opened.read(STUDY)) == last + 1


def test_an_agent_of_0_1_cannot_delete_or_rename_a_study_after_an_upgrade(old: Old, opened: Store) -> None:
    """It would leave the head behind: a study without events under the old name, or events without a head."""
    with old.agent() as run:
        thresher.create_study("new", arms=["a"], threshold=0.5, storage=opened)
        before = digests(opened)
        for query in (
            f"DELETE FROM {old.prefix}events WHERE study = ?",
            f"UPDATE {old.prefix}events SET study = 'elsewhere' WHERE study = ?",
        ):
            for name in (STUDY, "new"):
                with pytest.raises(Exception, match="a newer version of thresher upgraded this store, so update this"):
                    run(query, (name,))
    assert digests(opened) == before
    opened.rename(STUDY, "elsewhere")
    opened.delete("new")
    assert digests(opened)["elsewhere"] == before[STUDY]
    assert not {STUDY, "new"} & set(opened.studies())


def test_a_new_store_refuses_agents_of_0_1_as_an_upgraded_one_does(url: str) -> None:
    study = thresher.create_study("s", arms=["a"], threshold=0.5, budget=9, storage=url)
    with Old(url).agent() as run, pytest.raises(Exception, match="so update this one"):
        run(f"DELETE FROM {Old(url).prefix}events WHERE study = ?", ("s",))
    assert study.ask()
    study.store.close()


def test_a_head_without_a_log_is_damage_that_can_be_deleted(url: str) -> None:
    """As in stores in which an agent of 0.1 deleted a study before such deletions were refused."""
    study = thresher.create_study("s", arms=["a"], threshold=0.5, budget=9, storage=url)
    study.ask()
    study.store.close()
    with Old(url).agent() as run:
        on = " ON thresher_events" if Old(url).prefix else ""
        run(f"DROP TRIGGER {'thresher_head_first' if on else 'deletes_head_first'}{on}")
        run(f"DELETE FROM {Old(url).prefix}events")
    with pytest.raises(thresher.DamagedStudy, match=r"is missing, as is all up to event 2.* thresher delete"):
        thresher.open_study("s", storage=url)
    with pytest.raises(thresher.StudyExists):
        thresher.create_study("s", arms=["a"], threshold=0.5, storage=url)
    with pytest.raises(thresher.DamagedStudy, match="thresher delete"):
        thresher.create_study("s", arms=["a"], threshold=0.5, storage=url, if_exists="join")
    cli.main(["delete", "s", "--yes", "--storage", url], standalone_mode=False)
    again = thresher.create_study("s", arms=["a"], threshold=0.5, budget=9, storage=url)
    assert again.ask()
    again.store.close()


def test_events_that_an_agent_of_0_1_writes_meanwhile_are_read(old: Old, opened: Store) -> None:
    study = thresher.open_study(STUDY, storage=opened)
    budget = look(study, lambda ledger: ledger.budget) or 0
    with old.agent() as run:
        last = study.events()[-1].seq
        run(old.write, (STUDY, *Event(last + 1, "extended", budget=budget + 7, key="other")[:-1]))
        assert look(study, lambda ledger: ledger.budget) == budget + 7
        run(f"DELETE FROM {old.prefix}events WHERE study = ?", (STUDY,))
        with pytest.raises(thresher.StudyDeleted):
            look(study, lambda ledger: ledger.budget)


def test_a_new_study_with_the_name_of_a_deleted_one_is_another_study_in_an_old_store(old: Old, opened: Store) -> None:
    names = sorted(opened.studies(), key=lambda name: len(opened.read(name)))
    study = thresher.open_study(names[0], storage=opened)
    with old.agent() as run:
        run(f"DELETE FROM {old.prefix}events WHERE study = ?", (names[0],))
        run(f"UPDATE {old.prefix}events SET study = ? WHERE study = ?", (names[0], names[-1]))
    with pytest.raises(thresher.StudyDeleted):
        study.verdict()
    assert old.schema() == 1


def test_a_gap_in_an_old_log_is_damage_before_and_after_the_upgrade(old: Old, opened: Store) -> None:
    with old.agent() as run:
        run(f"DELETE FROM {old.prefix}events WHERE study = ? AND seq = 5", (STUDY,))
    for _ in range(2):
        with pytest.raises(thresher.DamagedStudy, match="event 5: is missing"):
            thresher.open_study(STUDY, storage=opened)
        thresher.create_study("new", arms=["a"], threshold=0.5, storage=opened, if_exists="join")
    assert old.schema() == 2
    opened.delete(STUDY)
    assert STUDY not in opened.studies()


def test_a_damaged_study_of_an_old_store_can_be_deleted(old: Old, opened: Store) -> None:
    opened.delete(STUDY)
    assert STUDY not in opened.studies()
    assert old.schema() == 1


def test_a_rename_upgrades_too(old: Old, opened: Store) -> None:
    before = digests(opened)[STUDY]
    opened.rename(STUDY, "elsewhere")
    assert old.schema() == 2
    assert digests(opened)["elsewhere"] == before


def test_two_agents_that_upgrade_at_once_upgrade_once(old: Old, opened: Store) -> None:
    other = open_store(old.url)
    assert other.studies() == opened.studies()  # both know the old schema
    thresher.create_study("first new", arms=["a"], threshold=0.5, storage=opened)
    thresher.create_study("second new", arms=["a"], threshold=0.5, storage=other)
    assert {"first new", "second new"} <= set(opened.studies())
    assert digests(opened) == digests(other)
    other.close()


# -- SQLite alone ---------------------------------------------------------------------------------------------------


def sqlite_store(tmp_path: Path) -> Path:
    path = tmp_path / "thresher.db"
    path.write_bytes(gzip.decompress(STORED.read_bytes()))
    return path


def test_an_upgraded_file_has_the_tables_of_a_new_one(tmp_path: Path) -> None:
    for name, path in (("a", sqlite_store(tmp_path)), ("b", tmp_path / "new.db")):
        study = thresher.create_study(name, arms=["a"], threshold=0.5, storage=f"sqlite:///{path}")
        study.store.close()
    shapes = [
        sorted(
            sql.replace('"', "")
            for (sql,) in apsw.Connection(str(path)).execute("SELECT sql FROM sqlite_schema WHERE sql")
        )
        for path in (tmp_path / "thresher.db", tmp_path / "new.db")
    ]
    assert shapes[0] == shapes[1]


def test_an_upgrade_that_fails_leaves_the_old_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = sqlite_store(tmp_path)
    store = open_store(f"sqlite:///{path}")
    before = digests(store)

    def fails(*_: object) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("thresher.log.rows.from_row", fails)
    monkeypatch.setattr("thresher.log.sqlite_schema.sealed", lambda rows, heads: (fails() for row in rows))
    with pytest.raises(StoreFailed, match="No space left"):
        thresher.create_study("new", arms=["a"], threshold=0.5, storage=store)
    monkeypatch.undo()
    assert digests(store) == before
    assert store.describe()["schema"].startswith("1")
    thresher.create_study("new", arms=["a"], threshold=0.5, storage=store)
    store.close()


def test_an_old_store_on_a_read_only_disk_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    sqlite_store(folder)
    bind = ["mount", "--bind", str(folder), str(folder)]
    if os.geteuid() or subprocess.run(bind, capture_output=True).returncode:
        pytest.skip("only root can mount a disk")
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", str(folder)], check=True)
        store = open_store(f"sqlite:///{folder}/thresher.db")
        assert all(report[2] for report in digests(store).values())
        with pytest.raises(StoreFailed, match="is read-only"):
            thresher.create_study("new", arms=["a"], threshold=0.5, storage=store)
        assert store.studies()
        store.close()
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_invalid_text_stops_the_upgrade_but_not_reading_other_studies(tmp_path: Path) -> None:
    path = sqlite_store(tmp_path)
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE events SET agent = CAST(x'ff' AS TEXT) WHERE study = ? AND seq = 9", (STUDY,))
    connection.close()
    store = open_store(f"sqlite:///{path}")
    with pytest.raises(StoreFailed, match=r"cannot be upgraded from schema 1: it is damaged, in study .* or the next"):
        thresher.create_study("new", arms=["a"], threshold=0.5, storage=store)
    with pytest.raises(thresher.DamagedStudy, match=STUDY):
        thresher.open_study(STUDY, storage=store)
    assert thresher.open_study(store.studies()[0], storage=store)
    store.delete(STUDY)
    assert thresher.create_study("new", arms=["a"], threshold=0.5, storage=store).ask()
    store.close()


def test_a_chained_store_that_says_it_is_of_version_0_1_is_refused(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    study = thresher.create_study("s", arms=["a"], threshold=0.5, budget=9, storage=url)
    pull = study.ask()
    assert pull
    study.tell(pull, 0.25)
    study.store.close()
    connection = apsw.Connection(f"{tmp_path}/s.db")
    connection.execute("PRAGMA user_version = 1; UPDATE events SET reward = 0.75 WHERE seq = 3")
    connection.close()
    with pytest.raises(StoreFailed, match="is damaged: it says that its schema is 1"):
        thresher.open_study("s", storage=url).verdict()
