"""Each new study of cases has its own order, unless a seed is given: an arm may have been improved on the last one."""

from pathlib import Path
from typing import Any

import thresher


def first_cases(name: str, **given: Any) -> list[object]:
    study = thresher.create_study(name, arms=["a"], threshold=0.5, cases=200, **given)
    return [pull.case for pull in study.ask_many(20)]


def test_two_studies_meet_the_cases_in_different_orders() -> None:
    assert first_cases("one") != first_cases("two")


def test_a_given_seed_decides_the_order() -> None:
    assert first_cases("one", seed=0) == first_cases("two", seed=0) != first_cases("three", seed=1)


def test_an_improved_arm_does_not_win_by_the_cases_it_was_improved_on() -> None:
    """It passes only the 100 of 1,000 cases that came first in the study before, so its mean is 0.1."""
    learned: set[object] = set()

    def evaluate(pull: thresher.Pull) -> bool:
        return pull.case in learned

    certified = 0
    for _ in range(20):
        study = thresher.create_study("before", arms=["a"], threshold=0.5, cases=1000)
        learned = {pull.case for pull in study.ask_many(100)}
        again = thresher.create_study("after", arms=["a"], threshold=0.5, cases=1000)
        verdict = thresher.run(again, evaluate, workers=1)
        certified += verdict.above == ["a"]
    assert certified == 0  # with the order of the study before, all 20 would be


def test_a_study_is_joined_with_the_seed_that_it_drew(tmp_path: Path) -> None:
    given: dict[str, Any] = {"arms": ["a"], "threshold": 0.5, "cases": 50, "storage": tmp_path / "s.db"}
    study = thresher.create_study("s", **given)
    same = thresher.create_study("s", **given, if_exists="join")
    assert same.spec.seed == study.spec.seed
    assert thresher.create_study("s", **given, seed=study.spec.seed, if_exists="join").spec == study.spec
