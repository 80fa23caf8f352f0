"""One run of a command: what it is given, how it is followed, and how it ends."""

import errno
import os
import pickle
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from engines import until
from program import runs

from thresher.run.command import process
from thresher.run.command.process import Command, ProcessRun, ProcessRuns, fill_command_template, process_pull_values
from thresher.run.command.reward import CommandFailed, measured_time_as_reward, reward_start_failure
from thresher.study import Pull

PULL = Pull(7, "a", 3, {"depth": 2, "text": "x", "arm": "hidden"}, 5)


def ran(script: str, pull: Pull = PULL, **options: Any) -> float:
    return Command(("sh", "-c", script), **{"timeout": 20.0, **options})(pull)


# -- what it is given ------------------------------------------------------------------------------------------------


def test_placeholders_are_the_pulls_fields_its_parameters_and_its_case() -> None:
    fields = {"arm": "a", "seed": "5", "number": "3", "pull": "7"}
    assert process_pull_values(PULL) == {"depth": "2", "text": "x", **fields}
    with_case = PULL._replace(case=4, case_params={"question": "why", "hard": True})
    assert process_pull_values(with_case) == {
        **process_pull_values(PULL),
        "case": "4",
        "case.question": "why",
        "case.hard": "true",
    }


@pytest.mark.parametrize(
    ("template", "filled"),
    [("{a}{{b}}", "1{b}"), ("{a}}}", "1}}"), ("{{}}{a}", "{}1"), ("{a-b}{case.a}", "23"), ("{1}{ a}", "{1}{ a}")],
)
def test_braces_are_escaped_by_doubling_both(template: str, filled: str) -> None:
    assert fill_command_template(template, {"a": "1", "a-b": "2", "case.a": "3"}) == filled


@pytest.mark.parametrize("case", [None, 4])
def test_the_environment_has_the_pull_and_its_case_if_it_has_one(case: int | None, tmp_path: Path) -> None:
    ran(f"env > {tmp_path}/env; echo 1", PULL._replace(case=case))
    found = dict(line.split("=", 1) for line in (tmp_path / "env").read_text().splitlines() if "=" in line)
    ours = {key: value for key, value in found.items() if key.startswith("THRESHER_") and key in EXPECTED}
    assert ours == {key: value for key, value in EXPECTED.items() if case or key != "THRESHER_CASE"}
    assert found["PATH"] == os.environ["PATH"]


EXPECTED = {
    "THRESHER_ARM": "a",
    "THRESHER_SEED": "5",
    "THRESHER_NUMBER": "3",
    "THRESHER_PULL": "7",
    "THRESHER_CASE": "4",
}

# -- how it is followed ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("told", [True, False], ids=["the system tells of exits", "the system does not tell"])
def test_a_program_is_followed_to_its_end(told: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not told:
        monkeypatch.delattr(os, "pidfd_open")
        monkeypatch.delattr(os, "waitid")
    assert ran("echo 0.5; sleep 0.05") == 0.5
    assert ran("sleep 0.05", reward="seconds") >= 0.05
    assert ran("exec >&- 2>&-; sleep 0.05; exit 0", reward="exit-code") == 1.0
    began = time.monotonic()
    with pytest.raises(CommandFailed, match=r"timed out after 0\.1 s and was killed"):
        ran("sleep 60", timeout=0.1)
    assert 0.1 <= time.monotonic() - began < 20
    with pytest.raises(CommandFailed, match="was ended by SIGKILL"):
        ran("kill -9 $$")
    assert ran("echo 0.25", timeout=None) == 0.25


def test_a_program_that_was_reaped_elsewhere_has_ended_and_has_no_time() -> None:
    program = subprocess.Popen(["true"])
    os.waitpid(program.pid, 0)
    run = ProcessRun(program, time.monotonic())
    assert run.is_over(None)
    assert run.process.returncode == 0, "nobody knows"
    assert run.is_over(None), "once more"
    for how in ("seconds", "cpu-seconds"):
        with pytest.raises(CommandFailed, match="the system did not say what it used") as caught:
            measured_time_as_reward(run.times, how)
        assert caught.value.kind == "not measured"


def test_all_of_a_long_output_is_read() -> None:
    assert Command(("sh", "-c", "yes | head -c 400000; yes | head -c 400000 >&2; echo 0.5"), timeout=20)(PULL) == 0.5


# -- how it ends -----------------------------------------------------------------------------------------------------


def test_after_a_stop_what_runs_is_dead_and_nothing_begins(tmp_path: Path) -> None:
    command = Command(("sh", "-c", f"echo $$ > {tmp_path}/pid; sleep 60"), timeout=30.0)
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(command, PULL)
        until(lambda: (tmp_path / "pid").exists() and bool((tmp_path / "pid").read_text().strip()), "the program")
        command.stop()
        assert "was ended by SIGKILL" in str(future.exception(20))
    assert not runs(int((tmp_path / "pid").read_text()))
    with pytest.raises(CommandFailed, match="cannot start 'sh': the run was stopped"):
        command(PULL)


def test_a_run_that_has_ended_is_forgotten_and_not_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[int] = []
    monkeypatch.setattr(process, "kill_process_group", killed.append)
    found = ProcessRuns()
    run = found.begin(["true"], dict(os.environ))
    until(lambda: found.over(run), "its end")
    found.kill(run)
    found.stop()
    assert killed == []
    for pipe in (run.process.stdout, run.process.stderr):
        assert pipe
        pipe.close()


def test_a_forked_child_has_no_part_in_what_runs(tmp_path: Path) -> None:
    command = Command(
        ("sh", "-c", f"touch {tmp_path}/began; until test -e {tmp_path}/go; do sleep 0.01; done; echo 0.5")
    )
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(command, PULL)
        until((tmp_path / "began").exists, "the program")
        child = os.fork()
        if child == 0:
            answer = Command(("echo", "0.5"))(PULL)
            command.stop()
            os._exit(answer != 0.5)
        assert os.waitpid(child, 0)[1] == 0, "it runs programs of its own"
        (tmp_path / "go").touch()
        assert future.result(20) == 0.5


def test_a_group_that_is_gone_or_anothers_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for error in (ProcessLookupError, PermissionError):

        def killpg(group: int, number: int, error: type[OSError] = error) -> None:
            assert (group, number) == (12345, signal.SIGKILL)
            raise error

        monkeypatch.setattr(os, "killpg", killpg)
        process.kill_process_group(12345)


@pytest.mark.parametrize(
    ("error", "words", "is_temporary"),
    [
        (OSError(errno.EAGAIN, "Resource temporarily unavailable"), "Resource temporarily unavailable", True),
        (OSError(errno.ENOENT, "No such file or directory"), "No such file or directory", False),
        (ValueError("embedded null byte"), "embedded null byte", False),
        (OSError(errno.ENOEXEC, "Exec format error"), "Exec format error; does it begin with a line such as", False),
    ],
)
def test_a_program_that_cannot_start_says_why(error: Any, words: str, is_temporary: bool) -> None:
    failed = reward_start_failure("prog", error)
    assert str(failed).startswith(f"cannot start 'prog': {words}")
    assert failed.kind
    assert failed.kind.startswith(f"cannot start: {words}")
    assert failed.transient == is_temporary


def test_a_copy_of_a_command_is_the_same_without_its_runs() -> None:
    command = Command(("sh", "-c", "exit 4"), "exit-code", 20.0, frozenset({2}), frozenset({4}))
    copy = pickle.loads(pickle.dumps(command))
    assert copy == command
    command.stop()
    assert copy(PULL) == 0.0


@pytest.mark.parametrize(("text", "is_hinted"), [("echo 0.5", True), (None, False)])
def test_a_script_without_its_first_line_is_recognised(text: str | None, is_hinted: bool, tmp_path: Path) -> None:
    script = tmp_path / "script"
    if text is not None:
        script.write_text(text)
        script.chmod(0o700)
    with pytest.raises(CommandFailed, match="cannot start") as caught:
        Command((str(script),))(PULL)
    assert ("does it begin with a line such as #!/bin/sh?" in str(caught.value)) == is_hinted


def test_the_end_of_a_program_that_was_killed_is_the_end_of_what_it_started(tmp_path: Path) -> None:
    script = f"sleep 60 & echo $! > {tmp_path}/child; kill -9 $$"
    with pytest.raises(CommandFailed, match="was ended by SIGKILL"):
        Command(("sh", "-c", script), timeout=20)(PULL)
    child = int((tmp_path / "child").read_text())
    until(lambda: not runs(child), "the end of the child", 10)
