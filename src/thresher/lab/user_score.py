"""A user's score function in the laboratory: compiled from outside, as the kernel is, and checked."""

import re
import warnings
from functools import cache
from types import FunctionType
from typing import Any, NamedTuple

import numba

from ..core import kernel, score_source, scores
from ..core.kernel import Board, Rule
from ..core.policies import DOUBLING, Policy
from ..core.steps import doubled
from ..errors import InvalidInput, ScoreFailed
from .linking import rebuilt
from .repetition import Measures
from .uncompilable import Trouble, trouble

njit: Any = numba.njit  # its annotations lack the options below
# as in `compiler.py`, except that a division by zero is an error, as it is in a live study
OPTIONS: Any = {"error_model": "python", "_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
REMEDY = "the laboratory compiles scores: use numbers, math, if and loops"


class NoNumber(NamedTuple):
    """Where a score was none."""

    row: int
    arm: int | None  # None: the score divided by zero, which ends compiled code at once


def refused_in(measures: Measures) -> NoNumber | None:
    """The first repetition that ended because of an invalid score, and the arm; None: all were valid."""
    if not len(measures.in_flight) or measures.in_flight.min() >= 0:
        return None
    row = int((measures.in_flight[:, 0] < 0).argmax())
    return NoNumber(row, -1 - int(measures.in_flight[row, 0]))


def score_failed(policy: Policy, found: NoNumber, measures: Measures, board: Any, rule: Rule) -> ScoreFailed:
    """The error, with the arguments as the board at the end of that repetition has them."""
    where = f" in repetition {found.row}"
    if policy.exploration == DOUBLING:
        kept = int(board.seen.sum() + board.pending.sum())
        issued = max(kept, int(measures.used[found.row, 0]))  # only the delayed loop loses pulls, and counts
        rule = rule._replace(exploration=doubled(rule.exploration, issued, len(board.seen)))
    plain: Any = Board(*(column.tolist() for column in board))
    rule = rule._replace(formula=policy.scored_by())
    for arm in range(len(plain.seen)) if found.arm is None else [found.arm]:
        try:
            kernel.score(plain, arm, rule)
        except scores.Refused as refused:
            return refused.of_arm(policy.formula, arm, where)
    # compiled only: a logarithm may round otherwise
    rule_broken = f"returned a negative number or NaN for arm {found.arm}{where}"
    if found.arm is None:
        rule_broken = f"divided by zero{where}"
    return ScoreFailed("policy", policy.formula, rule_broken, scores.VALID)


@cache
def compiled(formula: str, digest: str) -> Any:
    """The user's function, compiled, or one line that says why it cannot be."""
    function: FunctionType = scores.known(formula, digest).function
    _check(formula, function)
    return _compiled(function, digest, {}, **OPTIONS, forceinline=True)


def _compiled(function: FunctionType, name: str, done: dict[FunctionType, Any], **options: Any) -> Any:
    """The function with its own globals, where the functions that it calls are compiled too."""
    namespace = dict(function.__globals__)
    for called, value in score_source.referred(function).items():
        if isinstance(value, FunctionType) and value is not function:
            if value not in done:
                done[value] = _compiled(value, name, done, **options)
            namespace[called] = done[value]
    return njit(**options)(rebuilt(function, namespace, f"{function.__name__}-{name}"))


def _check(formula: str, function: FunctionType) -> None:
    """Compile it alone, and refuse what cannot be compiled with the line of the user's file."""
    if found := trouble(function):
        raise InvalidInput("policy", formula, str(found), REMEDY)
    alone = _compiled(function, "alone", {}, **OPTIONS)
    types = numba.types
    signature = (types.float64, types.float64, types.int64, types.float64, types.float64)
    try:
        with warnings.catch_warnings(action="ignore"):
            alone.compile(signature)
    except Exception as error:  # numba raises errors of its own, and others
        raise InvalidInput("policy", formula, str(_told(error, function)), REMEDY) from None
    returned = alone.overloads[signature].signature.return_type
    if not isinstance(returned, types.Integer | types.Float):
        raise InvalidInput("policy", formula, _returns(returned), "a score must be a number in every case")


def _returns(found: Any) -> str:
    """What a function returns that is no number."""
    if isinstance(found, numba.types.Optional | numba.types.NoneType):
        return "returns nothing in some cases" if isinstance(found, numba.types.Optional) else "returns nothing"
    if isinstance(found, numba.types.Boolean):
        return "returns True or False"
    return "returns a complex number" if isinstance(found, numba.types.Complex) else f"returns a {found}"


def _told(error: Exception, function: FunctionType) -> Trouble:
    """What numba says, as far as people can read it, and the line of the source."""
    text = str(getattr(error, "msg", error))
    file = function.__code__.co_filename
    lines = re.findall(r'(?:File "([^"]+)", line |from (\S+) \()(\d+)', text)
    mine = [int(line) for one, other, line in lines if (one or other).endswith(file)]
    line = mine[-1] if mine else getattr(getattr(error, "loc", None), "line", None) or function.__code__.co_firstlineno
    first = next((part.strip() for part in text.splitlines() if part.strip()), type(error).__name__)
    if unknown := re.search(r"Function\(<[\w-]+ (?:function )?(\w+)", text):
        return Trouble(line, f"numba has no {unknown[1]} for these arguments", file)
    return Trouble(line, f"numba says: {first.partition(' Raised from')[0]}", file)
