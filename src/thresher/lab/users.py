"""A user's score function in the laboratory: compiled from outside, as the kernel is, and checked."""

from functools import cache
from types import FunctionType
from typing import Any

import numba
from numba.core.errors import NumbaError, UnsupportedBytecodeError

from ..core import scores
from ..errors import InvalidInput, ScoreFailed
from .parts import INVALID, Measures

njit: Any = numba.njit  # its annotations lack the options below
OPTIONS: Any = {"error_model": "numpy", "_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
USERS: Any = None  # `compiler.py` puts the user's function here


def scored(gap: float, scatter: float, seen: int, weight: float, exploration: float) -> float:
    """The user's score, or INVALID if it is none."""
    value = float(USERS(gap, scatter, seen, weight, exploration))
    return value if value >= 0.0 else INVALID


def check_scores(measures: Measures, formula: str) -> None:
    """Raise if a repetition ended because of an invalid score."""
    if len(measures.in_flight) and measures.in_flight.min() < 0:
        row = int((measures.in_flight[:, 0] < 0).argmax())
        arm = -1 - int(measures.in_flight[row, 0])
        rule = f"returned a negative number or NaN for arm {arm} in repetition {row}"
        raise ScoreFailed("policy", formula, rule, "a score must be a number of at least 0, or infinity")


@cache
def compiled(formula: str, digest: str) -> Any:
    """The user's function, compiled, or one line that says why it cannot be."""
    function: FunctionType = scores.known(formula, digest).function
    _check(formula, function)
    return _compiled(function, digest, {}, **OPTIONS, forceinline=True)


def _compiled(function: FunctionType, name: str, done: dict[FunctionType, Any], **options: Any) -> Any:
    """The function with its own globals, where the functions that it calls are compiled too."""
    namespace = dict(function.__globals__)
    for called, value in scores.referred(function).items():
        if isinstance(value, FunctionType) and value is not function:
            if value not in done:
                done[value] = _compiled(value, name, done, **options)
            namespace[called] = done[value]
    copy = FunctionType(
        function.__code__, namespace, f"{function.__name__}-{name}", function.__defaults__, function.__closure__
    )
    copy.__qualname__ = copy.__name__
    return njit(**options)(copy)


def _check(formula: str, function: FunctionType) -> None:
    """Compile it alone: its errors name lines of the user's file."""
    alone = _compiled(function, "alone", {}, error_model="numpy")
    types = numba.types
    try:
        signature = (types.float64, types.float64, types.int64, types.float64, types.float64)
        alone.compile(signature)
    except (NumbaError, UnsupportedBytecodeError) as error:
        remedy = "the laboratory compiles scores: use numbers, math and plain control flow"
        raise InvalidInput("policy", formula, _reason(error, function), remedy) from None
    found = alone.overloads[signature].signature.return_type
    if not isinstance(found, types.Number | types.Boolean):
        raise InvalidInput("policy", formula, f"returns {found}", "a score must be a number")


def _reason(error: Exception, function: FunctionType) -> str:
    """Why a function cannot be compiled, in one line that names the line of the source."""
    line = getattr(getattr(error, "loc", None), "line", None) or function.__code__.co_firstlineno
    lines = [text.strip() for text in str(getattr(error, "msg", error)).splitlines()]
    told = [
        text for text in lines if text and not text.startswith(("During:", "File ", "Failed in", "<source", "^", ">>>"))
    ]
    return f"cannot be compiled, line {line}: {told[0] if told else type(error).__name__}"
