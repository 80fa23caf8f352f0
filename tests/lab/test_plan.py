"""`thresher plan`: what it answers, for which policies, from a guess or a pilot."""

import csv
import json
from pathlib import Path

import pytest
from lab_commands import run


def test_plan_answers_for_the_default_policy_and_equal_allocation(tmp_path: Path) -> None:
    problem = ["--threshold", "0.5", "--arms", "6", "--means", "0:1", "--workers", "3", "--seconds-per-pull", "2"]
    problem += ["--tolerance", "0.1"]  # so that it ends soon
    picture = tmp_path / "plan.png"
    data = json.loads(run("plan", *problem, "--format", "json", "--picture", str(picture)))
    needs = data["needs"]
    three = ["balanced", "uniform", "uniform, skips settled"]
    assert [need["policy"] for need in needs] == three * 4 + three[::2] * 2  # equal allocation settles nothing
    assert needs[-2]["target"] == "all arms settled with probability 0.9"
    assert picture.read_bytes().startswith(b"\x89PNG")
    first = needs[0]
    assert first["seconds"] == pytest.approx(first["pulls"] * 2 / 3, rel=0.2)
    assert "90 % of arms right" in run("plan", *problem)
    assert data == json.loads(run("plan", *problem, "--format", "json", "--threads", "1"))


def test_plan_with_a_tolerance_says_when_everything_is_settled_and_how_long_it_takes() -> None:
    problem = ["--threshold", "0.5", "--arms", "4", "--means", "0.4:0.6", "--workers", "8", "--tolerance", "0.1"]
    needs = json.loads(run("plan", *problem, "--format", "json"))["needs"][-2:]
    for need in needs:
        assert need["pulls"] is not None
        assert need["seconds"] == pytest.approx(need["pulls"] / 8, rel=0.25)


def test_plan_says_how_often_each_figure_was_played_and_that_few_runs_are_rough() -> None:
    problem = ["--threshold", "0.5", "--arms", "30", "--means", "0.49:0.51", "--policy", "uniform", "--no-confidence"]
    needs = json.loads(run("plan", *problem, "--format", "json"))["needs"]
    assert [need["repetitions"] for need in needs] == [23] * 4  # of the last stage: nothing was reached before
    text = run("plan", *problem)
    assert "runs" in text
    assert "as few as 23, are rough" in " ".join(text.split())
    easy = run("plan", "--threshold", "0.5", "--arms", "4", "--means", "0.9", "--policy", "uniform", "--no-confidence")
    assert "rough" not in easy


def test_plan_without_certificates_says_nothing_of_settling() -> None:
    problem = ["--threshold", "0.5", "--arms", "4", "--means", "0:1", "--policy", "uniform", "--no-confidence"]
    needs = json.loads(run("plan", *problem, "--format", "json"))["needs"]
    assert [need["policy"] for need in needs] == ["uniform"] * 4
    assert not any("settled" in need["target"] for need in needs)


def test_plan_reads_a_pilot(tmp_path: Path) -> None:
    file = tmp_path / "pilot.csv"
    file.write_text("arm,reward\n" + "".join(f"a,{n % 10 != 0:d}\nb,{n % 3 == 0:d}\n" for n in range(30)))
    rows = list(csv.DictReader(run("plan", "--threshold", "0.6", "--pilot", str(file), "--format", "csv").splitlines()))
    assert float(rows[0]["pulls"]) >= 4
    file.write_text("arm,reward\na,0.71\na,0.9\na,0.8\nb,0.2\nb,0.4\n")
    assert "recorded arms" in run("plan", "--threshold", "0.6", "--policy", "uniform", "--pilot", str(file))
