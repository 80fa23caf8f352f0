"""Whole logs out of a store and back: every kind of event comes back, and an impossible log is refused."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from program import complaint
from workdir import Workdir, a_workdir  # noqa: F401 - the fixture

import thresher as library


def log_of(workdir: Workdir, name: str) -> dict[str, Any]:
    log: dict[str, Any] = json.loads(workdir.good("export", name, "json"))
    return log


def study_with_every_event(workdir: Workdir) -> None:
    question: dict[str, Any] = {"arms": ["a", "b"], "budget": 20, "storage": workdir.url}
    study = library.create_study("every", at_least=0.5, **question)
    study.add_many([("a", 1), ("b", None), ("b", 0)])
    first, second, third = study.ask_many(3)
    study.tell(first, 1, repeatable=True)
    with pytest.raises(library.InvalidInput):
        study.tell(second, 3)
    study.drop(third, cause="failed")
    study.restore(second.arm)
    study.extend(budget=30)
    library.create_study("every", at_least=0.6, **question, if_exists="revise")
    study.ask()


def test_export_json_brings_every_kind_of_event_back(workdir: Workdir) -> None:
    study_with_every_event(workdir)
    log = log_of(workdir, "every")
    kinds = {event["kind"] for event in log["events"]}
    assert kinds >= {"asked", "weighed", "told", "dropped", "retired", "restored", "extended", "revised"}
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
    "a revision with an earlier seed": (
        lambda events: renumbered([*events, {**of_kind(events, "revised"), "spec": events[0]["spec"]}]),
        "an earlier revision has the same",
    ),
    "a revision for no known cause": (
        lambda events: changed(events, "revised", cause="lost"),
        "must be fresh, vouched",
    ),
    "a revision that asks nothing": (lambda events: changed(events, "revised", spec=None), "must be a JSON object"),
    "a pull of an arm that the revision has not": (
        lambda events: [{**event, "arm": 2} if event is events[-1] else event for event in events],
        "arm 2",
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
