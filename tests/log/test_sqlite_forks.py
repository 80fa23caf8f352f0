"""Processes that fork while an SQLite store is open: the parent goes on, and the child has a connection of its own."""

import contextlib
import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest
import storm
from sqlite_files import make

import thresher
from thresher.errors import StoreFailed
from thresher.log import locks

CONTEXT = multiprocessing.get_context("fork")

STORM = """
import os, sys, threading, thresher
study = thresher.create_study("s", arms=["a"], at_least=0.5, budget=10**6, confidence=None, storage=sys.argv[1])
diary = os.open(sys.argv[2], os.O_CREAT | os.O_APPEND | os.O_WRONLY)
over = threading.Event()
def work(study, count):
    for _ in range(count):
        pull = study.ask()
        study.tell(pull, 1)
        os.write(diary, f"{pull.id}\\n".encode())
def work_on():
    while not over.is_set():
        work(study, 1)
def open_again():  # and leave closing to the garbage collector
    while not over.is_set():
        work(thresher.open_study("s", storage=sys.argv[1]), 1)
def fork():
    for turn in range(15):
        child = os.fork()
        if child == 0:
            try:
                work(study if turn % 2 else thresher.open_study("s", storage=sys.argv[1]), 3)
                if turn % 3:
                    study.store.close()
                os._exit(0)
            except BaseException as error:
                os.write(2, repr(error).encode())
                os._exit(1)
        if turn % 4:
            assert os.waitpid(child, 0)[1] == 0
workers = [threading.Thread(target=target) for target in (work_on, work_on, open_again)]
forks = [threading.Thread(target=fork) for _ in range(2)]
for thread in (*workers, *forks):
    thread.start()
for thread in forks:
    thread.join()
over.set()
for thread in workers:
    thread.join()
"""


@pytest.mark.parametrize("options", ["", "?durability=normal"])
def test_threads_that_fork_while_others_write_lose_nothing_that_was_acknowledged(tmp_path: Path, options: str) -> None:
    """Half of the children use the study of their parent, the others open it again."""
    url, diary = f"sqlite:///{tmp_path}/s.db{options}", tmp_path / "diary"
    argv = [sys.executable, "-W", "ignore", "-c", STORM, url, str(diary)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    acknowledged = [int(line) for line in diary.read_text().split()]
    assert len(acknowledged) >= 2 * 15 * 3
    study = thresher.open_study("s", storage=url)
    told = [event.pull for event in study.events() if event.kind == "told"]
    assert sorted(acknowledged) == sorted(told)  # type: ignore[type-var]
    assert study.store.describe()["check"] == "sound"
    study.store.close()


def exit_code_of(work: Callable[[], int]) -> int:
    """What ``work`` returns in a forked child."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(work())
        finally:
            os._exit(99)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def open_in(folder: Path) -> int:
    """How many files of a folder this process has open, without the lock of the writers' queue."""
    links = [Path(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")]  # noqa: PTH208
    files = [link.readlink() for link in links if link.is_symlink()]
    return sum(file.is_relative_to(folder) and not file.name.endswith("-lock") for file in files)


def test_a_child_closes_what_it_inherited_and_its_parent_does_not(tmp_path: Path) -> None:
    """SQLite would believe that the child has the locks of its parent, which the system does not pass on."""
    study = make(tmp_path / "s.db")
    assert study.ask()
    before = open_in(tmp_path)
    assert before
    assert exit_code_of(lambda: open_in(tmp_path)) == 0
    assert open_in(tmp_path) == before
    assert study.ask()
    study.store.close()


def test_a_store_that_becomes_garbage_is_closed_in_a_child(tmp_path: Path) -> None:
    """The garbage collector clears weak references before it calls ``__del__``: here the fork is between the two."""
    inherited: list[int] = []
    store = make(tmp_path / "s.db").store
    weakref.finalize(store, lambda: inherited.append(exit_code_of(lambda: open_in(tmp_path))))
    store.itself = store  # type: ignore[attr-defined]  # only the garbage collector finds it
    del store
    gc.collect()
    assert inherited == [0]


def test_the_last_process_to_leave_is_the_one_that_removes_the_log(tmp_path: Path) -> None:
    """A child without locks would let its parent remove a log that the child still writes to."""
    study = make(tmp_path / "s.db")
    closed, over = CONTEXT.Event(), CONTEXT.Event()

    def work() -> None:
        study.ask()
        over.set()
        closed.wait(60)
        study.ask()
        os._exit(0)  # without closing

    child = CONTEXT.Process(target=work)
    child.start()
    assert over.wait(60)
    study.store.close()
    closed.set()
    child.join(60)
    assert child.exitcode == 0
    assert len(study.events()) == 3
    study.store.close()
    assert not (tmp_path / "s.db-wal").exists()


def test_a_fork_between_writing_and_flushing_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = make(tmp_path / "s.db")
    store, append = study.store, study.store.append

    def and_fork(*args: object, **options: object) -> None:
        append(*args, **options)  # type: ignore[arg-type]
        assert exit_code_of(lambda: 0) == 0

    monkeypatch.setattr(store, "append", and_fork)
    assert study.ask()
    monkeypatch.undo()
    assert len(study.events()) == 2
    store.close()


@pytest.fixture
def waits(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Callable[[], bool]:
    """Whether a thread of this process waits for another process inside SQLite."""
    monkeypatch.setattr(locks, "SAID_AFTER", 0.0)
    return lambda: "to finish writing" in caplog.text


@contextlib.contextmanager
def written_by_another(file: Path) -> Iterator[apsw.Connection]:
    """While another connection writes, all of thresher wait."""
    with contextlib.closing(apsw.Connection(str(file))) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield connection


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # later versions of Python warn of forks beside threads
def test_a_fork_waits_for_a_thread_that_uses_the_store(tmp_path: Path, waits: Callable[[], bool]) -> None:
    file = tmp_path / "s.db"
    study = make(file)
    with written_by_another(file) as writer:
        thread = threading.Thread(target=study.ask)
        thread.start()
        storm.until(waits, 60)
        threading.Timer(0.3, writer.close).start()
        assert exit_code_of(lambda: int(study.ask() is None)) == 0
    thread.join(60)
    assert len(study.events()) == 3
    study.store.close()


def test_a_store_that_waits_for_another_process_blocks_no_other_store(
    tmp_path: Path, waits: Callable[[], bool]
) -> None:
    file = tmp_path / "s.db"
    study = make(file)
    with thresher.open_study("s", storage=file) as reader, written_by_another(file):
        thread = threading.Thread(target=study.ask)
        thread.start()
        storm.until(waits, 60)
        assert reader.verdict().issued == 0
        assert len(reader.events()) == 1
        assert thread.is_alive(), "it still waits"
    thread.join(60)
    assert len(study.events()) == 2
    study.store.close()


def is_refused(study: thresher.Study, file: Path) -> int:
    """0 if a process can use a file of SQLite neither as before nor by opening it again, and is told so."""
    uses: list[Callable[[], object]] = [study.verdict, lambda: thresher.open_study("s", storage=file)]
    for use in uses:
        try:
            use()
        except StoreFailed as error:
            if "forked in the middle of its parent's use of SQLite; start it in another way" not in str(error):
                return 1
        else:
            return 2
    return 0


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Python says that it ignores Ctrl-C
def test_after_a_fork_that_was_interrupted_the_parent_goes_on_and_the_child_is_refused(
    tmp_path: Path, waits: Callable[[], bool]
) -> None:
    """Ctrl-C ends the wait of the fork, and Python forks all the same."""
    file = tmp_path / "s.db"
    study = make(file)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        with written_by_another(file):
            thread = threading.Thread(target=study.ask)
            thread.start()
            storm.until(waits, 60)
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            assert exit_code_of(lambda: is_refused(study, file)) == 0
    finally:
        signal.signal(signal.SIGALRM, before)
    thread.join(60)
    assert study.ask()
    assert len(study.events()) == 3
    study.store.close()


def test_after_a_fork_by_a_signal_handler_in_a_write_the_parent_goes_on_and_the_child_is_refused(
    tmp_path: Path,
) -> None:
    file, statuses = tmp_path / "s.db", list[int]()
    study = make(file)
    with written_by_another(file) as writer:

        def handle(*_: object) -> None:
            statuses.append(exit_code_of(lambda: is_refused(study, file)))
            writer.close()

        before = signal.signal(signal.SIGALRM, handle)
        signal.setitimer(signal.ITIMER_REAL, 0.2)  # `ask` waits for up to a minute
        try:
            assert study.ask()
        finally:
            signal.signal(signal.SIGALRM, before)
    assert statuses == [0]
    assert len(study.events()) == 2
    study.store.close()


def test_processes_of_a_pool_that_forks_use_the_study_of_their_parent(tmp_path: Path) -> None:
    study = make(tmp_path / "s.db")
    study.ask()

    def work() -> None:
        study.tell(study.ask() or 0, 1.0)

    children = [CONTEXT.Process(target=work) for _ in range(4)]
    for child in children:
        child.start()
    study.ask()
    for child in children:
        child.join(60)
    assert [child.exitcode for child in children] == [0] * 4
    assert (study.verdict().issued, study.verdict().told) == (6, 4)
    study.store.close()
