"""An outage is not a failure of the arms."""

import json
from pathlib import Path

from program import finish, run, start

ARMS = ["--arm=a", "--arm=b", "--arm=c", "--format=json"]


def test_an_outage_that_lasts_ends_the_run_with_status_3_and_retires_no_arm() -> None:
    script = ": $THRESHER_ARM; test $THRESHER_PULL -le 6 && echo 1 && exit; echo no network >&2; exit 7"
    result = run(*ARMS, "--budget=100", "--workers=1", "--give-up=500ms", "--quiet", "--", "sh", "-c", script)
    assert result.status == 3
    verdict = json.loads(result.out)
    assert (verdict["retired"], verdict["told"], verdict["pending"]) == ([], 6, 0)
    assert [row["failures"] for row in verdict["rows"]] == [0, 0, 0]
    outage, error = result.err.splitlines()
    assert "the last 8 evaluations all failed" in outage
    assert "no network" in outage
    assert (
        "the run is paused: one pull is tried from time to time until one succeeds, for at most 0.5 s (--give-up)"
        in outage
    )
    assert "--timeout" not in result.err
    assert error.startswith("thresher: error: run: every evaluation failed for 0.5 s, the last with: ")
    assert error.endswith("repair the evaluator and run again; no arm was retired for it")


def test_a_run_continues_when_an_outage_ends(tmp_path: Path) -> None:
    script = f": $THRESHER_ARM; test $THRESHER_PULL -le 2 && echo 0.75 || cat {tmp_path}/up"
    process = start(*ARMS, "--budget=40", "--workers=2", "--", "sh", "-c", script)
    assert process.stderr is not None
    assert "the last 8 evaluations all failed" in process.stderr.readline().decode()
    (tmp_path / "up").write_text("0.75\n")
    result = finish(process)
    assert result.status == 0
    assert "an evaluation succeeded: the outage is over" in result.err
    verdict = json.loads(result.out)
    assert ([row["reached"] for row in verdict["rows"]], verdict["retired"], verdict["issued"]) == ([True] * 3, [], 40)
    assert verdict["told"] > 25


def test_one_arm_that_always_fails_is_not_an_outage() -> None:
    script = "test $THRESHER_ARM != b && echo 1"
    result = run(*ARMS, "--budget=40", "--", "sh", "-c", script)
    assert result.status == 0
    assert json.loads(result.out)["retired"] == ["b"]


def test_an_outage_of_timeouts_says_what_may_be_needed_and_progress_that_it_is_paused() -> None:
    command = ("--", "sh", "-c", ": $THRESHER_ARM; exec sleep 30")
    result = run(*ARMS, "--budget=100", "--timeout=100ms", "--give-up=4s", *command)
    assert result.status == 3
    outage, *progress, error = result.err.splitlines()
    assert "all of them timed out: they may need a larger --timeout; the run is paused" in outage
    assert "until one succeeds, for at most 4 s (--give-up)" in outage
    assert progress
    assert all(", paused, " in line for line in progress)
    assert "run again with a larger --timeout, or repair the evaluator" in error
