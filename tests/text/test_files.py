"""Files are written whole or not at all, never over something else, and nothing is left behind."""

import os
import stat
import subprocess
import threading
from pathlib import Path

import pytest

from thresher.errors import InvalidInput
from thresher.text.files import MOST_BYTES, Kind, check_file_to_write, read_text, replacing_file

LETTER = Kind("a letter", lambda head: head.startswith(b"Dear"))


def write(target: Path, text: str = "Dear Ann", *, force: bool = False) -> None:
    with replacing_file(target, LETTER, force=force) as partial:
        partial.write_text(text)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_replaces_the_old_one_or_leaves_it(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    target.write_text("Dear old")
    with pytest.raises(ZeroDivisionError), replacing_file(target, LETTER) as partial:
        partial.write_text(f"half {1 // 0}")
    assert target.read_text() == "Dear old"
    with replacing_file(target, LETTER) as partial:
        assert partial.suffix == ".txt"
        partial.write_text("Dear new")
        assert target.read_text() == "Dear old"
    assert target.read_text() == "Dear new"
    assert names(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit, OSError(28, "No space left on device")])
def test_nothing_is_left_behind_when_it_is_interrupted(
    tmp_path: Path, interruption: BaseException | type[BaseException]
) -> None:
    def interrupted() -> None:
        with replacing_file(tmp_path / "a.txt", LETTER) as partial:
            partial.write_text("Dear")
            raise interruption

    with pytest.raises((InvalidInput, KeyboardInterrupt, SystemExit)):
        interrupted()
    assert names(tmp_path) == []


def test_a_file_of_another_kind_is_overwritten_only_by_force(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    target.write_text("my diary")
    with pytest.raises(InvalidInput, match=r"already exists, and is not a letter; .* force=True"):
        write(target)
    with pytest.raises(InvalidInput, match="is not a letter"):
        check_file_to_write(target, LETTER)
    assert (target.read_text(), names(tmp_path)) == ("my diary", ["a.txt"])
    write(target, force=True)
    assert target.read_text() == "Dear Ann"


def test_an_empty_file_may_be_filled(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    target.touch(mode=0o600)
    write(target)
    assert target.read_text() == "Dear Ann"


def test_permissions_are_kept_and_new_files_get_those_of_any_other(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write(tmp_path / "new.txt")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new.txt").stat().st_mode) == 0o640
    (tmp_path / "new.txt").chmod(0o604)
    write(tmp_path / "new.txt")
    assert stat.S_IMODE((tmp_path / "new.txt").stat().st_mode) == 0o604


def test_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    link = tmp_path / "a.txt"
    link.symlink_to("there/b.txt")
    (tmp_path / "there" / "b.txt").write_text("Dear old")
    write(link, "Dear Ann")
    assert link.is_symlink()
    assert (tmp_path / "there" / "b.txt").read_text() == "Dear Ann"
    assert (names(tmp_path), names(tmp_path / "there")) == (["a.txt", "there"], ["b.txt"])


@pytest.mark.parametrize("force", [False, True])
def test_a_link_to_nothing_is_not_followed(tmp_path: Path, force: bool) -> None:
    (tmp_path / "there").mkdir()
    link = tmp_path / "a.txt"
    link.symlink_to("there/b.txt")
    with pytest.raises(InvalidInput, match=r"is a link to .*there/b.txt, which does not exist; remove the link"):
        write(link, force=force)
    with pytest.raises(InvalidInput, match="is a link to"):
        check_file_to_write(link, LETTER, force=force)
    assert (names(tmp_path), names(tmp_path / "there")) == (["a.txt", "there"], [])


@pytest.mark.parametrize("device", ["/dev/urandom", "/dev/zero"])
def test_a_device_is_not_read(device: str) -> None:
    with pytest.raises(InvalidInput, match=f"arms file '{device}': is a device, which may never end; check its name"):
        read_text(device, "arms file")


def test_a_file_that_is_too_long_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "long.txt").open("wb") as file:
        file.truncate(MOST_BYTES + 1)  # it takes no place on the disk
    with pytest.raises(InvalidInput, match=r"long.txt': is longer than 1,024 MiB"):
        read_text(str(tmp_path / "long.txt"))


def test_a_pipe_is_read_up_to_the_same_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("thresher.text.files.MOST_BYTES", 1 << 20)
    os.mkfifo(tmp_path / "pipe")
    endless = subprocess.Popen(["sh", "-c", f"exec yes > {tmp_path}/pipe"], stderr=subprocess.DEVNULL)
    with pytest.raises(InvalidInput, match="pipe': is longer than 1 MiB"):
        read_text(str(tmp_path / "pipe"))
    assert endless.wait(10) != 0


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write(pipe)
    reader.join()
    assert read == ["Dear Ann"]
    assert pipe.is_fifo()


@pytest.mark.parametrize("name", ["", "no/a.txt", "/proc/a.txt", "x" * 300])
def test_a_place_that_cannot_be_written_is_named_in_one_line(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match=r"^file .*: cannot be written \(.*\); name another file$") as caught:
        write(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_a_full_disk_keeps_the_old_file(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    if os.geteuid() or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("only root can mount a disk")
    try:
        write(disk / "a.txt", "Dear old")
        with pytest.raises(InvalidInput, match="No space left on device"):
            write(disk / "a.txt", "Dear" * 100_000)
        assert ((disk / "a.txt").read_text(), names(disk)) == ("Dear old", ["a.txt"])
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)
