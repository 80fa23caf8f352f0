"""A study is its log: restored, shared, raced for, joined; and the verdicts that follow from it."""

import json
import random
import threading
from typing import Any

import pytest
from rows import ROW_NAMES
from studying import finish, make

import thresher
from thresher.core.ledger import fold_ledger
from thresher.core.spec import spec_from_json
from thresher.errors import Conflict
from thresher.log.store import MemoryStore
from thresher.study import peek_study


def test_a_restored_study_equals_the_live_one_to_the_bit() -> None:
    study = make(bounds=(-3, 7), at_least=1.1, max_failures=2, confidence=None)
    rng = random.Random(5)
    under_way: list[thresher.Pull] = []
    for _ in range(200):
        under_way += study.ask_many(rng.randrange(3))
        if under_way:
            pull = under_way.pop(rng.randrange(len(under_way)))
            if rng.random() < 0.2:
                study.drop(pull, cause=rng.choice(["failed", "lost"]))
            else:
                study.tell(pull, rng.uniform(-3, 7))
    restored = fold_ledger(study.events())
    live = peek_study(study, lambda ledger: ledger.state())
    assert restored.state() == live
    assert restored.choose() == peek_study(study, lambda ledger: ledger.choose())


def test_a_specification_survives_json() -> None:
    study = make(arms={"a": {"x": [1, {"y": None}]}, "ü": {}}, bounds=(0, 3), failure=0.1, tolerance=0.02, seed=2**70)
    assert spec_from_json(json.loads(json.dumps(study.spec.to_json()))) == study.spec


def test_two_agents_on_one_store_share_the_study() -> None:
    store = MemoryStore()
    one = make(storage=store)
    two = thresher.open_study("s", storage=store)
    first, second = one.ask(), two.ask()
    assert first
    assert second
    assert (first.id, second.id) == (1, 2)
    two.tell(first, 1)
    assert one.verdict()["a"].seen == 1
    assert one.verdict() == two.verdict()


def test_threads_never_exceed_the_budget() -> None:
    study = make(budget=300)
    pulls: list[int] = []

    def work() -> None:
        while pull := study.ask():
            pulls.append(pull.id)
            study.tell(pull, 0.5)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(pulls) == list(range(1, 301))


class Rival(MemoryStore):
    """A store whose turn holds nobody back: another agent writes between our reading and our appending."""

    interfere = False

    def append(self, study: str, events: Any, **options: Any) -> None:
        if self.interfere:
            self.interfere = False
            thresher.open_study(study, storage=self).ask()
        super().append(study, events, **options)


def test_the_loser_of_a_race_decides_again() -> None:
    store = Rival()
    study = make(storage=store)
    store.interfere = True
    pull = study.ask() or pytest.fail("no pull")
    assert (pull.id, pull.arm) == (2, "b")
    assert peek_study(study, lambda ledger: ledger.issued) == 2


class FullDisk(MemoryStore):
    full = False

    def append(self, study: str, events: Any, **options: Any) -> None:
        if self.full:
            raise OSError("no space left on device")
        super().append(study, events, **options)


def test_what_was_not_written_did_not_happen() -> None:
    store = FullDisk()
    study = make(storage=store)
    pull = study.ask() or pytest.fail("no pull")
    store.full = True
    with pytest.raises(OSError, match="no space"):
        study.tell(pull, 1)
    store.full = False
    assert study.verdict()["a"].seen == 0
    study.tell(pull, 0)
    assert study.verdict()["a"].mean == 0


def test_an_append_out_of_turn_writes_nothing() -> None:
    store = MemoryStore()
    with pytest.raises(Conflict):
        store.append("s", [thresher.Event(2, "asked")], before=None)
    assert store.studies() == []


def test_a_study_is_created_once_and_joined_by_the_same_specification() -> None:
    store = MemoryStore()
    study = make(storage=store)
    with pytest.raises(thresher.StudyExists, match="open_study"):
        make(storage=store)
    assert make(storage=store, if_exists="join").verdict() == study.verdict()
    study.extend(budget=70)
    make(storage=store, if_exists="join", budget=70)
    make(storage=store, if_exists="join", budget=60)
    different: list[tuple[dict[str, Any], str]] = [
        ({"at_least": 0.6}, "at_least is 0.5, not 0.6"),
        ({"budget": 99}, "budget is 70, not 99"),
    ]
    for difference, words in different:
        with pytest.raises(thresher.StudyExists, match=words):
            make(storage=store, if_exists="join", **difference)


def test_a_study_that_is_not_there_is_not_made_up() -> None:
    with pytest.raises(thresher.UnknownStudy, match="'nobody'"):
        thresher.open_study("nobody", storage=MemoryStore())


def test_a_store_nobody_knows_is_refused() -> None:
    with pytest.raises(thresher.InvalidInput, match="storage 'mysql://x'"):
        make(storage="mysql://x")


def test_the_parts_of_a_verdict_part_the_arms() -> None:
    study = make(arms=list("abcdef"), budget=100)
    for pull in study.ask_many(5):
        study.tell(pull, pull.arm in "ab")
    study.retire("c")
    verdict = study.verdict()
    assert (verdict.reached, verdict.missed, verdict.open, verdict.retired) == ([], [], list("abcdef"), ["c"])
    assert [row.reached for row in verdict] == [True, True, False, False, False, None]
    assert not any(row.certified for row in verdict.rows)
    assert "Nothing is certified" in verdict.guarantee


def test_nine_passes_of_ten_are_above_nine_tenths_in_the_verdict() -> None:
    for failing in range(10):
        study = make(arms=["a"], at_least=0.9)
        for number in range(10):
            study.tell(study.ask() or 0, number != failing)
        assert study.verdict()["a"].reached
        assert study.verdict()["a"].mean == 0.9


def test_a_verdict_in_json_and_csv_has_the_same_names() -> None:
    verdict = finish(make())
    data = json.loads(verdict.to_json())
    assert data["format"] == 1
    assert list(data["rows"][0]) == ROW_NAMES
    head, *rows = verdict.to_csv().splitlines()
    assert head.split(",") == ROW_NAMES
    assert len(rows) == 3
    assert {*data["reached"], *data["missed"], *data["open"]} == {"a", "b", "c"}


def test_hostile_names_stay_text_in_markdown() -> None:
    text = finish(make(arms=["a|b", "<script>", "c"])).to_markdown()
    assert "| a\\|b |" in text
    assert "<script>" not in text


def test_rewards_without_bounds_are_taken_as_they_are() -> None:
    study = make(bounds=None, confidence=None, at_least=-40.0)
    rng = random.Random(1)
    while pull := study.ask():
        study.tell(pull, rng.gauss({"a": -50, "b": -30, "c": -20}[pull.arm], 5))
    assert (study.verdict().reached, study.verdict().missed) == (["b", "c"], ["a"])
    with pytest.raises(thresher.InvalidInput, match="scale the rewards"):
        make(bounds=None, confidence=None, at_least=1e200)
