"""Results of the baseline that exist already: imported once, all or none, before the first pull."""

import json
from pathlib import Path

import pytest
from inside import inside, refused
from program import Result, thresher

import thresher as library

ARMS = ["--arm=new", "--arm=old", "--baseline=old", "--cases=4"]


def run(folder: Path, *args: str) -> Result:
    command = ["--", "sh", "-c", "echo 1"]
    more = ["--study=s", "--baseline-results=old.csv", *args, *command]
    return thresher("run", *ARMS, *more, cwd=folder, env={"THRESHER_STORAGE": "sqlite:///thresher.db"})


def study(folder: Path) -> library.Study:
    return library.open_study("s", storage=f"sqlite:///{folder}/thresher.db")


def rewards(folder: Path, arm: str) -> dict[object, object]:
    return {row.case: row.reward for row in study(folder).pulls() if row.arm == arm}


def test_they_are_imported_before_the_first_pull_and_only_once(tmp_path: Path) -> None:
    (tmp_path / "old.csv").write_text("case,reward\n0,1\n1,0\n3,0\n2,0\n")
    first = run(tmp_path)
    assert first.status == 0, first
    assert "imported 4 rewards of the baseline\n" in first.err
    assert rewards(tmp_path, "old") == {0: 1.0, 1: 0.0, 2: 0.0, 3: 0.0}
    assert [row.arm for row in study(tmp_path).pulls()][:4] == ["old"] * 4
    head = study(tmp_path).verdict().head
    again = run(tmp_path)
    assert again.status == 0
    assert "imported 4" not in again.err
    assert study(tmp_path).verdict().head == head


def test_cases_that_the_file_lacks_are_pulled_first(tmp_path: Path) -> None:
    (tmp_path / "old.csv").write_text("reward,case,arm\n0,1,old\n")
    done = run(tmp_path)
    assert "imported 1 reward of the baseline; it is pulled first on the 3 other cases" in done.err
    assert rewards(tmp_path, "old") == {0: 1.0, 1: 0.0, 2: 1.0, 3: 1.0}


def test_a_study_that_began_otherwise_is_refused_and_a_fresh_one_is_not(tmp_path: Path) -> None:
    (tmp_path / "old.csv").write_text("case,reward\n0,1\n")
    assert run(tmp_path).status == 0
    head = study(tmp_path).verdict().head
    (tmp_path / "old.csv").write_text("case,reward\n0,0\n")
    refused_ = run(tmp_path)
    assert refused_.status == 2
    assert (
        "--baseline-results 'old.csv': study 's' began with other results of the baseline; start over" in refused_.err
    )
    assert study(tmp_path).verdict().head == head
    assert run(tmp_path, "--fresh").status == 0
    assert rewards(tmp_path, "old")[0] == 0.0


def test_a_study_that_began_without_results_is_refused(tmp_path: Path) -> None:
    (tmp_path / "old.csv").write_text("case,reward\n0,1\n")
    inside("create", "s", *ARMS, storage=tmp_path)
    begun = study(tmp_path)
    begun.drop(begun.ask() or 0, cause="lost")
    file = f"--baseline-results={tmp_path}/old.csv"
    line = refused("run", *ARMS, "--study=s", file, "--", "echo", "1", storage=tmp_path)
    assert "study 's' began with no results of the baseline; start over with --fresh" in line


def test_a_study_that_was_created_and_not_begun_takes_them(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text(json.dumps([{"case": case, "reward": case % 2} for case in range(4)]))
    inside("create", "s", *ARMS, f"--baseline-results={tmp_path}/old.json", storage=tmp_path)
    assert rewards(tmp_path, "old") == {0: 0.0, 1: 1.0, 2: 0.0, 3: 1.0}
    pull = study(tmp_path).ask()
    assert pull is not None
    assert pull.arm == "new"


WRONG = {
    "case,reward\n0,1\n0,1\n": "line 3 of old.csv: case 0: already has a reward of arm 'old', from line 2 of",
    "case,reward\n0,1\n9,1\n": "line 3 of old.csv: case '9': is not a case of this study",
    "case,reward\n0,7\n": "line 2 of old.csv: reward 7.0: must lie within the bounds (0, 1)",
    "case,reward\n0,high\n": "line 2 of old.csv: reward 'high': must be a finite number",
    "case,reward,arm\n0,1,new\n": "line 2 of old.csv: arm 'new': is not the baseline, which is 'old'; keep the results",
    "case,reward,arm\n0,1,older\n": "line 2 of old.csv: arm 'older': is not an arm of this study",
    "reward\n1\n": "line 2 of old.csv: column 'case': is missing: every result of this study needs its case",
    "case\n1\n": "line 1 of old.csv: column 'reward': is missing among ['case']; give CSV with columns case and reward",
    "case,reward\n": "--baseline-results 'old.csv': has no rewards; give CSV with columns case and reward",
    '{"a": 1}': "file 'old.csv': holds an object without events; give CSV with columns case and reward",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_file_with_an_error_changes_nothing(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old.csv").write_text(text)
    assert WRONG[text] in refused("create", "s", *ARMS, "--baseline-results=old.csv", storage=tmp_path)
    assert inside("studies", storage=tmp_path).stdout == ""


def test_the_missing_file_is_named() -> None:
    assert "file 'none.csv': cannot be read" in refused("create", "s", *ARMS, "--baseline-results=none.csv")
