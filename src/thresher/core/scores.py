"""Scores: functions that say which arm is pulled next. thresher's own are in `kernel.py`; users write theirs.

A log names a user's function and has a digest of its source. Nothing here imports what a log names: a function is known
once the caller has passed it in.
"""

import ast
import builtins
import hashlib
import inspect
import itertools
import math
import sys
import textwrap
from collections.abc import Callable, Iterator
from numbers import Real
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

from ..errors import InvalidInput, NoScore, ScoreFailed, shown, told_of
from . import kernel
from .kernel import Formula

ARGUMENTS = ("gap", "scatter", "seen", "weight", "exploration")
FORMULAS = ("uniform", "apt", "evt", "evt_pf", "lsa", "cheapest")  # of the kernel, as policies name them
IN_MEMORY = "memory-"  # begins the digest of a function that cannot be imported by name
_EXACT_CALLS = (abs, min, max, float, int, range, math.sqrt)
_EXACT_NODES = (
    *(ast.FunctionDef, ast.Lambda, ast.arguments, ast.arg, ast.Return, ast.Expr, ast.Pass, ast.Module),
    *(ast.Assign, ast.AugAssign, ast.AnnAssign, ast.NamedExpr, ast.Name, ast.Constant, ast.expr_context, ast.Attribute),
    *(ast.If, ast.IfExp, ast.While, ast.For, ast.Break, ast.Continue, ast.Tuple, ast.Call),
    *(ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.UnaryOp, ast.unaryop, ast.BoolOp, ast.boolop),
    *(ast.Compare, ast.cmpop),
)


class Known(NamedTuple):
    """A user's function."""

    function: Any  # a FunctionType
    name: str  # as module:function
    digest: str  # of its source


_KNOWN: dict[tuple[str, str], Known] = {}
_IN_MEMORY: dict[FunctionType, Known] = {}
_NUMBERS = itertools.count(1)


def register(score: object) -> tuple[str, str | None]:
    """The name by which a policy knows a function, and the digest of its source; None for those of the kernel.

    >>> register(kernel.apt)
    ('apt', None)
    """
    function: Any = getattr(score, "py_func", score)  # of a function that numba has compiled
    if not isinstance(function, FunctionType):
        remedy = f"write def score({', '.join(ARGUMENTS)})"
        raise InvalidInput("score", score, "must be a plain function", remedy)
    name: str = function.__name__
    if name in FORMULAS and vars(kernel)[name] is function:
        return name, None
    try:
        inspect.signature(function).bind(*ARGUMENTS)
    except TypeError:
        rule = f"must take five arguments: {', '.join(ARGUMENTS)}"
        raise InvalidInput("score", function.__qualname__, rule) from None
    known = _IN_MEMORY.get(function) or _described(function)
    _KNOWN[known.name, known.digest] = known
    return known.name, known.digest


def _described(function: FunctionType) -> Known:
    name = _importable(function)
    source = None if name is None else source_of(function)
    if name is None or source is None:
        shown = f"{function.__module__}:{function.__qualname__}"
        known = _IN_MEMORY[function] = Known(function, shown, f"{IN_MEMORY}{next(_NUMBERS)}")
        return known
    return Known(function, name, hashlib.sha256(source.encode()).hexdigest()[:32])


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
        spec, file = getattr(module, "__spec__", None), getattr(module, "__file__", None)
        name = (
            spec.name if spec is not None else file and file.replace("\\", "/").rpartition("/")[2].removesuffix(".py")
        )
    return f"{name}:{function.__qualname__}" if name else None


def source_of(function: FunctionType) -> str | None:
    """The source of a function with all that it refers to: functions that it calls, and constants; None: there is none.

    >>> source_of(kernel.spread) == inspect.getsource(kernel.spread)
    True
    """
    try:
        return "\n".join(_sources(function, set()))
    except (OSError, TypeError):
        return None


def _sources(function: FunctionType, done: set[FunctionType]) -> Iterator[str]:
    done.add(function)
    yield textwrap.dedent(inspect.getsource(function))
    for name, value in sorted(referred(function).items()):
        if isinstance(value, FunctionType) and value not in done:
            yield from _sources(value, done)
        elif isinstance(value, int | float | str | tuple):
            yield f"{name} = {value!r}\n"


def referred(function: FunctionType) -> dict[str, Any]:
    """The globals that a function refers to, by name."""
    return {name: function.__globals__[name] for name in _names(function.__code__) if name in function.__globals__}


def _names(code: CodeType) -> set[str]:
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*map(_names, inner))


def is_exact(function: FunctionType) -> bool:
    """Whether it uses only operations that round the same way on every machine: + − * / sqrt abs and comparisons.

    >>> is_exact(kernel.evt), is_exact(kernel.lsa)
    (True, False)
    """
    return _is_exact(function, set())


def _is_exact(function: FunctionType, done: set[FunctionType]) -> bool:
    done.add(function)
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return False
    lambdas = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda)]
    body: ast.AST = lambdas[0] if function.__name__ == "<lambda>" and len(lambdas) == 1 else tree
    if function.__closure__ or (function.__name__ == "<lambda>" and len(lambdas) != 1):
        return False
    for node in ast.walk(body):
        if not isinstance(node, _EXACT_NODES):
            return False
        called = meaning(node.func, function) if isinstance(node, ast.Call) else None
        if isinstance(called, FunctionType):
            if called not in done and not _is_exact(called, done):
                return False
        elif isinstance(node, ast.Call) and called not in _EXACT_CALLS:
            return False
        if isinstance(node, ast.Attribute) and not isinstance(meaning(node, function), float | type(math.sqrt)):
            return False
    return True


def meaning(node: ast.expr, function: FunctionType) -> Any:
    """What a name, or an attribute of a module, stands for in a function."""
    if isinstance(node, ast.Name):
        return function.__globals__.get(node.id, getattr(builtins, node.id, None))
    if isinstance(node, ast.Attribute):
        owner = meaning(node.value, function)
        return getattr(owner, node.attr, None) if isinstance(owner, ModuleType) else None
    return None


# -- looking up ----------------------------------------------------------------------------------------------------


def is_name(formula: object) -> bool:
    """Whether this can be the name of a user's function.

    >>> is_name("my.module:score"), is_name("evt"), is_name("a b:c")
    (True, False, False)
    """
    if not isinstance(formula, str) or not formula.isprintable() or " " in formula:
        return False
    module, _, function = formula.partition(":")
    return bool(module and function)


def digest_of(formula: str) -> str | None:
    """The digest of the function of that name that was passed in last; None: there is none."""
    return next((digest for name, digest in reversed(_KNOWN) if name == formula), None)


def known(formula: str, digest: str | None) -> Known:
    """The user's function of that name and source, if it was passed in."""
    found = _KNOWN.get((formula, digest or ""))
    if found is not None:
        return found
    if any(name == formula for name, _ in _KNOWN):
        rule = "its source, or that of something it refers to, has changed since the study was created"
        raise NoScore("policy", formula, rule, "restore it, or create a new study with it")
    remedy = "pass the function: open_study(…, scores=[function]), or --policy module:function"
    raise NoScore("policy", formula, "this study's score is not known here, and is never imported by itself", remedy)


class Refused(Exception):
    """What a function returned is no score."""

    def __init__(self, what: str, given: tuple[float, ...]) -> None:
        super().__init__(what)
        self.what, self.given = what, given

    def of_arm(self, score: str, arm: object, where: str = "") -> ScoreFailed:
        """The error that names the function, the arm and the arguments."""
        told = ", ".join(f"{name}={value!r}" for name, value in zip(ARGUMENTS, self.given, strict=True))
        rule = f"{self.what} for arm {shown(arm)}{where} with {told}"
        return ScoreFailed("policy", score, rule, "a score must be a number of at least 0, or infinity")


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
