"""The loggers ``thresher`` and ``thresher.evaluator``: they mask secrets in everything that is logged."""

import logging

from .masking import masked
from .naming import Naming

log = logging.getLogger("thresher")


def _without_secrets(record: logging.LogRecord) -> bool:
    if isinstance(record.msg, Naming):
        vars(record)["naming"] = record.msg  # for handlers with words of their own
    record.msg, record.args = masked(record.getMessage()), None
    if record.exc_info and not record.exc_text:
        record.exc_text = logging.Formatter().formatException(record.exc_info)
    if record.exc_text:  # handlers show this text instead of formatting the exception
        record.exc_text = masked(record.exc_text)
    return True


log.addFilter(_without_secrets)

evaluators = logging.getLogger("thresher.evaluator")  # what persistent evaluators print on standard error, line by line
evaluators.addFilter(_without_secrets)
