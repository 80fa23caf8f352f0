"""How long a persistent evaluator is waited for and how it ends, with a program that is only two pipes."""

import contextlib
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from engines import until
from piped import SECONDS, Piped, Pipes, Stands, begun, failure, pull

from thresher.errors import EvaluationFailed
from thresher.run.command import persistent_process as resident
from thresher.run.command.persistent_process import Gone, Waiter
from thresher.run.command.reward import TimedOut
from thresher.run.lost_workers import EvaluatorLost
from thresher.study import Pull

# -- how long to wait ------------------------------------------------------------------------------------------------


def test_the_oldest_pull_says_how_long_to_wait(piped: Piped, still: Stands) -> None:
    one, _ = piped()
    assert one._patience() == resident.SILENT, "then a hint is due"
    one._register(1, Waiter(pull(1), 5.0))
    still.now += 1.0
    one._register(2, Waiter(pull(2), 2.0))
    assert one._patience() == 4.0
    one.spoke = True
    assert one._patience() == 4.0
    one._pending.clear()
    assert one._patience() is None
    one._register(3, Waiter(pull(3), None))
    assert one._patience() is None
    one.spoke, one._hint_at = False, None
    assert one._patience() is None


def test_output_is_read_before_a_pull_times_out(piped: Piped) -> None:
    one, pipes = piped()
    pipes.answers(1)
    assert one.evaluate(pull(1), 1, 0.0) == 0.125
    with pytest.raises(TimedOut):
        one.evaluate(pull(2), 2, 0.0)
    assert pipes.calls == [("reaped", True), "closed"]


# -- writing ---------------------------------------------------------------------------------------------------------


def test_a_pull_whose_first_byte_cannot_be_written_has_not_begun(piped: Piped) -> None:
    one, pipes = piped()
    pipes.answers(1)
    one.evaluate(pull(1), 1, None)
    pipes.stops_reading()
    with pytest.raises(Gone):
        one.evaluate(pull(2), 2, None)
    assert (one._pending, one._users, one._led) == ({}, 0, False)


def test_a_pull_that_has_not_begun_waits_for_no_other(piped: Piped, threads: ThreadPoolExecutor) -> None:
    one, pipes = piped()
    one.answered = one.spoke = True
    first = begun(threads, one, pipes, 1)
    pipes.stops_reading()
    assert isinstance(threads.submit(one.evaluate, pull(2), 2, None).exception(SECONDS), Gone)
    assert (list(one._pending), one._users) == ([1], 1)
    pipes.answers(1)
    assert first.result(SECONDS) == 0.125


def test_a_process_that_never_answered_is_not_replaced_without_a_failure(piped: Piped) -> None:
    one, pipes = piped()
    pipes.stops_reading()
    pipes.exits()
    pipes.errors = b"no model\n"
    error = failure(lambda: one.evaluate(pull(1), 1, None))
    assert str(error) == "the evaluator exited with 3: 'no model'"
    assert (error.kind, error.output) == ("the evaluator exited with 3", "no model")


@pytest.mark.parametrize("timeout", [None, SECONDS])
def test_a_line_that_was_written_in_part_has_begun(
    piped: Piped, threads: ThreadPoolExecutor, timeout: float | None
) -> None:
    one, pipes = piped()
    waiter, line = Waiter(pull(1), timeout), b"x" * 300_000
    waiter.begin()
    received: list[int] = []

    def has_arrived() -> bool:
        received.append(len(_read(pipes, 1 << 16)))
        return sum(received) == len(line)

    written = threads.submit(one._write, line, waiter)
    until(has_arrived, "the whole line")
    assert written.result(SECONDS) is True
    written = threads.submit(one._write, line, waiter)
    until(lambda: bool(_read(pipes, 1)), "the first part")
    pipes.stops_reading()
    assert written.result(SECONDS) is True
    assert one._write(b"x", waiter) is False


def _read(pipes: Pipes, size: int) -> bytes:
    with contextlib.suppress(BlockingIOError):
        return os.read(pipes.theirs, size)
    return b""


@pytest.mark.parametrize("answered", [False, True])
def test_a_process_that_reads_nothing_times_out(piped: Piped, answered: bool) -> None:
    one, pipes = piped()
    one.answered = answered
    with pytest.raises(TimedOut):
        one.evaluate(Pull(1, "a", 1, {"text": "x" * 300_000}, 7), 1, 0.01)
    assert pipes.calls == [("reaped", True), "closed"]


# -- the end ---------------------------------------------------------------------------------------------------------


def test_what_it_printed_before_it_exited_counts(piped: Piped) -> None:
    one, pipes = piped()
    pipes.answers(1)
    pipes.exits()
    assert one.evaluate(pull(1), 1, None) == 0.125
    assert pipes.calls == [("reaped", False), ("reaped", True), "closed"]
    with pytest.raises(Gone):
        one.evaluate(pull(2), 2, None)


def test_the_end_of_its_output_is_its_end(piped: Piped) -> None:
    one, pipes = piped()
    pipes.stops_printing()
    assert "exited with 3" in str(failure(lambda: one.evaluate(pull(1), 1, None)))
    assert pipes.calls[0] == ("reaped", False)


def test_where_the_system_does_not_tell_of_an_exit_the_end_of_the_output_does(piped: Piped) -> None:
    one, pipes = piped(exit_is_told=False)
    pipes.exits()
    pipes.answers(1)
    assert one.evaluate(pull(1), 1, None) == 0.125
    assert pipes.calls == []
    pipes.stops_printing()
    with pytest.raises(Gone):
        one.evaluate(pull(2), 2, None)


def test_what_it_started_may_print_without_end(piped: Piped, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[bytes] = []

    def read(file: int, size: int) -> bytes:
        reads.append(b'{"pull": 0, "reward": 0}\n')
        return reads[-1]

    one, pipes = piped()
    pipes.exits()
    monkeypatch.setattr(resident, "os", SimpleNamespace(read=read, write=os.write))
    failure(lambda: one.evaluate(pull(1), 1, None))
    assert len(reads) == resident.LEFT


def test_one_that_dies_idle_is_gone_without_a_failure(piped: Piped) -> None:
    one, pipes = piped()
    pipes.answers(1)
    one.evaluate(pull(1), 1, None)
    pipes.exits()
    with pytest.raises(Gone):
        one.evaluate(pull(2), 2, None)
    assert pipes.heard() == [1], "the second pull has not begun"


def test_what_it_did_wrong_while_it_was_idle_is_the_failure_of_the_next_pull(piped: Piped) -> None:
    one, pipes = piped()
    pipes.answers(1)
    one.evaluate(pull(1), 1, None)
    pipes.prints("done!")
    error = failure(lambda: one.evaluate(pull(2), 2, None))
    assert str(error) == "the evaluator printed a line that is not JSON: 'done!'"
    assert error.kind == "the evaluator printed a line that is not JSON"
    with pytest.raises(Gone):
        one.evaluate(pull(3), 3, None)


def test_a_line_may_be_long_but_not_without_end(piped: Piped, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resident, "LONGEST", 30)
    one, pipes = piped()
    os.write(pipes.printed, b" " * 30)
    assert one._read() is True
    assert not one.gone
    os.write(pipes.printed, b" ")
    error = failure(lambda: one.evaluate(pull(1), 1, None))
    assert str(error) == "the evaluator printed a line of more than 30 bytes"
    assert error.kind == "the evaluator printed a line that is too long"


def test_pulls_that_are_lost_together_are_named_to_each(piped: Piped, threads: ThreadPoolExecutor) -> None:
    one, pipes = piped()
    one.spoke = True
    found = [begun(threads, one, pipes, number, arm) for number, arm in ((1, "a"), (2, "b"))]
    pipes.prints("oh no", '{"pull": 1, "reward": 1}')
    for future in found:
        error = future.exception(SECONDS)
        assert isinstance(error, EvaluatorLost)
        assert "printed a line that is not JSON: 'oh no'" in str(error)
        assert [lost.arm for lost in error.together] == ["a", "b"]
    assert pipes.calls[-1] == "closed"
    assert pipes.calls.count("closed") == 1


def test_only_an_idle_process_hangs_up(piped: Piped, threads: ThreadPoolExecutor) -> None:
    one, pipes = piped()
    first = begun(threads, one, pipes, 1)
    assert not one.hang_up()
    pipes.answers(1)
    assert first.result(SECONDS) == 0.125
    assert pipes.calls == []
    until(lambda: one._users == 0, "the end of the evaluation")
    assert one.hang_up()
    assert pipes.calls == ["hung up"]
    with pytest.raises(Gone):
        one.evaluate(pull(2), 2, None)


def test_a_process_that_is_ended_has_its_time_and_loses_its_pull(piped: Piped, threads: ThreadPoolExecutor) -> None:
    one, pipes = piped()
    one.end(2.5)
    assert pipes.calls == [("waited", 2.5), ("reaped", True), "closed"]
    one, pipes = piped()
    first = begun(threads, one, pipes, 1)
    one._poll.unregister(pipes.output)
    one.end(0.0)
    assert pipes.calls == [("waited", 0.0), ("reaped", True)], "its thread still uses it"
    pipes.exits()  # as a process does that is killed
    assert isinstance(first.exception(SECONDS), EvaluationFailed)
    assert str(first.exception()) == "the evaluator was stopped"
    until(lambda: "closed" in pipes.calls, "its end")


def test_a_waiter_is_woken_however_often_it_is_told() -> None:
    waiter = Waiter(pull(1), 3.0)
    assert (waiter.end, waiter.asleep.locked()) == (None, True)
    waiter.wake()
    waiter.wake()
    assert waiter.asleep.acquire(blocking=False)
    threading.Timer(0.0, waiter.wake).start()
    assert waiter.asleep.acquire(timeout=SECONDS)
