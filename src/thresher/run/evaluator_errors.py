"""Exceptions of evaluators: whether two are the same error, whether one is temporary, and its traceback."""

import errno
import socket
import ssl
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from ..errors import EvaluationFailed, shown
from ..text.logs import log
from ..text.masking import masked

MOST = 20  # different errors of a run that are logged with their tracebacks
FRAMES, LONGEST = 40, 8000  # the frames and the characters of a traceback that are kept: its last
UNREACHED = {
    errno.ECONNREFUSED, errno.ENETDOWN, errno.ENETUNREACH, errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.EADDRNOTAVAIL,
}  # fmt: skip
NETWORK = {*UNREACHED, errno.ENETRESET, errno.ETIMEDOUT, errno.ENOTCONN, errno.ENOBUFS}
REFUSING_NAMES = (
    "connectionrefused", "gaierror", "certverification", "connecttimeout", "connecterror", "connectorerror",
    "newconnectionerror", "nameresolution", "ratelimit",
)  # fmt: skip
REFUSING_STATUS = (429, 503)  # too many requests; the service does not take any now
TRANSIENT_NAMES = ("timeout", "connect", "ratelimit")  # the names of many libraries' errors contain these
_OURS = tuple(str(Path(__file__).parent / name) for name in ("engines", "loop.py", "evaluators.py", "pairs.py"))


def error_identity(error: BaseException) -> str:
    """Equal for two failures with the same error: the type of the exception and the place where it was raised."""
    if isinstance(error, EvaluationFailed) and error.kind:
        return error.kind
    name, frame = f"{type(error).__module__}.{type(error).__qualname__}", error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    return name if frame is None else f"{name} at {frame.tb_frame.f_code.co_filename}:{frame.tb_lineno}"


def is_transient_evaluator_error(error: BaseException) -> bool:
    """Whether an error, or its cause, may be temporary: a timeout, the network, a rate limit.

    >>> is_transient_evaluator_error(ConnectionRefusedError()), is_transient_evaluator_error(FileNotFoundError())
    (True, False)
    >>> is_transient_evaluator_error(KeyError("depth"))
    False
    """
    return any(map(_is_transient, _chain(error)))


def is_refused_evaluator_error(error: BaseException) -> bool:
    """Whether the evaluation could not begin: no connection was made, or the server turned the request away.

    This says nothing about the outcome, so a case may be tried again. A time-out of the answer, a broken connection or
    an error 500 may say something. An exception that was being handled when the error was raised is not its cause.

    >>> is_refused_evaluator_error(ConnectionRefusedError()), is_refused_evaluator_error(ConnectionResetError())
    (True, False)
    >>> is_refused_evaluator_error(TimeoutError())
    False
    """
    seen: set[int] = set()
    cause: object = error
    while isinstance(cause, BaseException) and id(cause) not in seen:
        seen.add(id(cause))
        if _is_refused(cause):
            return True
        first = cause.args[0] if cause.args else None  # where requests keeps the cause, and urllib3 in `reason`
        reasons = (cause.__cause__, getattr(cause, "reason", None), first)
        cause = next((reason for reason in reasons if isinstance(reason, BaseException)), None)
    return False


def _is_refused(error: BaseException) -> bool:
    if isinstance(error, EvaluationFailed):
        return error.refused
    if isinstance(error, socket.gaierror | socket.herror | ssl.SSLCertVerificationError):
        return True
    if isinstance(error, OSError) and error.errno in UNREACHED:
        return True
    sources = (error, getattr(error, "response", None)) if isinstance(error, Exception) else ()
    if any(getattr(source, name, None) in REFUSING_STATUS for source in sources for name in ("status_code", "code")):
        return True
    return any(names_refused_evaluator_error(kind.__name__) for kind in type(error).__mro__)


def names_refused_evaluator_error(name: str) -> bool:
    """Whether the name of an error says that the evaluation could not begin.

    >>> names_refused_evaluator_error("RateLimitError"), names_refused_evaluator_error("httpx.ConnectTimeout")
    (True, True)
    >>> names_refused_evaluator_error("ReadTimeout")
    False
    >>> names_refused_evaluator_error("ConnectError"), names_refused_evaluator_error("DisconnectError")
    (True, False)
    """
    words = name.lower().replace("disconnect", "")  # in the middle of an answer
    return any(part in words for part in REFUSING_NAMES)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An exception and the exceptions that led to it."""
    seen: set[int] = set()
    waiting: list[object] = [error]
    while waiting:
        cause = waiting.pop()
        if isinstance(cause, BaseException) and id(cause) not in seen:
            seen.add(id(cause))
            yield cause
            waiting += [cause.__cause__, None if cause.__suppress_context__ else cause.__context__]
            waiting += cause.exceptions if isinstance(cause, BaseExceptionGroup) else []
            waiting.append(getattr(cause, "reason", None))  # where urllib keeps the cause


def _is_transient(error: BaseException) -> bool:
    if isinstance(error, EvaluationFailed) and error.transient:
        return True
    if isinstance(error, TimeoutError | ConnectionError | socket.gaierror | socket.herror):
        return True
    if isinstance(error, OSError) and error.errno in NETWORK:
        return True
    return any(part in kind.__name__.lower() for kind in type(error).__mro__ for part in TRANSIENT_NAMES)


def traceback_text(error: BaseException) -> str:
    """The traceback of an evaluator's exception, without secrets and frames of ours. A command's is empty."""
    if isinstance(error, EvaluationFailed) and (error.traceback or error.__cause__ is None):
        return masked(error.traceback)
    frames = error.__traceback__
    while frames is not None and frames.tb_next is not None and _is_ours(frames):
        frames = frames.tb_next
    text = masked("".join(traceback.format_exception(type(error), error, frames, limit=-FRAMES)).rstrip())
    return text if len(text) <= LONGEST else f"…{text[-LONGEST:]}"


def _is_ours(frame: TracebackType) -> bool:
    file = frame.tb_frame.f_code.co_filename
    return file.startswith(_OURS) or "concurrent/futures" in file


def log_first_evaluator_error(arm: str, error: BaseException, logged: set[str]) -> None:
    """Log the traceback of an evaluation of this arm, unless ``logged`` says that the run has met the same error."""
    kind = error_identity(error)
    if kind not in logged and len(logged) < MOST and (text := traceback_text(error)):
        logged.add(kind)
        log.warning(f"an evaluation of arm {shown(arm)} failed; the first traceback of this error:\n{text}")
