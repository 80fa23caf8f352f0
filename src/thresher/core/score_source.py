"""What a user's score function does, as its source says: a text that pins it, and whether its operations are exact.

The text has the source of the function and of every function that it calls, and each constant that they read. If its
scores depend on anything else, `Unclear` says on what.
"""

import ast
import builtins
import hashlib
import inspect
import math
import sys
import textwrap
from collections.abc import Iterator
from numbers import Number
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

MISSING = object()
PLAIN = (bool, int, float, complex, str, bytes, type(None))  # constants whose repr says everything
LIBRARIES = sys.stdlib_module_names - {"__main__"} | {"numpy"}  # what they define counts by its name
# the source does not say what these read
HIDING = ("eval", "exec", "getattr", "globals", "locals", "vars", "open", "input", "__import__")
_EXACT_CALLS = (abs, min, max, float, int, range, math.sqrt)
_EXACT_NODES = (
    *(ast.arguments, ast.arg, ast.Return, ast.Expr, ast.Pass, ast.keyword),
    *(ast.Assign, ast.AugAssign, ast.AnnAssign, ast.NamedExpr, ast.Name, ast.expr_context),
    *(ast.If, ast.IfExp, ast.While, ast.For, ast.Break, ast.Continue, ast.Tuple),
    *(ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.UnaryOp, ast.unaryop, ast.BoolOp, ast.boolop),
    *(ast.Compare, ast.cmpop),
)
Node = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class Unclear(Exception):
    """The source does not say all that a function's scores depend on."""


class Pin(NamedTuple):
    """What a name meant when the source was read."""

    names: dict[str, Any]
    name: str
    value: Any

    @property
    def holds(self) -> bool:
        """Whether it still means the same object."""
        return self.names.get(self.name, MISSING) is self.value


class Source(NamedTuple):
    """The source of a function with all that it refers to."""

    text: str
    pins: tuple[Pin, ...]

    @property
    def digest(self) -> str:
        """What a log has in place of the source."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:32]


def source_of(function: FunctionType) -> Source:
    """The source of a function with all that it refers to: functions that it calls, and constants.

    >>> def score(gap, scatter, seen, weight, exploration, power=2):
    ...     return gap * math.pi
    >>> print(source_of(score).text.replace("math = module math", "…"))
    def score(gap, scatter, seen, weight, exploration, power=2):
        return gap * math.pi
    <BLANKLINE>
    …
    math.pi = 3.141592653589793
    default of score = 2
    """
    reading = _Reading()
    return Source("\n".join(reading.function(function)), tuple(reading.pins))


class _Reading:
    """One pass over a function and what it refers to."""

    def __init__(self) -> None:
        self.pins: list[Pin] = []
        self.done: dict[FunctionType, int] = {}  # numbered, so that two names for one function are seen as such

    def function(self, function: FunctionType) -> Iterator[str]:
        if function in self.done:
            return
        self.done[function] = len(self.done)
        name = function.__name__
        if function.__closure__:
            raise Unclear(f"{name} uses variables of the function around it")
        tree = tree_of(function)
        yield textwrap.dedent(inspect.getsource(function.__code__))
        known = function.__globals__  # a name that is not among them may become one
        self.pins += (Pin(known, each, known.get(each, MISSING)) for each in _names(function.__code__))
        for each, value in sorted(referred(function).items()):
            yield from self.value(each, value)
        for each, value in sorted(self._attributes(function, tree).items()):
            yield from self.value(each, value)
        for value in (*(function.__defaults__ or ()), *sorted((function.__kwdefaults__ or {}).items())):
            yield from self.value(f"default of {name}", value)

    def _attributes(self, function: FunctionType, tree: Node) -> dict[str, Any]:
        """The attributes of modules that the function refers to."""
        found, name = {}, function.__name__
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom | ast.Global):
                raise Unclear(f"{name} imports, or changes a global variable")
            if isinstance(node, ast.Name) and node.id in HIDING and meaning(node, function) is vars(builtins)[node.id]:
                raise Unclear(f"{name} uses {node.id}")
            if isinstance(node, ast.Attribute) and _is_of_a_global(node, function):
                owner, text = meaning(node.value, function), ast.unparse(node)
                if not isinstance(owner, ModuleType):
                    raise Unclear(f"{name} reads {text}, which is not a constant of a module")
                self.pins.append(Pin(vars(owner), node.attr, vars(owner).get(node.attr, MISSING)))
                found[text] = getattr(owner, node.attr, None)
        return found

    def value(self, name: str, value: Any) -> Iterator[str]:
        """A global, an attribute of a module, or a default."""
        function = getattr(value, "py_func", value)  # of a function that numba has compiled
        kind = type(value)
        if kind in PLAIN:
            yield f"{name} = {value!r}"
        elif kind is tuple:
            yield f"{name} = tuple of {len(value)}"
            for index, part in enumerate(value):
                yield from self.value(f"{name}[{index}]", part)
        elif isinstance(value, ModuleType):
            yield f"{name} = module {value.__name__}"
        elif library := _library(value):
            yield f"{name} = {library}.{value.__name__}"
        elif isinstance(value, Number) and kind.__module__ == "numpy":
            number: Any = value
            yield f"{name} = numpy.{kind.__name__}({number.item()!r})"  # its repr depends on numpy's version
        elif isinstance(function, FunctionType):
            yield from self.function(function)
            yield f"{name} = function {self.done[function]}"
        else:
            raise Unclear(
                f"it reads {name}, a {kind.__name__}, where only numbers, text and tuples of them are constant"
            )


def _library(value: Any) -> str | None:
    """The library that defines a function or a class, if it is one of LIBRARIES."""
    module: str | None = None
    if isinstance(value, FunctionType):
        module = value.__globals__.get("__name__")
    elif isinstance(value, type | BuiltinFunctionType):
        module = value.__module__
    elif callable(value) and getattr(sys.modules.get("numpy"), getattr(value, "__name__", ""), None) is value:
        module = "numpy"
    package = (module or "").partition(".")[0]  # the module inside a package differs between versions
    return package if package in LIBRARIES else None


def referred(function: FunctionType) -> dict[str, Any]:
    """The globals that a function refers to, by name."""
    return {name: function.__globals__[name] for name in _names(function.__code__) if name in function.__globals__}


def _names(code: CodeType) -> set[str]:
    return {name for each in (code, *_inner(code)) for name in each.co_names}


def _inner(code: CodeType) -> Iterator[CodeType]:
    """The code of every function inside."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _inner(constant)


def tree_of(function: FunctionType) -> Node:
    """The syntax of a function, without decorators and annotations, where the source is the code that runs."""
    code, name = function.__code__, function.__name__
    try:
        whole = compile("".join(inspect.findsource(code)[0]), code.co_filename, "exec", dont_inherit=True)
        tree = ast.parse(textwrap.dedent(inspect.getsource(code)))
    except (OSError, TypeError, SyntaxError):
        raise Unclear(f"the source of {name} cannot be read") from None
    if not any(_same(code, other) for other in _inner(whole) if other.co_firstlineno == code.co_firstlineno):
        raise Unclear(f"the file of {name} has changed since it was imported")
    kind = ast.Lambda if code.co_name == "<lambda>" else ast.FunctionDef | ast.AsyncFunctionDef
    found = [node for node in ast.walk(tree) if isinstance(node, kind)]
    if not found or (kind is ast.Lambda and len(found) > 1):
        raise Unclear(f"the source of {name} cannot be separated from the code around it")
    for node in ast.walk(found[0]):
        for field in {"annotation", "returns"}.intersection(node._fields):
            setattr(node, field, None)
    if not isinstance(found[0], ast.Lambda):
        found[0].decorator_list.clear()
    return found[0]


def _same(one: Any, two: Any) -> bool:
    """Whether two constants are the same, or two code objects, wherever in a file they stand."""
    if not isinstance(one, CodeType) or not isinstance(two, CodeType):
        return type(one) is type(two) and (repr(one) == repr(two) or (isinstance(one, frozenset) and one == two))
    names = ("co_name", "co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_argcount")
    if any(getattr(one, name) != getattr(two, name) for name in names) or len(one.co_consts) != len(two.co_consts):
        return False
    return all(map(_same, one.co_consts, two.co_consts))


# -- names ---------------------------------------------------------------------------------------------------------


def _is_of_a_global(node: ast.expr, function: FunctionType) -> bool:
    """Whether an attribute belongs to a global name, not to a variable or the value of an expression."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id in _names(function.__code__)


def meaning(node: ast.expr, function: FunctionType) -> Any:
    """What a name, or an attribute of a module, stands for in a function; None for its variables."""
    any_function: Any = function  # typeshed does not know its __builtins__
    if isinstance(node, ast.Name) and node.id not in function.__code__.co_varnames + function.__code__.co_cellvars:
        return function.__globals__.get(node.id, any_function.__builtins__.get(node.id))
    if isinstance(node, ast.Attribute):
        owner = meaning(node.value, function)
        return getattr(owner, node.attr, None) if isinstance(owner, ModuleType) else None
    return None


# -- exact operations ----------------------------------------------------------------------------------------------


def is_exact(function: FunctionType, outer: tuple[FunctionType, ...] = ()) -> bool:
    """Whether it uses only operations that round the same way on every machine: + − * / sqrt abs and comparisons.

    >>> from . import kernel
    >>> is_exact(kernel.evt), is_exact(kernel.lsa)
    (True, False)
    """
    if function in outer:
        return True
    try:
        tree = tree_of(function)
    except Unclear:
        return False
    defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    if function.__closure__ or isinstance(tree, ast.AsyncFunctionDef) or not all(map(_is_number, defaults)):
        return False
    body = [tree.body] if isinstance(tree, ast.Lambda) else tree.body[ast.get_docstring(tree) is not None :]
    variables = function.__code__.co_varnames

    def exact(node: ast.AST) -> bool:
        if isinstance(node, ast.Call):
            called = meaning(node.func, function)
            known = any(called is one for one in _EXACT_CALLS)
            known = known or (isinstance(called, FunctionType) and is_exact(called, (function, *outer)))
            return known and all(map(exact, (*node.args, *node.keywords)))
        if isinstance(node, ast.Constant):
            return _is_number(node.value)
        if isinstance(node, ast.Attribute) or (isinstance(node, ast.Name) and node.id not in variables):
            return _is_number(meaning(node, function))
        return isinstance(node, _EXACT_NODES) and all(map(exact, ast.iter_child_nodes(node)))

    return all(map(exact, body))


def _is_number(value: object) -> bool:
    """Whether it is a number whose arithmetic is Python's own, or a tuple of such numbers."""
    return type(value) in (bool, int, float) or (type(value) is tuple and all(map(_is_number, value)))
