"""Writers of one SQLite file queue: fairly, and never behind one that hangs."""

import os
import threading
import time
from pathlib import Path

import pytest

import thresher
from thresher.store.filelock import FileLock
from thresher.store.sqlite import SqliteStore


def test_a_turn_is_held_by_one_at_a_time(tmp_path: Path) -> None:
    lock, inside, most = FileLock(tmp_path / "lock"), [0], [0]

    def work() -> None:
        for _ in range(50):
            with FileLock(tmp_path / "lock").turn() as held:
                assert held
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                time.sleep(0)
                inside[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]
    with lock.turn() as held:
        assert held


def test_a_holder_that_hangs_holds_nobody_up_for_long(tmp_path: Path) -> None:
    first, second = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    with first.turn():
        with second.turn(patience=0.05) as held:
            assert not held
        began = time.monotonic()
        with second.turn() as held:  # it does not wait in vain again
            assert not held
        assert time.monotonic() - began < 1.0
    with second.turn() as held:
        assert held
    with first.turn(patience=5) as held:
        assert held, "the wait that was given up keeps nothing"


def test_a_forked_child_queues_behind_its_parent(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    with lock.turn():
        pass  # from now on it has a handle, which the child gets too
    with lock.turn():
        child = os.fork()
        if child == 0:
            with lock.turn(patience=0.05) as held:
                os._exit(int(held))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, "it had the lock of its parent"


def test_threads_with_one_lock_have_turns_of_their_own(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    with lock.turn():
        pass
    with lock.turn() as first, lock.turn(patience=0.05) as second:
        assert (first, second) == (True, False)


def test_a_lock_that_nobody_needs_keeps_no_file_open(tmp_path: Path) -> None:
    before = set(Path("/proc/self/fd").iterdir())
    lock = FileLock(tmp_path / "lock")
    for _ in range(3):
        with lock.turn() as held:
            assert held
    assert len(set(Path("/proc/self/fd").iterdir()) - before) <= 1
    lock.close()
    assert set(Path("/proc/self/fd").iterdir()) <= before


def test_two_agents_without_turns_still_leave_no_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The primary key alone keeps the log in order."""
    url = f"sqlite:///{tmp_path}/thresher.db"
    study = thresher.create_study("s", arms=["a", "b"], threshold=0.5, budget=1000, storage=url)
    path = tmp_path / "elsewhere"

    def turnless(self: SqliteStore, study: str) -> object:
        return FileLock(path / str(threading.get_ident())).turn()

    monkeypatch.setattr(SqliteStore, "turn", turnless)

    def work() -> None:
        agent = thresher.open_study("s", storage=url)
        for _ in range(40):
            agent.tell(agent.ask() or 0, 0.5)
        agent.store.close()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    events = study.events()
    assert [event.seq for event in events] == list(range(1, 322))
    assert study.look(lambda ledger: (ledger.issued, ledger.told, ledger.pending)) == (160, 160, 0)
    study.store.close()
