"""Comparing policies: the same luck for all of them, errors of the differences, and what is refused."""

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rewritten
from lab_commands import run

from thresher.core.policies import balanced, custom, evt
from thresher.errors import ThresherError
from thresher.lab.comparing import compare
from thresher.lab.setup import Setup
from thresher.lab.simulator import simulate, trace

SMALL: dict[str, Any] = {"arms": 8, "budget": 400, "checkpoints": (100, 400)}
WORDS = ("compare", "--arms=8", "--budget=400", "--checkpoints=100,400", "--repetitions=20", "--family=uniform")
pytestmark = pytest.mark.usefixtures("interpreted")


def test_the_nth_pull_of_an_arm_gives_every_policy_the_same_reward() -> None:
    setup = Setup(policy="evt", common=True, arms=8, budget=400)
    first, second = issued(setup), issued(setup.but(policy="uniform"))
    both = first.keys() & second.keys()
    assert first.keys() != second.keys()
    assert len(both) > 200
    assert len(set(first.values())) == 400  # and no two pulls the same
    assert all(first[key] == second[key] for key in both)


@pytest.mark.parametrize(
    "more",
    [
        {"delay": "workers:10", "lost": (0.3, 0.3), "hung": 0.01},
        {"spreads": 0.1, "baseline": 2, "margin": 0.0, "delay": "fifo:9", "confidence": 0.95},
    ],
    ids=str,
)
def test_draws_are_common_and_never_repeated_whatever_happens_to_pulls(more: dict[str, Any]) -> None:
    setup = Setup(**more, policy="balanced", common=True, arms=8, budget=400)
    first, second = issued(setup), issued(setup.but(policy=balanced(warmup=20)))
    both = first.keys() & second.keys()
    assert len(both) > 100
    assert all(first[key] == second[key] for key in both)
    assert len(set(first.values())) == len(first)


def issued(setup: Setup) -> dict[tuple[int, int], tuple[float, float]]:
    """The rewards that pulls drew, lost ones too, by arm and the number of the pull within the arm."""
    played, drawn = trace(setup, seed=9), {}
    numbers = [0] * setup.arms
    for pull, arm, reward, other in zip(played.pull, played.arm, played.reward, played.other, strict=True):
        if pull > 0:
            numbers[arm] += 1
            drawn[arm, numbers[arm]] = (reward, other)
    return drawn


def test_a_policy_differs_from_itself_by_nothing() -> None:
    same = custom(rewritten.evt_again, pending_weight=0.0)
    (comparison,) = compare([evt(), same], kinds=["uniform"], repetitions=20, **SMALL)
    for measure in ("accuracy", "success"):
        apart = comparison.difference(same.label, measure)
        assert apart.mean.tolist() == apart.error.tolist() == [0.0, 0.0]


def test_errors_of_differences_are_those_of_paired_repetitions() -> None:
    (comparison,) = compare(["evt", "uniform"], kinds=["uniform"], repetitions=50, seed=3, **SMALL)
    alone = [
        simulate(Setup(policy=name, common=True, **SMALL), repetitions=50, seed=3).shares for name in ("evt", "uniform")
    ]
    apart = alone[1] - alone[0]
    difference = comparison.difference("uniform", "accuracy")
    assert difference.mean == pytest.approx(apart.mean(axis=0))
    assert difference.error == pytest.approx(np.std(apart, axis=0, ddof=1) / 50**0.5)
    rows = list(comparison.rows())
    assert [row["policy"] for row in rows] == ["evt", "evt", "uniform", "uniform"]
    assert rows[0]["accuracy_difference"] == 0.0
    assert rows[3]["accuracy_difference"] == pytest.approx(rows[3]["accuracy"] - rows[1]["accuracy"])
    assert rows[3]["accuracy_difference_se"] < np.hypot(rows[1]["accuracy_se"], rows[3]["accuracy_se"])


def test_policies_are_compared_at_the_same_numbers_of_pulls_however_long_they_warm_up() -> None:
    policies = ("cheapest", "balanced", "uniform")
    words = ("--arms=10", "--budget=60", "--repetitions=3", "--family=bernoulli", "--confidence=0.5", "--format=json")
    data = json.loads(run("compare", *words, *(f"--policy={name}" for name in policies)))
    assert [(row["policy"], row["pulls"]) for row in data["results"]] == [
        (name, pulls) for name in policies for pulls in (10, 20, 50, 60)
    ]


def test_the_command_prints_a_table_and_draws_a_picture(tmp_path: Path) -> None:
    picture = tmp_path / "compared.png"
    out = run(*WORDS, "--policy=evt", "--policy=uniform", f"--picture={picture}")
    assert "uniform arms: arms right" in out
    assert "uniform − evt" in out
    assert "20 repetitions, seed 0, the same draws for all policies" in " ".join(out.split())
    assert picture.read_bytes().startswith(b"\x89PNG")
    rows = list(csv.DictReader(run(*WORDS, "--policy=evt", "--policy=uniform", "--format=csv").splitlines()))
    assert len(rows) == 4
    data = json.loads(run(*WORDS, "--policy=evt", "--policy=uniform", "--format=json"))
    assert (data["format"], data["repetitions"], len(data["results"])) == (1, 20, 4)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--policy=evt",), "there must be at least two to compare; give one more"),
        ((), "there must be at least two to compare"),
        (("--policy=evt", "--policy=evt"), "policy 'evt': is given twice"),
        (("--policy=evt", "--policy=nothing"), "is not a policy that thresher knows"),
        (("--policy=evt", "--policy=uniform", "--family=cauchy"), "cauchy"),
        (("--policy=evt", "--policy=uniform", "--picture=found.txt"), "must end with .png, .pdf or .svg"),
        (("--policy=evt", "--policy=uniform", "--repetitions=0"), "must be a whole number of at least 1"),
        (("--policy=evt", "--policy=uniform", "--checkpoints=1.5"), "must be whole numbers"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_one_line(words: tuple[str, ...], line: str) -> None:
    with pytest.raises(ThresherError) as raised:
        run("compare", *words)
    assert line in str(raised.value)
    assert "\n" not in str(raised.value)


def test_stars_say_how_many_chance_would_give_and_need_enough_repetitions() -> None:
    policies = ("--policy=evt", "--policy=uniform", "--policy=ap-evt")
    few = " ".join(run(*WORDS, *policies).split())
    assert "nothing is marked * below 100 repetitions" in few
    assert "%*" not in few
    many = " ".join(run(*WORDS, *policies, "--repetitions=100").split())
    assert "* marks differences of at least 3 standard errors" in many
    assert "0.011 of these 4 would be marked by chance" in many


def test_a_negative_difference_has_the_minus_sign_of_its_heading() -> None:
    out = run(*WORDS, "--policy=evt", "--policy=uniform", "--policy=apt")
    signs = re.findall(r"([+−-]?)\d+\.\d\d% ±", out)
    assert "−" in signs
    assert "-" not in signs
