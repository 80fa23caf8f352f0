"""Requests of the wrong shape: what pydantic found wrong, in our four fields."""

from collections.abc import Iterable
from typing import Any, get_args

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel

from ..core.checks import nearest
from ..core.events import CALLERS
from .refusals import DOCS, Refusal

OBJECT = ("model_attributes_type", "model_type", "dict_type")  # pydantic's names for what is no JSON object
NAMED = "a list of names, or an object with the parameters of each name"
RULES = {  # of fields that take several types: pydantic has an error for each
    "arms": f"must be {NAMED}",
    "bounds": "must be two numbers, or null",
    "cases": f"must be a whole number, {NAMED}",
    "cause": CALLERS,
    "failure": "must be a number, 'worst' or 'ignore'",
    "pull": "must be a pull as ask gave it, such as '17-3f9c2a41', or its number",
    "pulls": "must be a list of pulls as ask gave them, such as '17-3f9c2a41', or their numbers",
    "reward": "must be a number or a bool, or two of them",
}


def malformed(request: Request, error: RequestValidationError) -> Refusal:
    """The first thing that is wrong. A misspelt field comes before the one that is missing because of it."""
    found: list[dict[str, Any]] = list(error.errors())
    first = next((each for each in found if each["type"] == "extra_forbidden"), found[0])
    where, value = first["loc"], first.get("input")
    field = str(where[1]) if len(where) > 1 else "body"
    if first["type"] == "json_invalid":
        return Refusal(422, "body", None, "must be JSON", "send an object with Content-Type: application/json")
    if isinstance(value, bytes):
        return Refusal(415, "Content-Type", None, "must be application/json", "send it with the body")
    if first["type"] == "extra_forbidden":
        remedy = nearest(field, _fields(request)) or DOCS
        return Refusal(422, field, value, "is not a field that this request has", remedy)
    if first["type"] == "missing":
        return Refusal(422, field, None, "is needed", DOCS)
    if len(where) == 1 and first["type"] in OBJECT:
        return Refusal(422, "body", value, "must be a JSON object", DOCS)
    if field in RULES and isinstance(error.body, dict):
        return Refusal(422, field, error.body.get(field), RULES[field], DOCS)
    if where[2:] == ("int",):  # and its error for "float" follows
        return Refusal(422, field, value, "must be a number", DOCS)
    rule = first["msg"].replace("Input should be", "must be")
    return Refusal(422, ".".join(map(str, where[1:])) or "body", value, rule[:1].lower() + rule[1:], DOCS)


async def only_known_parameters(request: Request) -> None:
    """Refuse query parameters that the address does not take: a misspelt one must not be ignored."""
    known = [each.alias for each in request.scope["route"].dependant.query_params]
    for name in request.query_params:
        if name not in known:
            takes = f"it takes {' and '.join(known)}" if known else "leave it out"
            remedy = nearest(name, known) or takes
            raise Refusal(422, name, request.query_params[name], "is not a parameter of this address", remedy)


def _fields(request: Request) -> Iterable[str]:
    """The fields of the body that the address takes."""
    for body in request.scope["route"].dependant.body_params:
        kind = body.field_info.annotation
        for each in (kind, *get_args(kind)):
            if isinstance(each, type) and issubclass(each, BaseModel):
                yield from each.model_fields
