"""Writers of one SQLite file queue: fairly, and never behind one that hangs."""

import contextlib
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import thresher
from thresher.log import locks
from thresher.log.locks import FileLock
from thresher.log.sqlite import SqliteStore
from thresher.study import peek_study


def test_a_turn_is_held_by_one_at_a_time(tmp_path: Path) -> None:
    lock, inside, most = FileLock(tmp_path / "lock"), [0], [0]

    def work() -> None:
        for _ in range(50):
            with FileLock(tmp_path / "lock").turn(patience=60) as held:
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


def is_free(lock: FileLock) -> bool:
    """Whether the lock can be had now."""
    with lock.turn() as held:
        return held


def test_a_holder_that_hangs_blocks_nobody_for_long(tmp_path: Path) -> None:
    first, second = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    with first.turn():
        with second.turn(patience=0.05) as held:
            assert not held
        began = time.monotonic()
        with second.turn() as held:  # it does not wait a second time
            assert not held
        assert time.monotonic() - began < 1.9, "a turn is waited for 2 s"
    until(lambda: is_free(second))  # the wait that was given up has ended
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


def test_threads_that_share_a_lock_take_turns(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    with lock.turn():
        pass
    with lock.turn() as first, lock.turn(patience=0.05) as second:
        assert (first, second) == (True, False)


def test_an_unused_lock_keeps_no_file_open(tmp_path: Path) -> None:
    before = set(Path("/proc/self/fd").iterdir())
    lock = FileLock(tmp_path / "lock")
    for _ in range(3):
        with lock.turn() as held:
            assert held
    assert len(set(Path("/proc/self/fd").iterdir()) - before) <= 1
    lock.close()
    assert set(Path("/proc/self/fd").iterdir()) <= before


def test_agents_share_one_lock_again_after_its_file_was_deleted(tmp_path: Path) -> None:
    first, second = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    for lock in (first, second):
        with lock.turn():
            pass
    (tmp_path / "lock").unlink()
    with first.turn() as one, second.turn(patience=0.05) as other:
        assert (one, other) == (True, False)


def test_a_lock_whose_file_was_deleted_or_that_nobody_uses_any_more_leaves_no_file_open(tmp_path: Path) -> None:
    def count() -> int:
        """How many files in the folder are open."""
        found = 0
        for file in Path("/proc/self/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # another test's file, closed in this moment
                found += str(file.readlink()).startswith(str(tmp_path))
        return found

    lock = FileLock(tmp_path / "lock")
    for _ in range(3):
        with lock.turn():
            pass
        (tmp_path / "lock").unlink()
    with lock.turn():
        assert count() == 1
    del lock
    assert count() == 0


def waiters() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "thresher-turn"}


def test_queueing_threads_leave_at_most_one_waiter_each(tmp_path: Path) -> None:
    before = waiters()  # of other tests: they may end meanwhile
    holder, locks = FileLock(tmp_path / "lock"), [FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")]

    def queue_up(lock: FileLock) -> None:
        with lock.turn(patience=60) as held:
            assert held

    for _ in range(3):
        with ThreadPoolExecutor(4) as pool:
            with holder.turn() as held:
                assert held
                queued = [pool.submit(queue_up, locks[k % 2]) for k in range(4)]
                until(lambda: len(waiters() - before) == 4)
            for future in queued:
                future.result()
        assert len(waiters() - before) == 4, "the next round uses the same ones"
    for lock in (holder, *locks):
        lock.close()
    until(lambda: waiters() <= before)
    assert handles_of(tmp_path / "lock") == 0


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def handles_of(file: Path) -> int:
    """How many descriptors of this process are open on a file."""
    found = 0
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # closed meanwhile by another thread
            found += link.readlink() == file
    return found


def test_a_holder_that_hangs_costs_the_others_one_thread_however_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "BUSY_WITHOUT_TURN", 0.0)
    monkeypatch.setattr(locks, "TURN", 0.01)
    holder, other, before = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock"), waiters()
    with holder.turn():
        handles = handles_of(tmp_path / "lock")
        for _ in range(20):
            with other.turn(patience=0.01) as held:
                assert not held
        assert len(waiters() - before) == 1
        assert handles_of(tmp_path / "lock") <= handles + 1
    until(lambda: waiters() <= before)
    with other.turn() as held:
        assert held


def test_two_agents_without_turns_still_leave_no_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The primary key alone keeps the log in order."""
    url = f"sqlite:///{tmp_path}/thresher.db"
    study = thresher.create_study("s", arms=["a", "b"], at_least=0.5, budget=1000, storage=url)
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
    assert peek_study(study, lambda ledger: (ledger.issued, ledger.told, ledger.pending)) == (160, 160, 0)
    study.store.close()
