"""Scores: functions that say which arm is pulled next. thresher's own are in `kernel.py`; users write theirs.

A log names a user's function and has a digest of its source. Nothing here imports what a log names: a function is known
once the caller has passed it in.
"""

import inspect
import math
import re
import secrets
import sys
from collections.abc import Callable
from numbers import Real
from types import FunctionType
from typing import Any, NamedTuple

from ..errors import InvalidInput, NoScore, ScoreFailed, shown, told_of
from . import kernel
from .kernel import Formula
from .score_source import Pin, Unclear, source_of

ARGUMENTS = ("gap", "scatter", "seen", "weight", "exploration")
FORMULAS = ("uniform", "apt", "evt", "evt_pf", "lsa", "cheapest")  # of the kernel, as policies name them
IN_MEMORY = "memory-"  # begins the digest of a function that a log cannot describe
_DIGEST = re.compile(rf"(?:{IN_MEMORY})?[0-9a-f]{{32}}")
_NO_NAME = "it cannot be imported by its name"
VALID = "a score must be a number of at least 0, or infinity"


class Known(NamedTuple):
    """A user's function."""

    function: Any  # a FunctionType
    name: str  # as module:function
    digest: str  # of its source
    pins: tuple[Pin, ...] = ()  # what the names in its source meant then
    obstacle: str | None = None  # why a log cannot describe it


_KNOWN: dict[tuple[str, str], Known] = {}  # by name and digest


def register(score: object) -> tuple[str, str | None]:
    """The name by which a policy knows a function, and the digest of its source; None for those of the kernel.

    >>> register(kernel.apt)
    ('apt', None)
    """
    function: Any = getattr(score, "py_func", score)  # of a function that numba has compiled
    remedy = f"write def score({', '.join(ARGUMENTS)})"
    if not isinstance(function, FunctionType):
        raise InvalidInput("score", score, "must be a plain function", remedy)
    name: str = function.__name__
    if name in FORMULAS and vars(kernel)[name] is function:
        return name, None
    try:
        inspect.signature(function).bind(*ARGUMENTS)
    except TypeError:
        raise InvalidInput("score", function.__qualname__, "must take five arguments", remedy) from None
    known = _described(function)
    _KNOWN[known.name, known.digest] = known
    return known.name, known.digest


def _described(function: FunctionType) -> Known:
    name = _importable(function)
    try:
        if name is None:
            raise Unclear(_NO_NAME)
        source = source_of(function)
        return Known(function, name, source.digest, source.pins)
    except Unclear as unclear:
        parts = (function.__module__ or "", function.__qualname__)
        name = name or ":".join(part if _is_dotted(part) else "memory" for part in parts)
        mine = (known for known in list(_KNOWN.values()) if known.function is function and known.obstacle)
        found = next(mine, None) or Known(function, name, IN_MEMORY + secrets.token_hex(16))
        return found._replace(obstacle=str(unclear))


def _importable(function: FunctionType) -> str | None:
    """The name under which the function can be imported, as module:function; None if it cannot be."""
    module = sys.modules.get(function.__module__)
    found: Any = module
    for part in function.__qualname__.split("."):
        found = getattr(found, part, None)
    if getattr(found, "py_func", found) is not function or module is None:
        return None
    name = function.__module__
    if name == "__main__":  # of a script: importing its file finds the same function
        spec, file = getattr(module, "__spec__", None), getattr(module, "__file__", None) or ""
        name = spec.name if spec is not None else file.replace("\\", "/").rpartition("/")[2].removesuffix(".py")
    return f"{name}:{function.__qualname__}" if _is_dotted(name) else None


# -- looking up ----------------------------------------------------------------------------------------------------


def is_name(formula: object) -> bool:
    """Whether this can be the name of a user's function.

    >>> is_name("my.module:score"), is_name("evt"), is_name("a b:c")
    (True, False, False)
    """
    if not isinstance(formula, str) or formula.count(":") != 1:
        return False
    return all(map(_is_dotted, formula.split(":")))


def _is_dotted(name: str) -> bool:
    """Whether this is a dotted name, as Python writes modules and functions."""
    return all(part.isidentifier() or part in ("<locals>", "<lambda>") for part in name.split("."))


def is_digest(digest: object) -> bool:
    """Whether this can be the digest of a user's function."""
    return isinstance(digest, str) and _DIGEST.fullmatch(digest) is not None


def digest_of(formula: str) -> str | None:
    """The digest of the function of that name that was passed in last; None: there is none."""
    return next((digest for name, digest in reversed(list(_KNOWN)) if name == formula), None)


def known(formula: str, digest: str | None) -> Known:
    """The user's function of that name and source, if it was passed in."""
    found = _KNOWN.get((formula, digest or ""))
    if found is not None and (all(pin.holds for pin in found.pins) or _is_the_same(found)):
        return found
    if any(name == formula for name, _ in list(_KNOWN)):
        rule = "its source, or that of something it refers to, has changed since the study was created"
        raise NoScore("policy", formula, rule, "restore it, or create a new study with it")
    remedy = "pass the function: open_study(…, scores=[function]), or --policy module:function"
    raise NoScore("policy", formula, "this study's score is not known here, and is never imported by itself", remedy)


def _is_the_same(known: Known) -> bool:
    """Whether a function does what it did, after something that it refers to was set again; if so, that is pinned."""
    try:
        source = source_of(known.function)
    except Unclear:
        return False
    if source.digest == known.digest:
        _KNOWN[known.name, known.digest] = known._replace(pins=source.pins)
    return source.digest == known.digest


def obstacle(formula: str, digest: str) -> str | None:
    """Why a stored study cannot have this function; None if it can."""
    if not digest.startswith(IN_MEMORY):
        return None
    found = _KNOWN.get((formula, digest))
    return found.obstacle if found is not None else _NO_NAME


class Refused(Exception):
    """A function returned something that is not a score."""

    def __init__(self, what: str, given: tuple[float, ...]) -> None:
        super().__init__(what)
        self.what, self.given = what, given

    def of_arm(self, score: str, arm: object, where: str = "") -> ScoreFailed:
        """The error that names the function, the arm and the arguments."""
        told = ", ".join(f"{name}={value!r}" for name, value in zip(ARGUMENTS, self.given, strict=True))
        rule = f"{self.what} for arm {shown(arm)}{where} with {told}"
        return ScoreFailed("policy", score, rule, VALID)


def checked(function: Callable[..., object]) -> Formula:
    """The function, with every score checked."""

    def scored(gap: float, scatter: float, seen: int, weight: float, exploration: float) -> float:
        given = (gap, scatter, seen, weight, exploration)
        try:
            value = function(*given)
            number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
        except Exception as error:
            raise Refused(f"raised {told_of(error)}", given) from error
        if number >= 0.0:
            return number
        raise Refused(f"returned {shown(value, 60)}", given)

    return scored
