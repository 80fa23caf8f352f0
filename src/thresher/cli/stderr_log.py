"""Lines on standard error: log records, and the cause of an error."""

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from ..errors import EvaluationFailed
from ..run.evaluator_errors import traceback_text
from ..text.masking import printable
from ..text.naming import worded
from . import say
from .error_wording import spelled


@contextmanager
def spoken(speak: Callable[[str], object], *names: str) -> Iterator[None]:
    """Pass the records of these loggers, with tracebacks, to ``speak``, without secrets and control characters.

    A forked child writes them plainly: a thread of its parent may have held a lock on the terminal.
    """
    handler, format_, owner = logging.Handler(), logging.Formatter().format, os.getpid()

    def emit(record: logging.LogRecord) -> None:
        record.msg = worded(vars(record).get("naming", record.msg), spelled)
        text = printable(format_(record))
        if os.getpid() == owner:
            speak(text)
        else:
            with suppress(OSError):
                os.write(2, f"{text}\n".encode())

    loggers = [logging.getLogger(name) for name in names]
    handler.emit = emit  # type: ignore[method-assign]
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
