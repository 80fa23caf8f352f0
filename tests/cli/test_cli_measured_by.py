"""A study remembers the command that measured its rewards, and does not mix it with another."""

import json
from pathlib import Path
from typing import Any

import pytest
from program import Result, complaint, thresher
from workdir import only_study

import thresher as library

ONE, ZERO = ["--", "sh", "-c", "echo 1"], ["--", "sh", "-c", "echo 0"]
QUESTION = ["--confidence=0.9", "--arm=a", "--at-least=0.5"]


def checked(folder: Path, *args: str, first: str | None = None) -> Result:
    """A check in CI, in a folder that outlives its jobs."""
    return thresher(
        "run", *QUESTION, "--require=reached=all", *args, env={"THRESHER_STORAGE": ""}, cwd=folder, first=first
    )


def test_a_check_in_ci_does_not_pass_with_rewards_of_another_command(tmp_path: Path) -> None:
    assert checked(tmp_path, *ONE).status == 0
    assert checked(tmp_path, *ZERO).status == 1


def test_a_check_in_ci_on_a_finished_study_says_that_nothing_was_run_and_since_when(tmp_path: Path) -> None:
    checked(tmp_path, *ONE)
    again = checked(tmp_path, *ONE)
    assert again.status == 0
    assert again.out.startswith("Nothing was run.")
    assert checked(tmp_path, "--format=markdown", *ONE).out.startswith("Nothing was run.")
    assert "so nothing is run" in again.err
    assert "--require reached=all: met by earlier runs; nothing new was run" in again.err
    assert "All rewards are from earlier runs or other agents, since 20" in again.out


def test_fresh_takes_nothing_over(tmp_path: Path) -> None:
    first = checked(tmp_path, "--study=s", "--workers=1", *ONE)
    again = checked(tmp_path, "--study=s", "--workers=1", "--fresh", *ONE)
    assert "s, revision 2: --fresh takes nothing over" in again.err
    assert (first.status, again.status) == (0, 0)
    assert "earlier" not in again.out
    third = checked(tmp_path, "--study=s", "--fresh", *ZERO)
    assert "s, revision 3: the command changed · --fresh takes nothing over" in third.err
    assert third.status == 1
    assert only_study(tmp_path).revision == 3


def test_fresh_does_not_take_a_study_from_a_working_agent(tmp_path: Path) -> None:
    checked(tmp_path, "--study=s", "--budget=9", "--policy=uniform", "--confidence=0.999999", *ONE)
    library.open_study("s", storage=f"sqlite:///{tmp_path}/thresher.db").extend(budget=20)
    thresher("ask", "s", "--lease=1h", env={"THRESHER_STORAGE": ""}, cwd=tmp_path)
    assert "1 pull pending" in complaint(checked(tmp_path, "--study=s", "--fresh", *ONE))


@pytest.mark.parametrize(
    "other", [ZERO, ["--reward=json:x", *ONE], ["--reward=exit-code", *ONE]], ids=["command", "reward", "exit code"]
)
def test_no_result_of_another_measurement_holds(tmp_path: Path, other: list[str]) -> None:
    checked(tmp_path, "--study=s", *ONE)
    assert "s, revision 2: the command changed · nothing holds" in checked(tmp_path, "--study=s", *other).err


def test_somebody_may_say_that_another_command_measures_the_same(tmp_path: Path) -> None:
    checked(tmp_path, "--study=s", *ONE)
    other = ["--", "sh", "-c", "echo 1.0"]
    vouched = checked(tmp_path, "--study=s", "--same-code", *other)
    assert vouched.status == 0
    assert "hold by --same-code" in vouched.err
    assert "nothing changed" in checked(tmp_path, "--study=s", *other).err
    assert "results hold" in checked(tmp_path, "--study=s", *ONE).err
    assert [event.cause for event in only_study(tmp_path).events() if event.kind == "revised"] == ["vouched", None]


def test_a_verdict_says_that_somebody_vouched_for_another_command(tmp_path: Path) -> None:
    checked(tmp_path, "--study=s", *ONE)
    other = checked(tmp_path, "--study=s", "--same-code", "--format=json", "--", "sh", "-c", "echo 1.0")
    assert "vouched" in json.loads(other.out)["guarantee"]


def test_the_same_words_in_another_folder_are_another_command(tmp_path: Path) -> None:
    """Folders may share a store, and ./ev.sh is a different program in each."""
    shared = f"--storage=sqlite:///{tmp_path}/shared.db"
    for name, answer in (("one", 1), ("two", 0)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "ev.sh").write_text(f"#!/bin/sh\necho {answer}\n")
        (folder / "ev.sh").chmod(0o755)
        result = checked(folder, shared, "--", "./ev.sh", "{arm}")
        assert result.status == 1 - answer, result.err
        study = checked(folder, shared, "--study=both", "--", "./ev.sh", "{arm}")
    assert "both, revision 2: ev.sh changed, the command changed · nothing holds" in study.err.replace("./ev", "ev")


def test_a_verdict_says_which_rewards_are_from_other_agents(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/s.db"
    study = library.create_study("s", arms=["a"], at_least=0.5, budget=9, storage=storage)
    other = library.open_study("s", storage=storage)
    for agent in (study, other, other):
        agent.tell(agent.ask() or 0, 1)
    verdict = study.verdict()
    assert (verdict.others, verdict.earlier, verdict.told) == (2, 0, 3)
    assert "2 of these 3 rewards are from other agents." in str(verdict)


def test_imported_rewards_are_not_from_earlier_runs(tmp_path: Path) -> None:
    (tmp_path / "old.csv").write_text("arm,reward\na,1\na,1\n")
    here: dict[str, Any] = {"env": {"THRESHER_STORAGE": ""}, "cwd": tmp_path}
    thresher("create", "s", *QUESTION, **here)
    assert thresher("import", "old.csv", "--study=s", **here).status == 0
    first = checked(tmp_path, "--study=s", *ONE)
    assert "2 pulls were imported" in first.out
    assert "earlier runs" not in first.out
    again = json.loads(checked(tmp_path, "--study=s", "--format=json", *ONE).out)
    assert (again["imported"], again["earlier"]) == (2, again["told"] - 2)
    last = checked(tmp_path, "--study=s", *ONE)
    assert f"{again['earlier']} of these {again['told']} rewards are from earlier runs or other agents" in last.out
    assert "met by earlier runs; nothing new was run" in last.err


def test_results_that_an_agent_imports_are_not_of_another_agent(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/s.db"
    study = library.create_study("s", arms=["a"], at_least=0.5, budget=9, storage=storage)
    library.open_study("s", storage=storage).add("a", 1)
    study.tell(study.ask() or 0, 1)
    verdict = study.verdict()
    assert (verdict.imported, verdict.others, verdict.earlier, verdict.origin) == (1, 0, 0, None)


def test_csv_says_on_standard_error_what_is_from_earlier_runs(tmp_path: Path) -> None:
    checked(tmp_path, *ONE)
    again = checked(tmp_path, "--format=csv", *ONE)
    assert "All rewards are from earlier runs or other agents, since 20" in again.err


def test_a_study_that_was_created_first_takes_the_first_command(tmp_path: Path) -> None:
    thresher("create", "s", *QUESTION, env={"THRESHER_STORAGE": ""}, cwd=tmp_path)
    assert checked(tmp_path, "--study=s", *ONE).status == 0
    assert "the command changed · nothing holds" in checked(tmp_path, "--study=s", *ZERO).err


def test_rewards_of_unknown_origin_are_not_mixed_with_those_of_a_command(tmp_path: Path) -> None:
    thresher("create", "s", *QUESTION, env={"THRESHER_STORAGE": ""}, cwd=tmp_path)
    study = library.open_study("s", storage=f"sqlite:///{tmp_path}/thresher.db")
    study.tell(study.ask() or 0, 1)
    assert "the command changed · nothing holds" in checked(tmp_path, "--study=s", *ONE).err


def test_a_secret_is_not_part_of_the_identity(tmp_path: Path) -> None:
    for word in ("first", "second"):
        checked(tmp_path, "--", "sh", "-c", "echo 1", "x", "--password", word)
    study = only_study(tmp_path)
    assert "first" not in str(study.spec.evaluator)
    assert study.verdict().told < 20


def test_a_start_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    impatient = "from thresher.run.engines import dask; dask.PATIENCE = 0.2"
    failed = checked(tmp_path, "--engine=dask:tcp://127.0.0.1:9", *ONE, first=impatient)
    assert failed.status == 3
    assert list(tmp_path.iterdir()) == []
