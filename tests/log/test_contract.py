"""What every store promises."""

import threading
import time
from typing import Any

import pytest
import rewritten
from logs import append

import thresher
from thresher.core.events import Event
from thresher.errors import Conflict
from thresher.log.store import START, Store, store_chain_digest

HOSTILE = [
    *("'; DROP TABLE events; --", '"quoted"', "../../etc/passwd", "%s %d ?", "a\\b", "ünïcode ✓ 漢字", " blank "),
    *("x" * 1000, "NULL", "\N{ZERO WIDTH SPACE}"),
]
FULL = Event(1, "told", 2, 3, 0.1, "why", "failed", True, 9, {"arms": ["a", "ü"], "x": None}, "k-1", 12.5, "host:1")


def created(seq: int = 1, **fields: Any) -> Event:
    return Event(seq, "created", key=f"key-{seq}")._replace(**fields)


def begin(store: Store, study: str = "s", pulls: int = 0, lease: float | None = 60.0) -> None:
    asked = [Event(seq + 1, "asked", seq, 0) for seq in range(1, pulls + 1)]
    append(store, study, [created(), *asked], lease=lease)


def test_events_are_read_in_order_from_any_number(store: Store) -> None:
    events = [created(), Event(2, "asked", 1, 0), Event(3, "told", 1, 0, 0.5)]
    events = append(store, "s", events[:1]) + append(store, "s", events[1:])
    assert list(store.read("s")) == events
    assert list(store.read("s", 1)) == events[1:]
    assert list(store.read("s", 3)) == []
    assert list(store.read("s", 0, 2)) == events[:2]
    assert list(store.read("s", 1, 1)) == events[1:2]


def test_an_unknown_study_has_no_events(store: Store) -> None:
    assert list(store.read("nobody")) == []
    assert store.studies() == []


def test_every_field_is_read_back_unchanged(store: Store) -> None:
    written = append(store, "s", [FULL])
    (found,) = store.read("s")
    assert [found] == written
    assert found._replace(digest=None) == FULL
    assert type(found.late) is bool


@pytest.mark.parametrize("reward", [0.1 + 0.2, 5e-324, 1.7976931348623157e308, 0.0, 1 / 3, 1e100])
def test_rewards_are_read_back_exactly(store: Store, reward: float) -> None:
    append(store, "s", [created(reward=reward)])
    (found,) = store.read("s")
    assert found.reward == reward


@pytest.mark.parametrize("first", [1, 2, 4, 9])
def test_an_append_at_any_number_but_the_next_writes_nothing(store: Store, first: int) -> None:
    append(store, "s", [created(), Event(2, "asked", 1, 0)])
    with pytest.raises(Conflict):
        append(store, "s", [Event(first, "asked", 2, 0), Event(first + 1, "asked", 3, 0)], lease=0.001)
    assert [event.seq for event in store.read("s")] == [1, 2]
    assert store.expired("s") == []


def test_an_append_after_another_event_than_the_last_writes_nothing(store: Store) -> None:
    """A crash may have lost the event that it follows, and another agent may have written another in its place."""
    append(store, "s", [created(), Event(2, "asked", 1, 0)])
    lost = store_chain_digest(START, created())
    with pytest.raises(Conflict):
        store.append("s", [Event(3, "told", 1, 0, 1.0, digest=b"x" * 16)], before=lost)
    assert [event.seq for event in store.read("s")] == [1, 2]


def test_a_log_begins_with_event_1(store: Store) -> None:
    with pytest.raises(Conflict):
        append(store, "s", [Event(2, "asked", 1, 0)])
    assert store.studies() == []


def test_studies_do_not_affect_each_other(store: Store) -> None:
    for name in ("b", "a", "A"):
        begin(store, name, pulls=1)
    append(store, "a", [Event(3, "told", 1, 0, 1.0)])
    assert store.studies() == ["A", "a", "b"]
    assert [len(store.read(name)) for name in ("A", "a", "b")] == [2, 3, 2]


@pytest.mark.parametrize("name", HOSTILE, ids=lambda name: ascii(name)[:20])
def test_unusual_names_work_like_any_other(store: Store, name: str) -> None:
    begin(store, "other")
    begin(store, name, pulls=1)
    assert store.studies() == sorted(["other", name])
    with store.turn(name):
        append(store, name, [Event(3, "told", 1, 0, 1.0, reason=name, key=name, agent=name)])
    assert store.read(name, 2)[0].reason == name
    store.delete(name)
    assert store.studies() == ["other"]


def test_a_deleted_study_leaves_nothing_and_its_name_is_free(store: Store) -> None:
    begin(store, pulls=3)
    store.renew("s", [1, 2, 3], -60)
    assert store.expired("s") == ([1, 2, 3] if store.leased else []), "leases that stay would be seen below"
    store.note("s", "me", "true")
    store.delete("s")
    store.delete("s")
    assert (list(store.read("s")), store.studies(), store.expired("s"), dict(store.notes("s"))) == ([], [], [], {})
    with pytest.raises(Conflict):
        append(store, "s", [Event(5, "told", 1, 0, 1.0)])
    begin(store)
    assert len(store.read("s")) == 1


def test_the_commands_of_agents_are_kept_beside_them(store: Store) -> None:
    begin(store)
    store.note("s", "one", "./evaluate.sh {arm}")
    store.note("s", "two", "rm -rf '$HOME' \N{SNOWMAN}")
    store.note("s", "one", "./better.sh {arm}")
    assert dict(store.notes("s")) == {"one": "./better.sh {arm}", "two": "rm -rf '$HOME' \N{SNOWMAN}"}
    assert dict(store.notes("other")) == {}


def test_a_store_that_was_closed_opens_again(store: Store) -> None:
    begin(store)
    store.close()
    store.close()
    assert store.studies() == ["s"]


def test_a_store_describes_itself_and_finds_nothing_wrong(store: Store) -> None:
    begin(store)
    found = store.describe()
    assert {"store", "durability"} <= set(found)
    assert [key for key in found if key.startswith("!")] == []


def test_writers_in_threads_leave_no_gap(store: Store) -> None:
    begin(store)

    def write(agent: str) -> None:
        for _ in range(25):
            while True:
                with store.turn("s"):
                    last = store.read("s")[-1].seq
                    try:
                        append(store, "s", [Event(last + 1, "asked", last, 0, agent=agent)], lease=60)
                    except Conflict:
                        continue
                    break

    threads = [threading.Thread(target=write, args=(f"agent {number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    events = store.read("s")
    assert [event.seq for event in events] == list(range(1, 102))
    assert {name: sum(event.agent == name for event in events) for name in {e.agent for e in events[1:]}} == {
        f"agent {number}": 25 for number in range(4)
    }


def test_a_large_append_is_complete(store: Store) -> None:
    begin(store, pulls=12_000)
    assert [event.seq for event in store.read("s", 11_999)] == [12_000, 12_001]


# -- leases: a store in memory has none, for it ends with its agents ------------------------------------------------


def wait_for_expiry(store: Store, pulls: list[int]) -> None:
    end = time.monotonic() + 10
    while store.expired("s") != pulls:
        assert time.monotonic() < end, store.expired("s")
        time.sleep(0.005)


def test_a_lease_runs_out_unless_it_is_renewed(store: Store) -> None:
    begin(store, pulls=3, lease=0.05)
    store.renew("s", [2], 60)
    if not store.leased:
        assert store.expired("s") == []
        return
    wait_for_expiry(store, [1, 3])
    store.renew("s", [1, 3], 60)
    assert store.expired("s") == []
    store.renew("s", [1], 0.001)
    wait_for_expiry(store, [1])


def test_what_is_renewed_in_a_turn_stays_renewed_though_nothing_is_appended(store: Store) -> None:
    begin(store, pulls=2, lease=0.05)
    with store.turn("s"):
        store.renew("s", [2], 60)
    if store.leased:
        wait_for_expiry(store, [1])
        time.sleep(0.1)
        assert store.expired("s") == [1]


def test_a_pull_that_has_ended_has_no_lease(store: Store) -> None:
    begin(store, pulls=3, lease=0.001)
    append(store, "s", [Event(5, "told", 1, 0, 1.0), Event(6, "dropped", 2, 0, cause="lost")])
    store.renew("s", [1, 2], 0.001)  # and gets none by being renewed
    if store.leased:
        wait_for_expiry(store, [3])
        store.renew("s", [3], 0.05)  # by then, leases of the others would have run out
        wait_for_expiry(store, [3])


def test_pulls_that_are_asked_and_told_at_once_never_have_a_lease(store: Store) -> None:
    append(store, "s", [created(), Event(2, "asked", 1, 0), Event(3, "told", 1, 0, 1.0)], lease=0.001)
    append(store, "s", [Event(4, "asked", 2, 0)], lease=0.001)
    if store.leased:
        wait_for_expiry(store, [2])


def test_leases_belong_to_their_study(store: Store) -> None:
    begin(store, "s", pulls=1, lease=0.001)
    begin(store, "other", pulls=1, lease=60)
    store.renew("other", [1], 60)
    if store.leased:
        wait_for_expiry(store, [1])
    assert store.expired("other") == []


def test_a_study_with_a_score_of_one_s_own_is_continued_and_verified(store: Store) -> None:
    """Another handle on the same store decides as one study in memory would."""
    policy, question = thresher.custom(rewritten.thirds), {"arms": [*"abc"], "at_least": 0.5, "budget": 60, "seed": 0}
    alone = thresher.create_study("s", policy=policy, **question)  # type: ignore[arg-type]
    thresher.create_study("s", policy=policy, storage=store, **question)  # type: ignore[arg-type]
    for turn in range(3):
        stored = thresher.open_study("s", storage=store, scores=[rewritten.thirds])
        for _ in range(20):
            mine, theirs = alone.ask(), stored.ask()
            assert mine is not None
            assert theirs is not None
            assert mine[:-1] == theirs[:-1], turn  # all but the tag
            alone.tell(mine, mine.seed % 2)
            stored.tell(theirs, mine.seed % 2)
    assert stored.done
    assert thresher.verify(stored.events(), scores=[rewritten.thirds]).sound
