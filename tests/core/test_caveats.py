"""What else a reader of a guarantee must know, each in a sentence."""

from collections.abc import Iterable
from typing import Any

import pytest

import thresher
from thresher.log.store import MemoryStore
from thresher.study import revise_study


def guarantee(study: thresher.Study) -> str:
    return study.verdict().guarantee


def made(arms: Iterable[str] = "abc", **given: Any) -> thresher.Study:
    return thresher.create_study("s", arms=list(arms), at_least=0.5, **given)


def with_cases(failing: dict[str, set[int]], count: int = 4) -> str:
    """The guarantee of a study in which every case has a reward, but these, which fail again and again."""
    study = made(cases=count, max_failures=None)

    def evaluate(pull: thresher.Pull) -> float:
        if pull.case in failing.get(pull.arm, ()):
            raise ValueError(pull.seed)
        return 0.5

    thresher.run(study, evaluate, workers=1)
    return guarantee(study)


def test_a_plain_study_needs_no_caveat() -> None:
    study = made()
    thresher.run(study, lambda pull: 1.0, workers=2)
    assert not any(word in guarantee(study) for word in ("repeated", "imported", "outside", "accepted as", "shuffled"))


def test_imported_pulls_are_counted_and_weighed_at_the_first_ask() -> None:
    study = made(budget=10)
    study.add("a", 1.0)
    text = guarantee(study)
    assert " 1 pull was imported; this log does not record when, by what and how often it was evaluated." in text
    assert " Imported results are weighed all together when the first pull is asked for." in text
    study.add("b", 1.0)
    study.ask()
    text = guarantee(study)
    assert " 2 pulls were imported; this log does not record when, by what and how often they were evaluated." in text
    assert "are weighed all together when" not in text


def test_arms_with_a_reward_outside_the_bounds_are_named() -> None:
    study = made(budget=10)
    for arm in ("c", "a"):
        with pytest.raises(thresher.OutsideBounds):
            study.tell(study.ask(arm=arm) or 0, 7.0)
    assert " Not certified, because a reward lay outside the bounds: 'a', 'c'." in guarantee(study)


def test_what_is_promised_over_all_revisions_is_a_number() -> None:
    store = MemoryStore()

    def revised(*arms: str, **given: Any) -> str:
        study = made(arms, storage=store, if_exists="revise", **given)
        thresher.run(study, lambda pull: 1.0, workers=1)
        return guarantee(study)

    assert "revision" not in revised("a", "b")
    words = " This is revision 2. By itself that holds if what was changed did not depend on results;"
    text = revised("a", "c")
    assert words in text
    assert " for all answers of all 2 revisions together, whatever it depended on: at least 92.5 %." in text
    assert "all 3 revisions together, whatever it depended on: at least 92.5 %." in revised("a"), "no arm is new"


def test_somebody_who_vouches_for_a_change_is_named() -> None:
    study = made(budget=20, version="1")
    study.tell(study.ask() or 0, 1)
    words = " After rewards were measured, there was a change in what measures them; somebody vouched that this makes"
    assert words not in guarantee(study)
    revise_study(study, study.spec.with_depends({"files": {"ask.py": "2"}}), taking="vouched")
    assert words in guarantee(study)
    assert study.verdict().told == 1


def test_cases_without_a_reward_count_as_the_worst() -> None:
    one = " 1 case of 'b' failed for good: it has no reward, and counts as the worst."
    assert one in with_cases({"b": {2}})
    several = " 3 cases of 'a', 'b' failed for good: they have no reward, and count as the worst."
    assert several in with_cases({"a": {1, 2}, "b": {2}})
