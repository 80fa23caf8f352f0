"""Every call writes once, whatever happens to the answer, and only to its own study."""

import os
import threading
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import thresher
from thresher.core.events import Event
from thresher.errors import Conflict, Interrupted, StoreFailed
from thresher.log.store import MemoryStore, Store
from thresher.study import peek_study


def make(store: Store | str, **given: Any) -> thresher.Study:
    settings: dict[str, Any] = {"arms": ["a", "b", "c"], "at_least": 0.5, "budget": 60, "storage": store}
    return thresher.create_study("s", **settings | given)


class Flaky(MemoryStore):
    """Loses the connection while writing: before the commit, or between the commit and the answer."""

    trouble: Sequence[str] = ()

    def append(self, study: str, events: Any, **options: Any) -> None:
        now, *self.trouble = self.trouble or ["fine"]
        if now != "not written":
            super().append(study, events, **options)
        if now == "rival":
            raise Conflict("event")
        if now != "fine":
            raise Interrupted("storage", rule="the connection was lost")


@pytest.mark.parametrize("trouble", [["written"], ["not written"], ["not written", "written"], ["not written"] * 9])
@pytest.mark.parametrize("count", [1, 2])
def test_a_call_whose_answer_is_lost_writes_once(trouble: list[str], count: int) -> None:
    store = Flaky()
    study = make(store)
    store.trouble = trouble
    pulls = study.ask_many(count)
    assert [pull.id for pull in pulls] == [1, 2][:count]
    store.trouble = trouble
    study.tell(pulls[0], 0.25)
    kinds = [event.kind for event in store.read("s")]
    assert kinds == ["created", *["asked"] * count, "told"]
    assert peek_study(study, lambda ledger: (ledger.issued, ledger.told)) == (count, 1)


def test_a_write_that_is_found_later_is_recognised_as_ours() -> None:
    """The first write succeeds after we looked for it: the second conflicts with it, and finds that it is our own."""

    class Slow(Flaky):
        hidden: Any = None
        options: Any = None

        def append(self, study: str, events: Any, **options: Any) -> None:
            if self.trouble:
                self.trouble, self.hidden = [], list(events)
                self.options = options
                raise Interrupted("storage")
            if self.hidden:
                super().append(study, self.hidden, **self.options)
                self.hidden = None
            super().append(study, events, **options)

    store = Slow()
    study = make(store)
    store.trouble = ["lost"]
    assert [pull.id for pull in study.ask_many(2)] == [1, 2]
    assert [event.kind for event in store.read("s")] == ["created", "asked", "asked"]


def test_a_connection_that_keeps_breaking_is_given_up() -> None:
    store = Flaky()
    study = make(store)
    store.trouble = ["not written"] * 1000
    with pytest.raises(StoreFailed, match="10 times in one call"):
        study.ask()
    store.trouble = []
    assert [event.kind for event in store.read("s")] == ["created"]


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("survives", [True, False])
def test_a_crash_between_writing_and_flushing_writes_once(survives: bool, count: int) -> None:
    """What was appended but not flushed may be gone when the server is back, for every agent that has seen it."""

    class Crashing(MemoryStore):
        crash = False

        def flush(self, study: str, last: Event) -> None:
            if self.crash:
                self.crash = False
                seen.append(peek_study(other, lambda ledger: ledger.issued))
                if not survives:
                    del self.logs["s"][-count:]
                raise Interrupted("storage")

    seen: list[int] = []
    store = Crashing()
    study = make(store)
    other = thresher.open_study("s", storage=store)
    store.crash = True
    assert [pull.id for pull in study.ask_many(count)] == [1, 2][:count]
    assert seen == [count]
    assert [event.kind for event in store.read("s")] == ["created", *["asked"] * count]
    other.tell(1, 0.5)
    assert peek_study(study, lambda ledger: ledger.told) == 1


def test_a_repeated_tell_whose_reward_is_gone_after_a_crash_is_written_again() -> None:
    class Crashing(MemoryStore):
        crash = False

        def flush(self, study: str, last: Event) -> None:
            if self.crash:
                self.crash = False
                self.logs["s"].pop()
                raise Interrupted("storage")

    store = Crashing()
    study = make(store)
    pull = study.ask() or pytest.fail("no pull")
    thresher.open_study("s", storage=store).tell(pull, 1)  # and dies before it is flushed
    store.crash = True
    study.tell(pull, 1)
    assert [event.kind for event in store.read("s")] == ["created", "asked", "told"]


def test_a_repeated_call_waits_for_the_disk_too() -> None:
    """The first caller may have died between writing and flushing."""

    class Counting(MemoryStore):
        flushes = 0

        def flush(self, study: str, last: Event) -> None:
            self.flushes += 1

    store = Counting()
    study = make(store)
    study.ask_many(3)
    calls: list[Callable[[], None]]
    calls = [lambda: study.tell(1, 0.5), lambda: study.drop(2, cause="lost"), lambda: study.extend(budget=10**6)]
    for call in calls:
        call()
        before = store.flushes
        call()
        assert store.flushes == before + 1


def test_creating_with_a_lost_answer_creates_once() -> None:
    store = Flaky()
    store.trouble = ["written"]
    assert make(store).ask()
    with pytest.raises(thresher.StudyExists):
        make(store)


def test_an_agent_notices_that_its_study_was_deleted(store: Store) -> None:
    study = make(store)
    pull = study.ask() or pytest.fail("no pull")
    store.delete("s")
    for call in (study.ask, lambda: study.tell(pull, 1), study.verdict):
        with pytest.raises(thresher.StudyDeleted, match="'s'"):
            call()
    assert store.studies() == []


def test_a_new_study_with_the_name_of_a_deleted_one_is_another_study(store: Store) -> None:
    old = make(store)
    pull = old.ask() or pytest.fail("no pull")
    store.delete("s")
    new = make(store)
    new.ask_many(9)
    for call in (old.ask, lambda: old.tell(pull, 1), old.verdict, old.ask):
        with pytest.raises(thresher.StudyDeleted, match="deleted"):
            call()
    assert peek_study(new, lambda ledger: (ledger.issued, ledger.told)) == (9, 0)


def test_restored_state_equals_live_state_exactly(store: Store) -> None:
    study = make(store, arms=[f"arm {number}" for number in range(20)], budget=400)
    while pulls := study.ask_many(7):
        for pull in pulls:
            if pull.seed % 10 == 0:
                study.drop(pull, cause=("failed", "lost")[pull.id % 2], reason="a\0b \ud800 \N{SNOWMAN}")
            else:
                study.tell(pull, pull.seed / 2**32)
    again = thresher.open_study("s", storage=store)
    assert peek_study(again, lambda ledger: ledger.state()) == peek_study(study, lambda ledger: ledger.state())


def test_negative_zero_is_zero_before_it_is_written(store: Store) -> None:
    study = make(store, bounds=(-1, 1))
    study.tell(study.ask() or 0, -0.0)
    assert str(store.read("s")[-1].reward) == "0.0"


def test_a_forked_child_writes_for_itself(url: str) -> None:
    """It has its own connection, its own name and its own keys; the parent keeps its own."""
    study = make(url)
    study.ask()
    child = os.fork()
    if not child:
        try:
            pull = study.ask()
            study.tell(pull or 0, 1.0)
            os._exit(0)
        except BaseException:
            os._exit(1)
    study.ask()
    assert os.waitpid(child, 0)[1] == 0
    study.ask()
    events: Sequence[Event] = study.events()
    assert [event.seq for event in events] == list(range(1, 7))
    assert len({event.agent for event in events[1:]}) == 2
    assert len({event.key for event in events}) == 6
    study.store.close()


def test_a_child_forked_while_a_thread_writes_can_write(url: str) -> None:
    study = make(url, budget=100_000)
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            study.ask()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(10):
            child = os.fork()
            if not child:
                try:
                    study.ask()
                    os._exit(0)
                except BaseException:
                    traceback.print_exc()
                    os._exit(1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        thread.join()
    assert [event.seq for event in study.events()] == list(range(1, len(study.events()) + 1))
    study.store.close()


class Stubborn(MemoryStore):
    """Says that the next event is already written, but has no such event."""

    appends = 0

    def append(self, study: str, events: Any, **options: Any) -> None:
        if events[0].seq > 1:
            self.appends += 1
            raise Conflict("event", events[0].seq)
        super().append(study, events, **options)


def test_a_race_lost_without_a_winner_is_damage_and_is_not_retried_forever() -> None:
    store = Stubborn()
    study = make(store)
    for _ in range(2):
        with pytest.raises(thresher.DamagedStudy, match="event 2: the store says that it is written already"):
            study.ask()
    assert store.appends == 20


def test_a_race_lost_against_another_agent_is_run_again() -> None:
    class Busy(MemoryStore):
        rivals = 0
        twin = MemoryStore()

        def append(self, study: str, events: Any, **options: Any) -> None:
            if events[0].seq > 1 and self.rivals:
                self.rivals -= 1
                rival = thresher.open_study("s", storage=self.twin)
                rival.ask()
            super().append(study, events, **options)

    store = Busy()
    store.twin.logs = store.logs
    study = make(store)
    store.rivals = 25
    assert (study.ask() or pytest.fail("no pull")).id == 26


def test_an_earlier_call_is_found_although_the_end_of_the_log_was_lost() -> None:
    """A server that crashed has lost unacknowledged events: keys are looked up in the events that are left."""
    store = MemoryStore()
    study = make(store)
    first = study.ask_many(2, lease=60, key="one")
    assert study.ask_many(2, lease=60, key="one") == first
    lost = thresher.open_study("s", storage=store).ask_many(1, lease=60, key="two")
    assert study.ask_many(2, lease=60, key="one") == first, "which reads the lost event, and writes nothing"
    del store.logs["s"][-1:]
    assert study.ask_many(2, lease=60, key="one") == first
    third = study.ask_many(1, lease=60, key="three")
    assert [pull[:-1] for pull in third] == [pull[:-1] for pull in lost], "all but the tag"
    assert study.ask_many(1, lease=60, key="three") == third
    assert [pull.id for pull in study.ask_many(1, lease=60, key="two")] == [4]
