"""The loggers ``thresher`` and ``thresher.evaluator``: they mask secrets in everything that is logged."""

import logging

from .masking import masked

log = logging.getLogger("thresher")


def _without_secrets(record: logging.LogRecord) -> bool:
    record.msg, record.args = masked(record.getMessage()), None
    if record.exc_info and not record.exc_text:
        record.exc_text = logging.Formatter().formatException(record.exc_info)
    if record.exc_text:  # handlers show this text instead of formatting the exception
        record.exc_text = masked(record.exc_text)
    return True


log.addFilter(_without_secrets)

evaluators = logging.getLogger("thresher.evaluator")  # what persistent evaluators print on standard error, line by line
evaluators.addFilter(_without_secrets)
