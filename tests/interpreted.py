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

from thresher.core.policies import Policy
from thresher.lab import compiler, late, loops, simulator, warming

COMPILED, POINTER = compiler.loop, compiler.formula
FORMULAS: dict[int, Any] = {}  # thresher's own, by the id of their pointers
LOCK = threading.Lock()
LARGE = 15_000  # pulls of a game that is compiled all the same


def namespace(kind: compiler.Kind) -> dict[str, Any]:
    """The functions of the loops, with the choices that a compiled loop has built in."""
    choices: dict[str, Any] = {**vars(loops), **vars(late), **compiler.constants(kind)}
    for module in (loops, late):
        for name, function in compiler._functions(module).items():
            choices[name] = FunctionType(function.__code__, choices, name)
    return choices


def pointer(policy: Policy) -> Any:
    """The formula as compiled loops take it."""
    found = POINTER(policy)
    if not policy.is_custom:
        FORMULAS[id(found)] = policy.scored_by()
    return found


def loop(kind: compiler.Kind) -> Callable[..., None]:
    """The loop for a policy that thresher has; one with a user's score is compiled."""
    found = namespace(kind)["run_late" if kind.late else "run_at_once"]

    def run(*arguments: Any) -> None:
        _, begin, end, _, rules, _, measures, *_ = arguments
        is_large = (end - begin) * measures.checkpoints[-1] > LARGE
        if is_large or id(rules[0].formula) not in FORMULAS:
            with LOCK, compiler.compiling(late_rewards=kind.late):
                COMPILED(kind)(*arguments)
            return
        plain = tuple(rule._replace(formula=FORMULAS[id(rule.formula)]) for rule in rules)
        columns: dict[int, tuple[Any, list[Any]]] = {}
        with np.errstate(over="ignore"):  # words of 64 bits wrap around
            found(*(listed(argument, columns) for argument in (*arguments[:4], plain, *arguments[5:])))
        for array, column in columns.values():
            array[:] = column

    return run


def listed(given: Any, columns: dict[int, tuple[Any, list[Any]]]) -> Any:
    """Columns as a live study has them: products of numpy's whole numbers would overflow."""
    if isinstance(given, tuple):
        parts = [listed(part, columns) for part in given]
        return type(given)(*parts) if hasattr(given, "_fields") else tuple(parts)
    if not isinstance(given, np.ndarray) or given.ndim != 1 or given.dtype == np.uint64:
        return given
    return columns.setdefault(id(given), (given, given.tolist()))[1]


def drawer() -> Callable[..., None]:
    """Draws the arms of one repetition."""
    found = namespace(compiler.Kind())["draw_instance"]

    def draw(*arguments: Any) -> None:
        with np.errstate(over="ignore"):
            found(*arguments)

    return draw


@pytest.fixture
def interpreted() -> Iterator[None]:
    """No loop is compiled for a small game."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiler, "loop", loop)
        patch.setattr(compiler, "formula", pointer)
        patch.setattr(compiler, "instance_drawer", drawer)
        patch.setattr(warming, "compile_here", lambda loops, progress=None: None)
        patch.setattr(simulator, "aside", lambda work: work())
        yield
