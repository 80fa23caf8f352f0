"""Who is to blame for failures, in the words that users read, and which of them are dropped when."""

from typing import Any

import pytest
from engines import causes, make

import thresher
from thresher.run.failures import BASELINE, OUTSIDE, WINDOW, Failure, FailureWatch, SameFailure, StartFailures
from thresher.study import Pull

NOBODY = float("inf")


def pull(number: int, arm: str = "a", case: int | None = None) -> Pull:
    return Pull(number, arm, 1, {}, 7, case=case)


def a_start(study: thresher.Study, *failed: Failure) -> StartFailures:
    start = StartFailures(study, lambda: NOBODY)
    for failure in failed:
        start.failure(failure)
    return start


def why(start: StartFailures) -> str:
    end = start.end()
    assert end is not None
    return str(end).removeprefix("run: ")


def broke(number: int, arm: str, kind: str | None = "k", **options: Any) -> Failure:
    return Failure(pull(number, arm, options.pop("case", None)), f"{arm} broke", kind=kind, **options)


# -- the words -------------------------------------------------------------------------------------------------------


def test_a_run_that_blamed_an_arm_does_not_say_that_none_was_retired() -> None:
    start = a_start(make(*"abc"), *(broke(number, arm) for number, arm in enumerate("abc", 1)))
    start.blamed = True
    assert why(start).endswith("and run again")


def test_rewards_outside_the_bounds_are_named_only_if_nothing_else_is_wrong() -> None:
    outside = [Failure(pull(number, arm), "reward 7.0", kind=OUTSIDE) for number, arm in enumerate("abc", 1)]
    start = a_start(make(*"abc"), *outside)
    assert why(start) == "3 arms returned a reward outside the bounds before anything succeeded: reward 7.0"
    for number, arm in enumerate("abc", 4):
        start.failure(broke(number, arm))
    assert why(start).startswith("3 arms failed with the same error")


def test_a_baseline_that_fails_is_not_the_fault_of_the_arms() -> None:
    kind = f"{BASELINE}k"
    start = a_start(make(*"abcd"), *(broke(number, arm, kind) for number, arm in enumerate("abc", 1)))
    assert "take out" not in why(start)


def test_different_errors_temporary_ones_and_later_ones_do_not_count() -> None:
    start = a_start(make(*"abc"), broke(1, "a", "one"), broke(2, "b", "two"), broke(3, "c", None), broke(4, "a", "one"))
    assert start.end() is None
    start.close()
    for number, arm in enumerate("abc", 5):
        start.failure(broke(number, arm))
    assert start.end() is None


def test_the_first_pull_of_each_arm_that_failed_is_waited_for() -> None:
    same = SameFailure(broke(9, "a"))
    for number, arm in ((9, "a"), (4, "a"), (6, "a"), (5, "b")):
        same.add(broke(number, arm))
    assert (same.pulls, same.count) == ({"a": 4, "b": 5}, 4)
    same.add(broke(7, "b", case=3))
    assert same.pulls[3] == 7, "with cases, these are counted"


@pytest.mark.parametrize(
    ("arms", "options", "told", "is_for_one"),
    [
        ("a", {}, 0, True),
        ("ab", {}, 0, False),
        ("a", {}, 1, False),
        ("ab", {"cases": 5}, 0, True),
        ("ab", {"cases": 2}, 0, False),
        ("ab", {"cases": 1}, 0, True),
        ("ab", {"cases": 5}, 1, False),
    ],
)
def test_when_the_failures_of_one_arm_may_end_a_run(arms: str, options: Any, told: int, is_for_one: bool) -> None:
    study = make(*arms, **options)
    for asked in study.ask_many(told):
        study.tell(asked, 1)
    start = a_start(study)
    assert start.is_for_one_arm == is_for_one
    start.close()
    assert not start.is_for_one_arm


@pytest.mark.parametrize(("oldest", "ends"), [(1.0, False), (3.0, False), (5.0, False), (6.0, True)])
def test_the_start_waits_for_all_pulls_that_were_issued_before_the_last_failure(oldest: float, ends: bool) -> None:
    start = StartFailures(make("a", "b", "c", "d"), lambda: oldest)
    for number, arm in [(2, "a"), (4, "b"), (5, "c")]:
        assert start.end() is None
        start.failure(broke(number, arm))
    assert (start.end() is not None) == ends


@pytest.mark.parametrize(("arms", "needed"), [("a", WINDOW), ("abc", None)])
def test_only_an_only_arm_that_fails_often_ends_the_run_while_an_earlier_pull_is_pending(
    arms: str, needed: int | None
) -> None:
    start = StartFailures(make(*arms), lambda: 1.0)
    for count in range(1, 2 * WINDOW):
        start.failure(broke(1 + count, arms[count % len(arms)]))
        assert (start.end() is not None) == (needed is not None and count >= needed)


# -- what is dropped -------------------------------------------------------------------------------------------------


def a_watch(study: thresher.Study, window: int = 4, *, started: bool = True) -> FailureWatch:
    watch = FailureWatch(study, lambda: NOBODY, window)
    if started:
        watch.start.close()
    return watch


def fail(watch: FailureWatch, *arms: str, **options: Any) -> list[Pull]:
    pulls = [watch.study.ask(arm=arm) or pytest.fail("no pull") for arm in arms]
    for asked in pulls:
        watch.failure(Failure(asked, f"{asked.arm} broke", **{"kind": "k", **options}), 10.0)
    return pulls


def test_a_pull_whose_reward_came_after_all_is_dropped_alone() -> None:
    study = make("a", "b", max_failures=None)
    watch = a_watch(study)
    first, second = fail(watch, "a", "b")
    watch.let_go(second)
    assert [held.pull for held in watch.held] == [first]
    assert causes(study) == ["failed"]
    watch.let_go(second)
    assert len(watch.held) == 1


def test_a_control_that_decides_leaves_nothing_held_and_the_next_outage_needs_another() -> None:
    study = make("a", "b", "c", budget=400, max_failures=None)
    study.tell(study.ask(arm="c") or 0, 1)
    watch = a_watch(study)
    fail(watch, *"abab")
    assert watch.tried([]) == [], "it is still to be asked for"
    (control,) = watch.tried([study.ask(arm="c") or pytest.fail("no pull")])
    fail(watch, "a")
    assert (watch.out, len(watch.held), causes(study)) == (True, 5, []), "only the control decides"
    watch.success(control)
    assert (watch.out, watch.held, causes(study)) == (False, [], ["failed"] * 5)
    fail(watch, "a")
    assert not watch.out


def test_the_end_of_an_outage_is_logged_and_its_beginning_says_how_many(caplog: pytest.LogCaptureFixture) -> None:
    study = make("a", "b", budget=400, max_failures=None)
    watch = a_watch(study)
    watch.success(pull(0))
    assert caplog.text == ""
    fail(watch, *"abab")
    assert "the last 4 evaluations all failed, the last with: b broke; the run is paused: one pull" in caplog.text
    watch.success(pull(0))
    assert caplog.text.count("an evaluation succeeded: the outage is over") == 1
    watch.success(pull(0))
    assert caplog.text.count("the outage is over") == 1


@pytest.mark.parametrize(
    ("cases", "arms", "worked", "cause"),
    [(2, 4, False, "failed"), (4, 2, False, "failed"), (8, 1, False, "outage"), (2, 4, True, "outage")],
    ids=["two cases", "half as many cases as failures", "a case each", "one of the cases has worked"],
)
def test_a_few_cases_that_fail_for_all_arms_are_no_outage(cases: int, arms: int, worked: bool, cause: str) -> None:
    study = make("a", "b", "c", "d", "e", cases=20, max_failures=None)
    watch = a_watch(study, window=8)
    pulls = {(asked.case, asked.arm): asked for asked in study.ask_many(95)}
    of_cases = [case for case in range(20) if all((case, arm) in pulls for arm in "abcde")][:cases]
    if worked:
        study.tell(pulls[of_cases[0], "e"], 1)
        study.retire("e")
    for number, case in enumerate(of_cases):
        for arm in range(arms):
            watch.failure(Failure(pulls[case, "abcd"[(number + arm) % 4]], "broke", kind="k"), 10.0)
    assert causes(study) == [cause] * 8
    assert watch.out == (cause == "outage")


def test_the_last_open_arm_of_a_study_with_earlier_rewards_fails_alone() -> None:
    study = make("a", "b", max_failures=None)
    study.tell(study.ask(arm="a") or 0, 1)
    study.retire("b")
    watch = a_watch(study, started=False)
    fail(watch, "a")
    assert (watch.held, causes(study)) == ([], ["failed"])
    only = make("a", max_failures=None)
    waits = FailureWatch(only, lambda: 1.0, 4)
    asked = only.ask() or pytest.fail("no pull")
    waits.failure(Failure(asked, "slow", kind=None), 10.0)
    assert causes(only) == ["failed"], "a temporary failure cannot end the run"
    waits.failure(Failure(only.ask() or pytest.fail("no pull"), "broke", kind="k"), 10.0)
    assert len(waits.held) == 1, "this one may: it waits for the first"


def test_a_try_is_of_the_arm_that_failed_least_and_worked_before() -> None:
    study = make("a", "b", "c", budget=400, max_failures=None)
    watch = a_watch(study)
    fail(watch, *"abab")
    assert watch.arm_to_try() == "c"
    study.tell(study.ask(arm="b") or 0, 1)
    fail(watch, *"cc")
    assert watch.arm_to_try() == "b", "of those that failed equally often, the one that had a reward"
    fail(watch, "b")
    assert watch.arm_to_try() in ("a", "c")
    for arm in "abc":
        study.retire(arm)
    assert watch.arm_to_try() is None
