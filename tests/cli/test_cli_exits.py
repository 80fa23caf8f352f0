"""With ``--reward exit-code``, only the codes that mean passed or failed are rewards."""

import json
import pickle
import sys
from pathlib import Path

import pytest
from program import PLAIN_PYTEST, complaint, run

from thresher.run.command.process import Command
from thresher.run.command.reward import CommandFailed
from thresher.study import Pull

PULL = Pull(1, "a", 1, {}, 5)


def ends(script: str, *, passing: tuple[int, ...] = (0,), failing: tuple[int, ...] = (1,)) -> float:
    command = Command(("sh", "-c", script), "exit-code", 20.0, frozenset(passing), frozenset(failing))
    sent: Command = pickle.loads(pickle.dumps(command))  # as to another process
    return sent(PULL)


def test_exit_0_is_reward_1_and_exit_1_is_reward_0() -> None:
    assert (ends("exit 0"), ends("exit 1")) == (1.0, 0.0)


@pytest.mark.parametrize("code", [2, 4, 5, 101, 125, 126, 127, 137, 255])
def test_any_other_exit_code_is_a_failure_not_a_zero(code: int) -> None:
    with pytest.raises(CommandFailed, match=f"exited with {code}"):
        ends(f"exit {code}")


def test_death_by_a_signal_is_a_failure_whatever_the_codes() -> None:
    everything = tuple(range(1, 256))
    with pytest.raises(CommandFailed, match="was ended by SIGKILL"):
        ends("kill -KILL $$", failing=everything)
    assert ends("sh -c 'kill -KILL $$'; exit $?", failing=everything) == 0.0  # the shell's own answer, if it is wanted


def test_the_failure_says_what_the_exit_status_means_here() -> None:
    with pytest.raises(CommandFailed) as caught:
        ends("exit 101")
    words = "exited with 101, which is neither --pass 0 nor --fail 1; add --fail 101 if that means failed"
    assert str(caught.value) == words
    with pytest.raises(CommandFailed, match=r"neither --pass 0,5-7 nor --fail 1-2: 'no route'; add --fail 9 if"):
        ends("echo no route >&2; exit 9", passing=(0, 5, 6, 7), failing=(1, 2))


def test_a_missing_test_is_a_failure_not_a_zero(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_there(): pass\n")
    args = ["--budget=4", "--max-failures=1", "--reward=exit-code", "--format=json"]
    args += ["--", sys.executable, "-m", "pytest", "-q", "{arm}"]
    arms = ["--arm=test_it.py::test_there", "--arm=test_it.py::test_missing"]
    result = run(*arms, *args, cwd=tmp_path, env=PLAIN_PYTEST)
    assert result.status == 0, result.err
    there, missing = json.loads(result.out)["rows"]
    assert (there["mean"], missing["mean"], missing["certified"]) == (1.0, None, False)
    assert missing["standing"] == "retired"
    assert "exited with 4, which is neither --pass 0 nor --fail 1" in missing["reason"]


def test_pass_and_fail_work_from_the_command_line_on_processes_too() -> None:
    script = "case $THRESHER_NUMBER in 1) exit 6;; 2) exit 3;; 3) exit 0;; *) exit 101;; esac"
    args = ["--arm=a", "--budget=4", "--reward=exit-code", "--pass=0,5-7", "--fail=1-3,101", "--format=json"]
    for engine in ("threads", "processes"):
        result = run(*args, f"--engine={engine}", "--", "sh", "-c", script)
        assert json.loads(result.out)["rows"][0]["mean"] == 0.5, result.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--pass=0,x"], "--pass '0,x': must be numbers or ranges; write them like --pass 0,5-7"),
        (["--pass=x"], "--pass 'x': must be numbers or ranges; write them like --pass 0,5-7"),
        (["--fail="], "--fail '': must be numbers or ranges; write them like --fail 0,5-7"),
        (["--fail=1,,2"], "--fail '1,,2': must be numbers or ranges"),
        (["--fail=-1"], "--fail '-1': must be numbers or ranges"),
        (["--fail=1-256"], "--fail '1-256': 256 is not an exit code; write codes from 0 to 255, as in --fail 0,5-7"),
        (["--fail=7-5"], "--fail '7-5': 7-5 runs backwards; write --fail 5-7"),
        (["--pass=300"], "--pass '300': 300 is not an exit code; write codes from 0 to 255, as in --pass 0,5-7"),
        (["--pass=0-3", "--fail=2,3"], "--pass '0-3': 2-3 is in --fail 2-3 too; put each code into only one"),
        (["--pass=00000 , 1"], "--pass '00000 , 1': 1 is in --fail 1 too"),
        (["--fail=0,1"], "--fail '0,1': 0 is in --pass 0 too"),
    ],
)
def test_codes_that_make_no_sense_are_refused_in_one_line(options: list[str], words: str) -> None:
    assert words in complaint(run("--arm=a", "--budget=9", "--reward=exit-code", *options, "--", "true"))


@pytest.mark.parametrize(("option", "reward"), [("--pass=xyz", []), ("--fail=2", ["--reward=json:score"])])
def test_codes_without_exit_code_are_refused(option: str, reward: list[str]) -> None:
    line = complaint(run("--arm=a", "--budget=9", *reward, option, "--", "true"))
    name, _, value = option.partition("=")
    assert f"{name} '{value}': has no effect with --reward" in line
    assert "add --reward exit-code, or leave it out" in line


def test_another_choice_of_codes_is_another_command(tmp_path: Path) -> None:
    args = ["--arm=a", "--study=s", f"--storage=sqlite:///{tmp_path}/s.db", "--reward=exit-code"]
    run(*args, "--budget=2", "--pass=0,5", "--", "true")
    assert "the command changed · nothing holds" in run(*args, "--budget=4", "--", "true").err


@pytest.mark.parametrize("bounds", [["--bounds=0:100"], ["--bounds", "none"]])
def test_exit_codes_have_no_other_bounds_than_their_rewards(bounds: list[str]) -> None:
    """With a bar of 90 in (0, 100), a command that always passes would be certified below."""
    args = ["--arm=a", "--at-least=90", *bounds, "--budget=9", "--reward=exit-code", "--", "true"]
    assert "must be 0:1 with --reward exit-code" in complaint(run(*args))


def test_a_percentage_for_exit_codes_is_answered_with_the_share() -> None:
    args = ["--arm=a", "--at-least=90", "--budget=9", "--reward=exit-code", "--", "true"]
    assert "if it is a percentage, write 0.9" in complaint(run(*args))
