"""Compiles the core and the loops: the same functions that a live study runs, on arrays.

Each function of the modules below is rebuilt with the same bytecode, in a namespace where the names it calls are
compiled functions, and passed to numba. A loop is compiled for one policy and one family (see `loops.py`). Machine code
is kept in the user's cache directory, in a folder named after a hash of all its sources. If that folder cannot be
written, the code is compiled every time.
"""

import gc
import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

import numba
from numba.core.types import unliteral
from numba.extending import overload

from ..core import docket, evidence, kernel, places, question, rate, scores, steps
from ..core.policies import DOUBLING, Policy
from . import counting, delays, families, late, linking, loops, parts, proofs, shares, slots, streams, users

CORE = (kernel, steps, places, evidence, docket, rate, question)
SHARED = (*CORE, streams, families, shares, delays, parts, proofs, counting, slots)  # the same for every loop
LOOPS = (loops, late)  # compiled for each policy and family
FORMULAS = frozenset(name for name, f in vars(kernel).items() if "gap" in getattr(f, "__annotations__", ()))
njit: Any = numba.njit  # its annotations lack the options below
settings: Any = numba.config
OPTIONS = {
    "error_model": "numpy",  # never fastmath: decisions must round the same way everywhere
    "_nrt": False,  # nothing is allocated, and counting references to columns took two thirds of the time
}
# only called from compiled code; passing a board takes some sixty words, so a call costs more than its body
INNER: Any = {**OPTIONS, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "forceinline": True}
Namespace = dict[str, Any]


def _functions(module: ModuleType) -> dict[str, FunctionType]:
    found = vars(module).items()
    return {name: f for name, f in found if isinstance(f, FunctionType) and f.__module__ == module.__name__}


def _rebuilt(function: FunctionType, namespace: Namespace, name: str | None = None) -> FunctionType:
    """The same bytecode in another namespace.

    Machine code from the cache is linked by name. Functions with different namespaces need different names, or one
    would silently replace the other.
    """
    inner = (function.__defaults__, function.__closure__)
    copy = FunctionType(function.__code__, namespace, name or function.__name__, *inner)
    copy.__qualname__ = name or function.__name__
    return copy


def _compiled(function: FunctionType, namespace: Namespace, name: str) -> Any:
    compiled = njit(**INNER)(_rebuilt(function, namespace, name))
    typed = compiled.get_call_template

    def template(args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
        with linking.parts():  # without `unliteral`, numba would compile a function again for each constant argument
            return typed(tuple(map(unliteral, args)), kws)

    compiled.get_call_template = template
    return compiled


def _formula(function: FunctionType, namespace: Namespace, _: str) -> Any:
    """A formula that can be passed to compiled functions: a compiled function as an argument cannot be cached."""
    copy, name = _rebuilt(function, namespace), _rebuilt(function, namespace)

    def typed(gap: Any, scatter: Any, seen: Any, weight: Any, exploration: Any) -> FunctionType:
        return copy

    typed.__annotations__.clear()  # numba compares the two signatures, annotations included
    overload(name, jit_options=INNER)(typed)
    return name


def _extended(namespace: Namespace, modules: tuple[ModuleType, ...], variant: str = "") -> Namespace:
    for module in modules:
        functions = _functions(module)
        for name, value in vars(module).items():
            if name not in functions and not name.startswith("__"):
                namespace.setdefault(name, value)
        for name, function in functions.items():
            build = _formula if name in FORMULAS else _compiled
            namespace[name] = build(function, namespace, name + variant)
    return namespace


@cache
def _shared() -> Namespace:
    return _extended({"__name__": __name__}, SHARED)


@cache
def _cache_folder() -> str | None:
    """A folder for machine code of exactly these sources, or None if it cannot be written."""
    digest = hashlib.sha256(numba.__version__.encode() + Path(__file__).read_bytes())
    for module in (linking, users, *SHARED, *LOOPS):
        digest.update(Path(str(module.__file__)).read_bytes())
    try:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        folder = Path(home, "thresher", f"lab-{digest.hexdigest()[:20]}")
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # RuntimeError: there is no home
        return None
    return str(folder) if os.access(folder, os.W_OK) else None


def keeps() -> bool:
    """Whether machine code can be cached."""
    return _cache_folder() is not None


class Kind(NamedTuple):
    """What a loop is compiled for."""

    formula: str
    second: str | None
    doubling: bool
    family: str
    certifies: bool = False
    ranks: bool = False
    counts: bool = False
    digest: str | None = None  # of the user's function that is the formula

    @property
    def variant(self) -> str:
        """The suffix for the names of functions that depend on it."""
        named = ("doubling", "certifies", "ranks", "counts")
        flags = (name for name in named if getattr(self, name))
        formula = self.formula if self.digest is None else f"custom_{self.digest}"
        return "".join(f"-{part}" for part in (formula, self.second, self.family, *flags) if part)


def kind(policy: Policy, family: str, **flags: bool) -> Kind:
    """What the loop of a policy and a family is compiled for."""
    return Kind(policy.function, policy.second, policy.exploration == DOUBLING, family, **flags, digest=policy.digest)


def _name(kind: Kind, late_rewards: bool) -> str:
    return ("run_late" if late_rewards else "run_at_once") + kind.variant


def kept(kind: Kind, *, late_rewards: bool) -> bool:
    """Whether the machine code of a loop seems to be in the cache."""
    name, folder = _name(kind, late_rewards), _cache_folder()
    return folder is not None and any(Path(folder).glob(f"*/*.{name}-[0-9]*.nbi"))


def loop(kind: Kind, *, late_rewards: bool) -> Callable[..., None]:
    """The compiled loop; it releases the interpreter's lock while it runs."""
    return _loop(kind, late_rewards)


@contextmanager
def compiling(*, late_rewards: bool) -> Iterator[None]:
    """Compile faster.

    The loop with late rewards is twice as large as the other, and less optimisation does not slow it down. Python's
    garbage collector finds almost nothing among the millions of objects that numba keeps.
    """
    level, collects = settings.OPT, gc.isenabled()
    gc.disable()
    if late_rewards:
        settings.OPT = type(level)(1)
    try:
        yield
    finally:
        settings.OPT = level
        if collects:
            gc.enable()


@cache
def instance_drawer(family: str) -> Callable[..., None]:
    """The compiled function that draws the arms of one repetition."""
    namespace = _namespace(Kind("evt", None, False, family))
    drawer: Callable[..., None] = njit(**OPTIONS)(
        _rebuilt(_functions(loops)["draw_instance"], namespace, f"draw_instance-alone-{family}")
    )
    return drawer


def constants(kind: Kind, functions: Namespace, formula: Any) -> Namespace:
    """What replaces the names in capitals of `loops.py`."""
    return {
        "FORMULA": formula,
        "CUSTOM": kind.digest is not None,
        "SECOND": functions[kind.second or "cheapest"],
        "ALTERNATES": kind.second is not None,
        "DOUBLING": kind.doubling,
        "CERTIFIES": kind.certifies,
        "RANKS": kind.ranks,
        "COUNTS": kind.counts,
        "RECORDED": kind.family == "recorded",
        "SET": functions[f"set_{kind.family}"],
        "DRAW": functions[f"draw_{kind.family}"],
        "MOMENTS": functions[f"moments_{kind.family}"],
        "WITHIN": functions[f"within_{kind.family}"],
        "CONSTANT": kind.family == "constant",
    }


@cache
def _namespace(kind: Kind) -> Namespace:
    shared = _shared()
    formula = shared[kind.formula] if kind.digest is None else _custom(kind.formula, kind.digest)
    return _extended({**shared, **constants(kind, shared, formula)}, LOOPS, kind.variant)


@cache
def _loop(kind: Kind, late_rewards: bool) -> Callable[..., None]:
    function = _functions(late)["run_late"] if late_rewards else _functions(loops)["run_at_once"]
    rebuilt = _rebuilt(function, _namespace(kind), _name(kind, late_rewards))
    is_known = kind.digest is None or not kind.digest.startswith(scores.IN_MEMORY)  # by its source
    uncached: Callable[..., None] = njit(nogil=True, **OPTIONS)(rebuilt)
    return _kept(rebuilt) if is_known else uncached


@cache
def _custom(formula: str, digest: str) -> Any:
    """A user's function as a formula."""
    namespace = {"USERS": users.compiled(formula, digest), "INVALID": parts.INVALID}
    return _formula(_functions(users)["scored"], namespace, "")


@cache
def other_loop(function: FunctionType, family: str) -> Callable[..., None]:
    """A loop of another room, compiled with everything in its module for one family."""
    kind = Kind("evt", None, False, family)
    namespace = _extended(dict(_namespace(kind)), (sys.modules[function.__module__],), kind.variant)
    return _kept(_rebuilt(function, namespace, f"{function.__name__}-{family}"))


def _kept(rebuilt: FunctionType) -> Callable[..., None]:
    """Compiled when it is first called, into the cache where there is one."""
    folder, before = _cache_folder(), settings.CACHE_DIR
    if folder:
        try:  # numba asks for the folder while it decorates
            settings.CACHE_DIR = folder
            compiled: Callable[..., None] = njit(cache=True, nogil=True, **OPTIONS)(rebuilt)
            return compiled
        except (OSError, RuntimeError):
            pass
        finally:
            settings.CACHE_DIR = before
    uncached: Callable[..., None] = njit(nogil=True, **OPTIONS)(rebuilt)
    return uncached
