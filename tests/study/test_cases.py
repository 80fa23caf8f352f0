"""Eval sets: what users may rely on when arms meet a list of cases."""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from studying import make

import thresher
from thresher.core.events import CallersCause, Cause
from thresher.core.replay import verify
from thresher.study import Pull, Study, give_up_in_study, peek_study

CAUSES: list[Cause] = ["lost", "cancelled"]


def eval_set(**given: Any) -> Study:
    return make(**{"budget": None, "cases": 5, "max_failures": None, "seed": 0} | given)


def all_pulls(study: Study) -> list[Pull]:
    return study.ask_many(10_000)


def play(study: Study, truth: Any) -> None:
    """Tell every case's own reward, one pull after the other."""
    while pull := study.ask():
        study.tell(pull, truth(pull.arm, pull.case))


# -- every case once ---------------------------------------------------------------------------------------------


def test_no_arm_sees_a_case_twice_and_all_are_issued_at_once_if_asked_for() -> None:
    study = eval_set(cases=7)
    pulls = all_pulls(study)
    assert sorted((pull.arm, pull.case) for pull in pulls) == [(arm, case) for arm in "abc" for case in range(7)]
    assert len({pull.seed for pull in pulls}) == 21
    assert study.done
    assert study.ask() is None


def test_a_case_comes_with_its_name_and_parameters() -> None:
    study = eval_set(cases={"easy": {"n": 1}, "hard": {"n": 2}})
    assert {(pull.case, pull.case_params["n"]) for pull in all_pulls(study)} == {("easy", 1), ("hard", 2)}
    assert [row.case for row in study.pulls()] == [pull.case for pull in study.pending()]


@pytest.mark.parametrize("guarantee", ["all", "rate"])
def test_every_arm_is_exact_after_all_cases_at_the_latest(guarantee: Any) -> None:
    """Means right at the bar: nothing can be certain before the end, and then it is. 3 · 20 pulls are enough."""
    rewards = {"a": [1] * 10 + [0] * 10, "b": [1] * 9 + [0] * 11, "c": [1] * 11 + [0] * 9}
    study = eval_set(cases=20, guarantee=guarantee)
    play(study, lambda arm, case: rewards[arm][case])
    verdict = study.verdict()
    assert verdict.issued <= 60
    assert verdict.done
    assert [row.certified for row in verdict.rows] == [True] * 3
    assert (verdict.reached, verdict.missed) == (["a", "c"], ["b"])  # a mean on the bar is above


def test_without_a_confidence_a_study_ends_with_every_case_known() -> None:
    study = eval_set(confidence=None)
    play(study, lambda arm, case: case < 2 if arm == "a" else 1)
    verdict = study.verdict()
    assert (verdict.issued, verdict.reached, verdict.missed) == (15, ["b", "c"], ["a"])
    assert all(row.exact and row.cases == 5 and not row.certified for row in verdict.rows)


def test_an_exact_row_says_so() -> None:
    study = eval_set(cases=4, arms=["a", "b"])
    play(study, lambda arm, case: 0.5)  # the last case decides
    for row in study.verdict().rows:
        assert (row.exact, row.cases, row.missing, row.mean, row.low, row.high) == (True, 4, 0, 0.5, 0.5, 0.5)
    assert study.verdict().cases == 4


# -- lost work uses up no case -----------------------------------------------------------------------------------


@pytest.mark.parametrize("cause", CAUSES)
def test_a_pull_that_was_dropped_uses_up_no_case_and_comes_back_the_same(cause: Cause) -> None:
    study = eval_set()
    for _ in range(10):  # more often than a failing case is tried
        pull = study.ask() or pytest.fail("no pull")
        give_up_in_study(study, pull, cause=cause, reason="gone")
    again = next(other for other in all_pulls(study) if other.arm == pull.arm)
    assert (again.case, again.seed) == (pull.case, pull.seed)
    assert again.id != pull.id
    for one in study.pending():
        study.tell(one, 1)
    assert [row.cases for row in study.verdict().rows] == [5, 5, 5]


@pytest.mark.parametrize(("tries", "most"), [(1, 2), (2, 2), (5, 5)])
def test_a_case_that_was_lost_with_a_shared_worker_is_tried_once_more_and_blames_no_arm(tries: int, most: int) -> None:
    """A bad outcome may have killed the worker: tried until it is good, the case would be no sample."""
    study = eval_set(arms=["a"], tries=tries, max_failures=1, confidence=0.95)
    lost = study.ask() or pytest.fail("no pull")
    tried, pull = 0, lost
    while pull.case == lost.case:
        tried += 1
        give_up_in_study(study, pull, cause="broken-pool", reason="the pool broke")
        pull = study.ask() or pytest.fail("no pull")
    row = study.verdict()["a"]
    assert (tried, row.missing, row.failures, study.verdict().retired) == (most, 1, 0, [])
    assert verify(study.events()).sound


def test_a_lost_lease_uses_up_no_case(tmp_path: Path) -> None:
    study = eval_set(storage=f"sqlite:///{tmp_path}/s.db")
    lost = study.ask_many(4, lease=0.001)
    dropped = 0
    while dropped < 4:
        dropped += study.sweep()
    back = study.ask_many(4)
    assert [(pull.arm, pull.case, pull.seed) for pull in back] == [(pull.arm, pull.case, pull.seed) for pull in lost]
    study.close()


def test_a_resumed_study_goes_on_where_it_was(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/s.db"
    seen: Counter[tuple[str, Any]] = Counter()
    with eval_set(storage=storage, at_least=0.55, cases=20, confidence=0.99):
        pass
    while True:
        with thresher.open_study("s", storage=storage) as study:
            pulls = study.ask_many(3)
            for pull in pulls[:2]:
                seen[pull.arm, pull.case] += 1
                study.tell(pull, int(pull.case or 0) % 2)
            for pull in pulls[2:]:
                study.drop(pull, cause="lost")
            if not pulls:
                break
            assert verify(study.events()).sound
    assert set(seen.values()) == {1}
    assert all(row.certified and row.reached is False for row in study.verdict().rows)


def test_a_case_list_that_changed_is_another_study(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/s.db"
    with eval_set(storage=storage, cases=["x", "y"]):
        pass
    for cases in (["y", "x"], ["x", "y", "z"], 2, {"x": {}, "y": {"k": 1}}):
        with pytest.raises(thresher.ThresherError) as raised:
            eval_set(storage=storage, cases=cases, if_exists="join")
        assert "\n" not in str(raised.value)
        assert "case" in str(raised.value)


# -- failing cases -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tries", [1, 2, 3, 5])
def test_a_failing_case_is_tried_so_often_and_then_never_again(tries: int) -> None:
    study, tried = eval_set(arms=["a"], tries=tries, at_least=0.9), Counter[Any]()
    while pull := study.ask():
        tried[pull.case] += 1
        if pull.case == 3:
            study.drop(pull, cause="failed", reason="it cannot be done")
        else:
            study.tell(pull, 1)
    assert tried == {0: 1, 1: 1, 2: 1, 3: tries, 4: 1}
    row = study.verdict()["a"]
    assert (row.cases, row.missing, row.exact, row.certified, row.failures) == (4, 1, False, False, tries)
    assert study.done
    assert "1 case" in " ".join(study.verdict().remarks)


def test_losses_between_failures_do_not_count_as_tries() -> None:
    study = eval_set(arms=["a"], cases=1, tries=2)
    causes: list[CallersCause] = ["failed", "lost", "lost", "failed"]
    for cause in causes:
        study.drop(study.ask() or pytest.fail("no pull"), cause=cause)
    assert study.ask() is None


def test_an_arm_retires_only_after_so_many_cases_in_a_row_failed_for_good() -> None:
    study = eval_set(arms=["a"], cases=20, tries=3, max_failures=2)

    def fail_next(times: int) -> None:
        for _ in range(times):
            study.drop(study.ask() or pytest.fail("no pull"), cause="failed")

    fail_next(3)
    assert not study.verdict().retired
    study.tell(study.ask() or pytest.fail("no pull"), 1)  # not in a row
    fail_next(5)
    assert not study.verdict().retired
    fail_next(1)
    assert study.verdict().retired == ["a"]


def test_a_late_reward_mends_a_case_that_failed_for_good() -> None:
    study = eval_set(arms=["a"], cases=2, tries=1, at_least=0.9)
    pulls = all_pulls(study)
    study.drop(pulls[0], cause="failed")
    study.tell(pulls[1], 1)
    assert study.verdict()["a"].missing == 1
    study.tell(pulls[0], 1)
    row = study.verdict()["a"]
    assert (row.missing, row.exact, row.certified, row.reached, row.seen) == (0, True, True, True, 2)


def test_a_case_counts_once_if_a_late_reward_and_a_second_try_both_come() -> None:
    for late_first in (True, False):
        study = eval_set(arms=["a"], cases=3, at_least=0.9)
        first = study.ask() or pytest.fail("no pull")
        study.drop(first, cause="lost")
        again = study.ask() or pytest.fail("no pull")
        assert again.case == first.case
        for pull, reward in [(first, 1.0), (again, 0.0)] if late_first else [(again, 1.0), (first, 0.0)]:
            study.tell(pull, reward)
        row = study.verdict()["a"]
        assert (row.seen, row.cases, row.mean) == (1, 1, 1.0)
        assert study.verdict().told == 2
        assert {pull.case for pull in all_pulls(study)} == {0, 1, 2} - {first.case}


def test_a_late_reward_before_the_second_try_leaves_nothing_to_try() -> None:
    study = eval_set(arms=["a"], cases=2, at_least=0.9)
    first = study.ask() or pytest.fail("no pull")
    study.drop(first, cause="lost")
    study.tell(first, 1)
    assert [pull.case for pull in all_pulls(study)] == [1 - int(first.case or 0)]


def test_a_second_try_that_is_dropped_after_the_late_reward_frees_nothing() -> None:
    study = eval_set(arms=["a"], cases=1, at_least=0.9, confidence=None)
    first = study.ask() or pytest.fail("no pull")
    study.drop(first, cause="lost")
    again = study.ask() or pytest.fail("no pull")
    study.tell(first, 1)
    study.drop(again, cause="failed")
    assert study.ask() is None
    assert study.verdict()["a"].cases == 1


def test_a_reward_outside_the_bounds_frees_no_place_that_another_pull_has() -> None:
    """A dropped pull proves the bounds wrong while the second try is pending, or after its case failed for good."""
    study = eval_set(arms=["a"], cases=1, tries=1)
    first = study.ask() or pytest.fail("no pull")
    study.drop(first, cause="lost")
    study.ask()
    with pytest.raises(thresher.OutsideBounds):
        study.tell(first, 5)
    study.restore("a")
    assert study.ask() is None
    study.drop(2, cause="failed")
    assert (study.ask(), study.verdict()["a"].missing) == (None, 1)
    with pytest.raises(thresher.OutsideBounds):
        study.tell(2, 5)
    assert (study.ask(), study.verdict()["a"].missing) == (None, 1)
    assert [row.case for row in study.pulls()] == [0, 0]
    assert verify(study.events()).sound


# -- failures with a reward, tolerance, runs ---------------------------------------------------------------------


def test_a_failure_that_has_a_reward_is_not_tried_again() -> None:
    study = eval_set(arms=["a"], failure=0.25, at_least=0.9, bounds=(0.0, 1.0))
    pull = study.ask() or pytest.fail("no pull")
    study.drop(pull, cause="failed")
    row = study.verdict()["a"]
    assert (row.cases, row.mean, row.failures) == (1, 0.25, 1)


def test_failures_cannot_be_left_out() -> None:
    with pytest.raises(thresher.InvalidInput, match="no case may be left out"):
        eval_set(failure="ignore")


def test_an_arm_within_the_tolerance_is_settled_long_before_all_cases() -> None:
    study = eval_set(arms=["a"], cases=2000, tolerance=0.2)
    play(study, lambda _, case: case % 2)
    verdict = study.verdict()
    assert verdict.open == []
    assert verdict.issued < 300


def test_a_run_tries_failing_cases_again_and_ends() -> None:
    tried: Counter[Any] = Counter()

    def evaluate(pull: Pull) -> float:
        tried[pull.arm, pull.case] += 1
        if pull.case == 4 and tried[pull.arm, pull.case] < 3:
            raise ValueError("not yet")
        return random.Random(pull.seed).random()

    study = eval_set(cases=6, confidence=0.999, at_least=0.5, tries=3)
    verdict = thresher.run(study, evaluate, workers=4)
    assert all(row.certified for row in verdict.rows)
    assert all(count <= (3 if case == 4 else 1) for (_, case), count in tried.items())
    assert any(count == 3 for count in tried.values())
    assert peek_study(study, lambda ledger: ledger.pending) == 0
