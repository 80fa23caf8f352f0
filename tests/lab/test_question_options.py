"""`thresher simulate` and `thresher plan` ask every question, in the words of a study, or refuse in one line."""

import json
from pathlib import Path

import pytest
from lab_commands import run

from thresher.cli.error_wording import error_in_options
from thresher.errors import InvalidInput
from thresher.lab import Setup, families, simulate
from thresher.lab.families import family_chance_within
from thresher.lab.recorded import Recorded

NONE = Recorded(("a",), ((0.1, 0.5, 0.5, 0.9),)).samples
ARMS = ("--policy", "uniform", "--family", "bernoulli", "--arms", "3", "--means", "0.5,0.95,0.05")
SMALL = (*ARMS, "--confidence", "95%", "--budget", "1500", "--repetitions", "20")
pytestmark = pytest.mark.usefixtures("interpreted")


@pytest.mark.parametrize(
    ("options", "question"),
    [
        (("--at-most", "0.5"), "Which of 3 arms stay within 0.5?"),
        (("--at-least", "50%", "--tolerance", "2%"), "Which of 3 arms reach 50 %, give or take 2 points?"),
        (("--at-least", "0.5", "--share", "70%"), "Which of 3 arms reach 0.5 in at least 70 % of pulls?"),
        (("--at-least", "0.5", "--share", "0.7"), "Which of 3 arms reach 0.5 in at least 70 % of pulls?"),
        (("--baseline", "0", "--margin", "0.1"), "Which of 2 arms beat 'arm 0' by 0.1?"),
        (
            ("--baseline", "0", "--ratio", "1", "--lower-is-better"),
            "Which of 2 arms are at most as much as 'arm 0' in at",
        ),
    ],
)
def test_simulate_asks_in_the_words_of_a_study(options: tuple[str, ...], question: str) -> None:
    assert question in " ".join(run("simulate", *SMALL, *options).split())
    data = json.loads(run("simulate", *SMALL, *options, "--format", "json"))
    assert data["question"].startswith(question)
    assert data["results"][-1]["any_wrong_settled"] == 0.0


def test_the_baseline_of_a_matrix_is_named(tmp_path: Path) -> None:
    file = tmp_path / "matrix.csv"
    rows = ("now,1,0,1,0,1,0", "good,1,1,1,1,1,1", "bad,0,0,0,0,0,0")
    file.write_text("arm,a,b,c,d,e,f\n" + "\n".join(rows) + "\n")
    command = ("simulate", "--matrix", str(file), "--policy", "uniform", "--repetitions", "5")
    data = json.loads(run(*command, "--baseline", "now", "--margin", "0.2", "--format", "json"))
    assert data["question"] == "Which of 2 arms beat now by 0.2 on 6 cases?"
    assert (data["full_run"], data["all_settled"], data["baseline"]) == (18, 1.0, 0)
    with pytest.raises(InvalidInput, match="--baseline '0': is not one of the arms; the arms are 'now', 'good', 'bad'"):
        run(*command, "--baseline", "0")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--at-least", "0.3", "--at-most", "0.5"), "--at-most 0.5: a study has one bar, and --at-least and --at-most"),
        (("--at-most", "0.5", "--share", "95"), "--share 95: must lie strictly between 0 and 1; write 0.95"),
        (("--at-least", "0.3", "--lower-is-better"), "give --at-most"),
        (("--at-least", "0.3", "--baseline", "0"), "with a baseline, the bar is what the baseline reaches"),
        (("--baseline", "100"), "is not the number of one of 100 arms; they are numbered from 0"),
        (("--baseline", "first"), "write the number of an arm, from 0"),
        (("--margin", "0.1"), "--margin 0.1: belongs to a baseline; name one of the arms with --baseline"),
        (("--at-most", "0.3", "--share", "0.5", "--family", "beta"), "its true share within a limit is not known"),
        (("--baseline", "0", "--ratio", "1.1"), "the true share of pairs is known for"),
        (("--baseline", "0", "--ratio", "1.1", "--cases", "9", "--family", "normal"), "needs rewards of at least 0"),
        (("--at-most", "0.3", "--share", "0.5", "--bounds", "0:2"), "needs none"),
    ],
)
def test_what_cannot_be_simulated_is_refused_in_one_line(options: tuple[str, ...], words: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        run("simulate", *options)
    line = error_in_options(refusal.value)
    assert words in line
    assert "\n" not in line


def test_a_plan_needs_a_bar_or_a_baseline() -> None:
    with pytest.raises(InvalidInput, match="--at-least: is missing; give it, --at-most, or a --baseline"):
        run("plan", "--arms", "3", "--means", "0.2:0.8")


def test_a_plan_compares_with_a_baseline() -> None:
    text = run("plan", "--baseline", "0", "--margin", "0.1", "--arms", "3", "--means", "0.5,1,0", "--policy", "uniform")
    assert "Which of 2 arms beat 'arm 0' by 0.1? bernoulli arms, 1 worker" in text
    assert "for arms settled, in nine of ten runs" in " ".join(text.split())


def test_true_shares_are_those_of_the_families() -> None:
    ends = (0.0, 1.0, NONE)
    assert family_chance_within(families.UNIFORM, 0.2, 0.4, *ends, 1.0, 0.3) == pytest.approx(0.75)
    assert family_chance_within(families.UNIFORM, 0.2, 0.4, *ends, -1.0, -0.3) == pytest.approx(0.25)
    assert family_chance_within(families.NORMAL, 2.0, 1.0, *ends, 1.0, 1.0) == pytest.approx(0.8413, abs=1e-4)
    assert family_chance_within(families.NORMAL, 2.0, 1.0, *ends, -1.0, -1.0) == pytest.approx(0.1587, abs=1e-4)
    assert family_chance_within(families.CLIPPED, 0.5, 1.0, *ends, 1.0, 1.0) == pytest.approx(
        0.3085, abs=1e-4
    )  # what is clipped is at 1
    assert family_chance_within(families.CLIPPED, 0.5, 1.0, *ends, 1.0, 1.01) == 0.0
    assert family_chance_within(families.CLIPPED, 0.5, 1.0, *ends, -1.0, -1.0) == 1.0
    assert family_chance_within(families.RECORDED, 0.0, 4.0, *ends, 1.0, 0.5) == 0.75
    assert family_chance_within(families.RECORDED, 0.0, 4.0, *ends, -1.0, -0.1) == 0.25


def test_a_share_needs_no_bounds_and_takes_rewards_from_anywhere() -> None:
    setup = Setup(policy="uniform", arms=2, means=[200.0, 300.0], spreads=50.0, at_least=260.0, share=0.9, budget=600)
    result = simulate(setup.but(at_most=260.0, confidence=0.95), repetitions=50, seed=2)
    assert result.accuracy[-1] == 1.0
    assert setup.contenders == 2
