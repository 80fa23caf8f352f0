"""The logger ``thresher``: whatever is logged there is logged without secrets."""

import logging

from .masking import masked

log = logging.getLogger("thresher")


def _without_secrets(record: logging.LogRecord) -> bool:
    record.msg, record.args = masked(record.getMessage()), None
    if record.exc_info and not record.exc_text:
        record.exc_text = logging.Formatter().formatException(record.exc_info)
    if record.exc_text:  # which handlers show instead of making their own
        record.exc_text = masked(record.exc_text)
    return True


log.addFilter(_without_secrets)
