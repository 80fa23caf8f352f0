"""Ctrl-C, SIGTERM and a closed terminal: the verdict so far is printed, and no process is left."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from program import finish, followed, pids, runs, sleeps, start, until

KEPT = "thresher: stopped; this is the verdict so far, and nothing was stored: a new run starts over"
HANGING = "touch {folder}/$$; sleep 1000 & touch {folder}/$!; wait"


def begun(folder: Path, script: str, count: int, *more: str) -> "subprocess.Popen[bytes]":
    """A run whose first two commands are running."""
    folder.mkdir()
    args = ["--arm=a", "--arm=b", "--budget=100", "--workers=2", "--format=json", "--quiet", *more]
    process = start(*args, "--", "sh", "-c", script.format(folder=folder), "{arm}")
    until(lambda: len(pids(folder)) == count, "the commands that were started")
    return process


def first_line(process: "subprocess.Popen[bytes]") -> str:
    assert process.stderr is not None
    return process.stderr.readline().decode().rstrip("\n")


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_first_signal_waits_for_what_runs_and_prints_the_verdict_so_far(
    tmp_path: Path, number: signal.Signals, status: int
) -> None:
    script = f"touch {{folder}}/$$; until test -e {tmp_path}/marker; do sleep 0.01; done; echo 0.75"
    process = begun(tmp_path / "pids", script, 2)
    process.send_signal(number)
    assert first_line(process) == "thresher: stopping: waiting for 2 pending pulls; press Ctrl-C again to abandon them"
    assert all(map(runs, pids(tmp_path / "pids")))
    (tmp_path / "marker").touch()
    result = finish(process)
    assert result.status == status
    assert result.err.splitlines() == [KEPT]
    verdict = json.loads(result.out)
    assert (verdict["issued"], verdict["told"], verdict["pending"]) == (2, 2, 0)
    assert [(row["arm"], row["reached"]) for row in verdict["rows"]] == [("a", True), ("b", True)]


def test_a_study_whose_last_pulls_were_waited_for_is_finished(tmp_path: Path) -> None:
    script = f"touch {{folder}}/$$; until test -e {tmp_path}/marker; do sleep 0.01; done; echo 0.75"
    process = begun(tmp_path / "pids", script, 4, "--workers=4", "--budget=4")
    process.send_signal(signal.SIGINT)
    assert first_line(process).startswith("thresher: stopping: waiting for 4 pending pulls")
    (tmp_path / "marker").touch()
    result = finish(process)
    assert (result.status, json.loads(result.out)["done"]) == (130, True)
    assert result.err == "thresher: stopped, when the study had just finished: this is its verdict\n"


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_second_signal_does_not_wait_and_leaves_no_process(
    tmp_path: Path, number: signal.Signals, status: int
) -> None:
    process = begun(tmp_path / "pids", HANGING, 4)
    process.send_signal(number)
    assert first_line(process).startswith("thresher: stopping")
    process.send_signal(number)
    result = finish(process)
    assert result.status == status
    assert result.err.splitlines() == [KEPT]
    assert json.loads(result.out)["pending"] == 0
    until(lambda: not any(map(runs, pids(tmp_path / "pids"))), "the end of the commands and their children")


def test_closing_the_terminal_ends_the_commands(tmp_path: Path) -> None:
    process = begun(tmp_path / "pids", HANGING, 4)
    process.send_signal(signal.SIGHUP)
    result = finish(process)
    assert (result.status, result.err.splitlines()) == (129, [KEPT])
    until(lambda: not any(map(runs, pids(tmp_path / "pids"))), "the end of the commands and their children")


@pytest.mark.parametrize(("number", "status", "engine"), [(signal.SIGTERM, 143, "ray"), (signal.SIGINT, 130, "dask")])
def test_a_signal_while_a_cluster_starts_is_obeyed(number: signal.Signals, status: int, engine: str) -> None:
    """Ctrl-C while Ray starts: `run/test_ray_connection.py`."""
    process = start("--arm=a", "--workers=2", f"--engine={engine}", "--quiet", "--", "sh", "-c", "sleep 0.2; echo 1")
    first = ["pgrep", "--parent", str(process.pid), "--full", "spawn_main|gcs_server"]
    until(lambda: subprocess.run(first, capture_output=True).stdout, "a process of the cluster")
    process.send_signal(number)
    result = finish(process)
    assert result.status == status
    assert "Traceback" not in result.err


@pytest.mark.parametrize("engine", ["threads", "processes", "dask", "ray"])
def test_a_run_that_is_killed_leaves_no_process(tmp_path: Path, engine: str) -> None:
    process = begun(tmp_path / "pids", HANGING, 4, f"--engine={engine}")
    until(lambda: followed(process.pid) >= 2, "the guards' watch over both commands")
    process.kill()
    process.communicate()
    until(lambda: not any(map(runs, pids(tmp_path / "pids"))), "the end of the commands and their children")


def test_a_requirement_does_not_hide_that_the_run_was_stopped(tmp_path: Path) -> None:
    process = start(
        "--arm=a", "--arm=b", "--workers=1", "--require=missed=all", "--", "sh", "-c", f"touch {tmp_path}/$$; echo 1"
    )
    until(lambda: len(pids(tmp_path)) > 2, "a few pulls")
    process.send_signal(signal.SIGINT)
    assert finish(process).status == 130


def test_ctrl_c_ends_an_outage_as_well() -> None:
    script = "test $THRESHER_PULL -le 2 && echo 1"
    process = start("--arm=a", "--arm=b", "--budget=500", "--workers=2", "--", "sh", "-c", script, "{arm}")
    assert "evaluations all failed" in first_line(process)
    process.send_signal(signal.SIGINT)
    assert finish(process).status == 130


def test_ctrl_c_before_the_run_begins_leaves_no_traceback(tmp_path: Path) -> None:
    fifo = tmp_path / "arms"
    os.mkfifo(fifo)
    process = start("--arms", str(fifo), "--budget=9", "--", "echo", "1")
    with fifo.open("w"):  # opened, and so no longer waiting, when thresher opens it
        until(lambda: sleeps(process.pid), "reading")
        process.send_signal(signal.SIGINT)
        result = finish(process)
    assert (result.status, result.out, result.err.strip()) == (130, "", "")
