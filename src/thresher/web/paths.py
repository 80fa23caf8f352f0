"""Paths in one form. Checks and routes must see the same path, or a request could get around a check."""

from collections.abc import MutableMapping
from typing import Any
from urllib.parse import quote, unquote_to_bytes

from .refusals import Refusal


def normalised(scope: MutableMapping[str, Any]) -> dict[str, Any]:
    """The request with its path resolved.

    A study's name may contain a slash: an encoded one stays encoded in ``path``, and `segment` decodes it.

    >>> normalised({"raw_path": b"/x/../api//studies/a%2Fb", "path": ""})["path"]
    '/api/studies/a%2Fb'
    """
    raw = scope.get("raw_path") or quote(scope["path"]).encode()
    parts: list[str] = []
    for piece in raw.partition(b"?")[0].split(b"/"):
        try:
            part = unquote_to_bytes(piece).decode()
        except UnicodeDecodeError:
            raise Refusal(400, "path", None, "must be UTF-8", "encode it as UTF-8") from None
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    path = "/" + "/".join(kept(part) for part in parts)
    return {**scope, "path": path, "raw_path": ("/" + "/".join(quote(part, safe="") for part in parts)).encode()}


def kept(part: str) -> str:
    """A segment as part of a path: its slashes do not separate.

    >>> kept("50%/x")
    '50%25%2Fx'
    """
    return part.replace("%", "%25").replace("/", "%2F")


def segment(part: str) -> str:
    """The segment that `kept` encoded.

    >>> segment(kept("50%/x"))
    '50%/x'
    """
    return part.replace("%2F", "/").replace("%25", "%")
