"""Errors as clients see them: the same four fields everywhere, with a status."""

import json
from ast import literal_eval
from collections.abc import Iterable, Mapping
from typing import Any, get_args

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.responses import HTMLResponse, Response

from .. import errors
from ..core.checks import name_check_remedy
from ..core.events import NO_CAUSE
from ..errors import ThresherError, shown
from ..text.masking import masked
from ..text.naming import worded_naming
from .assets import fill_asset_template

STATUS: dict[type[ThresherError], int] = {  # the first class that fits counts
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
SEE_LIST = "the page / and GET /api/studies list those that are there"
LARGE = 10**30  # whole numbers from here on are shown as text, and shortened


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
        headers = {} if self.retry is None else {"Retry-After": str(self.retry)}
        return headers | ({"WWW-Authenticate": 'Bearer realm="thresher"'} if self.status == 401 else {})

    def to_json(self) -> dict[str, Any]:
        texts = {"rule": printable_in_refusal(self.rule), "remedy": printable_in_refusal(self.remedy)}
        return {"error": printable_in_refusal(self.what), "value": refused_json_value(self.value), **texts}


SURPRISE = Refusal(500, "server", None, "something went wrong", "its log says more; try again")


def refusal_of(error: ThresherError) -> Refusal:
    """An error of the library as a client sees it."""
    status = next((status for kind, status in STATUS.items() if isinstance(error, kind)), 500)
    rule = worded_naming(error.rule, _field_name)
    if status >= 500 and "/" in rule:
        rule = "is damaged; the server's log says more"
    if isinstance(error, errors.DamagedStudy):
        return Refusal(500, error.what, error.value, rule, "run thresher verify and thresher doctor")
    if isinstance(error, errors.StoreFailed):  # it names files and servers, which the client must not see
        return Refusal(503, "store", None, "is not available now", "try again; the server's log says more", retry=5)
    return Refusal(status, error.what, error.value, rule, _remedy_of(error))


def _remedy_of(error: ThresherError) -> str:
    """What a client can do. The library's own remedy may be about Python or the command line."""
    if isinstance(error, errors.UnknownStudy):
        return SEE_LIST
    if isinstance(error, errors.StudyExists) and error.rule == "already exists":
        return JOIN
    return worded_naming(error.remedy, _field_name) or DOCS


def _field_name(name: str, value: str | None) -> str:
    """A parameter in the words of a client, or of whoever started the server.

    >>> _field_name("budget", None), _field_name("clip", "True")
    ('budget', '"clip": true')
    """
    if name == "scores":
        return "thresher serve --policy module:function"
    return name if value is None else f"{json.dumps(name)}: {json.dumps(literal_eval(value))}"


def refused_json_value(value: object) -> object:
    """A value as JSON, shortened if it is long."""
    if value is None or (isinstance(value, int) and abs(value) < LARGE):
        return value
    if isinstance(value, float):
        return value if abs(value) < float("inf") else repr(value)  # NaN and infinity are not JSON
    if isinstance(value, str):
        text = masked(value)
        return printable_in_refusal(text if len(text) <= 200 else f"{text[:199]}…")
    return printable_in_refusal(shown(value, 200))


def printable_in_refusal(text: str) -> str:
    r"""Text without secrets and without lone surrogates, which JSON can hold and UTF-8 cannot.

    >>> printable_in_refusal("a\ud800")
    'a\\ud800'
    """
    return masked(text).encode("utf-8", "backslashreplace").decode()


def refusal_reply(refusal: Refusal, scope: Mapping[str, Any], *, is_page: bool = True) -> Response:
    """The reply to a request that is refused: a page for a browser that asks for one, otherwise JSON."""
    accepts = b",".join(value for name, value in scope["headers"] if name.lower() == b"accept")
    if is_page and scope["method"] == "GET" and b"text/html" in accepts:
        value = f" “{refused_json_value(refusal.value)}”" if isinstance(refusal.value, str) else ""
        problem = printable_in_refusal(f"{refusal.what}{value}: {refusal.rule}")
        remedy = printable_in_refusal(refusal.remedy[:1].upper() + refusal.remedy[1:])
        page = fill_asset_template("refused", status=refusal.status, problem=problem, remedy=remedy)
        return HTMLResponse(page, refusal.status, refusal.headers)
    body = json.dumps(refusal.to_json(), separators=(",", ":"))
    return Response(body, refusal.status, refusal.headers, "application/json")


# Malformed requests: the errors of pydantic in our four fields.

OBJECT = ("model_attributes_type", "model_type", "dict_type")  # pydantic's errors about bodies that are no JSON objects
NAMED = "a list of names, or an object with the parameters of each name"
RULES = {  # of fields that take several types, because pydantic has an error for each type
    "arms": f"must be {NAMED}",
    "bounds": "must be two numbers, or null",
    "cases": f"must be a whole number, {NAMED}",
    "cause": NO_CAUSE,
    "failure": "must be a number, 'worst' or 'ignore'",
    "pull": "must be a pull as ask gave it, such as '17-3f9c2a41', or its number",
    "pulls": "must be a list of pulls as ask gave them, such as '17-3f9c2a41', or their numbers",
    "reward": "must be a number or a bool, or two of them",
}


def refusal_of_malformed(request: Request, error: RequestValidationError) -> Refusal:
    """The first error. A misspelt field comes before the one that is missing because of it."""
    problems: list[dict[str, Any]] = list(error.errors())
    first = next((problem for problem in problems if problem["type"] == "extra_forbidden"), problems[0])
    kind, path, value = first["type"], first["loc"][1:], first.get("input")
    field = str(path[0]) if path else "body"
    if kind == "json_invalid":
        return Refusal(422, "body", None, "must be JSON", "send an object with Content-Type: application/json")
    if isinstance(value, bytes):
        return Refusal(415, "Content-Type", None, "must be application/json", "send it with the body")
    if kind == "extra_forbidden":
        remedy = name_check_remedy(field, _body_fields(request)) or DOCS
        return Refusal(422, field, value, "is not a field that this request has", remedy)
    if kind == "missing":
        return Refusal(422, field, None, "is needed", DOCS)
    if not path and kind in OBJECT:
        return Refusal(422, "body", value, "must be a JSON object", DOCS)
    if field in RULES and isinstance(error.body, dict):
        return Refusal(422, field, error.body.get(field), RULES[field], DOCS)
    if path[1:] == ("int",):  # the error for "float" follows
        return Refusal(422, field, value, "must be a number", DOCS)
    rule = first["msg"].replace("Input should be", "must be")
    return Refusal(422, ".".join(map(str, path)) or "body", value, rule[:1].lower() + rule[1:], DOCS)


async def refusal_of_unknown_parameters(request: Request) -> None:
    """Refuse query parameters that the address does not take: a misspelt one must not be ignored."""
    known = [parameter.alias for parameter in request.scope["route"].dependant.query_params]
    for name in request.query_params:
        if name not in known:
            remedy = name_check_remedy(name, known) or (f"it takes {' and '.join(known)}" if known else "leave it out")
            raise Refusal(422, name, request.query_params[name], "is not a parameter of this address", remedy)


def _body_fields(request: Request) -> Iterable[str]:
    """The fields of the body that the address takes."""
    for body in request.scope["route"].dependant.body_params:
        annotation = body.field_info.annotation
        for model in (annotation, *get_args(annotation)):
            if isinstance(model, type) and issubclass(model, BaseModel):
                yield from model.model_fields
