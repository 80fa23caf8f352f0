"""Finding some arms that reach the bar, ranked lists, and what specifications of eval sets refuse."""

import random
from typing import Any

import pytest
from studying import make

import thresher
from thresher.core.evidence import BETS
from thresher.errors import ThresherError
from thresher.log.store import MemoryStore
from thresher.study import Pull, Study, peek_study

ARMS = ["a", "b", "c", "d", "e"]


def searching(**given: Any) -> Study:
    return make(**{"arms": ARMS, "budget": None, "find": 2, "seed": 0} | given)


def play(study: Study, good: str, *, workers: int = 1, seed: int = 0) -> thresher.Verdict:
    """Arms in ``good`` always pass, the others never; pulls come back in any order."""
    chance = random.Random(seed)
    pending: list[Pull] = []
    while True:
        pending += study.ask_many(workers - len(pending))
        if not pending:
            assert study.done
            return study.verdict()
        pull = pending.pop(chance.randrange(len(pending)))
        if chance.random() < 0.1:
            study.drop(pull, cause="lost")
        else:
            study.tell(pull, pull.arm in good)


# -- find --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cases", [None, 3, 40])
@pytest.mark.parametrize("workers", [1, 7])
def test_a_study_ends_when_enough_arms_are_found(cases: int | None, workers: int) -> None:
    verdict = play(searching(cases=cases), "bcde", workers=workers)
    certified = [row.arm for row in verdict.rows if row.certified and row.reached is True]
    assert len(certified) >= 2
    assert verdict.done
    assert verdict.find == 2


@pytest.mark.parametrize("cases", [None, 3, 40])
@pytest.mark.parametrize("workers", [1, 7])
def test_it_ends_when_there_cannot_be_that_many(cases: int | None, workers: int) -> None:
    verdict = play(searching(cases=cases), "c", workers=workers)
    below = [row.arm for row in verdict.rows if row.certified and row.reached is False]
    assert len(below) == 4
    assert not verdict["c"].certified or verdict["c"].reached


def test_it_does_not_end_while_pending_cases_may_still_decide() -> None:
    """All cases of an arm are pending: it takes no pulls, but it may be one of those that are sought."""
    study = make(arms=["a", "b", "c"], cases=3, budget=None, find=2, policy="uniform")
    pulls = study.ask_many(100)
    assert len(pulls) == 9  # no worker idles
    for pull in pulls:
        if pull.arm == "b":
            study.tell(pull, 0)
    for pull in pulls:
        if pull.arm == "a":
            study.drop(pull, cause="lost")
    assert not study.done  # c may be found by what is pending, a by being tried again
    assert {pull.arm for pull in study.ask_many(100)} == {"a"}


def test_it_ends_with_more_found_than_sought_if_they_come_at_once() -> None:
    study = searching(find=1, cases=2, policy="uniform")
    for pull in study.ask_many(100):
        study.tell(pull, 1)
    assert study.done
    assert len(study.verdict().reached) == 5


def test_find_takes_fewer_pulls_than_labelling_every_arm() -> None:
    some, everything = play(searching(find=1), "bcde"), play(searching(find=None), "bcde")
    assert some.issued < everything.issued / 2


@pytest.mark.parametrize("tolerance", [0.0, 0.1])
def test_the_arm_with_the_most_evidence_that_it_reaches_the_bar_is_pulled(tolerance: float) -> None:
    study, chance = searching(find=3, tolerance=tolerance), random.Random(1)
    open_arms = set(ARMS)
    while pull := study.ask():
        if pull.number > 1:  # after the warm-up
            capitals = peek_study(study, lambda ledger: dict(ledger.capitals))
            evidence = {arm: sum(capitals[at][:BETS]) for at, arm in enumerate(ARMS) if arm in open_arms}
            assert evidence[pull.arm] == pytest.approx(max(evidence.values()))
        study.tell(pull, chance.random() < {"a": 0.4, "b": 0.7, "c": 0.8, "d": 0.9, "e": 0.5}[pull.arm])
        open_arms = set(study.verdict().open)


def test_retired_arms_cannot_be_found() -> None:
    study = searching()
    for arm in ARMS[:4]:
        study.retire(arm)
    assert study.done
    assert study.ask() is None
    study.restore("a")
    assert not study.done


def test_an_arm_outside_the_bounds_does_not_count_as_found() -> None:
    study = searching(arms=["a", "b"], find=1, cases=3)
    pulls = study.ask_many(6)
    of_a = [pull for pull in pulls if pull.arm == "a"]
    for pull in of_a[:2]:
        study.tell(pull, 1)
    assert study.done
    with pytest.raises(thresher.OutsideBounds):
        study.tell(of_a[2], 7)
    assert study.verdict()["b"].certified is False
    for pull in pulls:
        if pull.arm == "b":
            study.tell(pull, 1)
    assert study.done
    assert study.verdict()["b"].certified


# -- what is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"cases": []}, "there must be at least one"),
        ({"cases": {}}, "there must be at least one"),
        ({"cases": 0}, "cases 0"),
        ({"cases": -3}, "cases -3"),
        ({"cases": True}, "must be a list of names"),
        ({"cases": 2.5}, "must be a list of names"),
        ({"cases": "cases.txt"}, "must be a list of names"),
        ({"cases": b"abc"}, "must be a list of names"),
        ({"cases": 10**9 + 1}, "1000000001"),
        ({"cases": ["x", "y", "x"]}, "is given twice"),
        ({"cases": ["x", ""]}, "case ''"),
        ({"cases": ["x", 3]}, "case 3"),
        ({"cases": ["x", None]}, "case None"),
        ({"cases": {"x": 3}}, "must be a dict with string keys"),
        ({"cases": {"x": {"f": object()}}}, "must be plain JSON data"),
        ({"cases": 5, "failure": "ignore"}, "no case may be left out"),
        ({"tries": 2}, "only cases can be tried again"),
        ({"cases": 5, "tries": 0}, "tries 0"),
        ({"cases": 5, "tries": 2.5}, "tries 2.5"),
        ({"cases": 5, "tries": True}, "tries True"),
        ({"guarantee": "most"}, "must be 'all'"),
        ({"guarantee": None}, "must be 'all'"),
        ({"guarantee": ["rate"]}, "must be 'all'"),
        ({"guarantee": "rate", "confidence": None}, "nothing is certified without a confidence"),
        ({"find": 0}, "find 0"),
        ({"find": 6}, "there are only 5 arms"),
        ({"find": 1.5}, "find 1.5"),
        ({"find": True}, "find True"),
        ({"find": 1, "confidence": None}, "nothing is certified without a confidence"),
        ({"find": 1, "guarantee": "rate"}, "the guarantee must be 'all'"),
    ],
)
def test_bad_specifications_are_refused_in_one_line(given: Any, rule: str) -> None:
    with pytest.raises(ThresherError, match=rule) as raised:
        make(**{"arms": ARMS} | given)
    assert "\n" not in str(raised.value)


def test_more_names_than_a_specification_holds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from thresher.core import named_items

    monkeypatch.setattr(named_items, "MOST_NAMED_CASES", 3)
    with pytest.raises(thresher.InvalidInput, match="more names than a specification holds"):
        make(cases=["w", "x", "y", "z"])
    assert make(cases=["w", "x", "y"]).spec.case_count == 3


def test_a_million_cases_are_fine() -> None:
    study = make(arms=["a"], cases=1_000_000, budget=None)
    assert 0 <= int((study.ask() or pytest.fail("no pull")).case or 0) < 1_000_000


@pytest.mark.parametrize(
    "other",
    [{"cases": 4}, {"cases": None}, {"tries": 2}, {"guarantee": "rate"}, {"find": 1}, {"cases": ["0", "1", "2"]}],
)
def test_a_study_resumes_only_with_its_own_question(other: Any) -> None:
    store, given = MemoryStore(), {"cases": 3, "budget": None}
    make(storage=store, **given)
    make(storage=store, if_exists="join", **given)
    with pytest.raises(ThresherError) as raised:
        make(storage=store, if_exists="join", **{**given, **other})
    assert "\n" not in str(raised.value)


def test_numbered_cases_are_found_without_a_list_of_them() -> None:
    study = make(arms=["a"], cases=10**9, budget=None)
    study.add_many([("a", 1, 999_999_999), ("a", 1, "7")])
    for wrong in ("07", "٣", " 7", "-1", "9" * 5000, 10**9, "1000000000", ""):
        with pytest.raises(thresher.InvalidInput, match="is not a case of this study"):
            study.add("a", 1, case=wrong)


def test_cases_that_come_one_by_one_are_read_once() -> None:
    assert make(cases=(name for name in "xyz")).spec.cases == ("x", "y", "z")


def test_an_arm_of_one_case_needs_no_warm_up() -> None:
    study = make(cases=1, budget=None)
    for pull in study.ask_many(9):
        study.tell(pull, pull.arm != "b")
    assert (study.verdict().reached, study.verdict().issued) == (["a", "c"], 3)
