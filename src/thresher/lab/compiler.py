"""Compiles the core and the loops: the same functions that a live study runs, on arrays.

Every function of the modules below is rebuilt with the same bytecode, in a namespace where the names it calls are
compiled functions, and passed to numba. A loop is compiled once for all policies and families, apart from a user's
score (see `compiled_scores.py`). Machine code is cached in the user's cache directory, in a folder named after a hash
of all its sources. If that folder cannot be written, the code is compiled every time.
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

from ..core import board, custom_scores, error_rate, evidence, places, question
from . import compiled_scores, delays, families, loops, repetition, streams

CORE = (board, places, evidence, error_rate, question)
SHARED = (*CORE, streams, families, delays, repetition, compiled_scores)  # `apply_formula` is that of the last
SCORED = (board, compiled_scores)  # these call a user's score
LOOPS = (loops,)
CALLED = frozenset(
    ("draw_from_rarer_family", "family_moments", "family_chance_within")
)  # not worth the time to compile them into every caller
njit: Any = numba.njit  # its annotations lack the options below
settings: Any = numba.config
OPTIONS = {
    "error_model": "numpy",  # never fastmath: decisions must round the same way everywhere
    "_nrt": False,  # nothing is allocated, and counting references to columns took two thirds of the time
}
# only called from compiled code; passing a board takes some sixty words, so a call costs more than its body
INNER: Any = {
    **OPTIONS,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "forceinline": True,
    "no_rewrites": True,  # of expressions of whole arrays: there are none
}
PART: Any = {**OPTIONS, "inline": "always"}  # numba copies a part of a loop into it, and does not compile it by itself
Namespace = dict[str, Any]


def functions_to_compile(module: ModuleType) -> dict[str, FunctionType]:
    names = vars(module).items()
    return {name: f for name, f in names if isinstance(f, FunctionType) and f.__module__ == module.__name__}


def _compiled(function: FunctionType, namespace: Namespace, name: str, *, caches: bool) -> Any:
    """A function that loops call, compiled when a loop needs it."""
    options = {**INNER, "forceinline": function.__name__ not in CALLED}
    compiled = njit(**options)(compiled_scores.rebuilt_to_compile(function, namespace, name))
    typed = compiled.get_call_template
    is_new = caches

    def template(args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
        nonlocal is_new
        if is_new:
            is_new = False
            _cache(compiled)
        # without `unliteral`, numba would compile the function again for every constant argument
        return typed(tuple(map(unliteral, args)), kws)

    compiled.get_call_template = template
    return compiled


def _extended(
    namespace: Namespace, modules: tuple[ModuleType, ...], variant: str = "", *, caches: bool = False
) -> Namespace:
    """The namespace with the modules' constants and their functions, compiled."""
    for module in modules:
        functions = functions_to_compile(module)
        for name, value in vars(module).items():
            if name not in functions and not name.startswith("__"):
                namespace.setdefault(name, value)
        for name, function in functions.items():
            if module in LOOPS:
                namespace[name] = njit(**PART)(compiled_scores.rebuilt_to_compile(function, namespace, name + variant))
            else:
                is_large = name in _called_by_loops()  # others are cached as a part of these
                namespace[name] = _compiled(function, namespace, name + variant, caches=caches and is_large)
    return namespace


@cache
def _called_by_loops() -> frozenset[str]:
    functions = (function for module in LOOPS for function in functions_to_compile(module).values())
    return frozenset(name for function in functions for name in function.__code__.co_names)


@cache
def compiled_namespace() -> Namespace:
    return _extended({"__name__": __name__}, SHARED, caches=True)


@cache
def _cache_folder() -> str | None:
    """A folder for machine code of exactly these sources, or None if it cannot be written."""
    digest = hashlib.sha256(numba.__version__.encode() + Path(__file__).read_bytes())
    for module in (*SHARED, *LOOPS):
        digest.update(Path(str(module.__file__)).read_bytes())
    try:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        folder = Path(home, "thresher", f"lab-{digest.hexdigest()[:20]}")
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # RuntimeError: there is no home
        return None
    return str(folder) if os.access(folder, os.W_OK) else None


def can_cache_compiled() -> bool:
    """Whether machine code can be cached."""
    return _cache_folder() is not None


class CompilerChoices(NamedTuple):
    """The choices that are compiled into a loop."""

    certifies: bool = False
    ranks: bool = False
    counts: bool = False
    delayed: bool = False  # whether rewards come back while other pulls are chosen
    formula: str | None = None  # a user's function
    digest: str | None = None

    @property
    def variant(self) -> str:
        """The suffix for the names of functions that depend on the choices."""
        flags = [name for name in ("certifies", "ranks", "counts") if getattr(self, name)]
        return "".join(f"-{part}" for part in (*flags, f"custom_{self.digest}" if self.digest else "") if part)

    @property
    def function(self) -> str:
        """The function of `loops.py`."""
        return "run_loop_delayed" if self.delayed else "run_loop_at_once"


def is_compiled(kind: CompilerChoices) -> bool:
    """Whether the machine code of a loop seems to be in the cache."""
    folder = _cache_folder()
    return folder is not None and any(Path(folder).glob(f"*/*.{kind.function}{kind.variant}-[0-9]*.nbi"))


@cache
def compiled_loop(kind: CompilerChoices) -> Callable[..., None]:
    """The compiled loop; it releases the interpreter's lock while it runs."""
    namespace = _namespace(kind._replace(delayed=False))
    rebuilt = compiled_scores.rebuilt_to_compile(
        functions_to_compile(loops)[kind.function], namespace, kind.function + kind.variant
    )
    has_source = kind.digest is None or not kind.digest.startswith(custom_scores.IN_MEMORY)
    return compiled_outermost(rebuilt, caches=has_source)


@contextmanager
def compiling(*, delayed: bool) -> Iterator[None]:
    """Compile faster.

    The loop with delayed rewards is twice as large as the other, and runs as fast with less optimisation. Python's
    garbage collector finds almost nothing among the millions of objects that numba keeps.
    """
    level, collects = settings.OPT, gc.isenabled()
    gc.disable()
    if delayed:
        settings.OPT = type(level)(1)
    try:
        yield
    finally:
        settings.OPT = level
        if collects:
            gc.enable()


@cache
def compiled_instance_drawer() -> Callable[..., None]:
    """The compiled function that draws the arms of one repetition."""
    function = functions_to_compile(loops)["draw_loop_instance"]
    drawer: Callable[..., None] = njit(**OPTIONS)(
        compiled_scores.rebuilt_to_compile(function, _namespace(CompilerChoices()), "draw_loop_instance-alone")
    )
    return drawer


def compiled_constants(kind: CompilerChoices) -> Namespace:
    """The values of the names in capitals in `loops.py`."""
    flags = {"CERTIFIES": kind.certifies, "RANKS": kind.ranks, "COUNTS": kind.counts}
    return {**flags, "IS_CUSTOM": kind.digest is not None}


@cache
def _namespace(kind: CompilerChoices) -> Namespace:
    namespace = {**compiled_namespace(), **compiled_constants(kind)}
    if kind.formula is None or kind.digest is None:
        return _extended(namespace, LOOPS, kind.variant)
    _extended(namespace, (*SCORED, *LOOPS), kind.variant)
    namespace["score_to_compile"] = compiled_scores.compiled_score(kind.formula, kind.digest)
    return namespace


@cache
def compiled_other_loop(function: FunctionType) -> Callable[..., None]:
    """A loop of another room, compiled with everything in its module, whose constants come before our own."""
    module = sys.modules[function.__module__]
    own = {name: value for name, value in vars(module).items() if name.isupper()}
    namespace = _extended({**_namespace(CompilerChoices()), **own}, (module,))
    return compiled_outermost(compiled_scores.rebuilt_to_compile(function, namespace, function.__name__))


def compiled_outermost(rebuilt: FunctionType, *, caches: bool = True) -> Callable[..., None]:
    """A loop, compiled when it is first called."""
    compiled: Callable[..., None] = njit(nogil=True, no_cfunc_wrapper=True, **OPTIONS)(rebuilt)
    if caches:
        _cache(compiled)
    return compiled


def _cache(compiled: Any) -> None:
    """Cache the machine code of a function, if that is possible."""
    folder, before = _cache_folder(), settings.CACHE_DIR
    if folder:
        try:  # numba asks for the folder right now
            settings.CACHE_DIR = folder
            compiled.enable_caching()
        except (OSError, RuntimeError):
            pass
        finally:
            settings.CACHE_DIR = before
