"""When a study may be joined: with nothing but its own specification, and what its results depend on."""

from pathlib import Path
from typing import Any

import pytest

import thresher
from thresher.log.store import MemoryStore

ASKED: dict[str, Any] = {"arms": ["a", "b"], "at_least": 0.5, "budget": 8}


def study_of(store: MemoryStore, **given: Any) -> thresher.Study:
    return thresher.create_study("s", **{**ASKED, "storage": store, "if_exists": "join", **given})


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({"at_least": 0.6}, "at_least is 0.5, not 0.6"),
        ({"arms": ["a", "c"]}, "arm 2 is 'b', not 'c'"),
        ({"budget": 7}, "budget is 8, not 7"),
        ({"budget": 9}, "budget is 8, not 9"),
        ({"budget": None}, "budget is 8, not none"),
    ],
)
def test_a_study_is_not_joined_with_another_specification(change: dict[str, Any], difference: str) -> None:
    store = MemoryStore()
    study = study_of(store)
    with pytest.raises(thresher.StudyExists, match=rf"{difference}; use another name, or if_exists='revise'"):
        study_of(store, **change)
    assert study.revision == 1
    assert study.verdict().budget == 8


def test_the_budget_that_a_study_was_created_with_still_joins_it() -> None:
    store = MemoryStore()
    study_of(store).extend(budget=9)
    assert study_of(store).verdict().budget == 9


def test_a_study_is_not_joined_with_other_files_or_another_version(tmp_path: Path) -> None:
    store, script = MemoryStore(), tmp_path / "ask.py"
    script.write_text("1")
    study_of(store, depends=[script], version="v1").ask()
    study_of(store, depends=[script], version="v1")
    study_of(store)  # it says nothing about files
    with pytest.raises(thresher.StudyExists, match="version has changed"):
        study_of(store, depends=[script], version="v2")
    script.write_text("2")
    with pytest.raises(thresher.StudyExists, match=r"ask\.py has changed"):
        study_of(store, depends=[script], version="v1")
