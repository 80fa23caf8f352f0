"""Whole logs out of a store and back: every kind of event comes back, and an impossible log is refused."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from program import complaint
from workdir import Workdir, a_workdir  # noqa: F401 - the fixture

import thresher as library
from thresher.study import accept_evaluator_in_study, record_files_in_study


def log_of(workdir: Workdir, name: str) -> dict[str, Any]:
    log: dict[str, Any] = json.loads(workdir.good("export", name, "json"))
    return log


def study_with_every_event(workdir: Workdir) -> None:
    study = library.create_study("every", arms=["a", "b"], at_least=0.5, budget=20, evaluator="v1", storage=workdir.url)
    accept_evaluator_in_study(study, "v2")
    record_files_in_study(study, lambda ledger: {"ask.py": "1f", "log.txt": "-"})
    study.add_many([("a", 1), ("b", None), ("b", 0)])
    first, second, third = study.ask_many(3)
    study.tell(first, 1, repeatable=True)
    with pytest.raises(library.InvalidInput):
        study.tell(second, 3)
    study.drop(third, cause="failed")
    study.restore(second.arm)
    study.extend(budget=30)
    record_files_in_study(study, lambda ledger: {"ask.py": "2e"})


def test_export_json_brings_every_kind_of_event_back(workdir: Workdir) -> None:
    study_with_every_event(workdir)
    log = log_of(workdir, "every")
    kinds = {event["kind"] for event in log["events"]}
    assert kinds >= {"accepted", "file", "asked", "weighed", "told", "dropped", "retired", "restored", "extended"}
    workdir.good("import", "-", "--study", "copy", stdin=json.dumps(log))
    assert workdir.json("verify", "copy")["digest"] == workdir.json("verify", "every")["digest"]
    assert workdir.study("copy").verdict().outside == workdir.study("every").verdict().outside != ()


def of_kind(events: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    return next(event for event in events if event["kind"] == kind)


def changed(events: list[dict[str, Any]], which: str, /, **fields: Any) -> list[dict[str, Any]]:
    return [{**event, **fields} if event["kind"] == which else event for event in events]


def renumbered(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**event, "seq": seq} for seq, event in enumerate(events, start=1)]


def without(events: list[dict[str, Any]], *unwanted: dict[str, Any]) -> list[dict[str, Any]]:
    return renumbered([event for event in events if event not in unwanted])


EDITS: dict[str, tuple[Callable[[list[dict[str, Any]]], list[dict[str, Any]]], str]] = {
    "a reward within the bounds retires nobody": (
        lambda events: changed(events, "retired", reward=0.5),
        "reward 0.5: lies within the bounds",
    ),
    "a retirement for another arm's pull": (
        lambda events: [
            {**event, "arm": 1 - event["arm"]} if event["kind"] == "retired" else event for event in events
        ],
        "is of another arm",
    ),
    "a retirement without its pull": (lambda events: changed(events, "retired", pull=None), "pull None"),
    "weighed twice": (
        lambda events: renumbered([*events, of_kind(events, "weighed")]),
        "there are no imported results to weigh",
    ),
    "asked before weighed": (
        lambda events: without(events, of_kind(events, "weighed")),
        "the imported results must be weighed first",
    ),
    "weighed before an imported reward came": (
        lambda events: without(events, of_kind(events, "told")),
        "an imported pull is still pending",
    ),
    "an evaluator accepted twice": (
        lambda events: renumbered([*events, of_kind(events, "accepted")]),
        "is accepted already",
    ),
    "an evaluator without a name": (lambda events: changed(events, "accepted", reason=None), "evaluator None"),
    "a file that is recorded twice": (
        lambda events: renumbered([*events, of_kind(events, "file")]),
        "must be a digest and a name, and not recorded yet",
    ),
    "a file that changed, and nobody vouched": (
        lambda events: [{**event, "cause": None} if event["kind"] == "file" else event for event in events],
        "has changed since rewards were measured",
    ),
    "a kind that is no word": (lambda events: changed(events, "extended", kind=["told"]), "is not the log of a study"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_log_is_refused_in_one_line(workdir: Workdir, edit: str) -> None:
    study_with_every_event(workdir)
    log = log_of(workdir, "every")
    change, words = EDITS[edit]
    said = complaint(
        workdir("import", "-", "--study", "copy", stdin=json.dumps({**log, "events": change(log["events"])}))
    )
    assert words in said
    assert "copy" not in workdir.study().store.studies()
