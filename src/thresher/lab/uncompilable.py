"""Why a score function cannot be compiled, in plain words and with the line: what people write by mistake.

The laboratory compiles numbers and control flow: nothing that allocates memory. This file knows the usual mistakes by
their syntax; numba finds the others.
"""

import ast
import builtins
import inspect
import textwrap
from collections.abc import Iterator
from pathlib import PurePath
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

from ..core import score_source, scores

DRAWN = ("random", "numpy.random", "secrets", "time", "uuid", "os")  # modules whose answers differ from call to call
NODES: dict[type[ast.AST], str] = {
    ast.Dict: "it makes a dict",
    ast.DictComp: "it makes a dict",
    ast.Set: "it makes a set",
    ast.SetComp: "it makes a set",
    ast.List: "it makes a list",
    ast.ListComp: "it makes a list",
    ast.GeneratorExp: "it makes a generator; write a loop",
    ast.Yield: "it is a generator; return a number",
    ast.YieldFrom: "it is a generator; return a number",
    ast.AsyncFunctionDef: "it is asynchronous; write def",
    ast.Await: "it is asynchronous; write def",
    ast.JoinedStr: "it makes text",
    ast.Try: "it has a try; test for the case instead, with if",
    ast.With: "it has a with",
    ast.Import: "it imports; import at the top of the file",
    ast.ImportFrom: "it imports; import at the top of the file",
    ast.Global: "it changes a global variable; a score may only read its arguments",
    ast.Lambda: "it makes a function; write it at the top of the file",
    ast.ClassDef: "it makes a class",
    ast.Raise: "it raises an exception; return infinity for an arm that must wait",
    ast.Assert: "it has an assert",
}
UNKNOWN = object()
VARIADIC = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


class Trouble(NamedTuple):
    """The first line that cannot be compiled."""

    line: int
    reason: str
    file: str

    def __str__(self) -> str:
        return f"cannot be compiled, line {self.line} of {PurePath(self.file).name}: {self.reason}"


def trouble(function: FunctionType, outer: tuple[FunctionType, ...] = ()) -> Trouble | None:
    """What a function, or one that it calls, does that cannot be compiled; None: nothing that is known here.

    >>> def score(gap, scatter, seen, weight, exploration):
    ...     return gap * 2.0
    >>> trouble(score) is None
    True
    """
    try:
        lines, first = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return None
    body = tree.body[0]
    if function.__name__ == "<lambda>" or not isinstance(body, ast.FunctionDef | ast.AsyncFunctionDef):
        return None
    code, most = function.__code__, len(scores.ARGUMENTS)
    if not outer and (code.co_argcount != most or code.co_kwonlyargcount or code.co_flags & VARIADIC):
        return Trouble(first, f"it must take {most} arguments, no fewer and no more", code.co_filename)
    for node in _in_order(body):
        if reason := _reason(node, function):
            return Trouble(first + node.lineno - 1, reason, function.__code__.co_filename)
        called = score_source.meaning(node.func, function) if isinstance(node, ast.Call) else None
        if isinstance(called, FunctionType):
            if called in (function, *outer):
                reason = f"{called.__name__} calls itself; write a loop"
                return Trouble(first + node.lineno - 1, reason, function.__code__.co_filename)
            if found := trouble(called, (function, *outer)):
                return found
    return None


def _in_order(body: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Any]:
    """The function's nodes with a line in the source, except its docstring, annotations and defaults."""
    if isinstance(body, ast.AsyncFunctionDef):
        yield body
    docstring = body.body[:1] if ast.get_docstring(body) is not None else []
    for statement in body.body[len(docstring) :]:
        nodes: list[Any] = [node for node in ast.walk(statement) if hasattr(node, "lineno")]
        yield from sorted(nodes, key=lambda node: (node.lineno, node.col_offset))


def _reason(node: Any, function: FunctionType) -> str | None:
    if type(node) in NODES:
        return NODES[type(node)]
    if isinstance(node, ast.FunctionDef):
        return NODES[ast.Lambda]
    if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
        return "it uses text"
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        return _name(node.id, function)
    if isinstance(node, ast.Attribute):
        return _attribute(node, function)
    if isinstance(node, ast.Call):
        if score_source.meaning(node.func, function) is print:
            return "it prints"
        if node.keywords and getattr(score_source.meaning(node.func, function), "__module__", None) == "math":
            return f"{ast.unparse(node.func)} takes no argument by name"
    return None


def _name(name: str, function: FunctionType) -> str | None:
    """What is wrong with a name that is read."""
    if name in function.__code__.co_varnames + function.__code__.co_cellvars + function.__code__.co_freevars:
        return None
    value = function.__globals__.get(name, getattr(builtins, name, UNKNOWN))
    if value is UNKNOWN:
        return f"there is no {name}"
    if isinstance(value, list | dict | set):
        return f"{name} is a {type(value).__name__}; use numbers, or a tuple of numbers"
    if isinstance(value, str | bytes):
        return f"{name} is text"
    if isinstance(value, type) and not hasattr(builtins, value.__name__):
        return f"{name} is a class"
    drawn = getattr(value, "__module__", None) or getattr(type(getattr(value, "__self__", None)), "__module__", None)
    if drawn in DRAWN and not isinstance(value, type):
        return f"{name} gives another answer each time; a score may only depend on its arguments"
    return None


def _attribute(node: ast.Attribute, function: FunctionType) -> str | None:
    """What is wrong with owner.name."""
    root = node.value
    while isinstance(root, ast.Attribute):
        root = root.value
    owner = score_source.meaning(node.value, function)
    text = ast.unparse(node)
    if isinstance(owner, ModuleType):
        if owner.__name__ in DRAWN:
            return f"{text} gives another answer each time; a score may only depend on its arguments"
        if (
            isinstance(score_source.meaning(node, function), FunctionType)
            and owner.__name__.partition(".")[0] != "numpy"
        ):
            return f"{text} is called through its module; write from {owner.__name__} import {node.attr}"
        return None if hasattr(owner, node.attr) else f"{owner.__name__} has no {node.attr}"
    if isinstance(root, ast.Name) and root.id in function.__code__.co_varnames:
        return f"it uses {text}: a number has no methods here"
    return None
