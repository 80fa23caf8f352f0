"""Persistent evaluators that die, hang, talk nonsense or answer in any order."""

import os
import select
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import stayer
from engines import Clock, causes, make, until
from piped import timed_by
from program import runs

import thresher
from thresher import Pull
from thresher.errors import Busy, EvaluationFailed, NoReward
from thresher.run.command import persistent
from thresher.run.command.persistent import PersistentEvaluator
from thresher.run.command.reward import TimedOut
from thresher.run.failures import EvaluatorLost

PATIENCE = 20.0


def pull(number: int, arm: str = "a") -> Pull:
    return Pull(number, arm, number, {}, 2**31)


def answers(evaluate: Any, arms: list[str]) -> dict[int, Any]:
    """What becomes of pulls of these arms that are evaluated at once, by id from 1."""
    ready = threading.Barrier(len(arms))  # no thread makes two pulls

    def evaluate_together(one: Pull) -> Any:
        ready.wait(PATIENCE)
        return evaluate(one)

    with ThreadPoolExecutor(len(arms)) as pool:
        futures = {at: pool.submit(evaluate_together, pull(at, arm)) for at, arm in enumerate(arms, start=1)}
        return {at: future.exception(PATIENCE) or future.result() for at, future in futures.items()}


def test_answers_may_come_in_any_order() -> None:
    evaluate = stayer.evaluator("greet", per_process=4, timeout=PATIENCE)
    assert answers(evaluate, ["held"] * 4) == dict.fromkeys(range(1, 5), 0.5)
    evaluate.stop()


def test_a_silent_process_is_mentioned_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(persistent, "SILENT", 0.1)
    argv = (sys.executable, "-c", "import sys; print(len(sys.stdin.read()))")  # waits for the end of its input
    evaluate = PersistentEvaluator(argv, timeout=0.6)
    errors = answers(evaluate, ["a", "b"])
    assert all("0.6" in str(error) for error in errors.values())
    warnings = [record.getMessage() for record in caplog.records if "printed nothing" in record.getMessage()]
    assert len(warnings) == 1
    assert "flush after each line" in warnings[0]
    evaluate.stop()


def test_a_process_gets_as_many_pulls_as_asked_for_and_another_gets_the_next() -> None:
    evaluate = stayer.evaluator("greet", per_process=4, timeout=PATIENCE)
    assert set(answers(evaluate, ["held"] * 8).values()) == {0.5}  # each process answers four at once
    evaluate.stop()


@pytest.mark.parametrize("arm", ["dies", "garbage"])
def test_pulls_that_are_lost_together_say_so_and_the_next_finds_a_new_process(arm: str) -> None:
    evaluate = stayer.evaluator("greet", "three", per_process=3, timeout=PATIENCE)
    errors = answers(evaluate, ["held", "held", arm])
    assert {type(error) for error in errors.values()} == {EvaluatorLost}
    assert {lost.arm for error in errors.values() for lost in error.together} == {"held", arm}
    assert evaluate(pull(4)) == 0.5
    evaluate.stop()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The time of timeouts, which a test moves on."""
    return timed_by(Clock(), monkeypatch)


class Polls:
    """In place of `select`: counts the threads that wait for output. These look at the time when some comes."""

    POLLIN, POLLOUT = select.POLLIN, select.POLLOUT

    def __init__(self) -> None:
        self.waiting = 0

    def poll(self) -> Any:
        files = select.poll()

        def wait(milliseconds: float | None) -> list[tuple[int, int]]:
            waits = milliseconds is None or milliseconds > 0
            self.waiting += waits
            try:
                return files.poll(milliseconds)
            finally:
                self.waiting -= waits

        return SimpleNamespace(register=files.register, poll=wait)


def test_of_pulls_that_a_hung_process_holds_none_has_failed_unless_it_is_alone(
    clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    polls = Polls()
    monkeypatch.setattr(persistent, "select", polls)
    evaluate = stayer.evaluator("greet", "noted", str(tmp_path), per_process=3, timeout=PATIENCE)
    with ThreadPoolExecutor(2) as pool:
        assert evaluate(pull(1)) == 0.5
        hangs = pool.submit(evaluate, pull(2, "held"))
        until(lambda: polls.waiting == 1, "the pull that hangs")
        clock.ahead = PATIENCE / 2
        waits = pool.submit(evaluate, pull(3, "held"))
        until((tmp_path / "3").exists, "its neighbour")
        clock.ahead = PATIENCE
        assert evaluate(pull(4)) == 0.5  # whoever reads this answer looks at the time
        for error in (hangs.exception(PATIENCE), waits.exception(PATIENCE)):
            assert isinstance(error, EvaluatorLost)
            assert "timed out after 20 s" in str(error)
            assert [lost.id for lost in error.together] == [2, 3]
        assert evaluate(pull(5)) == 0.5
        alone = pool.submit(evaluate, pull(6, "held"))
        until(lambda: polls.waiting == 1, "a pull without neighbours")
        clock.ahead = 3 * PATIENCE
        assert evaluate(pull(7)) == 0.5
        assert isinstance(alone.exception(PATIENCE), TimedOut)
    evaluate.stop()


@pytest.mark.parametrize("arm", ["hangs", "hangs sometimes"])
def test_a_process_that_hangs_retires_no_innocent_arm(arm: str) -> None:
    """Eight pulls are written at the same moment, and so are overdue at the same moment."""
    study = make(arm, *"bcdefgh", budget=80, seed=3)
    evaluate = stayer.evaluator(per_process=8, timeout=0.5)
    verdict = thresher.run(study, evaluate, workers=8)
    evaluate.stop()
    assert "broken-pool" in causes(study)
    assert set(verdict.retired) <= {arm}
    if arm == "hangs":
        assert verdict.retired == [arm]  # alone, it fails


class Seen(Clock):
    """A clock that knows how many threads have looked at it."""

    def __init__(self) -> None:
        super().__init__()
        self.threads = set[int]()

    def monotonic(self) -> float:
        now = super().monotonic()
        self.threads.add(threading.get_ident())
        return now


def test_the_time_of_a_pull_begins_when_it_is_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    clock = timed_by(Seen(), monkeypatch)
    evaluate = stayer.evaluator("noted", str(tmp_path), per_process=6, timeout=PATIENCE)
    with ThreadPoolExecutor(5) as pool:
        try:
            first = pool.submit(evaluate, pull(1, "waits"))
            until((tmp_path / "1").exists, "the first pull")
            second = pool.submit(evaluate, pull(2, "held"))
            until(lambda: len(clock.threads) == 2, "the pull that waits for the first line of the process")
            clock.ahead = PATIENCE / 2
            (tmp_path / "go").touch()
            assert first.result(PATIENCE) == 0.5
            until((tmp_path / "2").exists, "the pull that waited")
            clock.ahead = 1.2 * PATIENCE
            assert evaluate(pull(3)) == 0.5  # whoever reads this answer looks at the time
            others = [pool.submit(evaluate, pull(number, "held")) for number in (4, 5, 6)]
            assert [future.result(PATIENCE) for future in (second, *others)] == [0.5] * 4
        finally:
            evaluate.stop()


def test_a_pull_times_out_though_its_evaluator_prints_without_end(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    evaluate = stayer.evaluator(timeout=PATIENCE)
    assert evaluate(pull(1)) == 0.5
    with ThreadPoolExecutor(1) as pool:
        floods = pool.submit(evaluate, pull(2, "floods"))
        try:
            until(lambda: "was not pending" in caplog.text, "the flood")
            clock.ahead = PATIENCE
            assert "timed out after 20 s" in str(floods.exception(PATIENCE))
        finally:
            evaluate.stop()


def test_a_killed_process_fails_its_only_pull_and_quotes_what_it_said_last() -> None:
    evaluate = stayer.evaluator()
    with pytest.raises(EvaluationFailed, match="the evaluator exited with 1: 'out of memory'"):
        evaluate(pull(1, "exits"))
    with pytest.raises(EvaluationFailed, match="the evaluator was ended by SIGKILL"):
        evaluate(pull(2, "dies"))
    evaluate.stop()


def test_a_process_that_dies_idle_is_replaced_without_a_failure() -> None:
    evaluate = stayer.evaluator()
    for number in range(1, 4):
        pid = int(evaluate(pull(number)).note)
        os.kill(pid, signal.SIGKILL)
        until(lambda pid=pid: not runs(pid), "its death")  # type: ignore[misc]
    assert int(evaluate(pull(4)).note) != pid
    evaluate.stop()


WRONG = {
    "garbage": "printed a line that is not JSON: 'loading the model …'",
    "wrong": """its answer has a reward that is not a number: '{"pull": 1, "reward": "high"}'""",
    "error": "no such model",
}


@pytest.mark.parametrize("arm", WRONG)
def test_a_wrong_answer_is_quoted(arm: str) -> None:
    evaluate = stayer.evaluator()
    with pytest.raises(EvaluationFailed) as caught:
        evaluate(pull(1, arm))
    assert WRONG[arm] in str(caught.value)
    assert isinstance(caught.value, NoReward) == (arm == "wrong")
    assert evaluate(pull(2)) == 0.5
    evaluate.stop()


def test_a_busy_evaluator_is_asked_again() -> None:
    evaluate = stayer.evaluator()
    with pytest.raises(Busy) as caught:
        evaluate(pull(1, "busy"))
    assert caught.value.after == 0.001
    assert evaluate(pull(1, "busy")) == 0.5
    study = make("busy", "a", budget=20)
    verdict = thresher.run(study, evaluate, workers=2)
    evaluate.stop()
    assert (verdict.told, causes(study)) == (20, [])
    assert {event.cause for event in study.events() if event.kind == "told" and event.arm == 0} == {"repeatable"}


def test_the_first_of_two_answers_counts() -> None:
    evaluate = stayer.evaluator()
    study = make("twice", "a", budget=40)
    thresher.run(study, evaluate, workers=1)
    evaluate.stop()
    assert [row.reward for row in study.pulls()] == [row.seed / 2**32 for row in study.pulls()]


def test_an_arm_that_kills_a_shared_process_is_found(tmp_path: Path) -> None:
    study = make("a", "b", "dies", "c", budget=120)
    evaluate = stayer.evaluator("shared", str(tmp_path), per_process=4)
    verdict = thresher.run(study, evaluate, workers=4)
    evaluate.stop()
    assert verdict.retired == ["dies"]
    assert verdict.pending == 0
    assert set(causes(study)) == {"failed", "broken-pool"}


@pytest.mark.parametrize("per_process", [1, 8])
def test_an_evaluator_that_cannot_start_ends_the_run_at_once(per_process: int) -> None:
    study, evaluate = make("a", "b", "c", "d"), stayer.evaluator("crash", per_process=per_process)
    with pytest.raises(thresher.CannotGoOn, match="No module named 'torch'"):
        thresher.run(study, evaluate, workers=2 * per_process)
    evaluate.stop()
    assert study.verdict().retired == []


def test_the_processes_die_with_a_killed_worker(tmp_path: Path) -> None:
    study, evaluate = make("a", "b", budget=40), stayer.evaluator()

    def kill(pull: Pull) -> object:
        value = evaluate(pull)
        if pull.id == 20:
            os.kill(os.getpid(), signal.SIGKILL)
        return value

    thresher.run(study, kill, workers=1, executor="processes")
    notes = {int(row.note) for row in study.pulls() if row.note}
    assert len(notes) == 2
    until(lambda: not any(map(runs, notes)), "their end")


LONG = Pull(1, "a", 1, {"text": "x" * 1_000_000}, 2**31)  # its line is larger than a pipe


@pytest.mark.parametrize("timeout", [PATIENCE, None])
def test_a_line_that_is_larger_than_a_pipe_is_written_whole(timeout: float | None) -> None:
    evaluate = stayer.evaluator(timeout=timeout)
    assert evaluate(LONG) == 0.5
    evaluate.stop()


def test_a_pull_that_its_evaluator_does_not_read_times_out_and_its_death_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(persistent, "LAST_BREATH", PATIENCE + 5)
    evaluate = PersistentEvaluator(("sleep", "600"), timeout=0.1)
    with ThreadPoolExecutor(1) as pool:
        error = pool.submit(evaluate, LONG).exception(PATIENCE)
    assert "timed out after 0.1 s" in str(error)
    evaluate.stop()
