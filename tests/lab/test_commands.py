"""simulate and plan at the command line: what they print, what they refuse, what they leave behind."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from lab_commands import GROUP, run

from thresher.cli import cli
from thresher.errors import ThresherError

SMALL = ["--arms", "5", "--budget", "60", "--repetitions", "4"]
pytestmark = pytest.mark.usefixtures("interpreted")


def test_simulate_prints_json_with_results_and_speed() -> None:
    data = json.loads(run("simulate", "--policy", "evt", *SMALL, "--format", "json", "--checkpoints", "20,40"))
    assert data["format"] == 1
    assert [row["pulls"] for row in data["results"]] == [20, 40, 60]
    assert set(data["results"][0]) == {"pulls", "accuracy", "accuracy_se", "success", "success_se"}
    assert data["pulls_per_second"] > 0
    assert sum(data["pulls_per_arm"]) == pytest.approx(60)


def test_simulate_defaults_to_section_41_small() -> None:
    data = json.loads(run("simulate", "--repetitions", "2", "--format", "json"))
    expected = {
        "policy": "anytime-evt",
        "family": "uniform",
        "arms": 100,
        "at_least": 0.7,
        "delay": "none",
        "budget": 20_000,
    }
    assert {key: data[key] for key in expected} == expected


def test_simulate_prints_csv_and_tables() -> None:
    rows = list(csv.DictReader(run("simulate", *SMALL, "--delay", "workers:2", "--format", "csv").splitlines()))
    assert float(rows[-1]["seconds"]) == pytest.approx(30)
    assert "arms right" in run("simulate", *SMALL, "--delay", "batch:3:exponential")


def test_simulate_resamples_recorded_rewards(tmp_path: Path) -> None:
    file = tmp_path / "rewards.csv"
    file.write_text("arm,reward\nlow,0.1\nhigh,0.9\nlow,0.2\nhigh,pass\n")
    words = ("simulate", "--recorded", str(file), "--policy", "uniform", "--at-least", "0.5", "--budget", "40")
    data = json.loads(run(*words, "--format", "json"))
    assert (data["arms"], data["results"][-1]["accuracy"]) == (2, 1.0)


BAD = {
    "an unknown family": (["simulate", "--family", "cauchy"], "family 'cauchy'"),
    "an unknown delay": (["simulate", "--delay", "snail:3"], "delay 'snail:3'"),
    "a delay without its number": (["simulate", "--delay", "fifo"], "delay 'fifo'"),
    "an unknown policy": (["simulate", "--policy", "greedy"], "policy 'greedy'"),
    "means outside the bounds": (["simulate", "--means", "0.6:1.2"], "mean 1.2"),
    "means the wrong way round": (
        ["simulate", "--means", "0.8:0.6"],
        "--means '0.8:0.6': must be finite, the lower end first; write LO:HI",
    ),
    "means that are text": (["simulate", "--means", "some:more"], "means 'some:more'"),
    "means with a dash": (
        ["simulate", "--means", "0.7-0.99"],
        "must be a range LO:HI, one number, or A,B,C; write",
    ),
    "too few means": (["simulate", "--arms", "3", "--means", "0.1,0.2"], "one for each of 3 arms"),
    "a negative spread": (["simulate", "--spreads", "-0.1:0.2"], "spread -0.1"),
    "a Beta too wide": (["simulate", "--family", "beta", "--spreads", "0.6"], "a Beta arm of mean 0.6 has"),
    "a bar on the bound": (["simulate", "--at-least", "1"], "--at-least 1: must lie strictly"),
    "no repetitions": (["simulate", "--repetitions", "0"], "repetitions 0"),
    "no threads": (["simulate", "--threads", "0"], "threads 0"),
    "a budget below the warm-up": (["simulate", "--budget", "10"], "budget 10"),
    "a seed below zero": (["simulate", "--seed", "-1"], "seed -1"),
    "falling checkpoints": (["simulate", "--checkpoints", "300,200"], "must increase"),
    "confidence that is text": (["simulate", "--confidence", "high"], "confidence 'high'"),
    "confidence of one": (["simulate", "--confidence", "1"], "confidence 1.0"),
    "a confidence of 100 %": (["simulate", "--confidence", "100%"], "confidence 1.0"),
    "a tolerance without certificates": (["simulate", "--tolerance", "0.1"], "tolerance 0.1"),
    "certificates of rewards without bounds": (["simulate", "--confidence", "0.9"], "family 'uniform'"),
    "lost pulls that come at once": (["simulate", "--lost", "0.1:0"], "delay 'none'"),
    "a share of lost pulls above one": (["simulate", "--lost", "1.5:0", "--delay", "workers:2"], "lost 1.5"),
    "pulls that hang without workers": (["simulate", "--hung", "0.1", "--delay", "fifo:2"], "hung 0.1"),
    "an unknown failure": (["simulate", "--failure", "best"], "failure 'best'"),
    "no such recorded file": (["simulate", "--recorded", "no/such.csv"], "cannot be read"),
    "a plan without arms": (["plan", "--at-least", "0.5", "--means", "0:1"], "--arms"),
    "a plan without means": (["plan", "--at-least", "0.5", "--arms", "4"], "--means"),
    "a plan that needs a budget": (
        ["plan", "--at-least", "0.5", "--arms", "4", "--means", "0:1", "--policy", "evt"],
        "evt",
    ),
    "a plan without workers": (
        ["plan", "--at-least", "0.5", "--arms", "4", "--means", "0:1", "--workers", "0"],
        "workers 0",
    ),
    "a picture of no kind": (
        ["plan", "--at-least", "0.5", "--arms", "4", "--means", "0:1", "--picture", "p.doc"],
        "picture 'p.doc'",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_clear_line(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words, part = BAD[name]
    with pytest.raises(ThresherError) as caught:
        run(*words)
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


RECORDED = {
    "text": ("arm,reward\na,0.5\nb,good\n", "line 3 of FILE: reward 'good'"),
    "NaN": ("arm,reward\na,nan\n", "line 2 of FILE: reward nan"),
    "infinity": ("arm,reward\na,1\nb,inf\n", "line 3 of FILE: reward inf"),
    "no arm": ("arm,reward\n ,0.5\n", "line 2 of FILE: arm ' '"),
    "no reward": ("arm,reward\na,\n", "line 2 of FILE: column 'reward': is empty"),
    "no column": ("name,reward\na,1\n", "line 1 of FILE: column 'arm': is missing"),
    "nothing": ("", "line 1 of FILE: column 'arm': is missing"),
    "no rows": ("arm,reward\n", "no rewards"),
    "outside the bounds": ("arm,reward\na,0.5\nb,7\n", "arm 'b', reward 7.0"),
}


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_file_that_is_wrong_is_named_by_row_and_column(name: str, tmp_path: Path) -> None:
    text, part = RECORDED[name]
    file = tmp_path / "rewards.csv"
    file.write_text(text)
    for words in (
        ["simulate", "--recorded", str(file), "--at-least", "0.5"],
        ["plan", "--at-least", "0.5", "--pilot", str(file)],
    ):
        with pytest.raises(ThresherError) as caught:
            run(*words)
        assert part.replace("FILE", str(file)) in str(caught.value)


def test_a_plan_overwrites_a_picture_and_nothing_else(tmp_path: Path) -> None:
    words = ["plan", "--at-least", "0.5", "--arms", "2", "--means", "0.1,0.9", "--policy", "uniform"]
    words += ["--confidence=off", "--picture", str(tmp_path / "p.png")]
    (tmp_path / "p.png").write_text("my own")
    with pytest.raises(ThresherError, match="already exists, and is not a picture"):
        run(*words)
    for more in (["--force"], []):
        run(*words, *more)
        assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    assert [file.name for file in tmp_path.iterdir()] == ["p.png"]


def test_simulate_with_a_confidence_settles_arms_and_stops() -> None:
    problem = ("simulate", "--family", "bernoulli", "--means", "0.1,0.9", "--arms", "2", "--at-least", "0.5")
    words = (*problem, "--repetitions", "30", "--confidence", "0.95", "--budget", "2000")
    data = json.loads(run(*words, "--format", "json"))
    assert (data["confidence"], data["all_settled"], data["tolerance"]) == (0.95, 1.0, 0.0)
    assert data["pulls_to_settle"] == data["pulls_used"] < 100
    last = data["results"][-1]
    assert (last["settled"], last["settled_se"], last["accuracy"]) == (1.0, 0.0, 1.0)
    assert last["any_wrong_settled"] <= 0.05
    rows = list(csv.DictReader(run(*words, "--format", "csv").splitlines()))
    assert float(rows[-1]["settled"]) == 1.0
    text = run(*words, "--delay", "workers:4:failures:5", "--lost", "0.1:0", "--hung", "0.01")
    assert "arms settled" in text
    short = json.loads(run(*words[:-1], "20", "--format", "json"))
    assert short["pulls_to_settle"] is None  # some repetitions did not finish


def test_every_command_has_help_with_examples() -> None:
    for name in GROUP.commands:
        shown = CliRunner().invoke(cli, [name, "--help"]).output
        assert f"\n    thresher {name} " in shown, "on a line of its own"


def test_importing_the_commands_imports_nothing_heavy() -> None:
    heavy = "{'numpy', 'numba', 'matplotlib'}"
    modules = "sys, thresher, thresher.cli.lab_commands"
    program = f"import {modules}; sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


def test_without_numba_the_extra_is_named() -> None:
    program = """
import sys
sys.modules["numba"] = None
try:
    import thresher.lab
except Exception as error:
    print(type(error).__mro__[1].__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "numba" in done.stdout
    assert "pip install 'thresher[lab]'" in done.stdout
    assert done.stdout.count("\n") == 1


def test_one_repetition_has_no_error_and_says_so() -> None:
    text = run("simulate", "--arms", "5", "--budget", "60", "--repetitions", "1", "--format", "json")
    assert "NaN" not in text
    assert json.loads(text)["results"][0]["accuracy_se"] is None
    assert "±" not in run("simulate", "--arms", "5", "--budget", "60", "--repetitions", "1")
