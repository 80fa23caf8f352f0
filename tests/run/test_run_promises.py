"""Small promises of a run: its reports, its handlers and its commands."""

import contextlib
import os
import signal
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from engines import make

import thresher
from thresher.log.store import MemoryStore
from thresher.run.command.process import Command
from thresher.run.command.reward import CommandFailed, read_reward
from thresher.run.engines.local import LocalThreads
from thresher.run.loop import Limits, run_loop_on
from thresher.study import Pull

PULL = Pull(1, "a", 1, {}, 7)


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


def test_a_signal_that_comes_while_the_engine_is_closed_takes_effect() -> None:
    class Closing(LocalThreads):
        def close(self, *, wait: bool) -> None:
            super().close(wait=wait)
            signal.raise_signal(signal.SIGINT)

    study = make("a", budget=4)
    with pytest.raises(KeyboardInterrupt):
        run_loop_on(Closing(lambda _: 0.5, 1), study, Limits(), None)
    assert study.verdict().told == 4


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


# -- writing ---------------------------------------------------------------------------------------------------------


class CountingAppends(MemoryStore):
    appends = 0

    def append(self, *args: Any, **options: Any) -> None:
        self.appends += 1
        super().append(*args, **options)


def test_what_came_back_and_what_is_asked_for_next_is_one_write() -> None:
    store = CountingAppends()
    study = make(budget=50, storage=store, confidence=None)
    thresher.run(study, lambda pull: 0.5, workers=1)
    assert store.appends <= 1 + 1 + 50, "the study, the first pull, and then each reward with the next pull"


def fails_at_three_rewards(gap: float, scatter: float, seen: int, weight: float, exploration: float) -> float:
    if seen >= 3:
        raise ValueError("three are too many")
    return weight


def test_rewards_are_recorded_even_if_the_next_ask_fails() -> None:
    study = make(budget=50, policy=thresher.custom(fails_at_three_rewards))
    with pytest.raises(thresher.ScoreFailed):
        thresher.run(study, lambda pull: 0.5, workers=1)
    rows = study.pulls()
    assert len(rows) >= 5
    assert all(row.reward == 0.5 for row in rows)
