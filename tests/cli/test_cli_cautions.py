"""Warnings about runs that look wrong although nothing failed: each appears once, and only if it applies."""

from pathlib import Path

import pytest
from program import Result, run
from rich.cells import cell_len

from thresher.text.naming import shortened_name

VARIED = "echo 0.$((THRESHER_SEED % 9))"
TWO = ["--arm=a", "--arm=b"]


def warnings(result: Result) -> list[str]:
    return [line for line in result.err.splitlines() if line.startswith("thresher: warning: ")]


def test_a_command_without_its_arm_is_warned_about_once() -> None:
    (line,) = warnings(run(*TWO, "--budget=40", "--", "sh", "-c", VARIED))
    assert "the command has no {arm}, so it runs the same for every arm unless it reads THRESHER_ARM" in line


@pytest.mark.parametrize(
    "args",
    [
        [*TWO, "--", "sh", "-c", VARIED, "{arm}"],
        [*TWO, "--", "sh", "-c", f": $THRESHER_ARM; {VARIED}"],
        ["--arm=a", "--", "sh", "-c", VARIED],
    ],
)
def test_a_command_that_takes_its_arm_or_has_only_one_is_fine(args: list[str]) -> None:
    result = run("--budget=10", *args)
    assert (result.status, warnings(result)) == (0, [])


def test_parameters_and_scripts_that_read_the_arm_are_fine(tmp_path: Path) -> None:
    (tmp_path / "arms.csv").write_text("name,depth\na,1\nb,2\n")
    assert not warnings(run("--arms=arms.csv", "--budget=4", "--", "echo", "0.{depth}", cwd=tmp_path))
    (tmp_path / "evaluate").write_text("#!/bin/sh\necho $THRESHER_ARM\n")
    (tmp_path / "evaluate").chmod(0o755)
    assert not warnings(run("--arm=0.1", "--arm=0.2", "--budget=4", "--", "./evaluate", cwd=tmp_path))


def test_an_evaluator_that_always_returns_the_same_is_warned_about_once() -> None:
    (line,) = warnings(run(*TWO, "--budget=60", "--", "echo", "0.5 {arm} 0.5"))
    assert "all " in line
    assert " rewards are 0.5; check that each evaluation depends on its arm and seed" in line
    assert not warnings(run(*TWO, "--budget=10", "--", "echo", "0.5 {arm} 0.5")), "too few to tell"


def test_clipping_every_reward_is_warned_about() -> None:
    args = ["--arm=70", "--arm=80", "--budget=40", "--clip", "--", "echo", "{arm}"]
    (line,) = warnings(run(*args))
    assert "rewards (70 to 80), because they lie outside the bounds (0, 1); give the --bounds" in line


def test_bounds_far_wider_than_the_rewards_are_warned_about_while_arms_are_open() -> None:
    args = [*TWO, "--budget=60", "--bounds=-1000:1000", "--", "sh", "-c", VARIED, "{arm}"]
    (line,) = warnings(run(*args))
    assert "so far lie from " in line
    assert "far inside the bounds (-1000, 1000); narrower --bounds would settle arms with fewer pulls" in line
    assert line.endswith("give them only if it is impossible that a reward ever leaves them")


@pytest.mark.parametrize("printed", ["1", "0.999", "0.5", "0.98$((THRESHER_SEED % 9))"])
def test_nothing_proposes_narrower_bounds_if_rewards_are_equal_or_near_a_bound(printed: str) -> None:
    args = ["--arm=a", "--budget=30", "--at-least=0.985", "--", "sh", "-c", f"echo {printed}"]
    assert not any("bounds" in line for line in warnings(run(*args)))


def test_a_run_that_may_never_end_hears_of_a_tolerance_once() -> None:
    args = ["--arm=0.2", "--arm=0.8", "--", "echo", "{arm}"]
    said = "with a tolerance, such as --tolerance 2%, either answer is right that near the bar"
    assert run(*args).err.count(said) == 1
    for other in ("--tolerance=2%", "--budget=400", "--cases=30", "--for=9s"):
        assert said not in run(other, *args).err


def test_one_arm_that_looks_like_several_is_warned_about(tmp_path: Path) -> None:
    (line,) = warnings(run("--arm=a,b", "--budget=4", "--", "echo", "1"))
    assert line.endswith("--arm 'a,b' is one arm; for 2 arms write --arm a --arm b")
    (tmp_path / "arms.txt").write_text("a\nb\n")
    (line,) = warnings(run("--arm=arms.txt", "--budget=4", "--", "echo", "1", cwd=tmp_path))
    assert line.endswith("to read the arms from that file write --arms arms.txt")


@pytest.mark.parametrize("width", range(3, 36))
def test_a_long_name_loses_its_middle_and_keeps_both_ends(width: int) -> None:
    name = "tests/test_run.py::test_日本語_is_read"
    text = shortened_name(name, width)
    head, _, tail = text.partition("…")
    assert name.startswith(head)
    assert name.endswith(tail)
    assert cell_len(head) <= cell_len(tail)
    assert width - 1 <= cell_len(text) <= width
    assert shortened_name(name, 100) == name
