"""The user's evaluator as engines call it: with a pull, and nothing else."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

from ..study import Pull
from .pairs import Pair


class Wrapped:
    """Calls the evaluator, with what evaluators share if there is any; for a pair, once for each side.

    >>> pull = Pull(1, "new", 1, {}, 7, baseline="old", baseline_first=True)
    >>> Wrapped(lambda one: len(one.arm))(pull), Wrapped(lambda one: one.seed)(Pull(1, "new", 1, {}, 7))
    ((3, 3), 7)
    """

    def __init__(self, evaluate: Callable[..., object]) -> None:
        self.evaluate: Callable[..., Any] = evaluate
        self.more: tuple[object, ...] = ()  # what evaluators share, once it is set up

    def __call__(self, pull: Pull) -> object:
        if pull.baseline is None:
            return self.evaluate(pull, *self.more)
        pair = Pair(pull)
        for one in pull.both():
            with pair.side(one):
                pair.rewards[one.arm] = self.evaluate(one, *self.more)
        return pair.both()

    def rest(self) -> None:
        """The run is over: an evaluator with processes here ends the idle ones."""
        if (rest := getattr(self.evaluate, "rest", None)) is not None:
            rest()

    def __repr__(self) -> str:
        return repr(self.evaluate)


class WrappedCoroutine(Wrapped):
    """The same for a coroutine function."""

    async def __call__(self, pull: Pull) -> object:
        if pull.baseline is None:
            return await self.evaluate(pull, *self.more)
        pair = Pair(pull)
        for one in pull.both():
            with pair.side(one):
                pair.rewards[one.arm] = await self.evaluate(one, *self.more)
        return pair.both()


def is_coroutine(function: object) -> bool:
    """Whether calling it gives a coroutine. It may also be a partial function, or an object with ``__call__``.

    >>> async def evaluate(pull): ...
    >>> is_coroutine(functools.partial(evaluate)), is_coroutine(len)
    (True, False)
    """
    while isinstance(function, functools.partial):
        function = function.func
    plain = inspect.isroutine(function)
    return inspect.iscoroutinefunction(function if plain else type(function).__call__)
