"""SQLite files on disks that are full or read-only: nothing that was acknowledged is lost."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlite_files import filled, make

import thresher
from thresher.errors import StoreFailed


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of six megabytes, if we may mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if (
        os.geteuid()
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(folder)], capture_output=True
        ).returncode
    ):
        pytest.skip("only root can mount a disk")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_loses_nothing_that_was_acknowledged(small_disk: Path) -> None:
    study = make(small_disk / "thresher.db")
    acknowledged: dict[int, float] = {}

    def fill() -> None:
        while pull := study.ask():
            study.tell(pull, pull.seed / 2**32, note="x" * 900)  # so that it is soon full
            acknowledged[pull.id] = pull.seed / 2**32

    with pytest.raises(StoreFailed, match="disk") as caught:
        fill()
    assert "\n" not in str(caught.value)
    assert len(acknowledged) > 100
    whole = shutil.copytree(small_disk, small_disk.parent / "copy")  # with room again
    again = thresher.open_study("s", storage=f"sqlite:///{whole}/thresher.db")
    told = {event.pull: event.reward for event in again.events() if event.kind == "told"}
    assert acknowledged.items() <= told.items()
    assert len(told) <= len(acknowledged) + 1
    assert again.ask()
    for each in (study, again):
        each.store.close()


def test_a_study_on_a_read_only_disk_can_be_read(small_disk: Path) -> None:
    filled(small_disk / "thresher.db")
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    study = thresher.open_study("s", storage=f"sqlite:///{small_disk}/thresher.db")
    assert study.verdict().issued == 200
    with pytest.raises(StoreFailed, match="is read-only"):
        study.ask()
    study.store.close()


WRITE_TO_THE_LIMIT = """
import resource, sys, thresher
study = thresher.create_study("s", arms=["a"], at_least=0.5, budget=10**6, storage=sys.argv[1], confidence=None)
resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, 2_000_000))
try:
    while True:
        pull = study.ask()
        study.tell(pull, 1)
        print(pull.id, flush=True)
except thresher.ThresherError as error:
    print(error, file=sys.stderr)
"""


def test_a_file_that_may_not_grow_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/thresher.db"
    done = subprocess.run([sys.executable, "-c", WRITE_TO_THE_LIMIT, url], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert len(done.stderr.splitlines()) == 1
    assert "disk" in done.stderr
    study = thresher.open_study("s", storage=url)
    told = {event.pull for event in study.events() if event.kind == "told"}
    assert {int(line) for line in done.stdout.split()} <= told
    assert len(told) > 50
    study.store.close()


READ_ONLY = """
import sys, thresher
try:
    study = thresher.open_study("s", storage=sys.argv[1])
    print(study.verdict().issued)
    study.ask()
except thresher.ThresherError as error:
    print(error, file=sys.stderr)
"""


def test_a_read_only_file_says_so_and_can_still_be_read(tmp_path: Path) -> None:
    path = filled(tmp_path / "thresher.db")
    study = thresher.open_study("s", storage=f"sqlite:///{path}")  # its -shm lets others read
    study.ask()
    for file in tmp_path.iterdir():
        file.chmod(0o400)
    done = without_power_over_modes(READ_ONLY, f"sqlite:///{path}")
    assert done.stdout == "201\n", done.stderr
    assert "is read-only; make the file, those that belong to it and their folder writable" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    study.store.close()


def without_power_over_modes(script: str, *args: str) -> "subprocess.CompletedProcess[str]":
    """Run a script as a user to whom file modes apply: root may write everything, unless it drops that right."""
    argv = [sys.executable, "-c", script, *args]
    if not os.geteuid():
        if not shutil.which("setpriv"):
            pytest.skip("no setpriv to give up root's powers with")
        argv = ["setpriv", "--bounding-set=-dac_override", "--inh-caps=-dac_override", *argv]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60)
