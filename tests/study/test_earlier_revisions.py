"""A study as it was in an earlier revision, and what a verdict says about revisions."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from revised import revisions, rewarded

import thresher
from thresher.core.replay import verify
from thresher.log.store import MemoryStore, Store


@pytest.fixture(name="store")
def a_store() -> MemoryStore:
    return MemoryStore()


def earlier(store: Store, revision: int) -> thresher.Study:
    return thresher.open_study("ask", storage=store, revision=revision)


def test_every_revision_stays_readable(store: MemoryStore) -> None:
    verdicts = revisions(store)
    for revision, verdict in enumerate(verdicts, start=1):
        study = earlier(store, revision)
        assert (study.revision, study.verdict()) == (revision, verdict)
        assert verify(study.events()).sound
        assert [event.kind for event in study.events()].count("revised") == revision - 1
        assert {arm for row in study.cases() for arm in row.rewards} <= {row.arm for row in verdict}
    assert earlier(store, 2).verdict().head != earlier(store, 3).verdict().head


def test_an_earlier_revision_can_only_be_read(store: MemoryStore) -> None:
    revisions(store)
    before = store.head("ask")
    for revision in (1, 3):
        study = earlier(store, revision)
        writes: list[Callable[[], object]] = [
            study.ask,
            partial(study.tell, 1, 1),
            partial(study.drop, 1),
            partial(study.retire, "terse"),
            partial(study.extend, budget=1000),
            partial(study.renew, 1, 60),
            partial(study.add, "terse", 1, case="q1"),
        ]
        for write in writes:
            with pytest.raises(thresher.InvalidInput, match=f"'ask': was opened as it was in revision {revision}"):
                write()
        study.sweep()
    assert store.head("ask") == before


@pytest.mark.parametrize("revision", [4, 0, True, "2", 1.5])
def test_a_revision_that_there_is_not_is_refused(store: MemoryStore, revision: int) -> None:
    revisions(store)
    with pytest.raises(
        thresher.InvalidInput, match="has 3 revisions; give a number from 1 to 3" if revision == 4 else "must be"
    ):
        earlier(store, revision)


def test_a_study_with_one_revision_says_so(store: MemoryStore) -> None:
    thresher.create_study("ask", arms=["a"], at_least=0.5, storage=store)
    with pytest.raises(thresher.InvalidInput, match="study 'ask' has 1 revision; leave it out"):
        earlier(store, 2)


def test_an_earlier_revision_stays_as_it_was_when_others_go_on(store: MemoryStore) -> None:
    revisions(store, last=3)
    study = earlier(store, 3)
    before = study.verdict()
    rewarded(thresher.open_study("ask", storage=store))
    assert study.verdict() == before


def test_a_verdict_says_what_its_revision_took_over_and_what_is_promised_over_all(store: MemoryStore) -> None:
    first, second, third = revisions(store)
    assert (first.revision, first.held, first.promised) == (1, 0, None)
    assert (second.revision, second.held) == (2, first.told)
    assert second.promised == pytest.approx(1 - 0.05 * (1 + 1 / 3), abs=1e-4)
    assert third.revision == 3
    assert 0 < third.held < second.told
    assert third.promised is not None
    assert second.promised is not None
    assert third.promised < second.promised
    assert {name: third.to_dict()[name] for name in ("revision", "held", "promised")} == {
        "revision": 3, "held": third.held, "promised": third.promised,
    }  # fmt: skip


def test_without_certificates_nothing_is_promised(store: MemoryStore) -> None:
    settings: dict[str, Any] = {"at_least": 0.5, "confidence": None, "budget": 20, "storage": store}
    thresher.create_study("means", arms=["a"], **settings)
    study = thresher.create_study("means", arms=["a", "b"], if_exists="revise", **settings)
    assert (study.verdict().revision, study.verdict().promised) == (2, None)


def test_the_guarantee_counts_what_was_evaluated_again_after_an_edit(store: MemoryStore) -> None:
    def guarantee(content: str, *arms: str) -> str:
        cases: dict[str, dict[str, str]] = {f"q{number}": {} for number in range(8)} | {"edited": {"text": content}}
        question: dict[str, Any] = {"arms": arms, "cases": cases, "at_least": 0.95, "storage": store}
        study = thresher.create_study("evals", **question, if_exists="revise")
        while pull := study.ask():
            study.tell(pull, 1)  # of nine cases, nine must be right
        return study.verdict().guarantee

    assert "evaluated again" not in guarantee("first", "a", "b")
    assert "2 results were evaluated again after an edit" in guarantee("second", "a", "b")
    assert "2 results were evaluated again after an edit" in guarantee("second", "a", "b", "c")
    assert "1 result was evaluated again after an edit" in guarantee("second", "a", "c")


def test_the_table_of_pulls_has_those_of_all_revisions(store: MemoryStore) -> None:
    verdicts = revisions(store)
    study = thresher.open_study("ask", storage=store)
    rows = study.pulls()
    assert [row.id for row in rows] == list(range(1, len(rows) + 1))
    assert {row.arm for row in rows} == {"terse", "cot", "polite", "short"}
    states = Counter(row.state for row in rows)
    assert len(study.pending()) == states["pending"]
    assert states["pending"] + states["dropped"] == 1, "the pull of the agent that ended"
    assert states["told"] >= max(verdict.told for verdict in verdicts)


def test_a_pull_whose_history_ended_is_dropped_and_its_late_reward_is_told(store: MemoryStore) -> None:
    settings: dict[str, Any] = {"at_least": 0.5, "budget": 20, "storage": store}
    study = thresher.create_study("draws", arms=["a", "b"], **settings)
    pull = study.ask(arm="a")
    assert pull
    study = thresher.create_study("draws", arms=["b"], if_exists="revise", **settings)
    assert [row.state for row in study.pulls()] == ["dropped"]
    study.tell(pull, 1)
    assert [(row.arm, row.state, row.reward) for row in study.pulls()] == [("a", "late", 1.0)]
    assert study.verdict().told == 0
