"""A program that stays, as a process: what it is given, what is shown of it, and how it ends."""

import logging
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from engines import until
from program import runs

from thresher.run.command import guard, persistent
from thresher.run.command.persistent import PersistentProgram

LATER = 20.0  # seconds; far more than anything takes


class Noted:
    """In place of the guard: what it is told."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def start(self) -> None:
        self.calls.append("start")

    def watch(self, group: int, *, gently: bool = False) -> None:
        self.calls.append(("watch", group, gently))

    def forget(self, group: int) -> None:
        self.calls.append(("forget", group))


@pytest.fixture
def guarded(monkeypatch: pytest.MonkeyPatch) -> Noted:
    noted = Noted()
    monkeypatch.setattr(guard, "GUARD", noted)
    return noted


@pytest.fixture
def start(guarded: Noted) -> Iterator[Callable[[str], Any]]:
    started: list[PersistentProgram] = []

    def begin(script: str) -> PersistentProgram:
        started.append(PersistentProgram(("sh", "-c", script)))
        return started[-1]

    yield begin
    for program in started:
        program.reap(at_once=True)
        program.close()


def output(program: PersistentProgram, size: int = 1 << 16) -> bytes:
    """What it prints next."""
    data = bytearray()

    def is_there() -> bool:
        try:
            data.extend(os.read(program.output, size))
        except BlockingIOError:
            return False
        return True

    until(is_there, "its output")
    return bytes(data)


def test_a_program_is_told_the_protocol_and_watched_from_the_start(start: Any, guarded: Noted) -> None:
    program = start("echo $THRESHER_PROTOCOL $PATH; read line; echo got $line; read line")
    assert output(program).decode().split() == ["1", os.environ["PATH"]]
    assert not os.get_blocking(program.input), "a full pipe must not hang the thread that writes"
    os.write(program.input, b"this\n")
    assert output(program) == b"got this\n"
    begun, (watched, pid, gently) = guarded.calls
    assert (begun, watched, gently) == ("start", "watch", True)
    assert os.getsid(pid) == pid, "Ctrl-C in the terminal is not for it"
    program.reap(at_once=True)
    program.reap(at_once=True)
    assert guarded.calls[2:] == [("forget", pid)]


def test_what_it_says_on_standard_error_is_shown_line_by_line(start: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    program = start("printf 'one\\ntw' >&2; printf 'o\\n\\nthree' >&2")
    program.reap(at_once=False)
    assert [record.getMessage() for record in caplog.records] == ["one", "two", "", "three"]
    assert program.errors == b"one\ntwo\n\nthree"


def test_the_end_of_a_long_standard_error_is_kept(
    start: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(persistent, "TAIL", 10)
    monkeypatch.setattr(persistent, "CHUNK", 8)
    program = start("printf '%s' 0123456789abcdefghij >&2; echo klm >&2")
    program.reap(at_once=False)
    assert program.errors == b"defghijklm\n"[-10:]
    assert "".join(record.getMessage() for record in caplog.records) == "0123456789abcdefghijklm"
    assert max(len(record.getMessage()) for record in caplog.records) <= 16, "a line without end is shown in parts"
    caplog.clear()
    start("printf 12345678 >&2; read line; printf 9 >&2").reap(at_once=True)
    assert [record.getMessage() for record in caplog.records] in (["12345678"], []), "a chunk is not too long"


@pytest.mark.parametrize(("code", "words"), [(0, "exited with 0 before it answered"), (3, "exited with 3")])
def test_its_end_is_told_in_words(start: Any, code: int, words: str) -> None:
    program = start(f"exit {code}")
    program.reap(at_once=False)
    assert program.ended == words


def test_one_that_is_about_to_exit_has_a_moment_and_others_are_killed(
    start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(persistent, "LAST_BREATH", LATER)
    leaves = start("read line; sleep 0.1; exit 5")
    leaves.hang_up()
    leaves.reap(at_once=False)
    assert leaves.ended == "exited with 5"
    stays = start("sleep 60 & echo $!; wait")
    child = int(output(stays))
    began = time.monotonic()
    stays.reap(at_once=True)
    assert stays.ended == "was ended by SIGKILL"
    assert time.monotonic() - began < LATER
    until(lambda: not runs(child), "the end of what it started")


@pytest.mark.parametrize("told", [True, False], ids=["the system tells", "the system does not tell"])
def test_its_exit_is_waited_for_but_not_longer(start: Any, told: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not told:
        monkeypatch.delattr(os, "pidfd_open")
    program = start("read line; exit 4")
    assert (program.exit == -1) != told
    began = time.monotonic()
    program.exits_within(0.05)
    assert 0.05 <= time.monotonic() - began < LATER
    program.hang_up()
    program.exits_within(LATER)
    assert time.monotonic() - began < LATER
    program.reap(at_once=True)
    assert program.ended == "exited with 4"
    program.exits_within(LATER)
    assert time.monotonic() - began < LATER, "it has exited"


def test_nothing_is_left_open(start: Any) -> None:
    program = start("read line")
    files = [program.input, program.output, program.exit]
    program.reap(at_once=True)
    program.close()
    assert not any(map(is_open, files))
    program.close()
    assert program.exit == -1


def test_a_forked_child_keeps_nothing_of_it_open(start: Any) -> None:
    program = start("read line")
    files = [program.input, program.output, program.exit]
    child = os.fork()
    if child == 0:
        os._exit(sum(map(is_open, files)))
    assert os.waitpid(child, 0)[1] == 0
    assert all(map(is_open, files))


def is_open(file: int) -> bool:
    try:
        os.fstat(file)
    except OSError:
        return False
    return True
