"""Makes numba compile faster. Most of it is about functions that are only linked into loops.

numba optimises each function together with everything that it calls, and makes machine code of it. Then it links the
result into the function's callers, where all of this happens again. The core's functions call each other ten deep, so
most of the time was spent on code that nobody calls. Here such functions stay as they are until a loop optimises them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import FunctionType
from typing import Any

from numba import config
from numba.core.codegen import JITCodeLibrary
from numba.core.registry import cpu_target
from numba.core.targetconfig import TargetConfig

Library: Any = JITCodeLibrary
Options: Any = TargetConfig
settings: Any = config
LEVEL = settings.OPT


class Linked(Library):  # type: ignore[misc]  # numba has no annotations
    """The code of a function that is linked into others, before it is optimised."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def serialize_using_object_code(self) -> Any:
        """What the cache keeps."""
        return self.serialize_using_bitcode()

    def get_pointer_to_function(self, name: str) -> int:
        """There is no machine code."""
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> "Linked":
        """Where numba sets what a function's exceptions need: nothing here raises any."""
        return self

    def set_env(self, name: str, environment: object) -> None:
        """Without machine code there is no place for it."""


def rebuilt(function: FunctionType, namespace: dict[str, Any], name: str) -> FunctionType:
    """The same bytecode in another namespace.

    Machine code from the cache is linked by name. Functions with different namespaces need different names, or one
    would silently replace the other.
    """
    copy = FunctionType(function.__code__, namespace, name, function.__defaults__, function.__closure__)
    copy.__qualname__ = name
    return copy


@contextmanager
def linked() -> Iterator[None]:
    """What is compiled here is only linked into something else. Only for compilers at work: they hold numba's lock.

    Where numba works differently, such functions are compiled as all others are, which takes longer. All loops share
    them, so none of the loops sets how far they are optimised.
    """
    codegen = cpu_target.target_context.codegen()
    library, level = getattr(codegen, "_library_class", None), settings.OPT
    if library not in (JITCodeLibrary, Linked):
        yield
        return
    codegen._library_class, settings.OPT = Linked, LEVEL
    try:
        yield
    finally:
        codegen._library_class, settings.OPT = library, level


@cache
def _defaults(kind: Any) -> dict[str, Any]:
    return {name: option.default for name, option in kind.options.items()}


def _values(options: Any) -> dict[str, Any]:
    """What numba's own method returns, without a call for each of thirty options."""
    kind: Any = type(options)
    return {**_defaults(kind), **options._values}


@contextmanager
def quicker() -> Iterator[None]:
    """Compare the options of functions faster: numba does this 25,000 times for a loop, a seventh of all the time."""
    before = Options.values
    if hasattr(Options, "_values"):
        Options.values = _values
    try:
        yield
    finally:
        Options.values = before
