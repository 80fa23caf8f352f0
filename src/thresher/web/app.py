"""The application: routes, error replies, and the checks in front of them."""

import sys

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from .._version import __version__
from ..errors import StoreFailed, ThresherError, UnknownStudy
from ..text.logs import log
from . import api, pages
from .access import Access
from .malformed_requests import malformed
from .refusals import SURPRISE, Refusal, refusal_of, reply
from .request_checks import CheckedApp, segment
from .served_studies import ServedStudies

DIGITS = sys.get_int_max_str_digits()  # of a whole number that Python reads
NOT_JSON = f"must be JSON in UTF-8, not nested too deeply, with whole numbers of at most {DIGITS:,} digits"


def create_app(served: ServedStudies, access: Access) -> CheckedApp:
    """A server for the studies of a store, as an ASGI application."""
    inner = FastAPI(
        title="thresher",
        version=__version__,
        description="Which of K noisy options clear a bar? Ask for pulls, tell rewards, read the verdict.",
        docs_url=None,  # FastAPI's pages load scripts from another host
        redoc_url=None,
    )
    inner.include_router(api.router(served))
    inner.include_router(pages.router(served, write=access.write_token is not None))
    _handle(inner, served)
    return CheckedApp(inner, access)


def _handle(app: FastAPI, served: ServedStudies) -> None:
    @app.exception_handler(ThresherError)
    def library(request: Request, error: ThresherError) -> Response:
        if isinstance(error, StoreFailed):
            log.warning(str(error))
        if isinstance(error, UnknownStudy):
            served.forget(segment(request.path_params.get("study", "")))
        return _answer(request, refusal_of(error))

    app.add_exception_handler(Refusal, _answer)  # type: ignore[arg-type]  # it is called only with these
    app.add_exception_handler(Exception, lambda request, _: _answer(request, SURPRISE))  # `CheckedApp` logs it

    @app.exception_handler(RequestValidationError)
    def shape(request: Request, error: RequestValidationError) -> Response:
        return _answer(request, malformed(request, error))

    @app.exception_handler(HTTPException)
    def other(request: Request, error: HTTPException) -> Response:
        status = error.status_code
        if status == 404:
            where = "/docs lists the addresses of the interface"
            refusal = Refusal(status, "path", segment(request.url.path), "is not here", where)
        elif status == 405:
            rule = "is not a method that this address takes"
            refusal = Refusal(status, "method", request.method, rule, "/docs lists the methods of each address")
        else:
            rule = NOT_JSON if status == 400 else str(error.detail)
            refusal = Refusal(status, "body", None, rule, "/docs describes the interface")
        answer = _answer(request, refusal)
        answer.headers.update(error.headers or {})
        return answer


def _answer(request: Request, refusal: Refusal) -> Response:
    return reply(refusal, request.scope, is_page=not request.url.path.startswith("/api/"))
