"""Commands, one at a time: what they print, how they end, and who guards them."""

import fcntl
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from engines import until

from thresher.errors import EvaluationFailed
from thresher.run.command import guard
from thresher.run.command.lines import Answer, read_line, remarks_of, reward_in
from thresher.run.command.process import TAIL, Command, _follow
from thresher.run.command.reward import CommandFailed
from thresher.study import Pull


def pull(number: int) -> Pull:
    return Pull(number, "a", 1, {}, 7)


def test_all_of_a_long_output_is_read() -> None:
    assert Command(("sh", "-c", "yes | head -c 400000; yes | head -c 400000 >&2; echo 0.5"), timeout=20)(pull(1)) == 0.5


@pytest.mark.parametrize(("text", "is_hinted"), [("echo 0.5", True), (None, False)])
def test_a_script_without_its_first_line_is_recognised(text: str | None, is_hinted: bool, tmp_path: Path) -> None:
    script = tmp_path / "script"
    if text is not None:
        script.write_text(text)
        script.chmod(0o700)
    with pytest.raises(CommandFailed, match="cannot start") as caught:
        Command((str(script),))(pull(1))
    assert ("does it begin with a line such as #!/bin/sh?" in str(caught.value)) == is_hinted


def test_a_forked_child_closes_its_copy_of_the_pipe_to_the_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the guard would wait for the child, and kill nothing when the parent dies."""
    monkeypatch.setattr(guard, "GUARD", guard.Guard())
    guard._reset_in_child()  # without a guard there is nothing to close
    guard.GUARD.start()
    process = guard.GUARD._process
    assert process is not None
    assert process.stdin is not None
    number = process.stdin.fileno()
    guard._reset_in_child()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(number)
    os.dup2(0, number)  # closing it again must not close another file that has its number now
    process.stdin.close()
    assert guard.GUARD._process is None


def test_the_end_of_a_program_that_was_killed_is_the_end_of_what_it_started(tmp_path: Path) -> None:
    script = f"sleep 60 & echo $! > {tmp_path}/child; kill -9 $$"
    with pytest.raises(CommandFailed, match="was ended by SIGKILL"):
        Command(("sh", "-c", script), timeout=20)(pull(1))
    child = int((tmp_path / "child").read_text())
    until(lambda: _is_over(child), "the end of the child", 10)


def _is_over(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (ProcessLookupError, FileNotFoundError):
        return True


def test_what_a_program_left_in_its_pipe_is_read_to_the_end() -> None:
    ours, theirs = os.pipe()
    fcntl.fcntl(theirs, fcntl.F_SETPIPE_SZ, 1 << 20)
    os.write(theirs, b"x" * 300_000 + b"0.5")
    os.close(theirs)
    with os.fdopen(ours, "rb") as out, Path(os.devnull).open("rb") as err:
        program = subprocess.Popen(["true"])
        ended: Any = SimpleNamespace(pid=program.pid, stdout=out, stderr=err)
        tails = _follow(ended, None, lambda _: True)
        program.wait()
    assert tails == (b"x" * (TAIL - 3) + b"0.5", b"")


def answered(said: str) -> float:
    """What becomes of an answer that says this."""
    answer = read_line(f'{{"pull": 1, {said}}}'.encode())
    assert isinstance(answer, Answer)
    return reward_in(answer)


REMARKS = {"": (None, None), ', "cost": 0.5': (None, 0.5), ', "note": "cut off"': ("cut off", None)}


@pytest.mark.parametrize("said", REMARKS)
def test_a_reward_may_have_a_note_or_a_cost_or_neither(said: str) -> None:
    reward = answered(f'"reward": 0.25{said}')
    assert (reward, remarks_of(reward)) == (0.25, REMARKS[said])


@pytest.mark.parametrize(("text", "is_temporary"), [("ReadTimeout: 30 s", True), ("no model: Timeout", False)])
def test_an_error_that_is_named_as_temporary_errors_are_is_temporary(text: str, is_temporary: bool) -> None:
    with pytest.raises(EvaluationFailed) as caught:
        answered(f'"error": "{text}"')
    assert caught.value.transient == is_temporary
