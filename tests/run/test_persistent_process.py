"""One persistent evaluator: its answers, its first line and its end, with a program that is only two pipes."""

import contextlib
import os
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from engines import until
from piped import SECONDS, Piped, Pipes, Stands, begun, failure, pull

from thresher.errors import EvaluationFailed
from thresher.run.command import persistent
from thresher.run.command.persistent import Gone
from thresher.run.command.protocol import Greeting, protocol_pull_line
from thresher.run.command.reward import CommandFailed, TimedOut
from thresher.study import Pull

LONG = Pull(1, "a", 1, {"text": "x" * 300_000}, 7)  # its line is larger than a pipe

# -- answers ---------------------------------------------------------------------------------------------------------


def test_a_pull_is_written_once_and_its_answer_is_its_reward(piped: Piped) -> None:
    process, pipes = piped()
    pipes.answers(3)
    assert process.evaluate(pull(3), 3, None) == 0.375
    assert os.read(pipes.theirs, 1 << 20) == protocol_pull_line(pull(3), 3)
    assert (process.gone, pipes.calls) == (False, [])


def test_answers_may_be_cut_anywhere_and_blank_lines_say_nothing(piped: Piped, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(persistent, "CHUNK", 5)
    process, pipes = piped()
    pipes.prints("", "  ", '{"pull": 1, "reward": 0.25}')
    assert process.evaluate(pull(1), 1, SECONDS) == 0.25
    pipes.answers(2)
    assert process.evaluate(pull(2), 2, SECONDS) == 0.25


def test_the_second_answer_to_a_pull_is_ignored_and_mentioned_once(
    piped: Piped, threads: ThreadPoolExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    process, pipes = piped()
    first = begun(threads, process, pipes, 5)
    pipes.answers(5, 5, 4, -5)
    assert first.result(SECONDS) == 0.625
    second = begun(threads, process, pipes, 6)
    pipes.answers(5, 6)
    assert second.result(SECONDS) == 0.75
    words = "answered a pull that was not pending, which is ignored: the first answer counts"
    assert caplog.text.count(words) == caplog.text.count("the evaluator") == 1


@pytest.mark.parametrize("number", [6, -6])
def test_an_answer_to_a_pull_that_was_never_given_is_a_fault(piped: Piped, number: int) -> None:
    process, pipes = piped()
    pipes.answers(number)
    error = failure(lambda: process.evaluate(pull(5), 5, None))
    assert f'answered a pull that it was not given: \'{{"pull": {number}' in str(error)
    assert error.kind == "the evaluator answered a pull that it was not given"
    assert pipes.calls == [("reaped", True), "closed"]
    assert process.gone


def test_a_line_may_be_long_but_not_without_end(piped: Piped, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(persistent, "LONGEST", 30)
    process, pipes = piped()
    pipes.answers(1)
    assert process.evaluate(pull(1), 1, None) == 0.125
    os.write(pipes.printed, b" " * 31)
    error = failure(lambda: process.evaluate(pull(2), 2, None))
    assert str(error) == "the evaluator printed a line of more than 30 bytes"
    assert error.kind == "the evaluator printed a line that is too long"


# -- the first line --------------------------------------------------------------------------------------------------


def test_a_process_gets_one_pull_until_it_has_printed_its_first_line(piped: Piped, threads: ThreadPoolExecutor) -> None:
    process, pipes = piped()
    first = begun(threads, process, pipes, 1)
    second = threads.submit(process.evaluate, pull(2), 2, SECONDS)
    until(second.running, "the pull that waits")
    assert pipes.heard() == []
    pipes.prints('{"protocol": 1}')
    until(lambda: pipes.heard() == [2], "the second pull")
    pipes.answers(1, 2)
    assert (first.result(SECONDS), second.result(SECONDS)) == (0.125, 0.25)


def test_a_process_that_takes_long_to_speak_gets_several_pulls(
    piped: Piped, threads: ThreadPoolExecutor, still: Stands
) -> None:
    process, pipes = piped()
    first = begun(threads, process, pipes, 1)
    still.now += persistent.FIRST_WORD - 0.02
    second = threads.submit(process.evaluate, pull(2), 2, SECONDS)
    until(second.running, "the pull that waits")
    assert pipes.heard() == []
    still.now += 0.02
    until(lambda: pipes.heard() == [2], "the second pull")
    pipes.answers(1, 2)
    assert (first.result(SECONDS), second.result(SECONDS)) == (0.125, 0.25)


def test_who_waits_for_the_first_line_of_a_process_that_dies_may_try_another(
    piped: Piped, threads: ThreadPoolExecutor
) -> None:
    process, pipes = piped()
    first = begun(threads, process, pipes, 1)
    second = threads.submit(process.evaluate, pull(2), 2, SECONDS)
    until(second.running, "the pull that waits")
    pipes.exits()
    assert isinstance(first.exception(SECONDS), CommandFailed)
    assert isinstance(second.exception(SECONDS), Gone)
    assert pipes.calls[-1] == "closed"


def test_pulls_of_two_studies_with_the_same_id_take_turns(piped: Piped, threads: ThreadPoolExecutor) -> None:
    process, pipes = piped()
    process.spoke = True  # so it may have several pulls
    first = begun(threads, process, pipes, 1)
    second = threads.submit(process.evaluate, pull(1), 1, SECONDS)
    until(second.running, "the pull that waits")
    assert pipes.heard() == []
    pipes.prints('{"pull": 1, "reward": 0.25}')
    assert first.result(SECONDS) == 0.25
    until(lambda: pipes.heard() == [1], "the second pull")
    pipes.prints('{"pull": 1, "reward": 0.75}')
    assert second.result(SECONDS) == 0.75


def test_a_greeting_comes_first_and_once(piped: Piped) -> None:
    greetings: list[Greeting] = []
    process, pipes = piped(greetings.append)
    pipes.prints('{"protocol": 1, "arms": ["a"]}')
    process.wait_for_greeting(SECONDS)
    assert (greetings, process.spoke) == ([Greeting(1, ["a"])], True)
    pipes.prints('{"protocol": 1}')
    error = failure(lambda: process.evaluate(pull(1), 1, None))
    assert "printed a greeting after its first line: '{\"protocol\": 1}'" in str(error)
    assert error.kind == "the evaluator printed a greeting after its first line"


def test_what_is_wrong_with_a_greeting_is_raised(piped: Piped) -> None:
    def refuse(_: Greeting) -> None:
        raise LookupError("not this one")

    for has_pull in (True, False):
        process, pipes = piped(refuse)
        pipes.prints('{"protocol": 1}')
        with pytest.raises(LookupError, match="not this one"):
            process.evaluate(pull(1), 1, None) if has_pull else process.wait_for_greeting(SECONDS)
        assert process.gone
        assert ("reaped", True) in pipes.calls


def test_a_greeting_is_not_waited_for_without_end(piped: Piped) -> None:
    process, pipes = piped()
    with pytest.raises(TimedOut):
        process.wait_for_greeting(0.01)
    assert process.gone
    process, pipes = piped()
    pipes.answers(1)
    with pytest.raises(CommandFailed, match="answered a pull that it was not given"):
        process.wait_for_greeting(SECONDS)


# -- whether a pull has begun ----------------------------------------------------------------------------------------


def test_output_is_read_before_a_pull_times_out(piped: Piped) -> None:
    process, pipes = piped()
    pipes.answers(1)
    assert process.evaluate(pull(1), 1, 0.0) == 0.125
    with pytest.raises(TimedOut):
        process.evaluate(pull(2), 2, 0.0)
    assert pipes.calls == [("reaped", True), "closed"]


def test_a_pull_whose_first_byte_cannot_be_written_has_not_begun(piped: Piped) -> None:
    process, pipes = piped()
    pipes.answers(1)
    process.evaluate(pull(1), 1, None)
    pipes.stops_reading()
    with pytest.raises(Gone):
        process.evaluate(pull(2), 2, None)


def test_a_pull_that_has_not_begun_waits_for_no_other(piped: Piped, threads: ThreadPoolExecutor) -> None:
    process, pipes = piped()
    process.answered = process.spoke = True
    first = begun(threads, process, pipes, 1)
    pipes.stops_reading()
    assert isinstance(threads.submit(process.evaluate, pull(2), 2, None).exception(SECONDS), Gone)
    pipes.answers(1)
    assert first.result(SECONDS) == 0.125


def test_a_process_that_never_answered_is_not_replaced_without_a_failure(piped: Piped) -> None:
    process, pipes = piped()
    pipes.stops_reading()
    pipes.exits()
    pipes.errors = b"no model\n"
    error = failure(lambda: process.evaluate(pull(1), 1, None))
    assert str(error) == "the evaluator exited with 3: 'no model'"
    assert (error.kind, error.output) == ("the evaluator exited with 3", "no model")


@pytest.mark.parametrize("timeout", [None, SECONDS])
def test_a_pull_of_which_a_part_was_written_has_begun(
    piped: Piped, threads: ThreadPoolExecutor, timeout: float | None
) -> None:
    """It is a failure, and not drawn again."""
    process, pipes = piped()
    process.answered = True
    future = threads.submit(process.evaluate, LONG, 1, timeout)
    until(lambda: bool(_read(pipes, 1)), "the first part")
    pipes.stops_reading()
    pipes.exits()
    assert str(future.exception(SECONDS)) == "the evaluator exited with 3"


def _read(pipes: Pipes, size: int) -> bytes:
    with contextlib.suppress(BlockingIOError):
        return os.read(pipes.theirs, size)
    return b""


@pytest.mark.parametrize("answered", [False, True])
def test_a_process_that_reads_nothing_times_out(piped: Piped, answered: bool) -> None:
    process, pipes = piped()
    process.answered = answered
    with pytest.raises(TimedOut):
        process.evaluate(LONG, 1, 0.01)
    assert pipes.calls == [("reaped", True), "closed"]


# -- the end ---------------------------------------------------------------------------------------------------------


def test_what_it_printed_before_it_exited_counts(piped: Piped) -> None:
    process, pipes = piped()
    pipes.answers(1)
    pipes.exits()
    assert process.evaluate(pull(1), 1, None) == 0.125
    assert pipes.calls == [("reaped", False), ("reaped", True), "closed"]
    with pytest.raises(Gone):
        process.evaluate(pull(2), 2, None)


def test_the_end_of_its_output_is_its_end(piped: Piped) -> None:
    process, pipes = piped()
    pipes.stops_printing()
    assert "exited with 3" in str(failure(lambda: process.evaluate(pull(1), 1, None)))
    assert pipes.calls[0] == ("reaped", False)


def test_where_the_system_does_not_tell_of_an_exit_the_end_of_the_output_does(piped: Piped) -> None:
    process, pipes = piped(exit_is_told=False)
    pipes.exits()
    pipes.answers(1)
    assert process.evaluate(pull(1), 1, None) == 0.125
    assert pipes.calls == []
    pipes.stops_printing()
    with pytest.raises(Gone):
        process.evaluate(pull(2), 2, None)


def test_what_it_started_may_print_without_end(piped: Piped, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[bytes] = []

    def read(file: int, size: int) -> bytes:
        reads.append(b'{"pull": 0, "reward": 0}\n')
        return reads[-1]

    process, pipes = piped()
    pipes.exits()
    monkeypatch.setattr(persistent, "os", SimpleNamespace(read=read, write=os.write))
    failure(lambda: process.evaluate(pull(1), 1, None))
    assert len(reads) == persistent.LEFT


def test_what_it_did_wrong_while_it_was_idle_is_the_failure_of_the_next_pull(piped: Piped) -> None:
    process, pipes = piped()
    pipes.answers(1)
    process.evaluate(pull(1), 1, None)
    pipes.prints("done!")
    error = failure(lambda: process.evaluate(pull(2), 2, None))
    assert str(error) == "the evaluator printed a line that is not JSON: 'done!'"
    assert error.kind == "the evaluator printed a line that is not JSON"
    with pytest.raises(Gone):
        process.evaluate(pull(3), 3, None)


def test_only_an_idle_process_hangs_up(piped: Piped, threads: ThreadPoolExecutor) -> None:
    process, pipes = piped()
    first = begun(threads, process, pipes, 1)
    assert not process.hang_up()
    pipes.answers(1)
    assert first.result(SECONDS) == 0.125
    assert pipes.calls == []
    until(process.hang_up, "the end of the evaluation")
    assert pipes.calls == ["hung up"]
    with pytest.raises(Gone):
        process.evaluate(pull(2), 2, None)


def test_a_process_that_is_ended_has_its_time_and_loses_its_pull(piped: Piped, threads: ThreadPoolExecutor) -> None:
    process, pipes = piped()
    process.end(2.5)
    assert pipes.calls == [("waited", 2.5), ("reaped", True), "closed"]
    process, pipes = piped()
    first = begun(threads, process, pipes, 1)
    process.end(0.0)
    pipes.exits()  # as a process does that is killed
    assert isinstance(first.exception(SECONDS), EvaluationFailed)
    assert str(first.exception()) == "the evaluator was stopped"
    until(lambda: "closed" in pipes.calls, "its end")
