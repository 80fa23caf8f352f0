"""Scores in compiled code: thresher's formulas by their numbers, and a user's function.

A rule's formula is a number there, so that a single loop is enough for all formulas.
"""

import re
import warnings
from collections.abc import Iterator
from functools import cache
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import numba

from ..core import custom_scores
from ..core.board import (
    Board,
    Rule,
    apt_formula,
    cheapest_formula,
    doubled_formula_exploration,
    evt_formula,
    evt_pf_formula,
    evt_supplement_formula,
    lsa_formula,
    score_on_board,
    uniform_formula,
)
from ..core.policies import DOUBLING, Policy
from ..errors import InvalidInput, ScoreFailed
from .repetition import INVALID, Measures

NAMES = (
    "uniform_formula",
    "apt_formula",
    "evt_formula",
    "evt_supplement_formula",
    "evt_pf_formula",
    "lsa_formula",
    "cheapest_formula",
)
APT, EVT, EVT_SUPPLEMENT, EVT_PF, LSA, CHEAPEST, OWN = range(1, len(NAMES) + 1)
IS_CUSTOM = False  # whether loops are compiled with a user's function, which has the number OWN


def numbered_score(rule: Rule, *, is_custom: bool = False) -> Any:
    """The rule as compiled code takes it."""
    return rule._replace(formula=OWN if is_custom else NAMES.index(rule.formula.__name__))  # type: ignore[arg-type]


def score_to_compile(gap: float, scatter: float, seen: int, weight: float, exploration: float) -> float:
    """`compiler.py` puts the user's function in its place."""
    return weight


def apply_formula(rule: Any, gap: float, scatter: float, seen: int, weight: float) -> float:
    """The value of the rule's formula, or INVALID; it replaces the function of this name in `board.py`."""
    number, exploration = rule.formula, rule.exploration
    if IS_CUSTOM and number == OWN:
        value = float(score_to_compile(gap, scatter, seen, weight, exploration))
        return value if value >= 0.0 else INVALID
    if number == EVT:
        return evt_formula(gap, scatter, seen, weight, exploration)
    if number == CHEAPEST:
        return cheapest_formula(gap, scatter, seen, weight, exploration)
    if number == APT:
        return apt_formula(gap, scatter, seen, weight, exploration)
    if number == EVT_PF:
        return evt_pf_formula(gap, scatter, seen, weight, exploration)
    if number == EVT_SUPPLEMENT:
        return evt_supplement_formula(gap, scatter, seen, weight, exploration)
    if number == LSA:
        return lsa_formula(gap, scatter, seen, weight, exploration)
    return uniform_formula(gap, scatter, seen, weight, exploration)


# A user's function: compiled from outside, as the core is, and checked.

njit: Any = numba.njit  # its annotations lack the options below
# as in `compiler.py`, except that a division by zero is an error, as it is in a live study
OPTIONS: Any = {"error_model": "python", "_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
REMEDY = "the laboratory compiles scores: use numbers, math, if and loops"


class InvalidScore(NamedTuple):
    """Where a score was invalid."""

    row: int
    arm: int | None  # None: the score divided by zero, which ends compiled code at once


def invalid_compiled_score(measures: Measures) -> InvalidScore | None:
    """The first repetition that ended because of an invalid score, and the arm; None: all were valid."""
    if not len(measures.in_flight) or measures.in_flight.min() >= 0:
        return None
    row = int((measures.in_flight[:, 0] < 0).argmax())
    return InvalidScore(row, -1 - int(measures.in_flight[row, 0]))


def compiled_score_failed(
    policy: Policy, invalid: InvalidScore, measures: Measures, board: Any, rule: Rule
) -> ScoreFailed:
    """The error, with the arguments from the board at the end of that repetition."""
    row, where = invalid.row, f" in repetition {invalid.row}"
    if policy.exploration == DOUBLING:
        on_board = int(board.seen.sum() + board.pending.sum())
        issued = max(on_board, int(measures.used[row, 0]))  # only the delayed loop loses pulls, and counts
        rule = rule._replace(exploration=doubled_formula_exploration(rule.exploration, issued, len(board.seen)))
    plain: Any = Board(*(column.tolist() for column in board))
    rule = rule._replace(formula=policy.scored_by())
    for arm in range(len(plain.seen)) if invalid.arm is None else [invalid.arm]:
        try:
            score_on_board(plain, arm, rule)
        except custom_scores.CustomScoreRefused as refused:
            return refused.of_arm(policy.formula, arm, where)
    # only compiled code broke the rule: a logarithm may round differently
    rule_broken = f"returned a negative number or NaN for arm {invalid.arm}{where}"
    if invalid.arm is None:
        rule_broken = f"divided by zero{where}"
    return ScoreFailed("policy", policy.formula, rule_broken, custom_scores.VALID)


@cache
def compiled_score(formula: str, digest: str) -> Any:
    """The user's function, compiled, or an error that says why it cannot be."""
    function: FunctionType = custom_scores.registered_score(formula, digest).function
    _check(formula, function)
    return _compiled(function, digest, {}, **OPTIONS, forceinline=True)


def rebuilt_to_compile(function: FunctionType, namespace: dict[str, Any], name: str) -> FunctionType:
    """The same bytecode in another namespace.

    Machine code from the cache is linked by name. Functions with different namespaces need different names, or one
    would silently replace the other.
    """
    copy = FunctionType(function.__code__, namespace, name, function.__defaults__, function.__closure__)
    copy.__qualname__ = name
    return copy


def _compiled(function: FunctionType, name: str, done: dict[FunctionType, Any], **options: Any) -> Any:
    """The function with its own globals, where the functions that it calls are compiled too."""
    namespace = dict(function.__globals__)
    for global_name in set(_names(function.__code__)):
        value = namespace.get(global_name)
        if isinstance(value, FunctionType) and value is not function:
            if value not in done:
                done[value] = _compiled(value, name, done, **options)
            namespace[global_name] = done[value]
    return njit(**options)(rebuilt_to_compile(function, namespace, f"{function.__name__}-{name}"))


def _names(code: CodeType) -> Iterator[str]:
    """The names that a function, or one inside it, refers to."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _check(formula: str, function: FunctionType) -> None:
    """Compile the function alone, and raise numba's message if that fails."""
    types = numba.types
    signature = (types.float64, types.float64, types.int64, types.float64, types.float64)
    try:
        alone = _compiled(function, "alone", {}, **OPTIONS)
        with warnings.catch_warnings(action="ignore"):
            alone.compile(signature)
    except Exception as error:  # numba raises errors of its own, and others
        raise InvalidInput("policy", formula, f"cannot be compiled{_told(error, function)}", REMEDY) from None
    returned = alone.overloads[signature].signature.return_type
    if not isinstance(returned, types.Integer | types.Float):
        raise InvalidInput("policy", formula, f"returns {returned}", "a score must be a number in every case")


def _told(error: Exception, function: FunctionType) -> str:
    """The line of the user's file that numba names, and the start of its message."""
    text = str(error)
    file = re.escape(function.__code__.co_filename.rpartition("/")[2])
    lines = re.findall(rf'{file}(?:", line | \()(\d+)', text)
    message = (line.strip(" :") for line in text.splitlines())
    reason = next(
        (line for line in message if line and not line.startswith("Failed in nopython")), type(error).__name__
    )
    return f"{f', line {lines[-1]}' if lines else ''}: {reason}"
