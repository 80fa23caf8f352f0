"""Small promises of a run: its reports, its handlers and its commands."""

import contextlib
import os
import queue
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from engines import causes, make

import thresher
from thresher.errors import CannotGoOn
from thresher.log.store import MemoryStore
from thresher.run import failures as starting
from thresher.run import runner as progress
from thresher.run import signals
from thresher.run.command import guard
from thresher.run.command.exit_status import CommandFailed
from thresher.run.command.process import Command
from thresher.run.command.reward import read_reward
from thresher.run.engines import Engine
from thresher.run.engines.local import Threads
from thresher.run.loop import Runner
from thresher.run.lost_workers import NoWorkers
from thresher.run.runner import Limits, run_on
from thresher.study import SWEEP, Pull

PULL = Pull(1, "a", 1, {}, 7)

# -- reports ---------------------------------------------------------------------------------------------------------


def test_the_rate_is_that_of_the_last_hundred_reports() -> None:
    meter = progress.Meter(make(), None, None)
    for now, told in enumerate([0] * 20 + [50] + list(range(61, 160))):  # a report a second
        ledger: Any = SimpleNamespace(told=told, issued=told, pending=0, certified=0, left=218)
        report = meter._read(ledger, float(now))
    assert (report.rate, report.seconds_left) == (109 / 99, 198.0)


def test_progress_is_reported_while_a_pull_takes_long() -> None:
    seen: list[int] = []
    enough = threading.Event()

    def note(report: progress.Progress) -> None:
        seen.append(report.pending)
        if len(seen) > 3:
            enough.set()

    assert thresher.run(make("a", budget=2), lambda _: enough.wait(10), workers=1, on_progress=note).told == 2
    assert enough.is_set()
    assert seen[:3] == [1, 1, 1]


# -- waiting ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[Runner]:
    """A run that has not begun, of a study whose pulls have leases."""
    study = make(budget=200, storage=tmp_path / "thresher.db")
    engine = Threads(lambda _: 0.5, 12)
    yield Runner(study, engine, Limits(), None)
    engine.close(wait=True)
    study.store.close()


def test_a_run_that_waits_looks_for_dead_agents_every_second(runner: Runner) -> None:
    runner._sweep()
    assert 0 < runner._patience() <= SWEEP


def test_an_outage_needs_two_failures_of_every_worker(runner: Runner) -> None:
    assert runner._has_workers(0.0)
    assert runner._watch.window == 24 > starting.WINDOW


def test_a_time_without_workers_is_limited() -> None:
    missing = NoWorkers("worker", 5.0)
    assert [missing.is_over(workers, now) for workers, now in [(1, 0.0), (0, 1.0), (0, 5.9)]] == [True, False, False]
    with pytest.raises(CannotGoOn, match="there was no worker for 5 s"):
        missing.is_over(0, 6.0)
    assert missing.is_over(1, 7.0)
    assert not missing.is_over(0, 8.0), "it begins anew"


def test_no_engine_is_started_for_a_study_that_cannot_be_read() -> None:
    study, made = make(storage=MemoryStore()), []

    def pool() -> Executor:
        made.append(True)
        return ThreadPoolExecutor(1)

    study.store.delete("s")
    with pytest.raises(thresher.StudyDeleted):
        thresher.run(study, lambda _: 0.5, executor=pool)
    assert made == []


@pytest.mark.parametrize("is_ours", [True, False])
def test_only_an_executor_that_the_run_has_made_is_shut_down(is_ours: bool) -> None:
    with ThreadPoolExecutor(1) as pool:
        thresher.run(make(budget=4), lambda _: 0.5, executor=(lambda: pool) if is_ours else pool)
        with pytest.raises(RuntimeError, match="after shutdown") if is_ours else contextlib.nullcontext():
            pool.submit(int)


def test_a_reward_outside_the_bounds_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    study = make("a", "b", budget=8)
    verdict = thresher.run(study, lambda pull: 7.0 if pull.arm == "b" else 0.5, workers=1)
    assert verdict.retired == ["b"]
    assert any("7.0" in record.getMessage() for record in caplog.records)


# -- stopping --------------------------------------------------------------------------------------------------------


class Half(Engine):
    """Begins every other pull at once, and the others never."""

    def __init__(self) -> None:
        super().__init__(4)
        self.futures: list[Future[object]] = []

    def submit(self, pull: Pull) -> "Future[object]":
        self.futures.append(Future())
        if len(self.futures) % 2:
            self.futures[-1].set_running_or_notify_cancel()
        return self.futures[-1]

    def stop(self, future: "Future[object]") -> None:
        raise AssertionError("nothing has a timeout")

    def close(self, *, wait: bool) -> None:
        self.waited = wait


def test_the_first_signal_takes_back_what_has_not_begun_and_says_what_is_left(
    caplog: pytest.LogCaptureFixture,
) -> None:
    study, engine = make(budget=20), Half()
    runner = Runner(study, engine, Limits(), None)
    runner._hand_out()
    runner._caught(signal.SIGINT)
    assert causes(study) == ["cancelled"] * 2
    assert "stopping: waiting for 2 pending pulls; press Ctrl-C again to abandon them" in caplog.text
    assert not runner._hand_out()
    engine.futures[0].set_result(0.5)
    runner._take_in()
    runner._caught(signal.SIGTERM)
    assert causes(study) == ["cancelled"] * 2 + ["lost"]
    runner._clean_up()
    assert (runner.signal, engine.waited, study.verdict().told) == (signal.SIGINT, False, 1)


def test_outside_a_run_a_closed_terminal_does_not_wait_either() -> None:
    inbox: queue.SimpleQueue[object] = queue.SimpleQueue()
    with signals.into(inbox):
        signals._hang_up(signal.SIGHUP, None)
    found = [inbox.get(timeout=20), inbox.get(timeout=20)]
    assert found == [signal.SIGTERM] * 2  # the second abandons them


def test_a_signal_that_comes_while_the_engine_is_closed_takes_effect() -> None:
    class Closing(Threads):
        def close(self, *, wait: bool) -> None:
            super().close(wait=wait)
            signal.raise_signal(signal.SIGINT)

    study = make("a", budget=4)
    with pytest.raises(KeyboardInterrupt):
        run_on(Closing(lambda _: 0.5, 1), study, Limits(), None)
    assert study.verdict().told == 4


# -- signals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("sent", "status"), [([signal.SIGTERM], 143), ([signal.SIGINT], 130), ([], 0)])
def test_a_stopped_job_gives_its_status_and_leaves_the_handlers_as_they_were(
    sent: list[signal.Signals], status: int
) -> None:
    before = [signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)]
    assert signals.until_stopped(lambda: list(map(signal.raise_signal, sent))) == status
    assert [signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)] == before


# -- commands --------------------------------------------------------------------------------------------------------


def test_a_command_that_times_out_is_dead_when_that_is_reported(tmp_path: Path) -> None:
    command = Command(("sh", "-c", f"echo $$ > {tmp_path}/pid; exec sleep 60"), timeout=3.0)
    with pytest.raises(CommandFailed, match=r"timed out after 3 s and was killed"):
        command(PULL)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_a_line_of_a_failed_command_is_kept_up_to_500_characters() -> None:
    with pytest.raises(CommandFailed) as caught:
        read_reward("last-float", 3, b"", b"x" * 700)
    assert caught.value.output == "x" * 500


@pytest.mark.parametrize("code", [126, 127])
def test_a_program_that_was_not_found_is_not_offered_as_a_failure(code: int) -> None:
    with pytest.raises(CommandFailed, match=f"exited with {code}: a program was not found") as caught:
        read_reward("exit-code", code, b"", b"")
    assert "--fail" not in str(caught.value)


def test_a_forked_child_does_not_keep_the_guard_of_its_parent_waiting() -> None:
    guard.GUARD.start()
    process = guard.GUARD._process
    assert process is not None
    assert process.stdin is not None
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.fstat(process.stdin.fileno())
        except OSError:
            os.write(theirs, b"closed" if guard.GUARD._process is None else b"kept")
        os._exit(0)
    os.close(theirs)
    os.waitpid(child, 0)
    with os.fdopen(ours, "rb") as answer:
        assert answer.read() == b"closed"
    os.fstat(process.stdin.fileno())
