"""Each kind of question with real commands: measured times, limits, pairs, requirements, and resuming."""

from pathlib import Path

import pytest
from program import Result as Done
from program import thresher

import thresher as library
from thresher.cli.run_command import RunCommandRequirement, are_run_command_requirements_met

SH = ["--", "sh", "-c", "{arm}"]
TIMES = ["--reward=seconds", "--workers=1", "--quiet"]


def run(folder: Path, *args: str) -> Done:
    return thresher("run", *args, cwd=folder, env={"THRESHER_STORAGE": "sqlite:///thresher.db"})


def study(folder: Path, name: str = "s") -> library.Study:
    return library.open_study(name, storage=f"sqlite:///{folder}/thresher.db")


def test_commands_are_timed_against_a_limit_without_bounds(tmp_path: Path) -> None:
    args = ["--at-most=400ms", "--share=90%", "--arm=true", "--arm=sleep 0.5", "--study=s", *TIMES]
    done = run(tmp_path, *args, "--require=reached=1", "--require=missed=any", *SH)
    assert done.status == 0, done
    assert "1 of 2 stays within 400 ms in at least 90 % of pulls, 1 misses it." in done.out
    verdict = study(tmp_path).verdict()
    assert (verdict.reached, verdict.missed) == (["true"], ["sleep 0.5"])
    assert (verdict["sleep 0.5"].median or 0.0) >= 0.5
    resumed = run(tmp_path, *args, "--require=reached=all", *SH)
    assert resumed.status == 1
    assert "--require reached=all: 1 of 2 arms is certified to reach the bar" in resumed.err


def test_a_timeout_beyond_the_limit_is_a_miss_and_one_before_it_a_failure(tmp_path: Path) -> None:
    more = ["--arm=sleep 9", "--share=0.5", "--confidence=60%", "--budget=20", "--study=s", *TIMES]
    done = run(tmp_path, "--at-most=20ms", "--timeout=60ms", *more, *SH)
    assert done.status == 0, done
    row = study(tmp_path).verdict()["sleep 9"]
    assert (row.reached, row.certified, row.failures) == (False, True, 0)
    assert "timed out" in complaint_of(run(tmp_path, "--at-most=1s", "--timeout=60ms", *more, "--study=other", *SH))


def complaint_of(done: Done) -> str:
    assert done.status == 3, done
    return done.err


def test_a_failing_command_is_a_failure_and_no_time(tmp_path: Path) -> None:
    done = run(tmp_path, "--at-most=9s", "--arm=true", "--arm=exit 3", "--budget=20", "--study=s", *TIMES, *SH)
    assert done.status == 0, done
    row = study(tmp_path).verdict()["exit 3"]
    assert (row.standing, row.seen, row.failures) == ("retired", 0, 3)


def test_pairs_are_timed_and_a_larger_budget_resumes_them(tmp_path: Path) -> None:
    args = ["--baseline=sleep 0.05", "--ratio=1.5", "--arm=true", "--arm=sleep 0.05", "--study=s", *TIMES]
    assert run(tmp_path, *args, "--budget=2", *SH).status == 0
    first = study(tmp_path).pulls()
    done = run(tmp_path, *args, "--budget=4", *SH)
    assert "resumes after 2 pulls" in done.err
    assert "Is the arm at most 50 % slower than 'sleep 0.05' in at least half of the pairs?" in done.out
    pulls = study(tmp_path).pulls()
    assert list(pulls[:2]) == list(first)
    assert [row.arm for row in pulls] == ["true"] * 4
    assert all((row.baseline or 0.0) >= 0.05 and row.reward for row in pulls)


def test_another_bar_keeps_all_results(tmp_path: Path) -> None:
    args = ["--arm=0.25", "--budget=2", "--study=s"]
    assert run(tmp_path, "--at-most=5%", *args, "--", "echo", "{arm}").status == 0
    other = run(tmp_path, "--at-least=5%", *args, "--", "echo", "{arm}")
    assert "s, revision 2: the bar is at least 0.05, not at most 0.05 · " in other.err
    same = run(tmp_path, "--at-least=0.05", *args, "--", "echo", "{arm}")
    assert "nothing changed" in same.err, "the same number without its unit"


@pytest.mark.parametrize(
    ("required", "met"),
    [("reached=any", 1), ("reached=1", 1), ("reached=2", 0), ("reached=all", 0), ("missed=1", 1), ("missed=all", 0)],
)
@pytest.mark.parametrize("confidence", [0.95, None])
def test_requirements_are_about_the_answer_and_not_the_side(
    required: str, met: int, confidence: float | None, capsys: pytest.CaptureFixture[str]
) -> None:
    arms = ["0.1", "0.9"]
    study = library.create_study("s", arms=arms, at_most=0.5, budget=100, confidence=confidence)
    while pull := study.ask():
        study.tell(pull, float(pull.arm))
    assert are_run_command_requirements_met(
        study.verdict(), [RunCommandRequirement().convert(required, None, None)]
    ) == bool(met)
    side = required.partition("=")[0]
    said = {"reached": "is certified to reach the bar", "missed": "is certified to miss the bar"}[side]
    if confidence is None:
        said = {"reached": "reaches the bar", "missed": "misses the bar"}[side]
    assert capsys.readouterr().err == ("" if met else f"thresher: --require {required}: 1 of 2 arms {said}\n")


def test_answers_that_are_not_certified_meet_no_requirement() -> None:
    study = library.create_study("s", arms=["a", "b"], at_most=0.5, budget=4)
    while pull := study.ask():
        study.tell(pull, 0.25)
    assert study.verdict().open == ["a", "b"]
    assert not are_run_command_requirements_met(
        study.verdict(), [RunCommandRequirement().convert("reached=any", None, None)]
    )


def test_a_requirement_asks_nothing_of_the_baseline() -> None:
    study = library.create_study("s", arms=["a", "b", "c"], baseline="a", budget=4, confidence=None)
    while pull := study.ask():
        study.tell(pull, (0.75, 0.5))
    assert are_run_command_requirements_met(
        study.verdict(), [RunCommandRequirement().convert("reached=all", None, None)]
    )
