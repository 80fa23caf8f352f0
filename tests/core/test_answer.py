"""The answer of a verdict, in a sentence."""

import pytest

import thresher
from thresher.core.sentences import origin


@pytest.mark.parametrize(("confidence", "certified"), [(None, ""), (0.9, " (0 certified)")])
def test_the_answer_counts_certified_labels_only_where_there_are_certificates(
    confidence: float | None, certified: str
) -> None:
    study = thresher.create_study("s", arms=["a", "b"], at_least=0.5, budget=20, confidence=confidence)
    for pull in study.ask_many(2):
        study.tell(pull, 0.9 if pull.arm == "a" else 0.1)
    assert study.verdict().answer.startswith(f"1 does{certified}, 1 does not{certified}, after 2 of 20 pulls")


@pytest.mark.parametrize(
    ("reward", "pulls", "words"),
    [
        (1, 0, "No reward yet, after 0 of 60 pulls."),
        (1, 1, "It does (not certified), after 1 of 60 pulls."),
        (0, 60, "It does not (certified), after "),
    ],
)
def test_the_answer_about_one_arm_counts_no_arms(reward: int, pulls: int, words: str) -> None:
    for given in ({"arms": ["a"], "at_least": 0.5}, {"arms": ["a", "old"], "baseline": "old", "ratio": 1}):
        study = thresher.create_study("s", budget=60, **given)  # type: ignore[arg-type]
        while study.verdict().issued < pulls and (pull := study.ask()):
            study.tell(pull, (reward, 0.5) if pull.baseline else reward)
        assert study.verdict().answer.startswith(words)


def test_one_arm_that_is_close_or_retired_says_so() -> None:
    study = thresher.create_study("s", arms=["a"], at_least=0.5, tolerance=0.4)
    while pull := study.ask():
        study.tell(pull, pull.number % 2)
    assert study.verdict().answer.startswith("It is close to the bar (certified), after ")
    study = thresher.create_study("s", arms=["a"], at_least=0.5, budget=9)
    study.retire("a")
    assert study.verdict().answer == "It is retired, after 0 of 9 pulls."


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
    assert (origin(earlier, 70, "2026-11-17T02:41:12Z") or "").startswith(words)
