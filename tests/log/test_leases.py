"""Lost work: live agents keep their pulls, dead ones lose them, and a late reward is accepted once."""

import gc
import os
import queue
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import thresher
from thresher.log.store import MemoryStore, open_store
from thresher.run import loop
from thresher.study import peek_study


@pytest.fixture
def make(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., thresher.Study]]:
    """Studies on one store, each with its own agent. One that dies renews none of its pulls, as after kill -9."""
    made: list[thresher.Study] = []

    def study(*, dies: bool = False, **given: Any) -> thresher.Study:
        settings: dict[str, Any] = {"arms": ["a", "b"], "at_least": 0.5, "budget": 60, "storage": url}
        made.append(thresher.create_study("s", **settings | given, if_exists="join"))
        if dies:
            monkeypatch.setattr(made[-1].store, "renew", lambda *_: None)
        return made[-1]

    yield study
    for each in made:
        each.store.close()


def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


EARLIER: "weakref.WeakSet[threading.Thread]" = weakref.WeakSet()  # threads that other tests have left


@pytest.fixture(autouse=True)
def _earlier_threads() -> None:
    EARLIER.update(threading.enumerate())


def keepers() -> int:
    return sum(each.name == "thresher-leases" and each not in EARLIER for each in threading.enumerate())


def renewals(study: thresher.Study, monkeypatch: pytest.MonkeyPatch) -> "queue.SimpleQueue[list[int]]":
    """What the agent renews from now on."""
    found: queue.SimpleQueue[list[int]] = queue.SimpleQueue()
    monkeypatch.setattr(study.store, "renew", lambda name, pulls, seconds: found.put(list(pulls)))
    return found


def test_a_dead_agents_pull_is_dropped_as_lost_and_its_late_reward_kept_once(make: Any) -> None:
    dead, alive = make(dies=True, lease=0.1), make()
    pull = dead.ask() or pytest.fail("no pull")
    until(alive.sweep)
    dropped = alive.events()[-1]
    assert (dropped.kind, dropped.pull, dropped.cause) == ("dropped", pull.id, "lost")
    assert alive.verdict().pending == 0
    dead.tell(pull, 1)
    dead.tell(pull, 1)
    assert [(event.kind, event.late) for event in alive.events()[3:]] == [("told", True)]
    with pytest.raises(thresher.AlreadyTold):
        alive.tell(pull, 0)
    assert alive.sweep() == 0


@pytest.mark.parametrize("how", ["ask", "sweep"])
def test_the_next_agent_that_asks_drops_lost_pulls(make: Any, how: str) -> None:
    dead = make(dies=True, lease=0.05)
    dead.ask_many(3)
    until(lambda: dead.store.expired("s") == [1, 2, 3])
    alive = make()
    getattr(alive, how)()
    assert peek_study(alive, lambda ledger: [ledger.state_of(pull) for pull in (1, 2, 3)]) == [2, 2, 2]


@pytest.mark.alone
def test_a_live_agent_keeps_its_pulls_however_long_they_take(make: Any) -> None:
    slow, other = make(lease=0.15), make()
    pulls = slow.ask_many(2)
    end = time.monotonic() + 0.6  # many leases long
    while time.monotonic() < end:
        assert other.sweep() == 0
        time.sleep(0.01)
    for pull in pulls:
        slow.tell(pull, 1)
    assert [event.kind for event in other.events()] == ["created", "asked", "asked", "told", "told"]


def test_the_thread_runs_only_while_pulls_are_pending(make: Any) -> None:
    study = make(lease=0.06)
    assert keepers() == 0
    first, second = study.ask_many(2)
    assert keepers() == 1
    study.tell(first, 1)
    study.drop(second, cause="lost")
    until(lambda: keepers() == 0)
    study.ask()
    assert keepers() == 1
    study.drop(3, cause="lost")
    until(lambda: keepers() == 0)


def test_pulls_that_others_told_are_no_longer_renewed(make: Any, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    study = make(lease=0.1)
    renewed = renewals(study, monkeypatch)
    pulls = study.ask_many(3)
    other = thresher.open_study("s", storage=url)
    for pull in pulls[:2]:
        other.tell(pull, 1)
    assert renewed.get(timeout=60) == [1, 2, 3]
    study.sweep()
    until(lambda: renewed.get(timeout=60) == [3])
    study.drop(3, cause="lost")
    other.store.close()


def test_a_forgotten_study_is_collected_and_its_thread_ends(make: Any, url: str) -> None:
    study = thresher.create_study("other", arms=["a"], at_least=0.5, budget=9, storage=url)
    study.ask()
    assert keepers() == 1
    watched = weakref.ref(study)
    study.store.close()
    del study
    gc.collect()
    assert watched() is None
    until(lambda: keepers() == 0)


def test_memory_has_no_leases_and_needs_no_thread() -> None:
    store = MemoryStore()
    study = thresher.create_study("s", arms=["a"], at_least=0.5, budget=9, storage=store, lease=0.001)
    study.ask_many(3)
    assert keepers() == 0
    assert study.sweep() == 0
    study.renew([1, 2], 60)
    assert study.verdict().pending == 3


def test_renew_keeps_pulls_that_are_evaluated_elsewhere(make: Any) -> None:
    asked, other = make(dies=True, lease=0.2), make()
    asked.ask_many(2)
    other.renew([1], 3600)
    until(other.sweep)
    assert peek_study(other, lambda ledger: [ledger.state_of(pull) for pull in (1, 2)]) == [0, 2]
    with pytest.raises(thresher.UnknownPull):
        other.renew([99], 10)
    for seconds in (0, -1, float("nan"), "1h"):
        with pytest.raises(thresher.InvalidInput, match="lease"):
            other.renew([1], seconds)


def test_an_agent_never_drops_its_own_pulls_however_the_clock_jumps(make: Any) -> None:
    study = make(lease=30)
    study.ask_many(2)
    study.store.renew("s", [1, 2], -3600)
    assert study.store.expired("s") == [1, 2]
    assert study.sweep() == 0
    assert make().sweep() == 2


def test_a_forked_child_renews_its_own_pulls_and_not_its_parents(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    study = make(lease=0.1)
    study.ask_many(2)
    child = os.fork()
    if not child:
        fine = False
        try:
            renewed, before = renewals(study, monkeypatch), keepers()
            pull = study.ask()
            fine = pull is not None and renewed.get(timeout=10) == [pull.id] and (before, keepers()) == (0, 1)
        finally:
            os._exit(not fine)
    assert os.waitpid(child, 0)[1] == 0
    assert renewals(study, monkeypatch).get(timeout=60) == [1, 2]
    for pull in (1, 2):
        study.drop(pull, cause="lost")


def test_pending_pulls_do_not_keep_the_interpreter_alive(url: str) -> None:
    script = (
        "import thresher, sys; study = thresher.create_study('s', arms=['a'], at_least=0.5, budget=9,"
        " storage=sys.argv[1], lease=3600); study.ask_many(3)"
    )
    done = subprocess.run([sys.executable, "-c", script, url], timeout=60, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")


def test_run_drops_the_pulls_of_dead_agents(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "SWEEP", 0.1)
    dead = make(dies=True, lease=0.05, budget=40)
    dead.ask_many(5)
    release = threading.Event()

    def evaluate(pull: thresher.Pull) -> float:
        release.wait(60)  # no reward comes back, so only the sweep can notice
        return 1.0

    def watch(progress: thresher.Progress) -> None:
        if progress.pending == 2:  # only those of this run
            release.set()

    verdict = thresher.run(make(budget=40), evaluate, workers=2, on_progress=watch)
    assert (verdict.pending, verdict.told) == (0, verdict.issued - 5)


def test_an_agents_clock_does_not_matter_in_postgres(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    study = thresher.create_study("s", arms=["a"], at_least=0.5, budget=9, storage=postgres_url, lease=3000)
    study.ask()
    real = time.time
    for shift in (3600, -3600):
        monkeypatch.setattr(time, "time", lambda shift=shift: real() + shift)
        store = open_store(postgres_url)
        other = thresher.open_study("s", storage=store, lease=3000)
        other.ask()
        assert other.sweep() == 0
        store.close()
    assert study.sweep() == 0
    study.store.close()
