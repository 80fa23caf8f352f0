"""Stores of version 0.1: read as they are, upgraded by the first write, and then closed to agents of version 0.1."""

import gzip
from pathlib import Path
from typing import Any

import pytest
from old_stores import STORED, STUDY, Old, an_old_store, an_opened_store, digests  # noqa: F401 - the fixtures

import thresher
from thresher.cli import cli
from thresher.core.events import Event
from thresher.log.chain import chained
from thresher.log.store import Store
from thresher.log.stores import open_store
from thresher.study import peek


def event(seq: int) -> tuple[Any, ...]:
    return (STUDY, *Event(seq, "asked", 1, 0)[:-1])


def test_an_old_store_is_read_without_being_changed(old: Old, opened: Store) -> None:
    names = opened.studies()
    assert len(names) > 10
    assert all(event.digest is None for event in opened.read(STUDY))
    study = thresher.open_study(STUDY, storage=opened)
    assert peek(study, lambda ledger: ledger.issued)  # a verdict would drop pulls whose leases ran out
    assert study.events()[-1].digest is not None, "readers know the digests that it will have"
    head = opened.head(STUDY)
    assert head is not None
    assert (head.seq, head.digest) == (len(study.events()), None)
    assert "first write upgrades it" in opened.describe()["schema"]
    assert opened.head("nobody") is None
    assert old.schema() == 1


def test_the_first_write_upgrades_all_studies_and_changes_no_state(old: Old, opened: Store) -> None:
    before = digests(opened)
    raw = {name: list(opened.read(name)) for name in opened.studies()}
    thresher.create_study("new", arms=["a"], at_least=0.5, storage=opened)
    assert old.schema() == 2
    after = digests(opened)
    assert after.pop("new")[0] == 1
    assert after == before, "states and heads are what they were"
    for name, events in raw.items():
        assert list(opened.read(name)) == chained(events)
    assert opened.describe()["schema"] == "2"


def test_an_old_study_continues_in_a_chain(old: Old, opened: Store) -> None:
    study, reader = (thresher.open_study(STUDY, storage=open_store(old.url)) for _ in range(2))
    seen = len(reader.events()) + study.sweep()
    study.extend(budget=(peek(study, lambda ledger: ledger.budget) or 0) + 50)
    for pull in study.ask_many(5):
        study.tell(pull, 1)
    assert len(reader.events()) == seen + 11, "a reader of the old store reads the new one"
    assert reader.verdict().head == study.verdict().head
    again = thresher.open_study(STUDY, storage=opened)
    assert peek(again, lambda ledger: ledger.state()) == peek(study, lambda ledger: ledger.state())
    for each in (study, reader):
        each.store.close()


def test_an_agent_of_0_1_that_had_the_store_open_cannot_write_any_more(old: Old, opened: Store) -> None:
    with old.agent() as run:
        last = len(opened.read(STUDY))
        run(old.write, event(last + 1))
        assert len(opened.read(STUDY)) == last + 1
        thresher.create_study("new", arms=["a"], at_least=0.5, storage=opened)
        with pytest.raises(Exception, match=r"(?i)not.null constraint"):
            run(old.write, event(last + 2))
    assert len(opened.read(STUDY)) == last + 1


def test_an_agent_of_0_1_cannot_delete_or_rename_a_study_after_an_upgrade(old: Old, opened: Store) -> None:
    """It would leave the head behind: a study without events under the old name, or events without a head."""
    with old.agent() as run:
        thresher.create_study("new", arms=["a"], at_least=0.5, storage=opened)
        before = digests(opened, STUDY, "new")
        for query in (
            f"DELETE FROM {old.prefix}events WHERE study = ?",
            f"UPDATE {old.prefix}events SET study = 'elsewhere' WHERE study = ?",
        ):
            for name in (STUDY, "new"):
                with pytest.raises(Exception, match="a newer version of thresher upgraded this store, so update this"):
                    run(query, (name,))
    assert digests(opened, STUDY, "new") == before
    opened.rename(STUDY, "elsewhere")
    opened.delete("new")
    assert digests(opened, "elsewhere")["elsewhere"] == before[STUDY]
    assert not {STUDY, "new"} & set(opened.studies())


def test_a_new_store_refuses_agents_of_0_1_as_an_upgraded_one_does(url: str) -> None:
    study = thresher.create_study("s", arms=["a"], at_least=0.5, budget=9, storage=url)
    with Old(url).agent() as run, pytest.raises(Exception, match="so update this one"):
        run(f"DELETE FROM {Old(url).prefix}events WHERE study = ?", ("s",))
    assert study.ask()
    study.store.close()


def test_a_head_without_a_log_is_damage_that_can_be_deleted(url: str) -> None:
    """As in stores in which an agent of 0.1 deleted a study before such deletions were refused."""
    study = thresher.create_study("s", arms=["a"], at_least=0.5, budget=9, storage=url)
    study.ask()
    study.store.close()
    with Old(url).agent() as run:
        on = " ON thresher_events" if Old(url).prefix else ""
        run(f"DROP TRIGGER {'thresher_head_first' if on else 'deletes_head_first'}{on}")
        run(f"DELETE FROM {Old(url).prefix}events")
    with pytest.raises(thresher.DamagedStudy, match=r"is missing, as is all up to event 2.* thresher delete"):
        thresher.open_study("s", storage=url)
    with pytest.raises(thresher.StudyExists):
        thresher.create_study("s", arms=["a"], at_least=0.5, storage=url)
    with pytest.raises(thresher.DamagedStudy, match="thresher delete"):
        thresher.create_study("s", arms=["a"], at_least=0.5, storage=url, if_exists="join")
    cli.main(["delete", "s", "--yes", "--storage", url], standalone_mode=False)
    again = thresher.create_study("s", arms=["a"], at_least=0.5, budget=9, storage=url)
    assert again.ask()
    again.store.close()


def test_events_that_an_agent_of_0_1_writes_meanwhile_are_read(old: Old, opened: Store) -> None:
    study = thresher.open_study(STUDY, storage=opened)
    budget = peek(study, lambda ledger: ledger.budget) or 0
    with old.agent() as run:
        last = study.events()[-1].seq
        run(old.write, (STUDY, *Event(last + 1, "extended", budget=budget + 7, key="other")[:-1]))
        assert peek(study, lambda ledger: ledger.budget) == budget + 7
        run(f"DELETE FROM {old.prefix}events WHERE study = ?", (STUDY,))
        with pytest.raises(thresher.StudyDeleted):
            peek(study, lambda ledger: ledger.budget)


def test_a_new_study_with_the_name_of_a_deleted_one_is_another_study_in_an_old_store(old: Old, opened: Store) -> None:
    names = sorted(opened.studies(), key=lambda name: len(opened.read(name)))
    study = thresher.open_study(names[0], storage=opened)
    with old.agent() as run:
        run(f"DELETE FROM {old.prefix}events WHERE study = ?", (names[0],))
        run(f"UPDATE {old.prefix}events SET study = ? WHERE study = ?", (names[0], names[-1]))
    with pytest.raises(thresher.StudyDeleted):
        study.verdict()
    assert old.schema() == 1


def test_a_gap_in_an_old_log_is_damage_before_and_after_the_upgrade(old: Old, opened: Store) -> None:
    with old.agent() as run:
        run(f"DELETE FROM {old.prefix}events WHERE study = ? AND seq = 5", (STUDY,))
    for _ in range(2):
        with pytest.raises(thresher.DamagedStudy, match="event 5: is missing"):
            thresher.open_study(STUDY, storage=opened)
        thresher.create_study("new", arms=["a"], at_least=0.5, storage=opened, if_exists="join")
    assert old.schema() == 2
    opened.delete(STUDY)
    assert STUDY not in opened.studies()


def test_a_damaged_study_of_an_old_store_can_be_deleted(old: Old, opened: Store) -> None:
    opened.delete(STUDY)
    assert STUDY not in opened.studies()
    assert old.schema() == 1


def test_a_rename_upgrades_too(old: Old, opened: Store) -> None:
    before = digests(opened, STUDY)[STUDY]
    opened.rename(STUDY, "elsewhere")
    assert old.schema() == 2
    assert digests(opened, "elsewhere")["elsewhere"] == before


def test_two_agents_that_upgrade_at_once_upgrade_once(old: Old, opened: Store) -> None:
    other = open_store(old.url)
    assert other.studies() == opened.studies()  # both know the old schema
    thresher.create_study("first new", arms=["a"], at_least=0.5, storage=opened)
    thresher.create_study("second new", arms=["a"], at_least=0.5, storage=other)
    assert {"first new", "second new"} <= set(opened.studies())
    names = (STUDY, "first new", "second new")
    assert digests(opened, *names) == digests(other, *names)
    other.close()


def test_a_file_that_was_replaced_by_one_of_version_0_1_is_upgraded_too(tmp_path: Path) -> None:
    """What is known about the file before it does not count."""
    file = tmp_path / "thresher.db"
    store = open_store(f"sqlite:///{file}")
    thresher.create_study("before", arms=["a"], at_least=0.5, storage=store)
    store.close()
    file.write_bytes(gzip.decompress(STORED.read_bytes()))
    thresher.create_study("new", arms=["a"], at_least=0.5, storage=store)
    assert store.describe()["schema"] == "2"
    assert store.head(STUDY) is not None
    store.close()
