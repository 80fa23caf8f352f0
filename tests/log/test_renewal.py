"""Renewal survives failures, and a forked child does not use what another thread was changing."""

import os
import threading
from collections.abc import Iterable

import pytest

import thresher
from thresher.core.state import State
from thresher.errors import StoreFailed
from thresher.log.locks import LeaseKeeper
from thresher.log.store import MemoryStore
from thresher.study import peek_study


class FailingOnce(MemoryStore):
    """Its first renewal fails."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[str, list[int], float]] = []
        self.renewed = threading.Event()

    def renew(self, study: str, pulls: Iterable[int], seconds: float) -> None:
        self.calls.append((study, list(pulls), seconds))
        if len(self.calls) == 1:
            raise StoreFailed("storage", rule="the server is away")
        self.renewed.set()


def test_one_failed_renewal_does_not_end_renewal(caplog: pytest.LogCaptureFixture) -> None:
    store = FailingOnce()
    keeper = LeaseKeeper(store, "s", 0.03)
    keeper.hold([2, 1])
    assert store.renewed.wait(60)
    keeper.let_go_of_all()
    assert store.calls[:2] == [("s", [1, 2], 0.03)] * 2
    assert "the leases of 2 pulls could not be renewed" in caplog.text


def test_a_keeper_returns_whether_anything_is_left_to_renew() -> None:
    keeper = LeaseKeeper(FailingOnce(), "s", 3600.0)
    assert not keeper.beat()
    keeper.hold([1])
    assert keeper.beat(), "though it failed"
    keeper.let_go(1)
    assert not keeper.beat()


def test_a_forked_child_does_not_use_what_another_thread_was_changing() -> None:
    study = thresher.create_study("s", arms=["a"], at_least=0.5, budget=9)
    using, done = threading.Event(), threading.Event()

    def use(ledger: State) -> None:
        ledger.issued = 7  # until it is done
        using.set()
        done.wait(60)
        ledger.issued = 0

    thread = threading.Thread(target=peek_study, args=(study, use))
    thread.start()
    assert using.wait(60)
    child = os.fork()
    if not child:
        fine = False
        try:
            pull = study.ask()
            fine = pull is not None and pull.id == 1
        finally:
            os._exit(not fine)
    done.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert [event.kind for event in study.events()] == ["created"], "the parent keeps its own"
