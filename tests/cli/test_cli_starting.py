"""A command that cannot work ends the run at once, and the last lines say why."""

import json
import logging
import sys
from pathlib import Path

import pytest
from program import PLAIN_PYTEST, run

from thresher.cli.live_table import watching_live_table
from thresher.cli.output import output_cause_of_error
from thresher.errors import CannotGoOn, EvaluationFailed

ARMS = [f"--arm={arm}" for arm in "abcde"]
ONE_AT_A_TIME = "--workers=1"  # of two at once, any number may fail while an earlier one, which may succeed, is running


def test_a_command_that_always_exits_the_same_way_ends_the_run_at_once() -> None:
    script = "echo usage: check NAME >&2; echo error: no such option >&2; exit 2"
    result = run(*ARMS, ONE_AT_A_TIME, "--budget=1000", "--format=json", "--", "sh", "-c", script, "{arm}")
    assert result.status == 3
    verdict = json.loads(result.out)
    assert (verdict["retired"], verdict["told"], verdict["pending"]) == ([], 0, 0)
    assert verdict["issued"] == 3
    assert result.err.splitlines() == [
        "thresher: the last lines of the command's output:",
        "  usage: check NAME",
        "  error: no such option",
        "thresher: error: run: 3 arms failed with the same error before anything succeeded: exited with 2: "
        "'error: no such option'; correct the evaluator, or take out 'a', 'b', 'c' if only they are wrong, "
        "and run again; no arm was retired",
    ]


def test_a_file_of_missing_tests_ends_the_run_and_says_what_the_exit_status_means(tmp_path: Path) -> None:
    pytest_it = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py::{arm}"]
    result = run(*ARMS, "--budget=1000", "--reward=exit-code", "--", *pytest_it, cwd=tmp_path, env=PLAIN_PYTEST)
    assert result.status == 3
    assert "ERROR: file or directory not found" in result.err
    line = result.err.splitlines()[-1]
    assert "3 arms failed with the same error before anything succeeded: exited with 4, which is neither" in line
    assert "add --fail 4 if that means failed" in line
    assert "no arm was retired" in line


def test_standard_output_is_shown_where_nothing_was_said_on_standard_error() -> None:
    result = run(*ARMS, ONE_AT_A_TIME, "--budget=99", "--", "sh", "-c", "echo Traceback; echo boom; exit 3", "{arm}")
    assert result.err.splitlines()[:3] == ["thresher: the last lines of the command's output:", "  Traceback", "  boom"]


def test_passwords_that_a_command_prints_are_not_shown() -> None:
    script = "echo first; echo connecting to postgresql://me:hunter2@db/x >&2; echo PGPASSWORD=hunter2 >&2; exit 3"
    for engine in ("threads", "processes"):
        result = run(*ARMS, "--budget=99", f"--engine={engine}", "--", "sh", "-c", script, "{arm}")
        assert "PGPASSWORD=***" in result.err
        assert "hunter2" not in result.err


def test_the_next_run_goes_on_with_the_study_when_the_command_is_mended(tmp_path: Path) -> None:
    args = [*ARMS, "--budget=60", "--format=json", "--study=s", f"--storage=sqlite:///{tmp_path}/s.db"]
    assert run(*args, "--", "false").status == 3
    result = run(*args, "--", "echo", "1")
    assert result.status == 0, result.err
    assert json.loads(result.out)["retired"] == []


def test_the_traceback_of_an_evaluator_is_shown_with_its_secrets_masked(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        raise ValueError("cannot reach postgresql://me:hunter2@db/x")
    except ValueError as error:
        output_cause_of_error(CannotGoOn("run").with_cause(error))
    text = "Traceback (most recent call last):\n  over there\nKeyError: 'depth'"
    output_cause_of_error(CannotGoOn("run").with_cause(EvaluationFailed("KeyError: 'depth'", traceback=text)))
    shown = capsys.readouterr().err
    assert "ValueError: cannot reach postgresql://me:***@db/x" in shown
    assert shown.endswith("thresher: what the evaluator raised:\n" + text + "\n")


def test_a_logged_traceback_is_printed_line_by_line_while_a_run_is_watched(capsys: pytest.CaptureFixture[str]) -> None:
    with watching_live_table(None, quiet=True):  # type: ignore[arg-type]
        try:
            raise ValueError("\x1b[2Jboom")
        except ValueError:
            logging.getLogger("thresher").warning("an evaluation failed", exc_info=True)
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == ["thresher: an evaluation failed", "Traceback (most recent call last):"]
    assert lines[-1] == "ValueError: boom"
