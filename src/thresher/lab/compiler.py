"""Compiles the core and the loops: the same functions that a live study runs, on arrays.

Each function of the modules below is rebuilt with the same bytecode, in a namespace where the names it calls are
compiled functions, and passed to numba. A loop is compiled once for all policies and families, apart from a user's
score (see `loops.py`). Machine code is kept in the user's cache directory, in a folder named after a hash of all its
sources. If that folder cannot be written, the code is compiled every time.
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

from ..core import certificate, custom_scores, error_rate, kernel, places, question
from . import delays, families, loops, repetition, scores, streams

CORE = (kernel, places, certificate, error_rate, question)
SHARED = (*CORE, streams, families, delays, repetition, scores)  # `applied` is that of the last
SCORED = (kernel, scores)  # what calls a user's score
LOOPS = (loops,)
CALLED = frozenset(("draw_rarer", "moments", "within"))  # not worth the time to compile them into every caller
njit: Any = numba.njit  # its annotations lack the options below
settings: Any = numba.config
OPTIONS = {
    "error_model": "numpy",  # never fastmath: decisions must round the same way everywhere
    "_nrt": False,  # nothing is allocated, and counting references to columns took two thirds of the time
}
# only called from compiled code; passing a board takes some sixty words, so a call costs more than its body
INNER: Any = {**OPTIONS, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "forceinline": True}
Namespace = dict[str, Any]


def functions_in(module: ModuleType) -> dict[str, FunctionType]:
    found = vars(module).items()
    return {name: f for name, f in found if isinstance(f, FunctionType) and f.__module__ == module.__name__}


def _compiled(function: FunctionType, namespace: Namespace, name: str, *, keeps: bool) -> Any:
    """A function that loops call, compiled when one of them needs it; ``keeps`` says whether it is cached."""
    options = {**INNER, "forceinline": function.__name__ not in CALLED}
    compiled = njit(**options)(scores.rebuilt(function, namespace, name))
    typed = compiled.get_call_template
    is_new = keeps

    def template(args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
        nonlocal is_new
        if is_new:
            is_new = False
            _keep(compiled)
        # without `unliteral`, numba would compile a function again for each constant argument
        return typed(tuple(map(unliteral, args)), kws)

    compiled.get_call_template = template
    return compiled


def _extended(
    namespace: Namespace, modules: tuple[ModuleType, ...], variant: str = "", *, keeps: bool = False
) -> Namespace:
    for module in modules:
        functions = functions_in(module)
        for name, value in vars(module).items():
            if name not in functions and not name.startswith("__"):
                namespace.setdefault(name, value)
        for name, function in functions.items():
            is_large = module in LOOPS or name in _called_by_loops()  # others are cached as a part of these
            namespace[name] = _compiled(function, namespace, name + variant, keeps=keeps and is_large)
    return namespace


@cache
def _called_by_loops() -> frozenset[str]:
    found = (function.__code__.co_names for module in LOOPS for function in functions_in(module).values())
    return frozenset(name for names in found for name in names)


@cache
def shared_namespace() -> Namespace:
    return _extended({"__name__": __name__}, SHARED, keeps=True)


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


def keeps() -> bool:
    """Whether machine code can be cached."""
    return _cache_folder() is not None


class Kind(NamedTuple):
    """What a loop is compiled for."""

    certifies: bool = False
    ranks: bool = False
    counts: bool = False
    delayed: bool = False  # whether rewards come back while other pulls are chosen
    formula: str | None = None  # a user's function
    digest: str | None = None

    @property
    def variant(self) -> str:
        """The suffix for the names of functions that depend on it."""
        flags = [name for name in ("certifies", "ranks", "counts") if getattr(self, name)]
        return "".join(f"-{part}" for part in (*flags, f"custom_{self.digest}" if self.digest else "") if part)

    @property
    def name(self) -> str:
        """The name of the loop."""
        return ("run_delayed" if self.delayed else "run_at_once") + self.variant


def kept(kind: Kind) -> bool:
    """Whether the machine code of a loop seems to be in the cache."""
    folder = _cache_folder()
    return folder is not None and any(Path(folder).glob(f"*/*.{kind.name}-[0-9]*.nbi"))


@cache
def loop(kind: Kind) -> Callable[..., None]:
    """The compiled loop; it releases the interpreter's lock while it runs."""
    function = functions_in(loops)["run_delayed"] if kind.delayed else functions_in(loops)["run_at_once"]
    rebuilt = scores.rebuilt(function, _namespace(kind._replace(delayed=False)), kind.name)
    is_known = kind.digest is None or not kind.digest.startswith(custom_scores.IN_MEMORY)  # by its source
    return outermost(rebuilt, keeps=is_known)


@contextmanager
def compiling(*, delayed: bool) -> Iterator[None]:
    """Compile faster.

    The loop with delayed rewards is twice as large as the other, and less optimisation does not slow it down. Python's
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
def instance_drawer() -> Callable[..., None]:
    """The compiled function that draws the arms of one repetition."""
    function = functions_in(loops)["draw_instance"]
    drawer: Callable[..., None] = njit(**OPTIONS)(scores.rebuilt(function, _namespace(Kind()), "draw_instance-alone"))
    return drawer


def constants(kind: Kind) -> Namespace:
    """What replaces the names in capitals of `loops.py`."""
    flags = {"CERTIFIES": kind.certifies, "RANKS": kind.ranks, "COUNTS": kind.counts}
    return {**flags, "IS_CUSTOM": kind.digest is not None}


@cache
def _namespace(kind: Kind) -> Namespace:
    namespace = {**shared_namespace(), **constants(kind)}
    if kind.formula is None or kind.digest is None:
        return _extended(namespace, LOOPS, kind.variant, keeps=True)
    _extended(namespace, (*SCORED, *LOOPS), kind.variant)
    namespace["custom"] = scores.compiled(kind.formula, kind.digest)
    return namespace


@cache
def other_loop(function: FunctionType) -> Callable[..., None]:
    """A loop of another room, compiled with everything in its module."""
    namespace = _extended(dict(_namespace(Kind())), (sys.modules[function.__module__],))
    return outermost(scores.rebuilt(function, namespace, function.__name__))


def outermost(rebuilt: FunctionType, *, keeps: bool = True) -> Callable[..., None]:
    """A loop, compiled when it is first called; ``keeps`` says whether it is cached."""
    compiled: Callable[..., None] = njit(nogil=True, **OPTIONS)(rebuilt)
    if keeps:
        _keep(compiled)
    return compiled


def _keep(compiled: Any) -> None:
    """Cache what is compiled, if that is possible."""
    folder, before = _cache_folder(), settings.CACHE_DIR
    if folder:
        try:  # numba asks for the folder right now
            settings.CACHE_DIR = folder
            compiled.enable_caching()
        except (OSError, RuntimeError):
            pass
        finally:
            settings.CACHE_DIR = before
