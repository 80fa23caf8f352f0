"""The answer of a verdict, in a sentence."""

import pytest

import thresher
from thresher.core.sentences import origin_sentence


@pytest.mark.parametrize(
    ("confidence", "words"),
    [
        (None, "By their means, 1 of 2 reach"),
        (0.9, "0 reach it, 0 miss it, 2 open."),
    ],
)
def test_the_answer_counts_means_only_where_nothing_is_certified(confidence: float | None, words: str) -> None:
    study = thresher.create_study("s", arms=["a", "b"], at_least=0.5, budget=20, confidence=confidence)
    for pull in study.ask_many(2):
        study.tell(pull, 0.9 if pull.arm == "a" else 0.1)
    assert study.verdict().answer.startswith(words)
    assert study.verdict().spent.startswith("So far 2 of at most 20 pulls")
    assert [row.reached for row in study.verdict()] == [True, False]


@pytest.mark.parametrize(("reward", "pulls", "words"), [(1, 0, "open."), (1, 1, "open."), (0, 60, "misses 0.5.")])
def test_the_answer_about_one_arm_counts_no_arms(reward: int, pulls: int, words: str) -> None:
    for given in ({"arms": ["a"], "at_least": 0.5}, {"arms": ["a", "old"], "baseline": "old", "margin": 0}):
        study = thresher.create_study("s", budget=60, **given)  # type: ignore[arg-type]
        while study.verdict().issued < pulls and (pull := study.ask()):
            study.tell(pull, (reward, 0.5) if pull.baseline else reward)
        expected = words if "baseline" not in given else words.replace("0.5", "old")
        assert study.verdict().answer in (f"It is {expected}", f"It {expected}")


def test_an_arm_that_is_retired_is_open() -> None:
    study = thresher.create_study("s", arms=["a"], at_least=0.5, budget=9)
    study.retire("a")
    verdict = study.verdict()
    assert (verdict.answer, verdict.open, verdict.retired) == ("It is open.", ["a"], ["a"])


def test_an_arm_without_rewards_has_empty_cells_in_markdown() -> None:
    study = thresher.create_study("s", arms=["a", "b"], at_least=0.5, budget=20, confidence=None)
    study.tell(study.ask() or 0, 0.75)
    lines = study.verdict().to_markdown().splitlines()
    assert "| 0.75 |" in next(line for line in lines if line.startswith("| a |"))
    assert "|  |" in next(line for line in lines if line.startswith("| b |"))


@pytest.mark.parametrize(
    ("earlier", "words"), [(69, "69 of these 70 rewards are from earlier"), (70, "All rewards are from earlier")]
)
def test_rewards_that_are_all_from_earlier_runs_are_not_counted(earlier: int, words: str) -> None:
    assert (origin_sentence(earlier, 70, "2026-11-17T02:41:12Z") or "").startswith(words)
