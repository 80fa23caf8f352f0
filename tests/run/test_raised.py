"""What an evaluator raised: the cause of the run's error, tracebacks in the log, and a command's output."""

from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest
from engines import make
from failing import ARMS, ended, wrong_key

import thresher
from thresher.errors import NoReward
from thresher.run.command.process import Command
from thresher.run.command.reward import CommandFailed


class Special(Exception):
    """Raised once and kept."""


def test_the_cause_is_the_exception_that_the_evaluator_raised() -> None:
    raised = []

    def evaluate(pull: thresher.Pull) -> float:
        try:
            raise LookupError("deeper")
        except LookupError as error:
            raised.append(Special(pull.id))
            raise raised[-1] from error

    async def later(pull: thresher.Pull) -> float:
        return evaluate(pull)

    for function in (evaluate, later):
        cause = ended(make(*ARMS, budget=1000), function, workers=1).__cause__
        assert cause is raised[0]
        assert isinstance(cause.__cause__, LookupError), "its own cause is kept"
        raised.clear()


@pytest.mark.parametrize("executor", ["processes", lambda: ProcessPoolExecutor(2)])
def test_the_traceback_of_another_process_is_shown_with_the_chain(executor: Any) -> None:
    import traceback

    error = ended(make(*ARMS, budget=1000), wrong_key, executor=executor, workers=2)
    text = "".join(traceback.format_exception(error))
    assert type(error.__cause__).__name__ == "EvaluationFailed"
    assert 'return {"width": 1}["depth"]' in text
    assert "direct cause" in text


def test_the_first_traceback_of_each_error_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    def evaluate(pull: thresher.Pull) -> object:
        if pull.arm == "b":
            return wrong_key(pull)
        if pull.arm == "c":
            raise ValueError(f"never the same: {pull.id}")
        return 0.5

    for executor in ("threads", "processes"):
        caplog.clear()
        thresher.run(make("a", "b", "c", budget=30), evaluate, executor=executor, workers=2)
        tracebacks = [record.getMessage() for record in caplog.records if "Traceback" in record.getMessage()]
        assert [record.levelname for record in caplog.records] == ["WARNING"] * 2
        assert sorted("KeyError: 'depth'" in text for text in tracebacks) == [False, True]
        assert all("thresher/run/" not in text for text in tracebacks), "only the evaluator's own frames"
        assert any('return {"width": 1}["depth"]' in text for text in tracebacks)


def test_at_most_twenty_tracebacks_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    source = "\n".join(f"def f{number}(): raise ValueError({number})" for number in range(40))
    names: dict[str, Any] = {}
    exec(compile(source, "many.py", "exec"), names)

    def evaluate(pull: thresher.Pull) -> float:
        if pull.id % 2:
            names[f"f{pull.id // 2}"]()
        return 0.5

    thresher.run(make("a", "b", budget=78, max_failures=None), evaluate, workers=1)
    assert sum("Traceback" in record.getMessage() for record in caplog.records) == 20


def test_failures_of_commands_have_no_traceback_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    command = Command(("sh", "-c", "test $THRESHER_ARM = b && exit 3; test $THRESHER_ARM = c || echo 1"))
    for executor in ("threads", "processes"):
        verdict = thresher.run(make("a", "b", "c", budget=40), command, executor=executor, workers=2)
        assert verdict.retired == ["b", "c"]
    assert "Traceback" not in caplog.text


def test_a_commands_failure_carries_what_it_printed_from_any_process() -> None:
    command = Command(("sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo line $i >&2; done; exit 3"))
    for executor in ("threads", "processes"):
        cause: Any = ended(make(*ARMS, budget=1000), command, executor=executor, workers=2).__cause__
        assert cause.output.splitlines() == [f"line {number}" for number in range(3, 13)]


def test_a_commands_output_is_kept_without_passwords() -> None:
    secret = "postgresql://me:hunter2@host/db"
    with pytest.raises(CommandFailed) as failed:
        Command(("sh", "-c", f"echo cannot reach {secret} >&2; exit 3"))(thresher.Pull(1, "a", 1, {}, 5))
    with pytest.raises(NoReward) as nothing:
        Command(("sh", "-c", f"echo cannot reach {secret}"))(thresher.Pull(1, "a", 1, {}, 5))
    for error in (failed.value, nothing.value):
        assert "cannot reach" in error.output
        assert "hunter2" not in f"{error} {error.output}"
