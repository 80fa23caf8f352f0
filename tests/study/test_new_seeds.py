"""Every new study draws its seed, unless one is given: what failed in the study before may have been mended since."""

import random
from pathlib import Path
from typing import Any

import pytest

import thresher

KINDS: dict[str, dict[str, Any]] = {
    "draws": {"arms": ["a"], "at_least": 0.9},
    "pairs": {"arms": ["now", "a"], "baseline": "now", "ratio": 1.0, "share": 0.9},
    "cases": {"arms": ["a"], "at_least": 0.5, "cases": 1000},
}
each_kind = pytest.mark.parametrize("kind", KINDS)


def first_pulls(study: thresher.Study) -> list[tuple[int, object]]:
    return [(pull.seed, pull.case) for pull in study.ask_many(20)]


@each_kind
def test_new_studies_draw_their_seeds(kind: str) -> None:
    first, second = (first_pulls(thresher.create_study("s", **KINDS[kind])) for _ in range(2))
    assert not {seed for seed, _ in first} & {seed for seed, _ in second}
    if kind == "cases":
        assert [case for _, case in first] != [case for _, case in second]


@each_kind
def test_a_given_seed_decides_all_pulls(kind: str) -> None:
    zero, again, one = (first_pulls(thresher.create_study("s", **KINDS[kind], seed=seed)) for seed in (0, 0, 1))
    assert zero == again
    assert not {seed for seed, _ in zero} & {seed for seed, _ in one}


@each_kind
def test_a_study_is_joined_with_the_seed_that_it_drew(kind: str, tmp_path: Path) -> None:
    question: dict[str, Any] = {**KINDS[kind], "storage": tmp_path / "s.db", "if_exists": "join"}
    study = thresher.create_study("s", **question)
    assert thresher.create_study("s", **question).spec == study.spec
    assert thresher.create_study("s", **question, seed=study.spec.seed).spec == study.spec
    with pytest.raises(thresher.StudyExists, match=f"seed is {study.spec.seed}, not 7"):
        thresher.create_study("s", **question, seed=7)


@pytest.mark.parametrize("kind", ["draws", "pairs"])
@pytest.mark.parametrize("seed", [None, 7])
def test_mending_what_failed_certifies_nothing_in_a_new_study(kind: str, seed: int | None) -> None:
    """The seed chooses the item. Six of ten pass; those that failed in the study before have been mended.

    With a seed that is given twice, the second study meets the mended ones again. That is what the table of assumptions
    in docs/explanation/guarantee.md excludes.
    """

    def passes(item: int) -> bool:
        return random.Random(item).random() < 0.6

    for _ in range(5):
        before, after = (thresher.create_study("s", **KINDS[kind], seed=seed) for _ in range(2))
        mended = {pull.seed for pull in before.ask_many(200) if not passes(pull.seed)}
        while pull := after.ask():
            reward = float(pull.seed in mended or passes(pull.seed))
            after.tell(pull, (reward, 1.0) if kind == "pairs" else reward)
        verdict = after.verdict()
        assert verdict["a"].certified
        assert verdict.missed == (["a"] if seed is None else [])


def test_an_arm_that_was_improved_on_the_first_cases_gains_nothing_in_a_new_study() -> None:
    """It passes only the 100 of 1,000 cases that came first in the study before, so its mean is 0.1."""
    for _ in range(5):
        before, after = (thresher.create_study("s", **KINDS["cases"]) for _ in range(2))
        learned = {pull.case for pull in before.ask_many(100)}
        while pull := after.ask():
            after.tell(pull, pull.case in learned)
        assert after.verdict().missed == ["a"]
