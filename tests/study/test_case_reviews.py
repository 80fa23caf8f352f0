"""Ways to a false or endless study of cases, or of a bounded error rate, that reviews found."""

import random
from typing import Any

import numpy as np
import pytest

import thresher
from thresher.study import peek_study


def broken_on(case: object) -> Any:
    def evaluate(pull: thresher.Pull) -> float:
        if pull.case == case:
            raise RuntimeError("broken case")
        return 1.0

    return evaluate


@pytest.mark.parametrize("arms", [1, 2, 6])
def test_a_broken_case_ends_no_run_even_if_only_it_is_left(arms: int) -> None:
    study = thresher.create_study("s", arms=[f"a{arm}" for arm in range(arms)], at_least=0.5, cases=3)
    held = []
    while pull := study.ask():
        if pull.case == 1:
            held.append(pull)
        else:
            study.tell(pull, float(pull.case == 0))
    for pull in held:
        study.drop(pull, cause="lost")
    verdict = thresher.run(study, broken_on(1), workers=2)
    assert verdict.done
    assert [row.missing for row in verdict] == [1] * arms
    assert not any(row.certified for row in verdict)


def test_a_broken_case_that_comes_first_ends_no_run() -> None:
    study = thresher.create_study("s", arms=["a"], at_least=0.5, cases=50)
    first = study.ask()
    assert first is not None
    study.drop(first, cause="lost")
    verdict = thresher.run(study, broken_on(first.case), workers=1)
    assert (verdict.reached, verdict["a"].certified, verdict["a"].missing) == (["a"], True, 1)


def test_an_evaluator_that_is_wrong_ends_the_run_after_three_cases_of_the_only_arm() -> None:
    study = thresher.create_study("s", arms=["a"], at_least=0.5, cases=50)

    def evaluate(pull: thresher.Pull) -> float:
        raise RuntimeError("wrong")

    with pytest.raises(thresher.CannotGoOn, match="3 cases failed with the same error before anything succeeded"):
        thresher.run(study, evaluate, workers=1)
    assert study.verdict().issued == 3
    assert study.verdict()["a"].missing == 0


def test_bounds_far_from_zero_are_refused_where_sums_decide() -> None:
    offset = {"arms": ["a"], "bounds": (1e15, 1e15 + 2), "at_least": 1e15 + 1}
    with pytest.raises(
        thresher.InvalidInput, match="so far from 0 that sums of rewards lose their differences; subtract"
    ):
        thresher.create_study("s", **offset, cases=10)  # type: ignore[arg-type]
    thresher.create_study("s", **offset, budget=10)  # type: ignore[arg-type]  # bets see scaled rewards
    thresher.create_study("t", arms=["a"], bounds=(1e5, 1e5 + 2), at_least=1e5 + 1, cases=10)


@pytest.mark.parametrize(("rest", "reached"), [(1.0, True), (0.75, False), (0.5, False)])
def test_a_settled_answer_is_given_up_only_when_all_cases_prove_it_wrong_beyond_its_edge(
    rest: float, reached: bool
) -> None:
    """The order is chosen so that bets settle the arm as missing the bar first."""
    study = thresher.create_study("s", arms=["a"], at_least=0.5, tolerance=0.2, confidence=0.6, cases=20)
    for number, pull in enumerate(study.ask_many(20)):
        study.tell(pull, 0.0 if number < 5 else rest)
        if number == 4:
            assert study.verdict().missed == ["a"]
    row = study.verdict()["a"]
    assert row.exact
    assert row.certified
    assert row.reached is reached  # the mean is 0.75, 0.5625 or 0.375; the upper edge is 0.7


def test_an_arm_that_proves_the_bounds_wrong_takes_its_strength_from_the_list() -> None:
    liars, others = [f"liar{arm}" for arm in range(8)], ["other"]
    study = thresher.create_study("s", arms=[*liars, *others], at_least=0.5, guarantee="rate", confidence=0.8)

    rng = random.Random(1)
    while len(study.verdict().reached) < 9 or not study.verdict()["other"].certified:
        pull = study.ask()
        if pull is None:
            break
        study.tell(pull, 1.0 if pull.arm in liars else float(rng.random() < 0.9))
    assert study.verdict()["other"].certified
    alone = peek_study(study, lambda ledger: ledger.ranking.rank[8])
    assert alone > 1, "it needed others in the list"
    pulls = {row.arm: row.id for row in study.pulls()}
    for liar in liars:
        with pytest.raises(thresher.OutsideBounds):
            study.tell(pulls[liar], 7.0)
    verdict = study.verdict()
    assert not any(verdict[liar].certified for liar in liars)
    assert not verdict["other"].certified
    assert "other" in verdict.open
    while pull := study.ask():
        study.tell(pull, 1.0)
    assert study.verdict()["other"].certified
    assert thresher.verify(study.events()).sound


def test_numbers_of_numpy_name_cases() -> None:
    study = thresher.create_study("s", arms=["a"], at_least=0.5, cases=5)
    study.add("a", 1, case=np.int64(3))  # type: ignore[arg-type]
    assert study.verdict()["a"].cases == 1


def test_tries_and_a_reward_for_failures_exclude_each_other() -> None:
    with pytest.raises(thresher.InvalidInput, match="tries 2: a failed case has the reward of a failure at once"):
        thresher.create_study("s", arms=["a"], at_least=0.5, cases=5, tries=2, failure=0.0)


def test_an_arm_fails_a_case_on_which_it_is_worse_than_the_baseline() -> None:
    study = thresher.create_study(
        "evals", arms=["old", "new"], baseline="old", margin=0.5, cases=["won", "tied", "lost"]
    )
    study.add_many([("old", 0.25, "won"), ("old", 1, "tied"), ("old", 1, "lost")])
    study.add_many([("new", 0.5, "won"), ("new", 1, "tied"), ("new", 0, "lost")])
    assert {row.case: row.failed_by for row in study.cases()} == {"won": (), "tied": (), "lost": ("new",)}


def test_the_case_that_most_arms_failed_is_the_hardest_where_rewards_are_passes_and_failures() -> None:
    study = thresher.create_study("evals", arms=["a", "b", "c"], at_least=0.5, cases=["once", "twice"])
    study.add_many([("a", 0, "once"), ("a", 0, "twice"), ("b", 0, "twice"), ("c", 1, "twice")])
    assert [(row.case, row.failed) for row in study.cases()] == [("twice", 2), ("once", 1)]
    graded = thresher.create_study("graded", arms=["a", "b", "c"], at_least=0.5, cases=["once", "twice"])
    graded.add_many([("a", 0.1, "once"), ("a", 0.2, "twice"), ("b", 0.4, "twice"), ("c", 1, "twice")])
    assert [row.case for row in graded.cases()] == ["once", "twice"], "by their means"
