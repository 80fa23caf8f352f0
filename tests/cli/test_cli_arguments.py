"""Placeholders and the environment of a command."""

import json
from pathlib import Path

import pytest
from program import complaint, run

from thresher.run.command.process import fill_command_template

VALUES = {"arm": "a", "seed": "5", "max_depth": "3"}


@pytest.mark.parametrize(
    ("template", "filled"),
    [
        ("{arm}", "a"),
        ("--seed={seed}", "--seed=5"),
        ("{arm}{arm}-{max_depth}", "aa-3"),
        ('{"arm": 1}', '{"arm": 1}'),
        ("awk {print $1}", "awk {print $1}"),
        ("{}", "{}"),
        ("{0}", "{0}"),
        ("${HOME}x", None),
        ("{{arm}}", "{arm}"),
        ("{{{arm}}}", "{a}"),
        ("}} {{", "} {"),
        ('{"model": {"seed": {seed}}}', '{"model": {"seed": 5}}'),
        ('{{"model": {{"seed": {seed}}}}}', '{"model": {"seed": 5}}'),
        ("a { b } c", "a { b } c"),
    ],
)
def test_identifiers_in_braces_are_filled_in_and_other_braces_left_alone(template: str, filled: str | None) -> None:
    if filled is None:
        with pytest.raises(KeyError):
            fill_command_template(template, VALUES)
    else:
        assert fill_command_template(template, VALUES) == filled


def test_a_value_is_not_searched_for_placeholders(tmp_path: Path) -> None:
    result = run("--arm={seed}", "--budget=2", "--", "sh", "-c", f'echo "$1" >> {tmp_path}/seen; echo 1', "x", "{arm}")
    assert result.status == 0, result.err
    assert (tmp_path / "seen").read_text() == "{seed}\n{seed}\n"


def test_arguments_and_environment_have_the_same_values(tmp_path: Path) -> None:
    arms = tmp_path / "arms.csv"
    arms.write_text("name,depth\nfirst arm,3\nsecond arm,4\n")
    script = f'echo "$@|$THRESHER_ARM|$THRESHER_SEED|$THRESHER_NUMBER|$THRESHER_PULL" >> {tmp_path}/seen; echo 1'
    command = ["sh", "-c", script, "x", "{arm}|{seed}|{number}|{pull}", "{depth}"]
    assert run("--arms", str(arms), "--budget=8", "--workers=1", "--", *command).status == 0
    lines = (tmp_path / "seen").read_text().splitlines()
    assert len(lines) == 8
    for line in lines:
        given, number_and_depth = line.split("|")[:3], line.split("|")[3]
        arm, seed, number = given
        pull, depth = number_and_depth.split()
        assert line.split("|")[4:] == [arm, seed, number, pull]
        assert depth == {"first arm": "3", "second arm": "4"}[arm]


def test_an_argument_reaches_the_command_whole_and_never_through_a_shell(tmp_path: Path) -> None:
    name = "$(touch hacked); `id` 'x' \"y\" *"
    result = run("--arm", name, "--budget=2", "--format=json", "--", "printf", "%s\n0.5\n", "{arm}", cwd=tmp_path)
    assert json.loads(result.out)["rows"][0]["arm"] == name
    assert json.loads(result.out)["told"] == 2
    assert list(tmp_path.iterdir()) == []


def test_parameters_that_are_not_text_are_filled_in_as_json(tmp_path: Path) -> None:
    arms = tmp_path / "arms.json"
    arms.write_text('{"a": {"lr": 0.1, "layers": [1, 2], "on": true, "word": "x y"}}')
    script = f'echo "$1" > {tmp_path}/seen; echo 1'
    assert (
        run("--arms", str(arms), "--budget=2", "--", "sh", "-c", script, "x", "{lr} {layers} {on} {word}").status == 0
    )
    assert (tmp_path / "seen").read_text() == "0.1 [1, 2] true x y\n"


def test_an_unknown_placeholder_is_named_with_those_that_exist() -> None:
    line = complaint(run("--arm=a", "--budget=2", "--", "echo", "{depth}"))
    assert "placeholder '{depth}'" in line
    assert "{arm}, {seed}, {number}, {pull}" in line


def test_the_program_itself_may_be_a_placeholder(tmp_path: Path) -> None:
    result = run("--arm=echo", "--arm=printf", "--budget=4", "--format=json", "--", "{arm}", "1")
    assert json.loads(result.out)["told"] == 4
    line = complaint(run("--arm=echo", "--arm=no-such-program", "--budget=4", "--", "{arm}", "1"))
    assert "command 'no-such-program': was not found" in line


def test_a_command_gets_no_standard_input_to_wait_for() -> None:
    assert run("--arm=a", "--budget=2", "--timeout=20s", "--", "sh", "-c", "cat; echo 1", stdin="0.9\n").status == 0


def test_a_parameter_that_no_program_can_take_is_a_failure_that_says_so(tmp_path: Path) -> None:
    arms = tmp_path / "arms.json"
    arms.write_text(r'{"a": {"text": "nul \u0000 byte"}}')
    result = run("--arms", str(arms), "--budget=5", "--", "echo", "{text}", "1")
    assert result.status == 3
    assert "cannot start 'echo': embedded null byte" in result.err
