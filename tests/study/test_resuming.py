"""When a study may be resumed: one rule, which `create_study` and ``thresher run`` share."""

from typing import Any

import pytest

import thresher
from thresher.core.spec import Spec
from thresher.create import create_from_spec, match_created_study, resume_created_study
from thresher.log.store import MemoryStore

ASKED: dict[str, Any] = {"arms": ["a", "b"], "at_least": 0.5, "budget": 8}


def study_of(store: MemoryStore, *, rewards: int = 0, **given: Any) -> thresher.Study:
    study = create_from_spec("s", Spec(**{**ASKED, **given}), storage=store)
    for pull in study.ask_many(rewards):
        study.tell(pull, 1)
    return study


def test_a_study_resumes_with_its_own_specification_or_a_larger_budget() -> None:
    study = study_of(MemoryStore())
    assert match_created_study(study, Spec(**ASKED)) == ([], False, 8, None)
    assert match_created_study(study, Spec(**{**ASKED, "budget": 9})).grows
    resume_created_study(study, Spec(**{**ASKED, "budget": 9}))
    assert match_created_study(study, Spec(**ASKED)) == ([], False, 9, None), (
        "the budget that it was created with is fine"
    )


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({"at_least": 0.6}, "at_least is 0.5, not 0.6"),
        ({"arms": ["a", "c"]}, "arm 2 is 'b', not 'c'"),
        ({"budget": 7}, "budget is 8, not 7"),
        ({"budget": None}, "budget is 8, not none"),
    ],
)
def test_a_study_does_not_resume_with_another_specification(change: dict[str, Any], difference: str) -> None:
    store = MemoryStore()
    assert match_created_study(study_of(store), Spec(**{**ASKED, **change})).differences == [difference]
    with pytest.raises(thresher.StudyExists, match=difference):
        thresher.create_study("s", **{**ASKED, **change}, storage=store, if_exists="join")


def test_joining_does_not_extend_a_study() -> None:
    store = MemoryStore()
    study = study_of(store)
    with pytest.raises(thresher.StudyExists, match="budget is 8, not 9"):
        thresher.create_study("s", **{**ASKED, "budget": 9}, storage=store, if_exists="join")
    assert study.verdict().budget == 8


def test_another_evaluator_is_refused_once_it_measured_something() -> None:
    store = MemoryStore()
    study = study_of(store, rewards=1, evaluator="v1")
    assert match_created_study(study, Spec(**ASKED, evaluator="v2")).measured_by == "v1"
    with pytest.raises(thresher.StudyExists, match="evaluator is 'v1', not 'v2'"):
        thresher.create_study("s", **ASKED, evaluator="v2", storage=store, if_exists="join")
    thresher.create_study("s", **ASKED, evaluator="v1", storage=store, if_exists="join")


def test_an_evaluator_that_joins_before_the_first_pull_is_recorded() -> None:
    store = MemoryStore()
    study_of(store)
    first = thresher.create_study("s", **ASKED, evaluator="v1", storage=store, if_exists="join")
    first.ask()
    assert match_created_study(first, Spec(**ASKED, evaluator="v1")).measured_by is None
    assert match_created_study(first, Spec(**ASKED, evaluator="v2")).measured_by == "v1"
