"""Commands that misbehave: they cost one pull, and leave nothing behind."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from program import ENVIRONMENT, THRESHER, pids, run, runs, until

from thresher.errors import NoReward
from thresher.run.command.process import TAIL, Command
from thresher.run.command.reward import CommandFailed
from thresher.study import Pull

PULL = Pull(1, "a", 1, {}, 5)
FOR_EVER = "sleep 1000"


@contextmanager
def folder_of_pids(folder: Path) -> Iterator[Path]:
    """A folder in which a script leaves pids as files; processes that still run at the end are killed."""
    try:
        yield folder
    finally:
        for pid in pids(folder):
            if runs(pid):
                os.kill(pid, signal.SIGKILL)


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def zombies() -> list[str]:
    """Children of this process that nobody reaped."""
    listed = subprocess.run(["ps", "--ppid", str(os.getpid()), "-o", "stat="], capture_output=True, text=True)
    return [state for state in listed.stdout.split() if state.startswith("Z")]


def test_a_timeout_ends_the_command_and_its_grandchildren(tmp_path: Path) -> None:
    with folder_of_pids(tmp_path) as folder:
        script = f"sh -c 'touch {folder}/$$; {FOR_EVER}' & touch {folder}/$$; {FOR_EVER} & touch {folder}/$!; wait"
        result = run("--arm=a", "--budget=2", "--timeout=2s", "--workers=2", "--", "sh", "-c", script)
        assert "timed out after 2 s and was killed" in result.err
        assert result.status == 3
        assert len(pids(folder)) == 6
        until(lambda: not any(map(runs, pids(folder))), "the end of the grandchildren")


def test_a_command_that_ignores_sigterm_is_killed() -> None:
    with pytest.raises(CommandFailed, match="timed out"):
        Command(("sh", "-c", f"trap '' TERM INT HUP; {FOR_EVER}; {FOR_EVER}"), timeout=0.2)(PULL)


def test_a_command_that_hangs_after_closing_its_output_is_killed_too() -> None:
    with pytest.raises(CommandFailed, match="timed out"):
        Command(("sh", "-c", f"echo 1; exec >&- 2>&-; {FOR_EVER}"), timeout=0.2)(PULL)


def test_a_hanging_arm_is_retired_and_the_others_get_their_verdict() -> None:
    script = f"test $THRESHER_ARM = slow && {FOR_EVER}; echo 1"
    args = ["--arm=quick", "--arm=slow", "--budget=14", "--timeout=1s", "--max-failures=1", "--format=json"]
    result = run(*args, "--", "sh", "-c", script)
    assert result.status == 0
    verdict = json.loads(result.out)
    assert (verdict["reached"], verdict["retired"], verdict["pending"]) == (["quick"], ["slow"], 0)


def test_a_daemon_left_behind_does_not_hold_the_pull(tmp_path: Path) -> None:
    with folder_of_pids(tmp_path) as folder:
        script = f"{FOR_EVER} & touch {folder}/$!; echo 0.75"  # it holds both pipes open
        assert Command(("sh", "-c", script), timeout=30)(PULL) == 0.75
        assert [runs(pid) for pid in pids(folder)] == [True]


def test_a_daemon_that_keeps_writing_does_not_hold_the_pull(tmp_path: Path) -> None:
    with folder_of_pids(tmp_path) as folder:
        assert Command(("sh", "-c", f"echo 1; yes 1 & touch {folder}/$!"), timeout=30)(PULL) == 1


def test_only_the_end_of_gigabytes_of_output_counts_and_memory_stays_small() -> None:
    def most_memory(script: str) -> tuple[int, bytes]:
        argv = [*THRESHER, "run", "--at-least=0.5", "--arm=a", "--budget=2", "--format=json", "--", "sh", "-c", script]
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, env=ENVIRONMENT)
        assert process.stdout is not None
        out = process.stdout.read()
        process.stdout.close()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        return used.ru_maxrss, out  # KiB

    little, _ = most_memory("echo 0.75")
    much, out = most_memory("yes | head -c 200000000; yes | head -c 20000000 >&2; echo; echo 0.75")
    assert json.loads(out)["rows"][0]["mean"] == 0.75
    assert much - little < 20_000


def test_the_last_64_kib_count() -> None:
    assert Command(("sh", "-c", f"echo 0.75; yes '' | head -c {TAIL - 5}"))(PULL) == 0.75
    with pytest.raises(NoReward):
        Command(("sh", "-c", f"echo 0.75; yes '' | head -c {TAIL}"))(PULL)


def test_binary_output_without_a_number_is_a_failure_in_one_line() -> None:
    result = run("--arm=a", "--budget=3", "--", "sh", "-c", r"printf '\000\377\033[31m\n\200\n'")
    assert result.status == 3
    *_, line = result.err.splitlines()
    assert "printed no number on its last line" in line
    assert result.err.replace("\n", "").isprintable(), "no control character of the command reaches the terminal"


def test_hundreds_of_pulls_leave_no_open_file_and_no_zombie() -> None:
    commands = [
        (Command(("echo", "1")), None),
        (Command(("false",)), CommandFailed),
        (Command(("no-such-program",)), CommandFailed),
        (Command(("sleep", "9"), timeout=0.001), CommandFailed),
    ]
    commands[0][0](PULL)
    before = open_files()
    for command, error in commands * 75:
        if error is None:
            command(PULL)
        else:
            with pytest.raises(error):
                command(PULL)
    assert open_files() < before + 20  # other tests of this process may open some; 300 commands would leave hundreds
    assert zombies() == []


def test_a_command_has_its_own_session(tmp_path: Path) -> None:
    Command(("sh", "-c", f"ps -o sid= -p $$ > {tmp_path}/session; echo $$ > {tmp_path}/pid; echo 1"))(PULL)
    assert int((tmp_path / "session").read_text()) == int((tmp_path / "pid").read_text()) != os.getsid(0)


def test_many_workers_get_the_open_files_they_need(tmp_path: Path) -> None:
    script = 'ulimit -Sn 100; exec "$0" "$@"'
    argv = [*THRESHER, "run", "--at-least=0.5", "--arm=a", "--arm=b", "--budget=80", "--workers=40", "--format=json"]
    argv.append("--confidence=off")
    wait = f"touch {tmp_path}/$$; until test $(ls {tmp_path} | wc -l) -ge 40; do sleep 0.05; done; echo 1"
    done = subprocess.run(
        ["sh", "-c", script, *argv, "--", "sh", "-c", wait], capture_output=True, text=True, env=ENVIRONMENT
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["told"] == 80
