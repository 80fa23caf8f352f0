"""Standard output and standard error that nobody reads, or that cannot be written."""

import os
import subprocess
from pathlib import Path

import pytest
from program import ENVIRONMENT, THRESHER

RUN = [*THRESHER, "run", "--at-least=0.5", "--arm=0.2", "--arm=0.8", "--budget=8"]
UNREAD = 141  # as of a program that SIGPIPE ended
ECHO = ["--confidence=off", "--", "echo", "{arm}"]


def unread() -> int:
    """The writing end of a pipe whose reader is closed."""
    read, write = os.pipe()
    os.close(read)
    return write


@pytest.mark.parametrize("style", ["table", "json", "csv", "markdown"])
@pytest.mark.parametrize(("requirement", "status"), [("any", 0), ("all", 1)])
def test_a_reader_that_stops_early_does_not_change_the_status(style: str, requirement: str, status: int) -> None:
    argv = [*RUN, f"--format={style}", f"--require=reached={requirement}", *ECHO]
    with os.fdopen(unread(), "wb") as out:
        done = subprocess.run(argv, stdout=out, stderr=subprocess.PIPE, env=ENVIRONMENT, text=True)
    assert done.returncode == status
    assert "rror" not in done.stderr


def test_head_gets_its_line() -> None:
    script = '"$@" | head -1'
    done = subprocess.run(["sh", "-c", script, "x", *RUN, *ECHO], capture_output=True, env=ENVIRONMENT, text=True)
    assert (done.stdout.split(), done.stderr) == (["arm", "mean", "pulls"], "")


def test_help_may_be_cut_off() -> None:
    with os.fdopen(unread(), "wb") as out:
        done = subprocess.run([*THRESHER, "run", "--help"], stdout=out, stderr=subprocess.PIPE, env=ENVIRONMENT)
    assert (done.returncode, done.stderr) == (UNREAD, b"")


def test_an_answer_that_nobody_reads_is_not_a_negative_one(tmp_path: Path) -> None:
    here = {**ENVIRONMENT, "THRESHER_STORAGE": f"sqlite:///{tmp_path}/thresher.db"}
    subprocess.run([*THRESHER, "create", "s", "--at-least=0.5", "--arm=a"], check=True, env=here)
    for command in (["verify", "s"], ["studies"], ["log", "s"], ["status", "s"]):
        with os.fdopen(unread(), "wb") as out:
            done = subprocess.run([*THRESHER, *command], stdout=out, stderr=subprocess.PIPE, env=here)
        assert (done.returncode, done.stderr) == (UNREAD, b""), command


def test_a_full_disk_is_reported_in_one_line() -> None:
    with Path("/dev/full").open("wb") as out:
        done = subprocess.run([*RUN, *ECHO], stdout=out, stderr=subprocess.PIPE, env=ENVIRONMENT, text=True)
    assert done.returncode == 3
    (line,) = done.stderr.splitlines()
    assert line.startswith("thresher: error: standard output: cannot be written (No space left on device)")


def test_the_run_continues_when_nobody_reads_its_progress() -> None:
    argv = [*THRESHER, "run", "--at-least=0.5", "--arm=a", "--for=2.2s", "--", "sh", "-c", "sleep 0.05; echo 1"]
    with os.fdopen(unread(), "wb") as err:
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=err, env=ENVIRONMENT, text=True)
    assert done.returncode == 0
    assert "It reaches 0.5." in done.stdout


def test_an_output_with_another_encoding_gets_escapes() -> None:
    argv = [*THRESHER, "run", "--at-least=0.5", "--arm=日", "--budget=2", "--", "echo", "1"]
    done = subprocess.run(argv, capture_output=True, env={**ENVIRONMENT, "PYTHONIOENCODING": "latin-1"})
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\\u65e5" in done.stdout
