"""A store whose file was damaged is refused, or read exactly as before: never read as something else."""

import os
from pathlib import Path

import apsw
import flips
import pytest

import thresher
from thresher.log.store import open_store

WHERE = "WHERE study = 's' AND seq"
CHANGES = {
    "the last event is lost": f"DELETE FROM events {WHERE} = 401",
    "the last hundred are lost": f"DELETE FROM events {WHERE} > 301",
    "all but the first are lost": f"DELETE FROM events {WHERE} > 1",
    "the first is lost": f"DELETE FROM events {WHERE} = 1",
    "all are lost": "DELETE FROM events",
    "one in the middle is lost": f"DELETE FROM events {WHERE} = 200",
    "rewards are others": "UPDATE events SET reward = 1 - reward",
    "a time is another": f"UPDATE events SET time = time + 1 {WHERE} = 2",
    "an agent is another": f"UPDATE events SET agent = 'somebody' {WHERE} = 2",
    "a reason is another": "UPDATE events SET reason = reason || '!' WHERE reason IS NOT NULL",
    "the bar is another": """UPDATE events SET spec = replace(spec, '"at_least": 0.5', '"at_least": 0.6')""",
    "the last reward is another": f"UPDATE events SET reward = 0.123 {WHERE} = 401",
    "a digest is another": f"UPDATE events SET digest = zeroblob(16) {WHERE} = 300",
    "the head is lost": "DELETE FROM heads",
    "the head is an earlier event": "UPDATE heads SET (seq, digest) = (SELECT seq, digest FROM events WHERE seq = 399)",
    "the head is another event": "UPDATE heads SET digest = zeroblob(16)",
    "the head is a later event": "UPDATE heads SET seq = seq + 1",
    "an event too many": "INSERT INTO events (study, seq, kind, digest) VALUES ('s', 402, 'weighed', zeroblob(16))",
}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed store with a study of 401 events."""
    return flips.closed_store(tmp_path_factory.mktemp("flips") / "small.db", pulls=200)


@pytest.mark.parametrize("what", CHANGES)
def test_a_log_that_was_changed_is_refused(small: Path, what: str) -> None:
    assert flips.changes(small, flips.execute(CHANGES[what])) == flips.REFUSED
    store = open_store(f"sqlite:///{small.with_name('changed.db')}")
    assert store.studies() == ["s"], "and its name is not free for another"
    with pytest.raises(thresher.StudyExists):
        thresher.create_study("s", arms=["a"], at_least=0.5, storage=store)
    store.delete("s")
    assert store.studies() == []
    store.close()


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8, 0.99])
def test_a_file_whose_end_is_missing_is_refused(small: Path, share: float) -> None:
    size = small.stat().st_size
    for length in (int(size * share), int(size * share) // 4096 * 4096, size - 4096):
        assert flips.changes(small, lambda path, length=length: os.truncate(path, length)) == flips.REFUSED  # type: ignore[misc]


@pytest.mark.parametrize("seed", range(3))
def test_no_bit_flips_unnoticed(tmp_path: Path, seed: int) -> None:
    path = flips.closed_store(tmp_path / "s.db", pulls=(50, 100, 400)[seed])
    found = flips.tally(path, 60, seed)
    assert found[flips.ACCEPTED] == 0, found
    assert found[flips.REFUSED] > 5


def test_a_running_agent_notices_changes_made_behind_its_back(url: str) -> None:
    study = thresher.create_study("s", arms=["a", "b"], at_least=0.5, budget=100, storage=url)
    pulls = study.ask_many(3)
    other = thresher.open_study("s", storage=url)
    other.tell(pulls[0], 1.0)
    store = open_store(url)
    change(url, "UPDATE {events} SET reward = 0.5 WHERE seq = 5")
    with pytest.raises(thresher.DamagedStudy, match="event 5: does not match its digest"):
        study.tell(pulls[1], 1.0)
    with pytest.raises(thresher.DamagedStudy, match="event 5"):
        study.ask()
    assert len(store.read("s")) == 5, "nothing is written on top of it"
    for each in (study, other):
        each.store.close()
    store.close()


def change(url: str, query: str) -> None:
    """Change a table without going through the store."""
    if url.startswith("sqlite"):
        connection = apsw.Connection(url.removeprefix("sqlite:///"))
        connection.execute(query.format(events="events", heads="heads"))
        connection.close()
    else:
        psycopg = pytest.importorskip("psycopg")
        with psycopg.connect(url, autocommit=True) as session:
            session.execute(query.format(events="thresher_events", heads="thresher_heads"))


LOST = {
    "the end": ("DELETE FROM {events} WHERE seq > 3", "event 4: is missing, as is all up to event 7"),
    "the head": ("DELETE FROM {heads}", "the log's head is missing"),
    "everything": ("DELETE FROM {events}", "event 1: is missing, as is all up to event 7"),
    "a part": ("DELETE FROM {events} WHERE seq = 3", "event 3: is missing"),
    "a reward": ("UPDATE {events} SET reward = 0.25 WHERE seq = 5", "event 5: does not match its digest"),
}


@pytest.mark.parametrize("what", LOST)
def test_damage_is_named_in_every_store(url: str, what: str) -> None:
    study = thresher.create_study("s", arms=["a", "b"], at_least=0.5, budget=100, storage=url)
    for pull in study.ask_many(3):
        study.tell(pull, 0.75)
    study.store.close()
    query, words = LOST[what]
    change(url, query)
    store = open_store(url)
    with pytest.raises(thresher.DamagedStudy, match=words):
        thresher.open_study("s", storage=store)
    assert store.studies() == ["s"]
    store.delete("s")
    assert store.studies() == []
    store.close()
