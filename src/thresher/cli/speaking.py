"""Lines on standard error: log records, and the cause of an error."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..errors import EvaluationFailed
from ..run.command.reward import printable
from ..run.tracebacks import traceback_text
from . import say


@contextmanager
def spoken(speak: Callable[[str], object], *names: str) -> Iterator[None]:
    """Pass the records of these loggers, with tracebacks, to ``speak``, without secrets and control characters."""
    handler, format_ = logging.Handler(), logging.Formatter().format
    loggers = [logging.getLogger(name) for name in names]
    handler.emit = lambda record: speak(printable(format_(record)))  # type: ignore[method-assign,assignment]
    for logger in loggers:
        logger.addHandler(handler)
        logger.propagate = False
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(handler)
            logger.propagate = True


def show_cause(error: BaseException) -> None:
    """Print on standard error what caused an error, unless the error itself says it."""
    cause = error.__cause__
    if cause is None:
        return
    if text := traceback_text(cause):
        say(f"what the evaluator raised:\n{printable(text)}")
    elif isinstance(cause, EvaluationFailed):
        lines = printable(cause.output).splitlines()
        if len(lines) > 1 or not all(line.strip() in str(error) for line in lines):
            say("\n  ".join(["the last lines of the command's output:", *lines]))
