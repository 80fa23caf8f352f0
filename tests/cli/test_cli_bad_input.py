"""Bad input: one line that names the value, the rule and the remedy; no traceback, and nothing is changed."""

import subprocess
import sys
from pathlib import Path

import pytest
from program import complaint, run, thresher

ECHO = ["--", "echo", "1"]
ONE = ["--arm=a", "--budget=10"]

CASES = {
    "no arms": (["--budget=4", *ECHO], "arms: there are none; name them with --arms FILE or --arm NAME"),
    "both kinds of arms": (["--arm=a", "--arms=x", *ECHO], "--arm 'a': the arms already come from --arms FILE"),
    "a name twice": (["--arm=a", "--arm=a", "--budget=9", *ECHO], "--arm 'a': is given twice; give every arm"),
    "an empty name": (["--arm=", "--budget=9", *ECHO], "--arm '': must not be empty; give it a name"),
    "a NaN bar": ([*ONE, "--at-least=nan", *ECHO], "--at-least nan: must be a finite number"),
    "a bar on the bounds": (
        [*ONE, "--at-least=1", *ECHO],
        "--at-least 1: must lie strictly inside the bounds (0, 1); ",
    ),
    "a bar that is a word": ([*ONE, "--at-least=high", *ECHO], "'--at-least': 'high' is not a number"),
    "bounds the wrong way": (
        [*ONE, "--bounds=1:0", *ECHO],
        "the lower bound must come first and be smaller; did you",
    ),
    "one bound": (
        [*ONE, "--bounds=0", *ECHO],
        "'--bounds': '0' must be two numbers with a colon between them, such as",
    ),
    "bounds with a comma": ([*ONE, "--bounds=0,1", *ECHO], "'0,1' must be two numbers with a colon between them"),
    "a bound that is a word": ([*ONE, "--bounds=0:high", *ECHO], "'--bounds': 'high' is not a number"),
    "a bar out of 100": (
        [*ONE, "--at-least=90", *ECHO],
        "--at-least 90: must lie strictly inside the bounds (0, 1); if it is a percentage, write 0.9",
    ),
    "a reader without its key": ([*ONE, "--reward=json", *ECHO], "cpu-seconds or json:KEY; write json:KEY"),
    "a small budget": (
        ["--arm=a", "--arm=b", "--budget=3", *ECHO],
        "budget 3: must be at least 4: 2 warm-up pulls for",
    ),
    "a budget of words": (["--arm=a", "--budget=many", *ECHO], "'--budget': 'many' is not a whole number"),
    "no end": (
        ["--arm=a", "--confidence=off", *ECHO],
        "error: --budget: without certificates a study ends with its budget alone; give a --budget",
    ),
    "no end without bounds": (
        ["--arm=a", "--bounds", "none", *ECHO],
        "error: --budget: without certificates a study ends with its budget alone; give a --budget",
    ),
    "no workers": ([*ONE, "--workers=0", *ECHO], "error: --workers 0: must be a whole number of at least 1"),
    "workers beyond the system": ([*ONE, "--workers=99999999", *ECHO], "open files, and this system allows"),
    "an unknown policy": (
        [*ONE, "--policy=best", *ECHO],
        "policy 'best': is not a policy that thresher knows; choose one of",
    ),
    "a policy that needs a budget": (["--arm=a", "--policy=evt", *ECHO], "takes its exploration from the budget"),
    "a confidence of 1": ([*ONE, "--confidence=1", *ECHO], "--confidence 1: must lie strictly between 0 and 1"),
    "a confidence that is a word": ([*ONE, "--confidence=no", *ECHO], "'--confidence': 'no' is not a number"),
    "a confidence, no bounds": (
        [*ONE, "--confidence=0.9", "--bounds=none", *ECHO],
        "no certificates with --bounds none",
    ),
    "a placeholder": (
        [*ONE, "--", "echo", "{temperature}"],
        "placeholder '{temperature}': arm 'a' has no such value; there",
    ),
    "no command": (ONE, "command: there is none; put it after --"),
    "a missing command": (
        [*ONE, "--", "./no-such.sh"],
        "command './no-such.sh': was not found; check the spelling, or give its path",
    ),
    "a missing name": ([*ONE, "--", "no-such-program"], "command 'no-such-program': was not found; check the spelling"),
    "a folder": ([*ONE, "--", "/"], "command '/': is not an executable file"),
    "a way to read": (
        [*ONE, "--reward=first", *ECHO],
        "reward 'first': must be last-float, exit-code, seconds, cpu-seconds or json:KEY",
    ),
    "a key left out": ([*ONE, "--reward=json:", *ECHO], "reward 'json:': must be"),
    "a timeout of 0": (
        [*ONE, "--timeout=0", *ECHO],
        "'--timeout': '0' is not a length of time above 0 and below",
    ),
    "a time that is none": ([*ONE, "--for=soon", *ECHO], "'soon' is not a length of time above 0"),
    "a failure out of bounds": (
        [*ONE, "--failure=7", *ECHO],
        "--failure 7: must be 'worst', 'ignore', or a reward between 0 and 1",
    ),
    "a failure that is a word": ([*ONE, "--failure=bad", *ECHO], "failure 'bad': must be 'worst', 'ignore'"),
    "a negative seed": ([*ONE, "--seed=-1", *ECHO], "seed -1: must be a whole number of at least 0"),
    "no failures at all": ([*ONE, "--max-failures=0", *ECHO], "--max-failures 0: must be a whole number of at least 1"),
    "nothing to clip to": ([*ONE, "--clip", "--bounds", "none", "--budget=9", *ECHO], "--clip: there are no bounds"),
    "a format": ([*ONE, "--format=xml", *ECHO], "'--format': 'xml' is not one of 'table', 'json', 'csv', 'markdown'"),
    "a requirement": ([*ONE, "--require=reached=most", *ECHO], "'reached=most' must be reached or missed, =, and all,"),
    "a confidence in percent": ([*ONE, "--confidence=95", *ECHO], "strictly between 0 and 1; write 0.95"),
    "a decimal comma": ([*ONE, "--at-least=0,9", *ECHO], "'0,9' is not a number; did you mean 0.9?"),
    "a budget with a comma": (
        ["--arm=a", "--budget=2,000", *ECHO],
        "'2,000' is not a whole number; did you mean 2000?",
    ),
    "a budget with a unit": (["--arm=a", "--budget=2k", *ECHO], "'2k' is not a whole number; did you mean 2000?"),
    "half a budget": (["--arm=a", "--budget=2.5", *ECHO], "'2.5' is not a whole number"),
    "names for a file": (["--arms=a,b,c", *ECHO], "takes a file; for names write --arm a --arm b --arm c"),
    "a name for a file": (["--arms=terse", *ECHO], "check its name; for an arm of that name write --arm terse"),
    "a quoted command": ([*ONE, "--", "echo 1 {arm}"], "do not quote the whole command: write -- echo 1 {arm}"),
    "a quoted pipeline": ([*ONE, "--", "echo 1 | cat"], "commands run without a shell: write -- sh -c 'echo 1 | cat'"),
    "a variable first": ([*ONE, "--", "X=1 echo 1"], "commands run without a shell: write -- sh -c 'X=1 echo 1'"),
    "an option": ([*ONE, "--treshold=1", *ECHO], "No such option '--treshold'"),
    "an option like no other": ([*ONE, "--qqq", *ECHO], "No such option '--qqq'; thresher run --help lists them"),
    "an engine": (
        [*ONE, "--engine=thread", *ECHO],
        "error: --engine 'thread': must be threads, processes, dask or ray",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_answered_in_one_line(case: str) -> None:
    args, message = CASES[case]
    assert message in complaint(run(*args))


def test_an_extra_argument_is_refused_with_where_they_are_listed() -> None:
    line = complaint(thresher("status", "s", "t"))
    assert line.endswith("Got unexpected extra argument (t); thresher status --help lists them")


def test_exit_1_may_be_an_answer(tmp_path: Path) -> None:
    end = "; if exit 1 is an answer: --reward exit-code"
    assert run("--arm=a", "--budget=4", "--", "false", cwd=tmp_path).err.rstrip().endswith(end)
    assert end not in run("--arm=a", "--budget=4", "--", "sh", "-c", "exit 12", cwd=tmp_path).err
    assert end not in run("--arm=a", "--budget=4", "--reward=seconds", "--at-most=1s", "--", "false", cwd=tmp_path).err


@pytest.mark.parametrize("wrong", ["--workers=0", "--storage=sqlite:///missing/folder/x.db"])
def test_what_cannot_begin_gets_no_warning(wrong: str, tmp_path: Path) -> None:
    result = run("--arm=a", "--arm=b", "--budget=9", wrong, "--", "echo", "1", cwd=tmp_path)
    assert result.status in (2, 3)
    assert "{arm}" not in result.err


def test_a_command_that_may_not_be_executed_is_refused_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "evaluate.sh").write_text("#!/bin/sh\necho 1\n")
    line = complaint(run(*ONE, "--", "./evaluate.sh", cwd=tmp_path))
    assert line.endswith("command './evaluate.sh': is not an executable file; try chmod +x ./evaluate.sh")


def test_a_script_of_this_folder_needs_its_path(tmp_path: Path) -> None:
    (tmp_path / "evaluate.sh").write_text("#!/bin/sh\necho 1\n")
    (tmp_path / "evaluate.sh").chmod(0o755)
    line = complaint(run(*ONE, "--", "evaluate.sh", cwd=tmp_path))
    assert line.endswith("command 'evaluate.sh': is not in PATH; write ./evaluate.sh")


def test_a_script_without_its_first_line_gets_an_explanation(tmp_path: Path) -> None:
    script = tmp_path / "evaluate"
    script.write_text("echo 1\n")
    script.chmod(0o755)
    result = run("--arm=a", "--budget=4", "--", str(script))
    assert result.status == 3
    assert "Exec format error; does it begin with a line such as #!/bin/sh?" in result.err


def test_the_bar_is_asked_for() -> None:
    line = complaint(thresher("run", "--arm=a", "--budget=4", *ECHO))
    assert line.endswith(
        "bar: there is none; give it with --at-least B or --at-most B, or compare with --baseline NAME"
    )


def test_of_options_with_a_similar_name_the_nearest_comes_first() -> None:
    line = complaint(thresher("run", "--bugdet=5", "--arm=a", *ECHO))
    assert "No such option '--bugdet'; did you mean '--budget'" in line


def test_bounds_are_shown_as_they_were_typed() -> None:
    line = complaint(thresher("create", "s", "--at-least=0.5", "--arm=a", "--bounds=1:0"))
    assert line.endswith("--bounds '1:0': the lower bound must come first and be smaller; did you mean --bounds 0:1?")
    line = complaint(thresher("simulate", "--bounds", "1:0"))
    assert line.endswith("--bounds '1:0': the lower bound must come first and be smaller; did you mean --bounds 0:1?")


def test_an_unknown_command_is_wrong_use() -> None:
    assert "command 'rnu': there is no such command; did you mean 'run'?" in complaint(thresher("rnu"))
    assert "did you mean 'studies', 'status'?" in complaint(thresher("studys"))
    assert complaint(thresher("xyzzy")).endswith("there is no such command; thresher --help lists the commands")


def test_a_closed_standard_input_is_reported_as_closed() -> None:
    script = '"$0" -m thresher run --at-least=0.5 --arms=- --budget=9 -- echo 1 <&-'
    done = subprocess.run(["sh", "-c", script, sys.executable], capture_output=True, text=True)
    assert (done.returncode, done.stderr.splitlines()) == (
        2,
        ["thresher: error: arms file 'standard input': cannot be read (it is closed); check its name"],
    )
