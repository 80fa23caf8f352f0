"""The loops of the laboratory as Python runs them: the same functions, for tests of what is asked, shown and refused.

A loop takes seconds to compile, and hardly one to interpret where a game is small. `lab/test_interpreted.py` compares
the two.
"""

import threading
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import numpy as np
import pytest

from thresher.core import board
from thresher.lab import compiled_scores, compiler, loops, parallel_compile, simulator

COMPILED = compiler.compiled_loop
LOCK = threading.Lock()
MODULES = (board, compiled_scores, loops)
LARGE = 15_000  # pulls of a game that is compiled all the same


def namespace(kind: compiler.CompilerChoices) -> dict[str, Any]:
    """The functions of the loops, with the choices that a compiled loop has built in."""
    choices: dict[str, Any] = {name: value for module in MODULES for name, value in vars(module).items()}
    choices.update(compiler.compiled_constants(kind))
    for module in MODULES:
        for name, function in compiler.functions_to_compile(module).items():
            choices[name] = FunctionType(function.__code__, choices, name)
    return choices


def loop(kind: compiler.CompilerChoices) -> Callable[..., None]:
    """The loop for a policy that thresher has; one with a user's score is compiled."""
    if kind.digest is not None:
        return COMPILED(kind)
    function = namespace(kind)[kind.function]

    def run(*arguments: Any) -> None:
        _, begin, end, _, _, _, measures, *_ = arguments
        if (end - begin) * measures.checkpoints[-1] > LARGE:
            with LOCK, compiler.compiling(delayed=kind.delayed):
                COMPILED(kind)(*arguments)
            return
        columns: dict[int, tuple[Any, list[Any]]] = {}
        with np.errstate(over="ignore"):  # words of 64 bits wrap around
            function(*(listed(argument, columns) for argument in arguments))
        for array, column in columns.values():
            array[:] = column

    return run


def listed(argument: Any, columns: dict[int, tuple[Any, list[Any]]]) -> Any:
    """Columns as a live study has them: products of numpy's whole numbers would overflow."""
    if isinstance(argument, tuple):
        parts = [listed(part, columns) for part in argument]
        return type(argument)(*parts) if hasattr(argument, "_fields") else tuple(parts)
    if not isinstance(argument, np.ndarray) or argument.ndim != 1 or argument.dtype == np.uint64:
        return argument
    return columns.setdefault(id(argument), (argument, argument.tolist()))[1]


def drawer() -> Callable[..., None]:
    """Draws the arms of one repetition."""
    function = namespace(compiler.CompilerChoices())["draw_loop_instance"]

    def draw(*arguments: Any) -> None:
        with np.errstate(over="ignore"):
            function(*arguments)

    return draw


@pytest.fixture
def interpreted() -> Iterator[None]:
    """No loop is compiled for a small game."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiler, "compiled_loop", loop)
        patch.setattr(compiler, "compiled_instance_drawer", drawer)
        patch.setattr(parallel_compile, "compile_parallel_share", lambda loops, progress=None: None)
        patch.setattr(simulator, "run_simulator_aside", lambda work: work())
        yield
