"""What a persistent evaluator answers and says first, with a program that is only two pipes."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from engines import Clock, until
from piped import SECONDS, Piped, Stands, begun, failure, pull, timed_by

from thresher.run.command import persistent_process as resident
from thresher.run.command.exit_status import CommandFailed
from thresher.run.command.persistent_process import Gone, Resident
from thresher.run.command.protocol import Greeting, line_of
from thresher.run.command.reward import TimedOut


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return timed_by(Clock(), monkeypatch)


# -- answers ---------------------------------------------------------------------------------------------------------


def test_a_pull_is_written_once_and_its_answer_is_its_reward(piped: Piped) -> None:
    one, pipes = piped()
    pipes.answers(3)
    assert one.evaluate(pull(3), 3, None) == 0.375
    assert os.read(pipes.theirs, 1 << 20) == line_of(pull(3), 3)
    assert (one.answered, one.gone, one._users, one._led, one._pending) == (True, False, 0, False, {})
    assert pipes.calls == []


def test_answers_may_be_cut_anywhere_and_blank_lines_say_nothing(piped: Piped, threads: ThreadPoolExecutor) -> None:
    one, pipes = piped()
    first = begun(threads, one, pipes, 1)
    pipes.prints("", "  ", '{"pull": 1, "reward": 0.25}')
    assert first.result(SECONDS) == 0.25
    second = begun(threads, one, pipes, 2)
    os.write(pipes.printed, b'{"pull": 2, "rew')
    until(lambda: one._buffer == b'{"pull": 2, "rew', "the first part")
    pipes.prints('ard": 0.5}')
    assert second.result(SECONDS) == 0.5


def test_two_threads_get_their_answers_in_any_order(piped: Piped, threads: ThreadPoolExecutor) -> None:
    for order in ((1, 2), (2, 1)):
        one, pipes = piped()
        one.spoke = True  # so it may have several pulls
        found = {number: begun(threads, one, pipes, number) for number in (1, 2)}
        for number in order:
            pipes.answers(number)
            assert found[number].result(SECONDS) == number / 8
        assert (one._users, one._led) == (0, False)


def test_a_process_that_is_idle_is_given_a_pull_at_once(piped: Piped, monkeypatch: pytest.MonkeyPatch) -> None:
    one, pipes = piped()
    pipes.answers(1)
    one.evaluate(pull(1), 1, None)
    waits: list[float | None] = []

    def listen(seconds: float | None) -> None:
        waits.append(seconds)
        if one._pending:
            pipes.answers(2)
        Resident._listen(one, seconds)

    monkeypatch.setattr(one, "_listen", listen)
    assert one.evaluate(pull(2), 2, None) == 0.25
    assert waits == [0, None]


def test_the_second_answer_to_a_pull_is_ignored_and_mentioned_once(
    piped: Piped, threads: ThreadPoolExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    one, pipes = piped()
    first = begun(threads, one, pipes, 5)
    pipes.answers(5, 5, 4, -5)
    assert first.result(SECONDS) == 0.625
    second = begun(threads, one, pipes, 6)
    pipes.answers(5, 6)
    assert second.result(SECONDS) == 0.75
    words = "answered a pull that was not pending, which is ignored: the first answer counts"
    assert caplog.text.count(words) == caplog.text.count("the evaluator") == 1


@pytest.mark.parametrize("number", [6, -6])
def test_an_answer_to_a_pull_that_was_never_given_is_a_fault(piped: Piped, number: int) -> None:
    one, pipes = piped()
    pipes.answers(number)
    error = failure(lambda: one.evaluate(pull(5), 5, None))
    assert f'answered a pull that it was not given: \'{{"pull": {number}' in str(error)
    assert error.kind == "the evaluator answered a pull that it was not given"
    assert pipes.calls == [("reaped", True), "closed"]
    assert one.gone


def test_the_baselines_side_of_a_pair_has_an_id_of_its_own(piped: Piped, threads: ThreadPoolExecutor) -> None:
    one, pipes = piped()
    one.spoke = True
    found = {number: begun(threads, one, pipes, number) for number in (-5, 5)}
    pipes.answers(5, -5)
    assert {number: future.result(SECONDS) for number, future in found.items()} == {5: 0.625, -5: -0.625}


# -- the first line --------------------------------------------------------------------------------------------------


def test_a_process_gets_one_pull_until_it_has_printed_its_first_line(piped: Piped, threads: ThreadPoolExecutor) -> None:
    one, pipes = piped()
    first = begun(threads, one, pipes, 1)
    second = threads.submit(one.evaluate, pull(2), 2, SECONDS)
    until(lambda: len(one._may_enter._waiters) == 1, "the pull that waits")  # type: ignore[attr-defined]
    assert pipes.heard() == []
    pipes.prints('{"protocol": 1}')
    until(lambda: pipes.heard() == [2], "the second pull")
    pipes.answers(1, 2)
    assert (first.result(SECONDS), second.result(SECONDS)) == (0.125, 0.25)


def test_a_process_that_takes_long_to_speak_gets_several_pulls(
    piped: Piped, threads: ThreadPoolExecutor, still: Stands
) -> None:
    one, pipes = piped()
    first = begun(threads, one, pipes, 1)
    still.now += resident.FIRST_WORD - 0.02
    second = threads.submit(one.evaluate, pull(2), 2, SECONDS)
    until(lambda: len(one._may_enter._waiters) == 1, "the pull that waits")  # type: ignore[attr-defined]
    still.now += 0.02
    until(lambda: pipes.heard() == [2], "the second pull")
    pipes.answers(1, 2)
    assert (first.result(SECONDS), second.result(SECONDS)) == (0.125, 0.25)


def test_who_waits_for_the_first_line_of_a_process_that_dies_may_try_another(
    piped: Piped, threads: ThreadPoolExecutor
) -> None:
    one, pipes = piped()
    first = begun(threads, one, pipes, 1)
    second = threads.submit(one.evaluate, pull(2), 2, SECONDS)
    until(lambda: len(one._may_enter._waiters) == 1, "the pull that waits")  # type: ignore[attr-defined]
    pipes.exits()
    assert isinstance(first.exception(SECONDS), CommandFailed)
    assert isinstance(second.exception(SECONDS), Gone)
    assert pipes.calls[-1] == "closed"
    assert one._users == 0


def test_pulls_of_two_studies_with_the_same_id_take_turns(piped: Piped, threads: ThreadPoolExecutor) -> None:
    one, pipes = piped()
    one.spoke = True
    first = begun(threads, one, pipes, 1)
    second = threads.submit(one.evaluate, pull(1), 1, SECONDS)
    until(lambda: len(one._may_enter._waiters) == 1, "the pull that waits")  # type: ignore[attr-defined]
    pipes.prints('{"pull": 1, "reward": 0.25}')
    assert first.result(SECONDS) == 0.25
    until(lambda: pipes.heard() == [1], "the second pull")
    pipes.prints('{"pull": 1, "reward": 0.75}')
    assert second.result(SECONDS) == 0.75


def test_a_greeting_comes_first_and_once(piped: Piped) -> None:
    greetings: list[Greeting] = []
    one, pipes = piped(greetings.append)
    pipes.prints('{"protocol": 1, "arms": ["a"]}')
    one.greeting(SECONDS)
    assert (greetings, one.spoke, one._pending) == ([Greeting(1, ["a"])], True, {})
    pipes.prints('{"protocol": 1}')
    error = failure(lambda: one.evaluate(pull(1), 1, None))
    assert "printed a greeting after its first line: '{\"protocol\": 1}'" in str(error)
    assert error.kind == "the evaluator printed a greeting after its first line"


def test_what_is_wrong_with_a_greeting_is_raised(piped: Piped) -> None:
    def refuse(_: Greeting) -> None:
        raise LookupError("not this one")

    for has_pull in (True, False):
        one, pipes = piped(refuse)
        pipes.prints('{"protocol": 1}')
        with pytest.raises(LookupError, match="not this one"):
            one.evaluate(pull(1), 1, None) if has_pull else one.greeting(SECONDS)
        assert one.gone
        assert ("reaped", True) in pipes.calls


def test_a_greeting_is_not_waited_for_without_end(piped: Piped) -> None:
    one, pipes = piped()
    with pytest.raises(TimedOut):
        one.greeting(0.01)
    assert (one.gone, one._pending) == (True, {})
    one, pipes = piped()
    pipes.answers(1)
    with pytest.raises(CommandFailed, match="answered a pull that it was not given"):
        one.greeting(SECONDS)


def test_a_silent_program_is_mentioned_once_however_many_processes_it_has(
    piped: Piped, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for argv in (("x",), ("x",), ("y",)):
        one, _ = piped(argv=argv)
        one._hint()
        assert len(caplog.records) == (argv == ("y",)) + (one._argv in resident._HINTED), "it is too early"
        clock.ahead += resident.SILENT
        one._hint()
        one._hint()
    assert [record.getMessage()[:51] for record in caplog.records] == [
        "the evaluator has printed nothing in 20 s; unless i"
    ] * 2
    one, _ = piped(argv=("z",))
    one.spoke = True
    clock.ahead += resident.SILENT
    one._hint()
    assert len(caplog.records) == 2
