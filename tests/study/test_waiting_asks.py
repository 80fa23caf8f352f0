"""An ask without a pull says whether a later one may get one: while pending pulls may free a case."""

import thresher
from thresher.study import exchange_in_study, peek_study


def study(**more: object) -> thresher.Study:
    return thresher.create_study("s", arms=["old", "a", "b"], at_least=0.5, cases=["x", "y"], **more)  # type: ignore[arg-type]


def waits(study: thresher.Study, arm: str | None = None) -> bool:
    asked = exchange_in_study(study, (), 1, lease=60, arm=arm)
    assert asked.pulls == []
    assert arm is not None or asked.wait == peek_study(study, lambda ledger: ledger.waits), (
        "a runner waits as an agent does"
    )
    return asked.wait


def test_while_the_last_cases_are_pending_one_may_be_lost() -> None:
    one = study()
    pulls = one.ask_many(9)
    assert len(pulls) == 6
    assert waits(one)
    assert waits(one, "a")
    one.drop(pulls[0], cause="lost")
    assert [pull.arm for pull in one.ask_many(9)] == [pulls[0].arm]


def test_a_budget_that_is_issued_is_not_waited_for() -> None:
    one = study(budget=6)
    one.ask_many(6)
    assert not waits(one)
    assert not waits(one, "a")


def test_retired_and_settled_arms_are_not_waited_for() -> None:
    one = study()
    pulls = one.ask_many(6)
    for arm in ("old", "a"):
        one.retire(arm)
    assert waits(one)
    assert not waits(one, "a")
    for pull in pulls:
        if pull.arm == "b":
            one.tell(pull, 1.0)
    assert not waits(one)


def test_once_enough_arms_are_found_nothing_is_waited_for() -> None:
    one = study(find=1)
    pulls = one.ask_many(6)
    for pull in pulls:
        if pull.arm == "b":
            one.tell(pull, 1.0)
    assert one.verdict().reached == ["b"]
    assert not waits(one)


def test_an_arm_waits_for_the_baselines_pending_cases_alone() -> None:
    one = thresher.create_study("s", arms=["old", "a"], baseline="old", margin=0.0, cases=["x", "y"])
    assert not waits(one, "a"), "nobody pulls the baseline: waiting would never end"
    first, second = one.ask_many(9)
    assert (first.arm, second.arm) == ("old", "old")
    assert waits(one)
    assert waits(one, "a")
    one.tell(first, 1.0)
    one.tell(second, 1.0)
    assert {pull.arm for pull in one.ask_many(9)} == {"a"}
