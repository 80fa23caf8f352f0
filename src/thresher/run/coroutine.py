"""Whether a function is a coroutine function."""

import functools
import inspect


def is_coroutine(function: object) -> bool:
    """Whether calling it gives a coroutine, also for a partial function or an object with ``__call__``.

    >>> async def evaluate(pull): ...
    >>> is_coroutine(functools.partial(evaluate)), is_coroutine(len)
    (True, False)
    """
    while isinstance(function, functools.partial):
        function = function.func
    plain = inspect.isroutine(function)
    return inspect.iscoroutinefunction(function if plain else type(function).__call__)
