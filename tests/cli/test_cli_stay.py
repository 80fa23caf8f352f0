"""``thresher run --stay``."""

import json
import shlex
import sys
from pathlib import Path

import pytest
import stayer
from program import ENVIRONMENT, THRESHER, complaint, run, thresher
from terminal import Terminal
from workdir import Workdir

STAY = ("--stay", "--budget=30", "--confidence=off", "--format=json")


def test_an_evaluator_names_its_own_arms() -> None:
    result = run(*STAY, "--", *stayer.ARGV, "greet")
    assert result.status == 0, result
    verdict = json.loads(result.out)
    assert [row["arm"] for row in verdict["rows"]] == ["a", "b"]
    assert (verdict["told"], verdict["cost"]) == (30, 7.5)


def test_the_total_cost_is_in_the_verdict() -> None:
    assert "at a cost of 7.5." in run("--stay", "--budget=30", "--arm=a", "--", *stayer.ARGV).out


def test_what_it_prints_on_standard_error_is_shown_without_secrets() -> None:
    result = run(*STAY, "--arm=a", "--arm=b", "--", *stayer.ARGV, "noisy")
    assert result.status == 0, result
    assert "loading password=***" in result.err


def test_its_terminal_codes_are_shown_and_not_obeyed() -> None:
    """Also before the run, while it names the arms."""
    script = f"printf '\\033]0;owned\\007\\033[2J\\n' >&2; exec {shlex.join(stayer.ARGV)} greet"
    result = run(*STAY, "--", "sh", "-c", script)
    assert result.status == 0, result
    assert "\\x1b]0;owned\\x07\n" in result.err
    assert "\x1b" not in result.err


def test_when_all_pulls_are_lost_with_their_processes_the_last_line_says_why() -> None:
    options = ["--stay", "--budget=10", "--per-process=8", "--workers=2", "--timeout=0.2s"]
    result = run(*options, "--arm=a", "--arm=b", "--", "sleep", "50")
    assert result.status == 3
    assert "timed out after 0.2 s" in result.err.splitlines()[-1]
    assert "no pull was made" not in result.err


REFUSED = {
    "--reward": (["--reward=json:x"], "--reward 'json:x': has no effect with --stay"),
    "--pass": (["--pass=xyz"], "--pass 'xyz': has no effect with --stay"),
    "--fail": (["--fail=1"], "--fail '1': has no effect with --stay"),
    "per process": (["--per-process=0"], "--per-process 0"),
    "processes": (["--per-process=2", "--engine=processes"], "has one pull at a time; use --engine threads, or more"),
    "other arms": (["--arm=c"], "COMMAND names other arms than the study has: they differ in 'a', 'b', 'c'"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_does_not_go_together_is_refused(what: str) -> None:
    options, words = REFUSED[what]
    result = run("--stay", "--budget=30", *options, "--", *stayer.ARGV, "greet")
    assert words in complaint(result, 3 if what == "other arms" else 2)


def test_placeholders_and_programs_that_do_not_exist_are_refused() -> None:
    assert "placeholder '{arm}'" in complaint(run("--stay", "--budget=30", "--arm=a", "--", "echo", "{arm}"))
    assert "was not found" in complaint(run("--stay", "--budget=30", "--arm=a", "--", "no-such-program"))
    assert "--per-process 2: has no effect" in complaint(run("--per-process=2", "--budget=30", "--arm=a", "--", "echo"))


def test_an_evaluator_that_names_no_arms_says_so() -> None:
    result = run("--stay", "--budget=30", "--", sys.executable, "-c", "print('{\"protocol\": 1}', flush=True); input()")
    assert "there are none, and COMMAND names none" in complaint(result)
    result = run("--stay", "--budget=30", "--", *stayer.ARGV, "crash")
    assert "No module named 'torch'" in result.err.splitlines()[-1]
    assert result.status == 3


def test_notes_and_costs_are_exported_and_logged(tmp_path: Path) -> None:
    workdir = Workdir(tmp_path)
    workdir.good("run", "--study=s", "--at-least=0.5", "--budget=4", "--stay", "--arm=a", "--arm=b", "--", *stayer.ARGV)
    head, *lines = workdir.good("export", "s", "csv").splitlines()
    assert head.endswith(",reward,note,cost")
    assert {line.split(",")[-1] for line in lines} == {"0.25"}
    assert "  cost 0.25 " in workdir.good("log", "s")
    assert workdir.good("verify", "s")
    before = workdir.good("verdict", "s")
    (tmp_path / "log.json").write_text(workdir.good("export", "s", "json"))
    workdir.good("delete", "s", "--yes")
    workdir.good("import", "log.json")
    assert workdir.good("verdict", "s").splitlines()[:-1] == before.splitlines()[:-1]


def test_the_same_command_resumes_the_study_and_one_that_does_not_stay_is_another(tmp_path: Path) -> None:
    workdir = Workdir(tmp_path)
    options = ["run", "--at-least=0.5", "--arm=a", "--arm=b", "--confidence=off"]
    workdir.good(*options, "--budget=10", "--stay", "--", *stayer.ARGV)
    again = workdir(*options, "--budget=20", "--stay", "--per-process=2", "--", *stayer.ARGV)
    assert "resumes after 10 pulls" in again.err
    (name,) = [line.split("\t")[0] for line in workdir.good("studies").splitlines()]
    other = workdir(*options, "--study", name, "--budget=20", "--", *stayer.ARGV)
    assert "the command changed · nothing holds" in other.err


def test_it_runs_in_other_processes() -> None:
    result = thresher("run", "--at-least=0.5", "--workers=2", "--engine=processes", *STAY, "--", *stayer.ARGV, "greet")
    assert result.status == 0, result
    assert json.loads(result.out)["told"] == 30


def test_on_a_terminal_its_lines_are_above_the_live_table(tmp_path: Path) -> None:
    script = f"echo loading >&2; until test -e {tmp_path}/go; do sleep 0.02; done; exec sed -u 's/,.*/,\"reward\":1}}/'"
    options = ["--at-least=0.5", "--budget=6", "--workers=1", "--stay", "--arm=a", "--", "sh", "-c", script]
    terminal = Terminal([*THRESHER, "run", *options], columns=100, rows=24, env=ENVIRONMENT)
    try:
        lines = terminal.wait_for(lambda seen: "1 pending" in seen.text and "loading" in seen.text).splitlines()
        assert lines.index("loading") < next(at for at, line in enumerate(lines) if "1 pending" in line)
        (tmp_path / "go").touch()
        assert terminal.finish() == 0
    finally:
        terminal.close()


def test_a_program_that_only_a_cluster_has_cannot_name_the_arms() -> None:
    result = run("--stay", "--budget=30", "--engine=dask:127.0.0.1:1", "--", "/no/such/program")
    said = complaint(result, 3)
    assert "cannot start '/no/such/program': No such file or directory" in said
    assert "name the arms with --arms" in said
