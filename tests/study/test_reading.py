"""Reading a study changes nothing, and reads no more than it must."""

import contextlib
import os
import pickle
import sqlite3
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from stores import CountingStore

import thresher


def coins(**given: Any) -> thresher.Study:
    asked: dict[str, Any] = {"arms": ["fair", "loaded"], "at_least": 0.6, "budget": 20}
    return thresher.create_study("coins", **asked | given)


READERS: dict[str, Callable[[thresher.Study], object]] = {
    "repr": repr,
    "verdict": lambda study: study.verdict(),
    "done": lambda study: study.done,
    "spec": lambda study: study.spec,
    "events": lambda study: study.events(),
    "pulls": lambda study: study.pulls(),
    "pending": lambda study: study.pending(),
}


@pytest.mark.parametrize("reader", READERS)
def test_reading_writes_nothing_even_if_leases_have_run_out(tmp_path: Path, reader: str) -> None:
    with coins(storage=tmp_path / "s.db") as study:
        study.ask_many(3, lease=60)
        study.store.renew("coins", [1, 2, 3], -1)
        assert study.store.expired("coins") == [1, 2, 3]
        before = study.events()
        READERS[reader](study)
        assert study.events() == before
        assert study.sweep() == 3, "an agent that asks or sweeps drops them"


@pytest.mark.parametrize("reader", ["repr", "spec"])
def test_what_never_changes_is_not_read_again(reader: str) -> None:
    store = CountingStore()
    study = coins(storage=store)
    store.reads.clear()
    READERS[reader](study)
    assert store.reads == []
    assert repr(study) == "<Study 'coins': 2 arms, at_least 0.6>"


def test_asking_again_with_a_key_reads_the_log_once() -> None:
    store = CountingStore()
    study = coins(storage=store)
    first = study.ask_many(2, key="one")
    store.reads.clear()
    for key in ("one", "two", "three"):
        study.ask_many(2, key=key)
    assert store.reads == ["head"] * 3
    assert study.ask_many(2, key="one") == first
    assert thresher.open_study("coins", storage=store).ask_many(2, key="one") == first


def test_pulls_asked_for_with_a_lease_are_not_renewed_by_this_process(tmp_path: Path) -> None:
    with coins(storage=tmp_path / "s.db") as study:
        study.ask_many(1, lease=60)
        study.ask_many(1)
        study.ask_many(1, key="mine")
        study.store.renew("coins", [1, 2, 3], -1)
        assert study.sweep() == 1
        assert [pull.id for pull in study.pending()] == [2, 3], "those that this process holds"


def test_a_call_of_ask_many_has_its_own_lease(tmp_path: Path) -> None:
    with coins(storage=tmp_path / "s.db", lease=3600) as study:
        study.ask_many(1)
        study.ask_many(1, lease=7200)
    with contextlib.closing(sqlite3.connect(tmp_path / "s.db")) as connection:
        until = dict(connection.execute("SELECT pull, until FROM leases").fetchall())
    assert until[2] - until[1] == pytest.approx(3600, abs=60)


def test_with_closes_a_study_and_lets_its_leases_run_out(tmp_path: Path) -> None:
    with coins(storage=tmp_path / "s.db") as study:
        study.ask()
    links = Path("/proc/self/fd").iterdir()
    assert not [link for link in links if os.path.realpath(link).startswith(str(tmp_path))], "its files are closed"
    study.store.renew("coins", [1], -1)
    assert study.store.expired("coins") == [1], "nobody renews it"
    assert study.verdict().pending == 1, "the next use opens it again"
    study.close()


def test_a_pickled_study_says_what_to_do_instead() -> None:
    study = coins()
    with pytest.raises(thresher.InvalidInput, match=r"'coins': cannot be pickled.*open_study"):
        pickle.dumps(study)
    with ProcessPoolExecutor(1) as pool, pytest.raises(thresher.InvalidInput, match="open_study"):
        pool.submit(repr, study).result()


@pytest.mark.parametrize("kind", ["path", "relative"])
def test_storage_may_be_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path("my.db") if kind == "relative" else tmp_path / "my.db"
    coins(storage=path).close()
    with thresher.open_study("coins", storage=f"sqlite:////{tmp_path}/my.db") as study:
        assert study.spec.stated_bar == 0.6
    with thresher.open_study("coins", storage=path) as study:
        assert study.ask() is not None


def test_run_with_its_arguments_in_the_wrong_order_says_so() -> None:
    wrong: Any = [lambda pull: 1.0, coins()]
    with pytest.raises(thresher.InvalidInput, match=r"must be a Study; write run\(study, evaluate\)"):
        thresher.run(*wrong)


def test_every_pull_is_a_row_with_its_state_reward_agent_and_times() -> None:
    began = datetime.now(UTC)
    study = coins(budget=None, confidence=0.9)
    told, dropped, late, outside, pending = study.ask_many(5)
    study.tell(told, 0.5)
    for pull in (dropped, late):
        study.drop(pull, cause="lost")
    study.tell(late, 1)
    with pytest.raises(thresher.OutsideBounds):
        study.tell(outside, 7)
    rows = study.pulls()
    assert [(row.id, row.state, row.reward) for row in rows] == [
        (1, "told", 0.5),
        (2, "dropped", None),
        (3, "late", 1.0),
        (4, "outside", 7.0),
        (5, "pending", None),
    ]
    asked = [told, dropped, late, outside, pending]
    assert [row[:4] for row in rows] == [(pull.id, pull.arm, pull.number, pull.seed) for pull in asked]
    assert {row.agent for row in rows} == {study.agent}
    assert all(row.asked and began <= row.asked <= datetime.now(UTC) for row in rows)
    assert [row.ended is None for row in rows] == [False, False, False, False, True]
    assert (len(rows), rows[-1].id, len(rows[1:3]), rows[1:3][0].id, repr(rows)) == (5, 5, 2, 2, "<5 pulls>")


def test_a_frame_of_pulls_needs_pandas_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    study = coins()
    study.tell(study.ask() or 0, 1)
    frame = study.pulls().to_frame()
    assert list(frame.columns[:6]) == ["id", "arm", "number", "seed", "state", "reward"]
    assert frame["reward"].tolist() == [1.0]
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(thresher.CannotGoOn, match="pip install pandas"):
        study.pulls().to_frame()


def test_a_pull_of_ours_is_renewed_when_a_lost_reply_is_asked_for_again(tmp_path: Path) -> None:
    with coins(storage=tmp_path / "s.db") as study:
        study.ask_many(1, lease=60, key="k")
        study.store.renew("coins", [1], -1)
        assert study.store.expired("coins") == [1]
        assert [pull.id for pull in study.ask_many(1, lease=60, key="k")] == [1]
        assert study.store.expired("coins") == []
