"""SQLite files of version 0.1: their upgrade, and what stops it."""

import os
import subprocess
from pathlib import Path
from typing import Any

import apsw
import pytest
from old_stores import STUDY, digests, sqlite_store

import thresher
from thresher.errors import StoreFailed
from thresher.log.stores import open_store


def test_an_upgraded_file_has_the_tables_of_a_new_one(tmp_path: Path) -> None:
    for name, path in (("a", sqlite_store(tmp_path)), ("b", tmp_path / "new.db")):
        study = thresher.create_study(name, arms=["a"], at_least=0.5, storage=f"sqlite:///{path}")
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

    monkeypatch.setattr("thresher.log.event_rows.from_row", fails)
    monkeypatch.setattr("thresher.log.sqlite_schema.sealed", lambda rows, heads: (fails() for row in rows))
    with pytest.raises(StoreFailed, match="No space left"):
        thresher.create_study("new", arms=["a"], at_least=0.5, storage=store)
    monkeypatch.undo()
    assert digests(store) == before
    assert store.describe()["schema"].startswith("1")
    thresher.create_study("new", arms=["a"], at_least=0.5, storage=store)
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
            thresher.create_study("new", arms=["a"], at_least=0.5, storage=store)
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
        thresher.create_study("new", arms=["a"], at_least=0.5, storage=store)
    with pytest.raises(thresher.DamagedStudy, match=STUDY):
        thresher.open_study(STUDY, storage=store)
    assert thresher.open_study(store.studies()[0], storage=store)
    store.delete(STUDY)
    assert thresher.create_study("new", arms=["a"], at_least=0.5, storage=store).ask()
    store.close()


def test_a_chained_store_that_says_it_is_of_version_0_1_is_refused(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    study = thresher.create_study("s", arms=["a"], at_least=0.5, budget=9, storage=url)
    pull = study.ask()
    assert pull
    study.tell(pull, 0.25)
    study.store.close()
    connection = apsw.Connection(f"{tmp_path}/s.db")
    connection.execute("PRAGMA user_version = 1; UPDATE events SET reward = 0.75 WHERE seq = 3")
    connection.close()
    with pytest.raises(StoreFailed, match="is damaged: it says that its schema is 1"):
        thresher.open_study("s", storage=url).verdict()
