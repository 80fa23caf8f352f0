"""SQLite files: who may read them, which are not stores, and what happens when one is damaged or deleted."""

import errno
import gc
import os
import stat
import subprocess
import sys
from pathlib import Path

import apsw
import pytest
from sqlite_files import filled, make

import thresher
from thresher.errors import StoreFailed
from thresher.log.store import open_store


@pytest.mark.parametrize("mask", [0o022, 0o000])
def test_other_users_cannot_read_the_files(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        study = make(tmp_path / "thresher.db")
        study.ask()
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert modes == {f"thresher.db{end}": 0o600 for end in ("", "-wal", "-shm", "-lock")}
    study.store.close()


def test_relative_and_absolute_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    study = thresher.create_study("s", arms=["a"], at_least=0.5, budget=9, storage="sqlite:///here.db")
    monkeypatch.chdir("/")
    study.ask()  # the file is where it was
    study.store.close()
    assert (tmp_path / "here.db").exists()
    assert open_store(f"sqlite:///{tmp_path}/here.db").studies() == ["s"]


BAD = ["sqlite://", "sqlite:///", "sqlite:///folder/", "sqlite://host/file.db", "sqlite:///:memory:", "sqlite:///a\0b"]
BAD_OPTIONS = ["sqlite:///a.db?durability=none", "sqlite:///a.db?mode=ro", "a.db", "thresher.db", "mysql://u:p@h/d", ""]


@pytest.mark.parametrize("url", BAD + BAD_OPTIONS)
def test_a_url_that_names_no_file_is_refused_in_one_line(url: str) -> None:
    with pytest.raises(thresher.InvalidInput, match=r"^storage ") as caught:
        open_store(url)
    assert "\n" not in str(caught.value)
    assert "u:p@" not in str(caught.value)


def test_durability_is_full_unless_asked_otherwise(tmp_path: Path) -> None:
    full, normal = make(tmp_path / "1.db"), make(tmp_path / "2.db", options="?durability=normal")
    assert full.store.describe()["durability"].startswith("full")
    assert normal.store.describe()["durability"].startswith("normal")
    for study in (full, normal):
        study.store.close()


def test_reading_creates_no_file(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/thresher.db")
    with pytest.raises(thresher.UnknownStudy):
        thresher.open_study("s", storage=store)
    assert (store.studies(), store.expired("s"), store.notes("s")) == ([], [], {})
    store.delete("s")
    assert list(tmp_path.iterdir()) == []


def fails(path: Path) -> str:
    """The error on opening: one line that names the file."""
    with pytest.raises(StoreFailed) as caught:
        thresher.open_study("s", storage=f"sqlite:///{path}")
    assert "\n" not in str(caught.value)
    assert path.name in str(caught.value)
    return str(caught.value)


def test_a_file_of_another_kind_is_not_touched(tmp_path: Path) -> None:
    letter = tmp_path / "letter.txt"
    letter.write_text("Dear Sir or Madam, " * 100)
    assert "is not an SQLite file" in fails(letter)
    with pytest.raises(StoreFailed):
        make(letter)
    assert letter.read_text() == "Dear Sir or Madam, " * 100


def test_an_sqlite_file_of_another_program_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "bookmarks.db"
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE events (x)")
    connection.close()
    before = path.read_bytes()
    assert "another program" in fails(path)
    with pytest.raises(StoreFailed):
        make(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("version", [0, 2, 99])
def test_another_schema_is_refused(tmp_path: Path, version: int) -> None:
    path = filled(tmp_path / "thresher.db", 2)
    connection = apsw.Connection(str(path))
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    assert f"has schema {version}, but this thresher knows only schema 1; update thresher" in fails(path)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.5, 0.9, 0.99])
def test_a_truncated_file_is_never_a_shorter_study(tmp_path: Path, share: float) -> None:
    path = filled(tmp_path / "thresher.db")
    os.truncate(path, int(path.stat().st_size * share))
    message = fails(path)
    assert any(words in message for words in ("truncated", "is not an SQLite file")), message
    with pytest.raises(StoreFailed):
        make(path, "another")


def test_pages_that_were_overwritten_are_noticed(tmp_path: Path) -> None:
    path = filled(tmp_path / "thresher.db")
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2 // 4096 * 4096)
        file.write(b"\xff" * 4096)
    assert "damaged" in fails(path)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreFailed, match="its folder does not exist; make it: mkdir -p"):
        make(tmp_path / "nowhere" / "thresher.db")


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreFailed, match=tmp_path.name):
        make(tmp_path)


def test_an_agent_notices_that_its_file_was_deleted(tmp_path: Path) -> None:
    study = make(tmp_path / "thresher.db")
    pull = study.ask() or 0
    for file in tmp_path.iterdir():
        file.unlink()
    for _ in range(2):
        with pytest.raises(StoreFailed, match="deleted or replaced"):
            study.tell(pull, 1)
    assert not (tmp_path / "thresher.db").exists(), "an empty one in its place would hide the loss"
    study.store.close()


def test_an_agent_notices_that_its_file_was_replaced(tmp_path: Path) -> None:
    study = make(tmp_path / "thresher.db")
    copy = filled(tmp_path / "other.db", 5)
    copy.rename(tmp_path / "thresher.db")
    with pytest.raises(StoreFailed, match="deleted or replaced"):
        study.ask()
    study.store.close()


def test_leftovers_of_an_interrupted_creation_are_removed_later(tmp_path: Path) -> None:
    left = [tmp_path / f"thresher.db-new-0123456789ab{ending}" for ending in ("", "-wal", "-shm")]
    others = ["thresher.db-new-0123456789ac", "thresher.db-202611171230", "other.db-new-0123456789ab"]
    for file in (*left, *(tmp_path / name for name in others)):
        file.write_text("")
        os.utime(file, (1e9, 1e9))
    os.utime(tmp_path / others[0])  # its process may be alive; the other two are a copy, and of another store
    make(tmp_path / "thresher.db").store.close()
    assert {file.name for file in tmp_path.iterdir()} == {"thresher.db", "thresher.db-lock", *others}


@pytest.mark.parametrize("number", [errno.EPERM, errno.ENOTSUP])
def test_a_store_is_created_where_there_are_no_hard_links(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OSError(number, "no links")

    monkeypatch.setattr(os, "link", fails)
    study = make(tmp_path / "thresher.db")
    assert study.ask()
    study.store.close()
    assert {file.name for file in tmp_path.iterdir()} == {"thresher.db", "thresher.db-lock"}


def test_a_closed_store_keeps_no_file_open(tmp_path: Path) -> None:
    def count() -> int:
        links = [Path(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")]  # noqa: PTH208
        return sum(link.is_symlink() and link.readlink().is_relative_to(tmp_path) for link in links)

    study = make(tmp_path / "thresher.db")
    study.ask()
    assert count()
    study.store.close()
    assert count() == 0


def test_a_store_that_nobody_uses_any_more_is_closed(tmp_path: Path) -> None:
    study = make(tmp_path / "thresher.db")
    study.drop(study.ask() or 0, cause="lost")
    assert (tmp_path / "thresher.db-wal").exists()
    del study
    gc.collect()
    assert {file.name for file in tmp_path.iterdir()} == {"thresher.db", "thresher.db-lock"}


UNTIL_THE_VERY_END = "import time; time.sleep = lambda seconds: study; study = "


@pytest.mark.parametrize("kept", ["", "study = ", UNTIL_THE_VERY_END])
def test_a_program_that_ends_without_closing_its_study_leaves_one_file(tmp_path: Path, kept: str) -> None:
    url = f"sqlite:///{tmp_path}/thresher.db"
    script = f"import thresher\n{kept}thresher.create_study('s', arms=['a'], at_least=0.5, budget=9, storage={url!r})\n"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert {file.name for file in tmp_path.iterdir()} == {"thresher.db", "thresher.db-lock"}


USE_AT_EXIT = """
import atexit, sys
atexit.register(lambda: print(study.ask().id))
import thresher
study = thresher.create_study("s", arms=["a"], at_least=0.5, budget=9, storage=sys.argv[1])
"""


def test_a_study_can_be_used_while_the_program_ends(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", USE_AT_EXIT, f"sqlite:///{tmp_path}/thresher.db"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("1\n", "")


def test_an_sqlite_that_may_corrupt_files_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = make(tmp_path / "thresher.db")
    for version, is_safe in {"3.51.2": False, "3.51.3": True, "3.52.0": True, "3.50.9": False}.items():
        monkeypatch.setattr(apsw, "sqlite_lib_version", lambda version=version: version)
        assert ("! version" not in study.store.describe()) == is_safe
    study.store.close()


def test_a_file_that_was_cut_within_a_page_is_damaged(tmp_path: Path) -> None:
    path = filled(tmp_path / "thresher.db")
    os.truncate(path, path.stat().st_size - 100)
    assert "is damaged" in fails(path)
