"""Errors as clients see them: the same four fields everywhere, with a fitting status."""

import json
from ast import literal_eval
from collections.abc import Mapping
from typing import Any

from starlette.responses import HTMLResponse, Response

from .. import errors
from ..errors import ThresherError, shown
from ..text.masking import masked
from ..text.naming import worded
from .assets import filled

STATUS: dict[type[ThresherError], int] = {  # the first that fits
    errors.DamagedStudy: 500,
    errors.UnknownStudy: 404,
    errors.UnknownArm: 404,
    errors.UnknownPull: 404,
    errors.StudyExists: 409,
    errors.AlreadyTold: 409,
    errors.Conflict: 409,
    errors.StoreFailed: 503,
    errors.InvalidInput: 422,
}
DOCS = "/docs describes what to send"
JOIN = 'choose another name, or send "if_exists": "join"'
LISTED = "the page / and GET /api/studies list those that are there"
LARGE = 10**30  # larger whole numbers are shown as text, and shortened


class Refusal(Exception):
    """A request that is refused."""

    def __init__(
        self, status: int, what: str, value: object, rule: str, remedy: str, *, retry: int | None = None
    ) -> None:
        super().__init__(f"{what}: {rule}")
        self.retry = retry  # seconds after which the client may try again
        self.status, self.what, self.value, self.rule, self.remedy = status, what, value, rule, remedy

    @property
    def headers(self) -> dict[str, str]:
        found = {"Retry-After": str(self.retry)} if self.retry is not None else {}
        return found | ({"WWW-Authenticate": 'Bearer realm="thresher"'} if self.status == 401 else {})

    def to_json(self) -> dict[str, Any]:
        rest = {"rule": whole(self.rule), "remedy": whole(self.remedy)}
        return {"error": whole(self.what), "value": plain(self.value), **rest}


SURPRISE = Refusal(500, "server", None, "something went wrong", "its log says more; try again")


def refusal_of(error: ThresherError) -> Refusal:
    """An error of the library as clients see it."""
    status = next((status for kind, status in STATUS.items() if isinstance(error, kind)), 500)
    rule = worded(error.rule, _field)
    if status >= 500 and "/" in rule:
        rule = "is damaged; the server's log says more"
    if isinstance(error, errors.DamagedStudy):
        return Refusal(500, error.what, error.value, rule, "run thresher verify and thresher doctor")
    if isinstance(error, errors.StoreFailed):  # it names files and servers, which the client must not see
        return Refusal(503, "store", None, "is not available now", "try again; the server's log says more", retry=5)
    return Refusal(status, error.what, error.value, rule, _remedy(error))


def _remedy(error: ThresherError) -> str:
    """What a client of the service can do; the library's own words may be about Python or the command line."""
    if isinstance(error, errors.UnknownStudy):
        return LISTED
    if isinstance(error, errors.StudyExists) and error.rule == "already exists":
        return JOIN
    return worded(error.remedy, _field) or DOCS


def _field(name: str, value: str | None) -> str:
    """A parameter in a client's words.

    >>> _field("budget", None), _field("clip", "True")
    ('budget', '"clip": true')
    """
    return name if value is None else f"{json.dumps(name)}: {json.dumps(literal_eval(value))}"


def plain(value: object) -> object:
    """A value as JSON, and not endless."""
    if value is None or (isinstance(value, int) and abs(value) < LARGE):
        return value
    if isinstance(value, float):
        return value if abs(value) < float("inf") else repr(value)  # NaN and infinity are not JSON
    if isinstance(value, str):
        text = masked(value)
        return whole(text if len(text) <= 200 else f"{text[:199]}…")
    return whole(shown(value, 200))


def whole(text: str) -> str:
    r"""Text without secrets, and without half characters: JSON can hold them, UTF-8 cannot.

    >>> whole("a\ud800")
    'a\\ud800'
    """
    return masked(text).encode("utf-8", "backslashreplace").decode()


def reply(refusal: Refusal, scope: Mapping[str, Any], *, is_page: bool = True) -> Response:
    """The reply to a request that is refused: a page for a browser that asks for one, otherwise JSON."""
    accepts = b",".join(value for name, value in scope["headers"] if name.lower() == b"accept")
    if is_page and scope["method"] == "GET" and b"text/html" in accepts:
        named = f" “{plain(refusal.value)}”" if isinstance(refusal.value, str) else ""
        what = whole(f"{refusal.what}{named}: {refusal.rule}")
        remedy = whole(refusal.remedy[:1].upper() + refusal.remedy[1:])
        page = filled("refused", status=refusal.status, what=what, remedy=remedy)
        return HTMLResponse(page, refusal.status, refusal.headers)
    body = json.dumps(refusal.to_json(), separators=(",", ":"))
    return Response(body, refusal.status, refusal.headers, "application/json")
