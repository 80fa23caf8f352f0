"""simulate and plan with eval sets: the share of a full run, the error rate, searches, replays of recorded results."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from lab_commands import run

import thresher
from thresher.cli import cli
from thresher.errors import ThresherError
from thresher.lab import Setup, recorded, simulate
from thresher.lab.recorded import Recorded

PROMPTS = ["--arms", "12", "--means", "0.7:0.99", "--at-least", "0.9", "--repetitions", "20"]
DELAYED = ("--delay", "workers:1")  # as if rewards came at once
pytestmark = pytest.mark.usefixtures("interpreted")


def simulated(*words: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(run("simulate", *PROMPTS, *words, "--format", "json"))
    return data


def test_simulate_with_cases_says_what_share_of_a_full_run_it_took() -> None:
    data = simulated("--cases", "60")
    assert (data["cases"], data["budget"], data["full_run"], data["confidence"]) == (60, 720, 720, 0.95)
    assert (data["family"], data["all_settled"], data["guarantee"]) == ("bernoulli", 1.0, "all")
    assert data["full_run_share"] == pytest.approx(data["pulls_used"] / 720)
    assert 0.4 < data["full_run_share"] < 0.95
    assert data["results"][-1]["full_run_share"] == pytest.approx(data["full_run_share"])
    assert "of a full run, which takes 720 pulls" in " ".join(run("simulate", *PROMPTS, "--cases", "60").split())


def test_simulate_with_the_error_rate_bounded_says_how_many_labels_of_each_list_are_wrong() -> None:
    words = ("--cases", "60", "--guarantee", "rate", *DELAYED)
    data = simulated(*words)
    assert 0.0 <= data["false_reached"] <= 0.2
    assert 0.0 <= data["false_missed"] <= 0.2
    assert data["results"][0]["false_reached"] is None  # that is known of the end
    assert data["results"][-1]["false_reached"] == data["false_reached"]
    assert "of the arms certified to reach the bar, " in " ".join(run("simulate", *PROMPTS, *words).split())
    rows = list(csv.DictReader(run("simulate", *PROMPTS, *words, "--format", "csv").splitlines()))
    assert float(rows[-1]["false_missed"]) == pytest.approx(data["false_missed"], rel=1e-4)


def test_simulate_finds_as_many_arms_as_it_is_asked_for() -> None:
    data = simulated("--find", "2", "--cases", "100", *DELAYED)
    assert (data["find"], data["policy"]) == (2, "cheapest")
    assert data["found"] >= 0.5  # in some repetitions there are not two
    assert data["pulls_to_settle"] == data["pulls_used"] < 700
    text = " ".join(run("simulate", *PROMPTS, "--find", "2", "--cases", "100", *DELAYED).split())
    assert "2 arms found in" in text


REWARDS = {"good": "1111111111", "bad": "0101010000", "fair": "1111100111"}


def wide() -> str:
    return (
        "model,"
        + ",".join(f"q{n}" for n in range(10))
        + "\n"
        + "".join(f"{a},{','.join(r)}\n" for a, r in REWARDS.items())
    )


def test_a_matrix_is_read_wide_or_long_or_from_an_export(tmp_path: Path) -> None:
    file, storage = tmp_path / "results", f"sqlite:///{tmp_path}/s.db"
    long = "arm,case,reward\n" + "".join(
        f"{arm},q{n},{reward}\n" for arm, row in REWARDS.items() for n, reward in enumerate(row)
    )
    objects = [
        {"arm": arm, "case": f"q{n}", "reward": int(x)} for arm, row in REWARDS.items() for n, x in enumerate(row)
    ]
    texts = [wide(), long, json.dumps(objects)]
    study = thresher.create_study(
        "s", arms=list(REWARDS), cases=[f"q{n}" for n in range(10)], at_least=0.7, storage=storage, confidence=None
    )
    dropped = False
    while pull := study.ask():
        if not dropped:
            study.drop(pull, cause="lost")  # its case is tried again
            dropped = True
        else:
            study.tell(pull, int(REWARDS[pull.arm][int(str(pull.case)[1:])]))
    texts.append(CliRunner().invoke(cli, ["export", "s", "json", "--storage", storage]).stdout)
    said = []
    for text in texts:
        file.write_text(text)
        said.append(json.loads(run("simulate", "--matrix", str(file), "--at-least", "0.7", "--format", "json")))
    for data in said:
        assert (data["arms"], data["cases"], data["full_run"], data["all_settled"]) == (3, 10, 30, 1.0)
        assert data["results"][-1]["accuracy"] == 1.0
    # the order of cases matters only for chance
    assert {data["full_run_share"] for data in said[:3]} == {said[0]["full_run_share"]}
    file.write_text(wide())
    text = " ".join(run("simulate", "--matrix", str(file), "--at-least", "0.7").split())
    assert "thresher would have needed " in text
    assert " of the 30 recorded pulls" in text


def test_a_replay_knows_the_truth_of_the_recorded_arms() -> None:
    rewards = tuple(tuple(float(x) for x in row) for row in REWARDS.values())
    setup = Setup(
        family="recorded", recorded=Recorded(tuple(REWARDS), rewards), cases=10, at_least=0.8, confidence=0.95
    )
    result = simulate(setup, repetitions=50)
    assert (setup.budget, result.measures.false.sum()) == (30, 0)
    assert result.measures.listed.tolist() == [[2, 1]] * 50  # 8 of 10 is exactly on the bar, and reaches it


def test_a_case_that_was_tried_again_counts_once_and_a_late_reward_gives_way() -> None:
    text = "arm,case,state,reward\na,q1,late,0\na,q1,told,1\na,q2,dropped,\na,q2,late,1\na,q2,spare,0\n"
    assert recorded.gather_recorded_matrix(recorded.recorded_cells_in(None, text, "f"), "f").rewards == ((1.0, 1.0),)


BAD = {
    "a missing cell": ("m,q1,q2\na,1,0\nb,,1\n", "line 3 of FILE: case 'q1': has no reward"),
    "a missing row": (
        "arm,case,reward\na,q1,1\na,q2,1\nb,q1,0\n",
        "arm 'b': 1 of 2 cases have no reward in FILE, 'q2' first",
    ),
    "a case twice": ("m,q1,q1\na,1,0\n", "line 1 of FILE: case 'q1': is given twice"),
    "a case without a name": ("m,q1,\na,1,0\n", "line 1 of FILE: case '': has no name"),
    "an arm twice": ("m,q1\na,1\na,0\n", "line 3 of FILE: arm 'a': is given twice"),
    "an arm without a name": ("m,q1\n,1\n", "line 2 of FILE: arm '': is empty"),
    "a result twice": (
        "arm,case,reward\na,q1,1\na,q1,1\n",
        "line 3 of FILE: arm 'a': the result on case 'q1' occurs twice",
    ),
    "text": ("m,q1\na,high\n", "line 2 of FILE: reward 'high': is not a finite number"),
    "no case": ("arm,reward\na,1\n", "line 1 of FILE: column 'case': is missing among"),
    "an empty reward": ("arm,case,reward\na,q1,\n", "line 2 of FILE: reward '': is empty"),
    "one column": ("arm\na\n", "has no column of a case"),
    "no rows": ("m,q1\n", "has no results"),
    "nothing": ("", "has no column of a case"),
    "too many cells": ("m,q1\na,1,0\n", "has 3 cells, and the first line has 2 columns"),
    "outside the bounds": ("m,q1,q2\na,1,7\n", "arm 'a', reward 7.0"),
    "an object": ("{}", "holds an object without events"),
    "numbers": ("[1, 2]", "row 1 of FILE 1: must have an arm, a case and a reward"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_matrix_that_is_wrong_is_refused_in_one_line(name: str, tmp_path: Path) -> None:
    text, part = BAD[name]
    file = tmp_path / "matrix.csv"
    file.write_text(text)
    with pytest.raises(ThresherError) as caught:
        run("simulate", "--matrix", str(file), "--at-least", "0.5")
    assert part.replace("FILE", str(file)) in str(caught.value)
    assert "\n" not in str(caught.value)


REFUSED = {
    "cases without certificates": (["--cases", "5", "--confidence", "off"], "cases 5"),
    "an unknown guarantee": (["--guarantee", "some"], "guarantee 'some'"),
    "a rate without certificates": (["--guarantee", "rate", "--confidence", "off"], "guarantee 'rate'"),
    "a search with a rate": (["--guarantee", "rate", "--find", "1"], "find 1"),
    "more than there are": (["--find", "13"], "find 13"),
    "none": (["--find", "0"], "find 0"),
    "two sources of cases": (["--cases", "5", "--matrix", "x.csv"], "leave --cases out"),
    "two sources of rewards": (["--recorded", "y.csv", "--matrix", "x.csv"], "leave --recorded out"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_go_together_is_refused_in_one_line(name: str) -> None:
    words, part = REFUSED[name]
    with pytest.raises(ThresherError) as caught:
        run("simulate", *PROMPTS, "--family", "bernoulli", *words)
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_eval_set_has_at_least_one_case() -> None:
    result = CliRunner().invoke(cli, ["simulate", "--cases", "0"])
    assert result.exit_code == 2
    assert "'--cases': 0 is too small; give at least 1" in result.output


def test_a_study_without_cases_is_no_matrix(tmp_path: Path) -> None:
    storage, file = f"sqlite:///{tmp_path}/s.db", tmp_path / "s.json"
    thresher.create_study("s", arms=["a"], at_least=0.5, storage=storage)
    file.write_text(CliRunner().invoke(cli, ["export", "s", "json", "--storage", storage]).stdout)
    with pytest.raises(ThresherError, match="is a study without cases"):
        run("simulate", "--matrix", str(file))


def test_plan_with_cases_says_what_a_full_run_takes_and_what_thresher_takes() -> None:
    words = ["plan", "--means", "0.7:0.99", "--at-least", "0.9", "--workers", "16"]
    data = json.loads(run(*words, "--cases", "500", "--arms", "40", "--format", "json"))
    full = data["full_run"]
    assert (full["pulls"], full["saves"]) == (20_000, True)
    assert full["needed"] == pytest.approx(8900, rel=0.06)
    assert full["low"] < full["needed"] < full["high"] < 14_000
    assert {need["policy"] for need in data["needs"]} == {"balanced", "uniform, skips settled"}
    for need in data["needs"]:
        assert need["seconds"] == pytest.approx(need["pulls"] / 16, rel=0.25)  # also where the last pulls are pending
    text = " ".join(run(*words, "--cases", "200", "--arms", "10").split())
    assert "A full run takes 2,000 pulls and is exact. thresher settles every arm after about " in text


def test_plan_says_when_there_is_nothing_to_save() -> None:
    words = ["plan", "--cases", "50", "--arms", "10", "--means", "1,1,1,1,1,1,1,1,1,1", "--at-least", "0.99"]
    assert json.loads(run(*words, "--format", "json"))["full_run"]["saves"] is False
    assert "would save less than 5 % of them: run every case of every arm" in " ".join(run(*words).split())
