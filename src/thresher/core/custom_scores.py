"""Score functions of users. The arm with the smallest score is pulled next; thresher's own scores are in `board.py`.

A log names a user's function and has a digest of the file that defines it. Nothing here imports what a log names: a
function is known once the caller has passed it in.
"""

import hashlib
import inspect
import math
import re
import secrets
import sys
from collections.abc import Callable
from numbers import Real
from types import FunctionType
from typing import Any, NamedTuple

from ..errors import InvalidInput, NoScore, ScoreFailed, error_line, shown
from ..text.naming import Naming
from .board import FORMULAS, Formula

ARGUMENTS = ("gap", "scatter", "seen", "weight", "exploration")
IN_MEMORY = "memory-"  # begins the digest of a function that a log cannot describe
_DIGEST = re.compile(rf"(?:{IN_MEMORY})?[0-9a-f]{{32}}")
_NO_NAME = "it cannot be imported by its name"
VALID = "a score must be a number of at least 0, or infinity"


class Known(NamedTuple):
    """A user's function."""

    function: Any  # a FunctionType
    name: str  # as module:function
    digest: str  # of its name and the file that defines it
    obstacle: str | None = None  # why a log cannot describe it


KNOWN: dict[tuple[str, str], Known] = {}  # by name and digest


def register_score(score: object) -> tuple[str, str | None]:
    """The name by which a policy knows a function, and the digest of its file; None for thresher's own.

    >>> register_score(FORMULAS["apt"])
    ('apt', None)
    """
    function: Any = getattr(score, "py_func", score)  # of a function that numba has compiled
    remedy = f"write def score({', '.join(ARGUMENTS)})"
    if not isinstance(function, FunctionType):
        raise InvalidInput("score", score, "must be a plain function", remedy)
    own = next((name for name, formula in FORMULAS.items() if formula is function), None)
    if own is not None:
        return own, None
    try:
        inspect.signature(function).bind(*ARGUMENTS)
    except TypeError:
        raise InvalidInput("score", function.__qualname__, "must take five arguments", remedy) from None
    known = _described(function)
    KNOWN[known.name, known.digest] = known
    return known.name, known.digest


def _described(function: FunctionType) -> Known:
    name, obstacle = _importable(function), _NO_NAME
    if name is not None:
        try:
            source = inspect.getsource(sys.modules[function.__module__])
            # with its name, for a file may define several scores, and compiled code is linked by the digest
            return Known(function, name, hashlib.sha256(f"{name}\n{source}".encode()).hexdigest()[:32])
        except (OSError, TypeError):
            obstacle = "the file that defines it cannot be read"
    parts = (function.__module__ or "", function.__qualname__)
    name = name or ":".join(part if _is_dotted(part) else "memory" for part in parts)
    before = (known for known in list(KNOWN.values()) if known.function is function and known.obstacle)
    return next(before, None) or Known(function, name, IN_MEMORY + secrets.token_hex(16), obstacle)


def _importable(function: FunctionType) -> str | None:
    """The name under which the function can be imported, as module:function; None if it cannot be."""
    module = sys.modules.get(function.__module__)
    target: Any = module
    for part in function.__qualname__.split("."):
        target = getattr(target, part, None)
    if getattr(target, "py_func", target) is not function or module is None:
        return None
    name = function.__module__
    if name == "__main__":  # of a script: importing its file finds the same function
        spec, file = getattr(module, "__spec__", None), getattr(module, "__file__", None) or ""
        name = spec.name if spec is not None else file.replace("\\", "/").rpartition("/")[2].removesuffix(".py")
    return f"{name}:{function.__qualname__}" if _is_dotted(name) else None


# -- looking up ----------------------------------------------------------------------------------------------------


def is_score_name(formula: object) -> bool:
    """Whether this can be the name of a user's function.

    >>> is_score_name("my.module:score"), is_score_name("evt"), is_score_name("a b:c")
    (True, False, False)
    """
    if not isinstance(formula, str) or formula.count(":") != 1:
        return False
    return all(map(_is_dotted, formula.split(":")))


def _is_dotted(name: str) -> bool:
    """Whether this is a dotted name, as Python writes modules and functions."""
    return all(part.isidentifier() or part in ("<locals>", "<lambda>") for part in name.split("."))


def is_score_digest(digest: object) -> bool:
    """Whether this can be the digest of a user's function."""
    return isinstance(digest, str) and _DIGEST.fullmatch(digest) is not None


def score_digest(formula: str) -> str | None:
    """The digest of the function of that name that was passed in last; None: there is none."""
    return next((digest for name, digest in reversed(list(KNOWN)) if name == formula), None)


def registered_score(formula: str, digest: str | None) -> Known:
    """The user's function of that name and file, if it was passed in."""
    match = KNOWN.get((formula, digest or ""))
    if match is not None:
        return match
    if any(name == formula for name, _ in list(KNOWN)):
        rule = "the file that defines it has changed since the study was created"
        raise NoScore("policy", formula, rule, "restore it, or create a new study with it")
    rule = "this study's score is not known here, and is never imported by itself"
    raise NoScore("policy", formula, rule, Naming("pass the function with {scores=[function]}"))


def why_custom_score_unavailable(formula: str, digest: str) -> str | None:
    """Why a stored study cannot have this function; None if it can."""
    if not digest.startswith(IN_MEMORY):
        return None
    known = KNOWN.get((formula, digest))
    return known.obstacle if known is not None else _NO_NAME


class CustomScoreRefused(Exception):
    """A function returned something that is not a score."""

    def __init__(self, problem: str, arguments: tuple[float, ...]) -> None:
        super().__init__(problem)
        self.problem, self.arguments = problem, arguments

    def of_arm(self, score: str, arm: object, where: str = "") -> ScoreFailed:
        """The error that names the function, the arm and the arguments."""
        told = ", ".join(f"{name}={value!r}" for name, value in zip(ARGUMENTS, self.arguments, strict=True))
        rule = f"{self.problem} for arm {shown(arm)}{where} with {told}"
        return ScoreFailed("policy", score, rule, VALID)


def with_score_checks(function: Callable[..., object]) -> Formula:
    """The function, with every score checked."""

    def scored(gap: float, scatter: float, seen: int, weight: float, exploration: float) -> float:
        arguments = (gap, scatter, seen, weight, exploration)
        try:
            value = function(*arguments)
            number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
        except Exception as error:
            raise CustomScoreRefused(f"raised {error_line(error)}", arguments) from error
        if number >= 0.0:
            return number
        raise CustomScoreRefused(f"returned {shown(value, 60)}", arguments)

    return scored
