"""What is logged, as lines of this program on standard error."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..run.command.reward import printable


@contextmanager
def spoken(speak: Callable[[str], object], *names: str) -> Iterator[None]:
    """Give ``speak`` what these loggers are told, tracebacks too: without secrets and control characters."""
    handler, loggers, format_ = (
        logging.Handler(),
        [logging.getLogger(name) for name in names],
        logging.Formatter().format,
    )
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
