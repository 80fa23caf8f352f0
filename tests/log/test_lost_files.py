"""Files of an SQLite store that are deleted, moved or replaced while agents use them."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest
import storm
from faults import Agent
from sqlite_files import make

import thresher
from thresher.errors import StoreFailed
from thresher.log.store import open_store
from thresher.study import peek_study

WAYS: dict[str, Callable[[Path], object]] = {
    "deleted": lambda file: file.unlink(),
    "moved": lambda file: file.rename(file.with_name("elsewhere")),
    "replaced": lambda file: shutil.copy(file, file.with_name("new")) and file.with_name("new").rename(file),
}


@pytest.mark.parametrize("options", ["", "?durability=normal"])
@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("what", ["wal", "shm"])
def test_nothing_is_acknowledged_after_a_file_is_lost(tmp_path: Path, what: str, how: str, options: str) -> None:
    study = make(tmp_path / "thresher.db", options=options)
    first, second = study.ask_many(2)
    study.tell(first, 1)
    WAYS[how](tmp_path / f"thresher.db-{what}")
    for _ in range(2):
        with pytest.raises(StoreFailed, match=f"thresher.db-{what} was deleted or replaced while in use") as caught:
            study.tell(second, 1)
        assert "\n" not in str(caught.value)
    study.store.close()
    with pytest.raises(StoreFailed):
        study.tell(second, 1)


@pytest.mark.parametrize("how", WAYS)
def test_nothing_is_written_after_the_index_is_lost(tmp_path: Path, how: str) -> None:
    """Other agents may have a new index: they would not see our lock, and would write to the same places of the log."""
    study = make(tmp_path / "thresher.db")
    pull = study.ask() or pytest.fail("no pull")
    WAYS[how](tmp_path / "thresher.db-shm")
    before = (tmp_path / "thresher.db-wal").read_bytes()
    writes: list[Callable[[], object]] = [lambda: study.tell(pull, 1), lambda: study.renew([pull], 60)]
    writes.append(lambda: study.store.note("s", "agent", "command"))
    for write in writes:
        with pytest.raises(StoreFailed, match=r"thresher\.db-shm was deleted or replaced"):
            write()
    assert (tmp_path / "thresher.db-wal").read_bytes() == before
    study.store.close()


@pytest.mark.parametrize("how", WAYS)
def test_a_lost_log_is_noticed_on_systems_that_do_not_name_open_files(
    tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: object) -> str:
        raise FileNotFoundError("there is no /proc")

    study = make(tmp_path / "thresher.db")
    study.store.close()
    with monkeypatch.context() as patch:
        patch.setattr(os, "readlink", fails)
        assert study.ask()
        WAYS[how](tmp_path / "thresher.db-wal")
        with pytest.raises(StoreFailed, match=r"thresher\.db-wal was deleted or replaced"):
            study.ask()
        study.store.close()


def test_a_file_lost_between_writing_and_flushing_is_noticed(tmp_path: Path) -> None:
    study = make(tmp_path / "thresher.db")
    store, pull = study.store, study.ask() or pytest.fail("no pull")
    append = store.append

    def lose(*args: object, **options: object) -> None:
        append(*args, **options)  # type: ignore[arg-type]
        (tmp_path / "thresher.db-wal").unlink()

    store.append = lose  # type: ignore[method-assign]
    with pytest.raises(StoreFailed, match=r"thresher\.db-wal was deleted"):
        study.tell(pull, 1)
    store.close()


@pytest.mark.parametrize("size", [0, 32])
def test_a_log_that_is_truncated_or_overwritten_in_place_is_noticed(tmp_path: Path, size: int) -> None:
    study = make(tmp_path / "thresher.db")
    pulls = study.ask_many(20)
    with (tmp_path / "thresher.db-wal").open("r+b") as log:
        if size:
            log.write(bytes(size))
        else:
            log.truncate()

    def go_on() -> None:
        for pull in pulls:
            study.tell(pull, 1)

    with pytest.raises(StoreFailed, match="truncated or overwritten while in use"):
        go_on()
    study.store.close()


@pytest.mark.parametrize("what", ["wal", "shm"])
def test_a_reader_reports_a_lost_log_or_index(tmp_path: Path, what: str) -> None:
    study, reader = make(tmp_path / "thresher.db"), open_store(f"sqlite:///{tmp_path}/thresher.db")
    study.ask()
    assert len(reader.read("s")) == 2
    (tmp_path / f"thresher.db-{what}").unlink()

    def is_missed() -> bool:
        try:
            reader.read("s")
        except StoreFailed as error:
            return f"thresher.db-{what} was deleted" in str(error)
        return False

    storm.until(is_missed, 60)
    for store in (reader, study.store):
        store.close()


@pytest.mark.parametrize("how", WAYS)
def test_closing_a_store_whose_index_is_lost_writes_nothing_to_the_file(tmp_path: Path, how: str) -> None:
    """Others may have a new index: they do not see our locks, and may be writing there."""
    study = make(tmp_path / "thresher.db")
    study.ask_many(3)
    WAYS[how](tmp_path / "thresher.db-shm")
    files = [tmp_path / "thresher.db", tmp_path / "thresher.db-wal"]
    before = [(file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    study.store.close()
    assert [(file.stat().st_size, file.stat().st_mtime_ns) for file in files] == before


@pytest.mark.parametrize("ends", [Agent.kill, Agent.end])
def test_a_store_whose_log_was_deleted_under_agents_is_not_opened_without_it(
    tmp_path: Path, ends: Callable[[Agent], None]
) -> None:
    """Rewards that were acknowledged may be nowhere else."""
    url = f"sqlite:///{tmp_path}/thresher.db"

    def is_missed() -> None:
        with pytest.raises(StoreFailed, match=r"its log thresher\.db-wal is missing") as caught:
            open_store(url).studies()
        assert "\n" not in str(caught.value)

    with Agent(url) as one, Agent(url) as other:
        for agent in (one, other):
            assert agent.do(f"tell {agent.do('ask')} 1") == "None"
        (tmp_path / "thresher.db-wal").unlink()
        is_missed()
        assert "thresher.db-wal was deleted" in one.do("ask")
        assert "thresher.db-wal was deleted" in other.do("tell 1 1"), "a repeated call is not acknowledged either"
        for agent in (one, other):
            ends(agent)
    is_missed()


def test_a_log_left_by_dead_agents_is_not_ignored(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/thresher.db"
    with Agent(url) as agent:
        agent.do("ask")
    kept = (tmp_path / "thresher.db-wal").rename(tmp_path / "kept")
    with pytest.raises(StoreFailed, match=r"or delete thresher\.db-shm to do without it"):
        thresher.open_study("s", storage=url)
    kept.rename(tmp_path / "thresher.db-wal")
    study = thresher.open_study("s", storage=url)
    assert study.verdict().issued == 1
    study.store.close()


def test_an_agent_with_a_lost_log_does_not_overwrite_later_writes(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/thresher.db"
    with Agent(url) as old:
        old.do("ask")
        for what in ("wal", "shm"):
            (tmp_path / f"thresher.db-{what}").unlink()
        study = thresher.create_study("new", arms=["a"], at_least=0.5, budget=100, storage=url)
        for pull in study.ask_many(50):
            study.tell(pull, 1)
        study.store.close()
        old.end()
    study = thresher.open_study("new", storage=url)
    assert peek_study(study, lambda ledger: ledger.told) == 50
    assert study.store.describe()["check"] == "sound"
    study.store.close()


def test_an_agent_without_log_and_index_leaves_the_file_alone(tmp_path: Path) -> None:
    """Another agent may begin a new log at any time: to copy ours over its pages would destroy them."""
    file = tmp_path / "thresher.db"
    study = make(file)
    study.ask_many(3)
    for what in ("wal", "shm"):
        (tmp_path / f"thresher.db-{what}").unlink()
    before = file.stat().st_mtime_ns
    with pytest.raises(StoreFailed, match="end all agents and start again: rewards may be lost"):
        study.ask()
    study.store.close()
    assert file.stat().st_mtime_ns == before


@pytest.mark.parametrize("options", ["", "?durability=normal"])
def test_other_agents_may_start_stop_and_checkpoint(tmp_path: Path, options: str) -> None:
    study = make(tmp_path / "thresher.db", options=options)
    for _ in range(5):
        pull = study.ask() or pytest.fail("no pull")
        other = open_store(f"sqlite:///{tmp_path}/thresher.db")
        assert other.studies() == ["s"]
        connection = apsw.Connection(str(tmp_path / "thresher.db"))
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        study.tell(pull, 1)
        connection.close()
        other.close()
    assert peek_study(study, lambda ledger: ledger.told) == 5
    study.store.close()


@pytest.mark.parametrize("how", WAYS)
def test_a_store_closed_and_lost_between_writing_and_flushing_is_noticed(tmp_path: Path, how: str) -> None:
    study = make(tmp_path / "thresher.db")
    store = study.store
    append = store.append

    def lose(*args: object, **options: object) -> None:
        append(*args, **options)  # type: ignore[arg-type]
        store.close()
        WAYS[how](tmp_path / "thresher.db")

    store.append = lose  # type: ignore[method-assign]
    with pytest.raises(StoreFailed, match=r"thresher\.db"):
        study.ask()
    assert (tmp_path / "thresher.db").exists() == (how == "replaced"), "no empty one takes its place"
    store.close()
