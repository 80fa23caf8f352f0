"""Parts of a log, as the server returns them: intact to the last event, and short only at the end of the log."""

from pathlib import Path

import apsw
import pytest

import thresher
from thresher.log.reader import read_log_section
from thresher.log.store import Store, open_store


def study_of(store: Store, pulls: int = 3) -> thresher.Study:
    study = thresher.create_study("s", arms=["a", "b"], at_least=0.5, budget=100, storage=store)
    for pull in study.ask_many(pulls):
        study.tell(pull, 0.75)
    return study


def test_sections_together_are_the_log(store: Store) -> None:
    events = list(study_of(store).events())
    assert len(events) == 7
    for limit in (1, 2, 3, 7, 8, 10_000):
        found: list[thresher.Event] = []
        while part := read_log_section(store, "s", len(found), limit):
            found += part
        assert found == events
    assert list(read_log_section(store, "s", 7, 5)) == []
    assert list(read_log_section(store, "s", 70, 5)) == [], "they are not there yet"
    assert list(read_log_section(store, "nobody", 0, 5)) == list(read_log_section(store, "nobody", 3, 5)) == []


def test_a_long_section_is_read_in_pages(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    events = list(study_of(store).events())
    monkeypatch.setattr("thresher.log.reader.PAGE", 2)
    assert list(read_log_section(store, "s", 1, 5)) == events[1:6]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("DELETE FROM events WHERE seq > 4", "event 5: is missing, as is all up to event 7, the log's head"),
        ("DELETE FROM heads", "the log's head is missing"),
        ("UPDATE heads SET seq = 9", "event 8: is missing"),
        ("UPDATE events SET reward = 0.5 WHERE seq = 6", "event 6: does not match its digest"),
    ],
)
def test_a_section_of_a_log_whose_end_was_changed_is_damaged(tmp_path: Path, change: str, words: str) -> None:
    url = f"sqlite:///{tmp_path}/thresher.db"
    study_of(open_store(url)).store.close()
    connection = apsw.Connection(f"{tmp_path}/thresher.db")
    connection.execute(change)
    connection.close()
    store = open_store(url)
    for after in (0, 2, 4):
        with pytest.raises(thresher.DamagedStudy, match=words):
            read_log_section(store, "s", after, 100)
    assert len(read_log_section(store, "s", 0, 3)) == 3, "the events before it are intact"
    store.close()


def test_a_section_after_a_lost_event_is_damaged(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/thresher.db")
    study_of(store)
    connection = apsw.Connection(f"{tmp_path}/thresher.db")
    connection.execute("DELETE FROM events WHERE seq > 4")
    connection.close()
    for after in (5, 7):
        with pytest.raises(thresher.DamagedStudy, match=f"event {after}: is missing"):
            read_log_section(store, "s", after, 100)
    store.close()
