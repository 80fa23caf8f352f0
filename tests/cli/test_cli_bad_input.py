"""Bad input: one line that names the value, the rule and the remedy; no traceback, and nothing is changed."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from program import complaint, run, thresher

ECHO = ["--", "echo", "1"]
ONE = ["--arm=a", "--budget=10"]

REFUSED = {  # options of run: the error. Without an arm or a command, they get ONE and ECHO
    "--arm=a --arms=x": "--arm 'a': the arms already come from --arms FILE",
    "--arm=a --arm=a --budget=9": "--arm 'a': is given twice; give every arm",
    "--arm= --budget=9": "--arm '': must not be empty; give it a name",
    "--at-least=nan": "--at-least nan: must be a finite number",
    "--at-least=1": "--at-least 1: must lie strictly inside the bounds (0, 1); ",
    "--at-least=high": "'--at-least': 'high' is not a number",
    "--bounds=1:0": "the lower bound must come first and be smaller; did you",
    "--bounds=0": "'--bounds': '0' must be two numbers with a colon between them, such as",
    "--bounds=0,1": "'0,1' must be two numbers with a colon between them",
    "--bounds=0:high": "'--bounds': 'high' is not a number",
    "--at-least=90": "--at-least 90: must lie strictly inside the bounds (0, 1); if it is a percentage, write 0.9",
    "--reward=json": "cpu-seconds or json:KEY; write json:KEY",
    "--arm=a --arm=b --budget=3": "budget 3: must be at least 4: 2 warm-up pulls for",
    "--arm=a --budget=many": "'--budget': 'many' is not a whole number",
    "--arm=a --confidence=off": (
        "error: --budget: without certificates a study ends with its budget alone; give a --budget"
    ),
    "--arm=a --bounds none": (
        "error: --budget: without certificates a study ends with its budget alone; give a --budget"
    ),
    "--workers=0": "error: --workers 0: must be a whole number of at least 1",
    "--workers=99999999": "open files, and this system allows",
    "--policy=best": "policy 'best': is not a policy that thresher knows; choose one of",
    "--arm=a --policy=evt": "takes its exploration from the budget",
    "--confidence=1": "--confidence 1: must lie strictly between 0 and 1",
    "--confidence=no": "'--confidence': 'no' is not a number",
    "--confidence=0.9 --bounds=none": "no certificates with --bounds none",
    "-- echo '{temperature}'": "placeholder '{temperature}': arm 'a' has no such value; there",
    "-- ./no-such.sh": "command './no-such.sh': was not found; check the spelling, or give its path",
    "-- no-such-program": "command 'no-such-program': was not found; check the spelling",
    "-- /": "command '/': is not an executable file",
    "--reward=first": "reward 'first': must be last-float, exit-code, seconds, cpu-seconds or json:KEY",
    "--reward=json:": "reward 'json:': must be",
    "--timeout=0": "'--timeout': '0' is not a length of time above 0 and below",
    "--for=soon": "'soon' is not a length of time above 0",
    "--failure=7": "--failure 7: must be 'worst', 'ignore', or a reward between 0 and 1",
    "--failure=bad": "failure 'bad': must be 'worst', 'ignore'",
    "--seed=-1": "seed -1: must be a whole number of at least 0",
    "--max-failures=0": "--max-failures 0: must be a whole number of at least 1",
    "--clip --bounds none --budget=9": "--clip: there are no bounds",
    "--format=xml": "'--format': 'xml' is not one of 'table', 'json', 'csv', 'markdown'",
    "--require=reached=most": "'reached=most' must be reached or missed, =, and all,",
    "--confidence=95": "strictly between 0 and 1; write 0.95",
    "--at-least=0,9": "'0,9' is not a number; did you mean 0.9?",
    "--arm=a --budget=2,000": "'2,000' is not a whole number; did you mean 2000?",
    "--arm=a --budget=2k": "'2k' is not a whole number; did you mean 2000?",
    "--arm=a --budget=2.5": "'2.5' is not a whole number",
    "--arms=a,b,c": "takes a file; for names write --arm a --arm b --arm c",
    "--arms=terse": "check its name; for an arm of that name write --arm terse",
    "-- 'echo 1 {arm}'": "do not quote the whole command: write -- echo 1 {arm}",
    "-- 'echo 1 | cat'": "commands run without a shell: write -- sh -c 'echo 1 | cat'",
    "-- 'X=1 echo 1'": "commands run without a shell: write -- sh -c 'X=1 echo 1'",
    "--treshold=1": "No such option '--treshold'",
    "--qqq": "No such option '--qqq'; thresher run --help lists them",
    "--engine=thread": "error: --engine 'thread': must be threads, processes, dask or ray",
}


@pytest.mark.parametrize("words", REFUSED)
def test_bad_input_is_answered_in_one_line(words: str) -> None:
    args = [*([] if "--arm" in words else ONE), *shlex.split(words)]
    assert REFUSED[words] in complaint(run(*args, *([] if "--" in args else ECHO)))


@pytest.mark.parametrize("text", ["GPU", "GPU=", "GPU=x", "=1", "GPU=0", "GPU=-1", "GPU=nan"])
def test_resources_that_make_no_sense_are_refused_in_one_line(text: str) -> None:
    assert "resource" in complaint(run(*ONE, "--engine=dask", "--resource", text, *ECHO))


def test_arms_and_a_command_are_asked_for() -> None:
    message = "arms: there are none; name them with --arms FILE or --arm NAME"
    assert message in complaint(run("--budget=4", *ECHO))
    assert "command: there is none; put it after --" in complaint(run(*ONE))


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
