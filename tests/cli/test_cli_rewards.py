"""How a reward is read from what a command prints, or from how it exits."""

import json

import pytest
from program import run

from thresher.errors import NoReward
from thresher.run.command.process import Command
from thresher.run.command.reward import CommandFailed, read_reward
from thresher.study import Pull

PULL = Pull(1, "a", 1, {}, 5)


def shell(script: str, reward: str = "last-float") -> float:
    return Command(("sh", "-c", script), reward)(PULL)


READ = {  # the output of a command: its reward
    "0.5": 0.5,
    "1": 1.0,
    "0.1\n0.2\n\n  \n": 0.2,
    "0.1 0.2 0.3": 0.3,
    "accuracy=0.91": 0.91,
    "score: .5": 0.5,
    '{"score": .5}': 0.5,
    "passed 3 of 4 (75%)": 75.0,
    "reward: -2.5e-3": -0.0025,
    "+7.": 7.0,
    "epoch 10: 0.25.": 0.25,
    "loss 0.25, accuracy=0.75.": 0.75,
    "acc 0.93 (n=1)": 1.0,  # the last number is the reward
    "50%\r\n": 50.0,
    "[0.1, 0.2]": 0.2,
    "inf": float("inf"),
    "\x1b[32m1\x1b[0m": 1.0,
    "True": 1.0,
    "false\n": 0.0,
    "PASS": 1.0,
    "Fail": 0.0,
    "\x1b[32mtest-7: pass.\x1b[0m": 1.0,
    "loss 3\nresult=(False)": 0.0,
    "pass rate: 0.5": 0.5,  # the word is not the last one
}


@pytest.mark.parametrize("printed", READ)
def test_last_float_is_the_last_number_or_true_or_pass_on_the_last_line_that_is_not_empty(printed: str) -> None:
    assert read_reward("last-float", 0, printed.encode(), b"") == READ[printed]


UNREADABLE = {  # why an output gives no reward: such outputs
    "--reward": ["", "\n \n", "passed", "v1.2.3", "model-x7b", "information"],
    "not a plain number": [
        *("0,1", "\N{MINUS SIGN}0.5", "1 000", "1_000", "0x10", "1/2", "1,234.5", "gpt-4", "2026-01-05", "0.12s"),
        *("v1.2.3", "12:30"),
    ],
    "printed both a number and a word on its last line": ["0.5 pass", "3 of 10: fail"],
    "printed no number on its last line, 'all tests passed'": ["all tests passed"],
}


@pytest.mark.parametrize(("reason", "printed"), [(why, text) for why, texts in UNREADABLE.items() for text in texts])
def test_text_that_only_looks_like_a_number_is_not_a_reward(reason: str, printed: str) -> None:
    with pytest.raises(NoReward, match=reason):
        read_reward("last-float", 0, printed.encode(), b"")


def test_numbers_on_standard_error_do_not_count() -> None:
    assert shell("echo 0.25; echo 0.75 >&2") == 0.25


def test_binary_output_is_read_as_far_as_it_is_text() -> None:
    assert shell(r"printf '\377\376\000\n0.5\n'") == 0.5
    with pytest.raises(NoReward):
        shell(r"printf '\377\376\000'")


def test_a_number_does_not_count_if_the_command_fails() -> None:
    with pytest.raises(CommandFailed, match="exited with 1"):
        shell("echo 0.5; exit 1")


@pytest.mark.parametrize(
    ("reward", "script"),
    [
        ("last-float", "echo 0.75"),
        ("last-float", "echo score 0.75 of 1 | sed 's/.*score //; s/ of.*//'"),
        ("last-float", "test $THRESHER_NUMBER -gt 1 && echo pass || echo False"),
        ("exit-code", "test $THRESHER_NUMBER -gt 1"),
        ("json:deep.score", """echo '{"deep": {"score": 0.75}}'"""),
    ],
)
def test_every_way_to_read_a_reward_works_from_the_command_line(reward: str, script: str) -> None:
    result = run("--arm=a", "--budget=4", "--reward", reward, "--format=json", "--", "sh", "-c", script)
    assert result.status == 0, result.err
    assert json.loads(result.out)["rows"][0]["mean"] == 0.75


def test_when_the_first_outputs_are_not_numbers_the_run_ends_at_once_with_the_remedy() -> None:
    result = run(
        "--arm=a", "--arm=b", "--arm=c", "--arm=d", "--budget=1000", "--", "echo", "{arm}:", "all", "tests", "passed"
    )
    assert result.status == 3
    assert result.out == ""
    (line,) = result.err.splitlines()
    assert line.startswith("thresher: error: run: 3 arms failed with the same error before anything succeeded: ")
    assert ": all tests passed'" in line
    assert "--reward" in line


def test_when_the_first_rewards_are_out_of_bounds_the_run_ends_at_once_with_the_remedy() -> None:
    arms = [f"--arm={arm}" for arm in "abcdefgh"]
    result = run(*arms, "--budget=1000", "--format=json", "--", "echo", "75")
    assert result.status == 3
    assert len(json.loads(result.out)["retired"]) >= 3
    line = result.err.splitlines()[-1]
    assert " arms returned a reward outside the bounds before anything succeeded: reward 75.0" in line
    assert "must lie within the bounds (0, 1): the bounds are wrong, so arms '" in line
    assert sum(f"'{arm}'" in line for arm in "abcdefgh") >= 3
    remedy = "; start over: if it is a percentage, divide by 100; else create the study with the --bounds that rewards"
    assert f"{remedy} can really take, or with --clip to count such rewards as the bound" in line
    assert "clip=True" not in result.err + result.out
    assert result.err.count("must lie within the bounds") == 1


def test_rewards_outside_the_bounds_are_explained_once_for_all_arms() -> None:
    arms = [f"--arm={arm}" for arm in ("0.5", "7", "8", "9")]
    result = run(*arms, "--budget=400", "--", "echo", "{arm}")
    assert result.status == 0
    assert result.err.count("must lie within the bounds (0, 1): the bounds are wrong, so arm") == 1
    said = " ".join(line for line in result.err.splitlines() if "retired" in line)
    assert all(f"'{arm}'" in said for arm in "789")
    assert "start over" not in result.out, "the table says what happened, and not to each arm what to do"
    assert "7: pull " in result.out


def test_nan_and_infinity_are_not_rewards() -> None:
    for word, rule in (("nan", "must be a finite number"), ("-inf", "must lie within the bounds")):
        assert rule in run("--arm=a", "--arm=b", "--budget=50", "--", "echo", word).err
