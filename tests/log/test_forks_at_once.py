"""Forks, truncated logs and lost answers: nothing hangs, and nothing is acknowledged that was not written."""

import gc
import os
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path

import pytest

import thresher
from thresher.core.events import Event
from thresher.core.spec import Spec
from thresher.errors import Interrupted, StoreFailed
from thresher.log.chain import chained
from thresher.log.store import MemoryStore, open_store

FORKING = """
import os, sys, threading, thresher
study = thresher.create_study("s", arms=["a"], at_least=0.5, budget=10**6, confidence=None, storage=sys.argv[1])
def fork():
    for _ in range(60):
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
threads = [threading.Thread(target=fork) for _ in range(2)]
for thread in threads:
    thread.start()
for _ in range(60):
    study.tell(study.ask(), 1)
for thread in threads:
    thread.join()
print(study.verdict().told)
"""


def test_two_threads_that_fork_at_once_do_not_lock_the_store(tmp_path: Path) -> None:
    argv = [sys.executable, "-W", "ignore", "-c", FORKING, f"sqlite:///{tmp_path}/s.db?durability=normal"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "60\n"), done.stderr


def test_a_forked_child_inherits_no_open_file_of_a_store(tmp_path: Path) -> None:
    """SQLite would believe that the child has the locks of its parent, which the system does not pass on."""
    study = thresher.create_study("s", arms=["a"], at_least=0.5, budget=9, storage=tmp_path / "s.db")
    assert study.ask() is not None

    def inherited() -> list[Path]:
        links = [Path(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")]  # noqa: PTH208
        files = [link.readlink() for link in links if link.is_symlink()]
        return [file for file in files if file.is_relative_to(tmp_path)]

    assert inherited()
    child = os.fork()
    if child == 0:
        os._exit(len(inherited()))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert study.ask() is not None
    study.store.close()


OPENING = """
import os, sys, threading
from pathlib import Path
from thresher.log.sqlite import SqliteStore
sys.setswitchinterval(1e-6)
sys.unraisablehook = lambda error: print(error.exc_value)  # what a fork ignores
stores, is_over = [], threading.Event()
def open_stores():
    while not is_over.is_set():
        stores.append(SqliteStore(Path(sys.argv[1])))
        if len(stores) > 300:
            stores.clear()
thread = threading.Thread(target=open_stores)
thread.start()
for _ in range(200):
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
is_over.set()
thread.join()
"""


def test_a_fork_finds_all_stores_while_another_thread_opens_some(tmp_path: Path) -> None:
    argv = [sys.executable, "-W", "ignore", "-c", OPENING, str(tmp_path / "s.db")]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def inherited_by_a_child(folder: Path) -> int:
    """How many of SQLite's files in the folder are open in a forked child."""
    child = os.fork()
    if child == 0:
        links = [Path(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")]  # noqa: PTH208
        files = [link.readlink() for link in links if link.is_symlink()]
        os._exit(sum(file.is_relative_to(folder) and not file.name.endswith("-lock") for file in files))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # later versions of Python warn of forks beside threads
def test_a_store_that_is_opened_while_a_fork_waits_is_not_open_in_the_child(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    first = thresher.create_study("s", arms=["a"], at_least=0.5, budget=9, storage=url)
    busy, waits, over = threading.Event(), threading.Event(), threading.Event()
    opened: list[thresher.Study] = []

    def use() -> None:
        with first.store._use():  # type: ignore[attr-defined]  # a long read
            busy.set()
            over.wait(60)

    def open_another() -> None:
        waits.wait(60)
        threading.Timer(0.2, over.set).start()
        opened.append(thresher.open_study("s", storage=url))
        assert opened[0].ask()

    threads = [threading.Thread(target=target) for target in (use, open_another)]
    for thread in threads:
        thread.start()
    busy.wait(60)
    waits.set()  # from here on, the fork waits for the long read, and the other thread opens a store
    assert inherited_by_a_child(tmp_path) == 0
    for thread in threads:
        thread.join(60)
    for study in (first, *opened):
        study.store.close()


def test_a_store_that_becomes_garbage_is_closed_in_a_child(tmp_path: Path) -> None:
    """The garbage collector clears weak references before it calls ``__del__``: here the fork is between the two."""
    inherited: list[int] = []
    store = open_store(f"sqlite:///{tmp_path}/s.db")
    thresher.create_study("s", arms=["a"], at_least=0.5, budget=9, storage=store).ask()
    weakref.finalize(store, lambda: inherited.append(inherited_by_a_child(tmp_path)))
    store.itself = store  # type: ignore[attr-defined]  # only the garbage collector finds it
    del store
    gc.collect()
    assert inherited == [0]


@pytest.mark.parametrize("size", [0, 32])
def test_a_log_that_is_truncated_or_overwritten_in_place_is_noticed(tmp_path: Path, size: int) -> None:
    study = thresher.create_study(
        "s", arms=["a"], at_least=0.5, budget=100, confidence=None, storage=f"sqlite:///{tmp_path}/s.db"
    )
    for _ in range(20):
        study.tell(study.ask() or 0, 1)
    handle = os.open(tmp_path / "s.db-wal", os.O_WRONLY)
    if size:
        os.pwrite(handle, bytes(size), 0)
    else:
        os.ftruncate(handle, 0)
    os.close(handle)

    def go_on() -> None:
        for _ in range(20):
            study.tell(study.ask() or 0, 1)

    with pytest.raises(StoreFailed, match="truncated or overwritten while in use"):
        go_on()


class Losing(MemoryStore):
    """A server that loses, in a crash, the reward that it had not flushed; event 1 has no key."""

    crashes = False

    def read(self, study: str, after: int = 0, limit: int | None = None) -> Sequence[Event]:
        return super().read(study, max(0, after), limit)

    def flush(self) -> None:
        if self.crashes:
            self.crashes = False
            self.logs["s"].pop()
            raise Interrupted("storage", rule="the connection was lost after writing")


def test_a_repeated_tell_whose_reward_is_gone_is_written_again() -> None:
    store = Losing()
    spec = Spec(arms=["a"], at_least=0.5, budget=9, confidence=None, seed=7)
    store.append("s", chained([Event(1, "created", spec=spec.to_json())]))
    study = thresher.open_study("s", storage=store)
    pull = study.ask() or pytest.fail("no pull")
    thresher.open_study("s", storage=store).tell(pull, 1)  # and dies before it is flushed
    store.crashes = True
    study.tell(pull, 1)
    assert [event.kind for event in store.read("s")] == ["created", "asked", "told"]


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # Python says that it ignores the interrupt
def test_an_interrupt_while_a_fork_waits_for_the_store_leaves_it_usable(tmp_path: Path) -> None:
    study = thresher.create_study(
        "s", arms=["a"], at_least=0.5, budget=100, confidence=None, storage=f"sqlite:///{tmp_path}/s.db"
    )
    study.tell(study.ask() or 0, 1)
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with study.store._lock:  # type: ignore[attr-defined]
            held.set()
            release.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(60)
    alarm = signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
    threading.Timer(1.0, release.set).start()
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGALRM, alarm)
    holder.join()
    study.tell(study.ask() or 0, 1)
    assert study.verdict().told == 2
