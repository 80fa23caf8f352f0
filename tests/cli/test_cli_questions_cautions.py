"""Warnings, hard cases and the live table for each kind of question."""

from collections.abc import Callable
from typing import Any

import pytest

import thresher as library
from thresher.cli.live_table import live_arms_table, live_gauge
from thresher.cli.run_checks import check_run_bounds, check_run_rewards
from thresher.core.row_text import COLUMNS
from thresher.core.rows import row_of
from thresher.study import peek_study

Reward = Callable[[library.Pull], object]


def study_of(reward: Reward, pulls: int = 40, **asked: Any) -> library.Study:
    """A study that was told so many rewards."""
    study = library.create_study("s", arms=["a", "b"], seed=0, **asked)
    for _ in range(pulls):
        if pull := study.ask():
            study.tell(pull, reward(pull))
    return study


def cautions(study: library.Study) -> dict[str, str]:
    return dict(peek_study(study, lambda ledger: [*check_run_rewards(ledger), *check_run_bounds(ledger)]))


def varied(low: float, high: float) -> Reward:
    return lambda pull: low + (high - low) * (pull.seed % 101) / 100


def pairs(low: float, high: float) -> Reward:
    return lambda pull: (varied(low, high)(pull), varied(low, high)(pull._replace(seed=pull.seed // 7)))


FINE: dict[str, tuple[Reward, dict[str, Any]]] = {
    "all within the limit": (varied(0.01, 0.02), {"at_most": 0.5, "share": 0.95, "unit": "s"}),
    "none within the limit": (varied(7, 9), {"at_most": 0.5, "share": 0.95}),
    "at most": (varied(0.2, 0.8), {"at_most": 0.5}),
    "a difference": (pairs(0.2, 0.8), {"baseline": "a", "margin": 0.02}),
    "a ratio": (pairs(10, 20), {"baseline": "a", "ratio": 1.05}),
    "one arm is settled": (pairs(0.2, 0.8), {"baseline": "a", "margin": 0.9}),
}


@pytest.mark.parametrize("kind", FINE)
def test_a_usual_run_is_not_warned_about(kind: str) -> None:
    reward, asked = FINE[kind]
    assert cautions(study_of(reward, **asked)) == {}


def test_rewards_that_are_all_equal_are_warned_about_in_their_unit() -> None:
    said = cautions(study_of(lambda pull: 0.01, at_most=0.5, share=0.95, unit="s"))
    assert said == {"same": "all 40 rewards are 10 ms; check that each evaluation depends on its arm and seed"}
    said = cautions(study_of(lambda pull: (1, 1), baseline="a", margin=0.1))
    assert said["same"].startswith("all 80 rewards are 1; ")


def test_equal_rewards_of_arms_alone_are_fine_if_the_baseline_differs() -> None:
    assert "same" not in cautions(study_of(lambda pull: (1, 0), baseline="a", margin=0.1, pulls=8))


def test_bounds_far_wider_than_both_sides_of_pairs_are_warned_about() -> None:
    said = cautions(study_of(pairs(0.2, 0.8), baseline="a", bounds=(-1000, 1000)))
    assert "lie from 0.2 to 0.8, far inside the bounds (-1000, 1000)" in said["bounds"]
    assert "bounds" not in cautions(study_of(pairs(0.2, 0.8), baseline="a", bounds=(0, 1000))), "0.2 is near 0"


@pytest.mark.parametrize("kind", [*FINE, "a baseline with cases"])
def test_the_live_table_draws_the_baseline_without_a_mark(kind: str) -> None:
    cases = (varied(0.2, 0.8), {"baseline": "a", "cases": 30})
    reward, asked = FINE.get(kind, cases)
    study = study_of(reward, **asked)
    rows = peek_study(study, lambda ledger: [row_of(ledger, arm) for arm in range(2)])
    for row in rows:
        assert ("●" in live_gauge(row, 0.5, 0.0, 1.0).plain) == (row.standing != "baseline" and row.seen > 0)
    heads = peek_study(
        study, lambda ledger: [str(column.header) for column in live_arms_table(rows, ledger, 80).columns]
    )
    assert COLUMNS["estimate"].head(study.verdict().wording) in heads
    assert heads[-1].startswith("against ")


def test_an_arm_fails_the_cases_that_miss_the_limit() -> None:
    study = library.create_study("s", arms=["a"], at_most=0.5, cases=3)
    study.add_many([("a", 0.25, 0), ("a", 0.5, 1), ("a", 0.75, 2)])
    assert {row.case: row.failed for row in study.cases()} == {0: 0, 1: 0, 2: 1}
    assert study.cases()[0].case == 2, "the worst first"


def test_an_arm_fails_the_cases_where_it_is_worse_than_the_baseline() -> None:
    study = library.create_study("s", arms=["old", "new"], baseline="old", margin=0.1, cases=4, seed=1)
    study.add_many([("old", reward, case) for case, reward in enumerate([1, 1, 0, 0])])
    study.add_many([("new", reward, case) for case, reward in enumerate([1, 0, 1, 0])])
    study.ask()
    assert {row.case: row.failed_by for row in study.cases()} == {0: (), 1: ("new",), 2: (), 3: ()}
