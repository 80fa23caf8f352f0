"""Compiled functions that are only linked into loops, not called from Python.

numba optimises each function together with everything that it calls, and makes machine code of it. Then it links the
result into the function's callers, where all of this happens again. The core's functions call each other ten deep, so
most of the time was spent on code that nobody calls. Here such functions stay as they are until a loop optimises them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.registry import cpu_target

Library: Any = JITCodeLibrary


class Part(Library):  # type: ignore[misc]  # numba has no annotations
    """The code of a function that is linked into others, before it is optimised."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """There is no machine code."""
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> "Part":
        """Where numba sets what a function's exceptions need: nothing here raises any."""
        return self

    def set_env(self, name: str, environment: object) -> None:
        """Without machine code there is no place for it."""


@contextmanager
def parts() -> Iterator[None]:
    """What is compiled here is a part of something else. Only for compilers at work: they hold numba's lock.

    Where numba works differently, parts are compiled as everything else is, which takes longer.
    """
    codegen = cpu_target.target_context.codegen()
    before = getattr(codegen, "_library_class", None)
    if before is not JITCodeLibrary:
        yield
        return
    codegen._library_class = Part
    try:
        yield
    finally:
        codegen._library_class = before
