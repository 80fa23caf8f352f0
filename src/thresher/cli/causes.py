"""What is shown of an error's cause: an evaluator's traceback, or what a command printed last."""

from ..errors import EvaluationFailed
from ..run.command.reward import printable
from ..run.tracebacks import traceback_text
from . import say


def show_cause(error: BaseException) -> None:
    """Print on standard error what led to an error, as far as the error itself does not say it."""
    cause = error.__cause__
    if cause is None:
        return
    if text := traceback_text(cause):
        say(f"what the evaluator raised:\n{printable(text)}")
    elif isinstance(cause, EvaluationFailed):
        lines = printable(cause.output).splitlines()
        if len(lines) > 1 or not all(line.strip() in str(error) for line in lines):
            say("\n  ".join(["the last lines that the command printed:", *lines]))
