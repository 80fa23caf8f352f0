"""Damaged logs in every store: the study is named, the others keep working, and nothing replaces it."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest
from logs import append

import thresher
from thresher.core import spec as specs
from thresher.core.events import Event
from thresher.core.spec import spec_from_json
from thresher.errors import Conflict, StoreFailed
from thresher.log.store import Store, open_store


def make(store: "Store | str", name: str = "s", **given: Any) -> thresher.Study:
    return thresher.create_study(name, arms=["a", "b"], at_least=0.5, budget=100, storage=store, **given)


SPEC: dict[str, Any] = json.loads(json.dumps(specs.Spec(arms=["a", "b"], at_least=0.5, budget=100, seed=7).to_json()))
IMPOSSIBLE = {
    "no beginning": [Event(1, "asked", 1, 0)],
    "no specification": [Event(1, "created")],
    "another specification": [Event(1, "created", spec={"arms": 3})],
    "an arm that is not there": [Event(1, "created", spec=SPEC), Event(2, "asked", 1, 9)],
    "a pull that is not there": [Event(1, "created", spec=SPEC), Event(2, "told", 7, 0, 0.5)],
    "no pull": [Event(1, "created", spec=SPEC), Event(2, "told")],
    "a kind that is not known": [Event(1, "created", spec=SPEC), Event(2, "sung")],  # type: ignore[arg-type]
    "a reward out of bounds": [Event(1, "created", spec=SPEC), Event(2, "asked", 1, 0), Event(3, "told", 1, 0, 7.0)],
    "a smaller budget": [Event(1, "created", spec=SPEC), Event(2, "extended", budget=5)],
}


@pytest.mark.parametrize("what", IMPOSSIBLE)
def test_a_damaged_study_is_named_and_the_others_keep_working(store: Store, what: str) -> None:
    well = make(store, "well")
    append(store, "s", IMPOSSIBLE[what])
    with pytest.raises(thresher.DamagedStudy, match="study 's': is damaged, event ") as caught:
        thresher.open_study("s", storage=store)
    assert "\n" not in str(caught.value)
    assert store.studies() == ["s", "well"]
    with pytest.raises(thresher.StudyExists):
        make(store)
    assert well.ask()
    store.delete("s")
    assert make(store).ask()


def test_an_event_that_is_broken_while_an_agent_works_is_named(store: Store) -> None:
    study = make(store)
    pull = study.ask() or pytest.fail("no pull")
    append(store, "s", [Event(3, "asked", 2, 99)])
    for call in (study.ask, lambda: study.tell(pull, 1), study.verdict, study.ask):
        with pytest.raises(thresher.DamagedStudy, match="event 3: arm 99"):
            call()
    assert len(store.read("s")) == 3, "nothing is written on top of it"


WRONG: dict[str, Callable[[dict[str, Any]], object]] = {
    "a bar outside the bounds": lambda spec: spec.update(at_least=7),
    "a bar that is no number": lambda spec: spec.update(at_least="high"),
    "an arm twice": lambda spec: spec.update(arms=["a", "a"]),
    "no arms": lambda spec: spec.update(arms=[]),
    "arms that are no list": lambda spec: spec.update(arms=7),
    "an arm that is no name": lambda spec: spec.update(arms=["a", "b\0"]),
    "parameters of another number": lambda spec: spec.update(params=[{}]),
    "bounds upside down": lambda spec: spec.update(bounds=[1, 0]),
    "a budget that is too small": lambda spec: spec.update(budget=1),
    "a budget that is too large": lambda spec: spec.update(budget=10**30),
    "a policy that is not known": lambda spec: spec["policy"].update(formula="dice"),
    "a setting that is not known": lambda spec: spec["policy"].update(luck=1),
    "no policy": lambda spec: spec.update(policy=None),
    "too sure": lambda spec: spec.update(confidence=1.5),
    "a negative seed": lambda spec: spec.update(seed=-1),
    "a seed that was never drawn": lambda spec: spec.update(seed=None),
    "another constant": lambda spec: spec.update(settling_constant=1e6),
    "a field too few": lambda spec: spec.pop("tolerance"),
    "a field too many": lambda spec: spec.update(colour="red"),
    "another format": lambda spec: spec.update(format=3),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_specification_is_checked_wherever_it_comes_from(what: str) -> None:
    spec = json.loads(json.dumps(SPEC))
    spec_from_json(spec)
    WRONG[what](spec)
    with pytest.raises(thresher.InvalidInput):
        spec_from_json(spec)


@pytest.mark.parametrize("text", ["", "{broken", "[" * 100_000, "null", "3", '"x"'])
def test_a_specification_that_is_not_json_is_damage(tmp_path: Path, text: str) -> None:
    path = tmp_path / "thresher.db"
    make(f"sqlite:///{path}").store.close()
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE events SET spec = ?", (text,))
    connection.close()
    with pytest.raises(thresher.DamagedStudy, match="study 's': is damaged, event 1") as caught:
        thresher.open_study("s", storage=f"sqlite:///{path}")
    assert len(str(caught.value)) < 1000


def test_a_study_whose_beginning_is_lost_is_not_created_again(url: str) -> None:
    study = make(url)
    study.ask_many(3)
    study.store.close()
    if url.startswith("sqlite"):
        connection = apsw.Connection(url.removeprefix("sqlite:///"))
        connection.execute("DELETE FROM events WHERE seq = 1")
        connection.close()
    else:
        psycopg = pytest.importorskip("psycopg")
        with psycopg.connect(url, autocommit=True) as session:
            session.execute("DELETE FROM thresher_events WHERE seq = 1")
    store = open_store(url)
    assert store.studies() == ["s"]
    with pytest.raises(thresher.DamagedStudy):
        thresher.open_study("s", storage=store)
    with pytest.raises(Conflict):
        append(store, "s", [Event(1, "created", spec=SPEC)])
    store.close()


def test_a_damaged_page_takes_its_study_and_leaves_the_others(tmp_path: Path) -> None:
    path = tmp_path / "thresher.db"
    store = open_store(f"sqlite:///{path}")
    for name in ("first", "middle", "z-last"):
        study = make(store, name, max_failures=None)
        for pull in study.ask_many(60):
            study.drop(pull, reason=name * 150, cause="lost")
    store.close()
    data = bytearray(path.read_bytes())
    # a leaf of the tree with rows of that study only, not next to those of the others
    pages = {at: bytes(data[at : at + 4096]) for at in range(0, len(data), 4096)}
    its_own = [at for at, page in pages.items() if page[0] == 0x0A and page.count(b"middle") > 150]
    at = its_own[len(its_own) // 2]
    data[at : at + 4096] = b"\xff" * 4096
    path.write_bytes(data)
    with pytest.raises(thresher.DamagedStudy, match="study 'middle': cannot be read"):
        thresher.open_study("middle", storage=store)
    assert thresher.open_study("first", storage=store).ask()
    assert store.studies() == ["first", "middle", "z-last"]
    store.close()


@pytest.mark.parametrize("log", ["wal", "journal"])
def test_a_log_without_its_file_is_never_applied_to_a_new_file(tmp_path: Path, log: str) -> None:
    path = tmp_path / "thresher.db"
    url = f"sqlite:///{path}"
    study = make(url)
    study.ask()
    orphan = (tmp_path / "thresher.db-wal").read_bytes()
    study.store.close()
    path.unlink()
    (tmp_path / f"thresher.db-{log}").write_bytes(orphan)
    for call in (lambda: make(url), lambda: thresher.open_study("s", storage=url), lambda: open_store(url).studies()):
        with pytest.raises(StoreFailed, match=f"is not there, but its log thresher.db-{log} is"):
            call()
    assert not path.exists()
    (tmp_path / f"thresher.db-{log}").rename(tmp_path / "away")
    again = make(url)
    assert again.ask()
    again.store.close()


def test_a_file_behind_a_link_is_flushed_to_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link.db").symlink_to(tmp_path / "real" / "thresher.db")
    study = make(f"sqlite:///{tmp_path}/link.db")
    synced = []
    monkeypatch.setattr(os, "fdatasync", lambda handle: synced.append(Path(f"/proc/self/fd/{handle}").readlink()))
    study.ask()
    assert synced == [tmp_path / "real" / "thresher.db-wal"]
    study.store.close()
