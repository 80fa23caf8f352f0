"""Exceptions of evaluators: which are the same error, which are temporary, and how much of them is shown."""

import errno
import socket
from typing import Any

import pytest

from thresher.errors import CannotGoOn, EvaluationFailed
from thresher.run import evaluator_errors as tracebacks
from thresher.run.engines.resources import pulls_queued_for_resources
from thresher.run.evaluator_errors import error_identity, is_transient_evaluator_error, traceback_text
from thresher.run.failures import EvaluatorLost, EvaluatorRefused, WorkerLost, wrapped_failure


def raised(error: BaseException, depth: int = 1) -> BaseException:
    try:
        if depth > 1:
            raise raised(error, depth - 1)
        raise error
    except BaseException as caught:
        return caught


def test_two_errors_are_the_same_if_their_type_and_their_place_are() -> None:
    first, second = (raised(ValueError(number)) for number in (1, 2))
    assert error_identity(first) == error_identity(second) != error_identity(raised(KeyError(1)))
    elsewhere = ValueError(1)
    try:
        raise elsewhere
    except ValueError:
        assert error_identity(elsewhere) != error_identity(first)
    assert error_identity(first).startswith(f"builtins.ValueError at {__file__}:")
    assert error_identity(ValueError(1)) == "builtins.ValueError", "it was never raised"
    assert error_identity(EvaluationFailed("x", kind="exited with 3")) == "exited with 3"
    assert "EvaluationFailed at" in error_identity(raised(EvaluationFailed("x")))


class ReadTimeoutException(Exception):
    """As a library names it."""


class Special(ReadTimeoutException):
    """Named otherwise, but derived from it."""


def caused(error: BaseException, cause: BaseException | None = None, context: BaseException | None = None) -> Any:
    error.__cause__, error.__context__ = cause, context
    error.__suppress_context__ = cause is not None
    return error


def with_reason(reason: object) -> Exception:
    error = ValueError("no")
    error.reason = reason  # type: ignore[attr-defined]
    return error


TEMPORARY = [
    TimeoutError(),
    ConnectionResetError(),
    socket.gaierror(),
    socket.herror(),
    *(OSError(number, "x") for number in sorted(tracebacks.NETWORK)),
    ReadTimeoutException(),
    Special(),
    EvaluationFailed("x", transient=True),
    caused(ValueError(), cause=TimeoutError()),
    caused(ValueError(), context=TimeoutError()),
    ExceptionGroup("both", [ValueError(), ExceptionGroup("more", [TimeoutError()])]),
    with_reason(TimeoutError()),
]
LASTING = [
    ValueError("timeout"),
    OSError(errno.ENOENT, "x"),
    EvaluationFailed("x"),
    caused(ValueError(), cause=KeyError(), context=TimeoutError()),
    with_reason("timeout"),
    ExceptionGroup("both", [ValueError(), KeyError()]),
]


def test_errors_of_time_and_network_are_temporary_and_others_are_not() -> None:
    assert [error for error in TEMPORARY if not is_transient_evaluator_error(error)] == []
    assert [error for error in LASTING if is_transient_evaluator_error(error)] == []
    circle = caused(ValueError(), context=None)
    circle.__context__ = caused(KeyError(), context=circle)
    assert not is_transient_evaluator_error(circle)


def test_a_traceback_has_no_frames_of_ours_no_secrets_and_its_last_frames() -> None:
    text = traceback_text(raised(ValueError("password=hunter2"), 60))
    assert "password=***" in text
    assert "hunter2" not in text
    assert "[Previous line repeated 36 more times]" in text, "three are shown before it, and one after it"
    long = traceback_text(raised(ValueError("x" * 9000)))
    assert long == "…" + "x" * tracebacks.LONGEST
    fits = traceback_text(raised(ValueError("y")))
    assert fits.startswith("Traceback (most recent call last):")
    assert fits.endswith("ValueError: y")


def test_the_traceback_of_another_process_is_its_text_and_a_command_has_none() -> None:
    assert traceback_text(EvaluationFailed("x", traceback="password=hunter2")) == "password=***"
    assert traceback_text(raised(EvaluationFailed("exited with 3"))) == ""
    assert "ValueError: deep" in traceback_text(caused(EvaluationFailed("x"), cause=raised(ValueError("deep"))))


# -- engines ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [WorkerLost("w", ()), CannotGoOn("executor", rule="no"), TimeoutError("t")])
def test_an_evaluators_error_is_not_taken_for_the_engines(error: Exception) -> None:
    wrapped = wrapped_failure(error)
    if isinstance(error, TimeoutError):
        assert wrapped is error
    else:
        assert isinstance(wrapped, EvaluationFailed)
        assert (wrapped.__cause__, wrapped.kind) == (error, error_identity(error))
        assert str(error) in str(wrapped)


def test_what_a_persistent_evaluator_means_is_passed_on() -> None:
    for error in (EvaluatorLost("x", ()), EvaluatorRefused("protocol", 2, "no")):
        assert wrapped_failure(error) is error


def test_a_few_pulls_wait_for_remote_workers() -> None:
    assert [pulls_queued_for_resources(workers) for workers in (0, 1, 8, 9, 64)] == [0, 2, 9, 11, 72]
