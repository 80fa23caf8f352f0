"""Evaluators as engines call them: with a pull, and with what they share, such as a client or a database.

What is shared is set up before the first pull, and cleaned up after the last.
"""

import contextlib
import functools
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from typing import Any

from ..errors import CannotGoOn, InvalidInput, told_of
from ..study import Pull
from ..text.logs import log
from .pairs import Pair


class Wrapped:
    """Calls the evaluator, with what evaluators share if there is any; for a pair, once for each side.

    >>> pull = Pull(1, "new", 1, {}, 7, baseline="old", baseline_first=True)
    >>> Wrapped(lambda side: len(side.arm))(pull), Wrapped(lambda side: side.seed)(Pull(1, "new", 1, {}, 7))
    ((3, 3), 7)
    """

    def __init__(self, evaluate: Callable[..., object]) -> None:
        self.evaluate: Callable[..., Any] = evaluate
        self.more: tuple[object, ...] = ()  # what evaluators share, once it is set up

    def __call__(self, pull: Pull) -> object:
        if pull.baseline is None:
            return self.evaluate(pull, *self.more)
        pair = Pair(pull)
        for side in pull.both():
            with pair.side(side):
                pair.rewards[side.arm] = self.evaluate(side, *self.more)
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
        for side in pull.both():
            with pair.side(side):
                pair.rewards[side.arm] = await self.evaluate(side, *self.more)
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


# -- What they share --------------------------------------------------------------------------------------------------


Functions = tuple[Callable[[], Any], Callable[[Any], Any]]  # set_up, clean_up
Sharing = AbstractAsyncContextManager[Any] | AbstractContextManager[Any] | Functions
More = tuple[object, ...]  # further arguments of the evaluator, after the pull: what is shared, or none


@dataclass(frozen=True)
class Shared:
    """How to set it up and clean it up, whatever the user passed."""

    set_up: Callable[[], Any]
    clean_up: Callable[[Any], Any]
    is_pair: bool = False  # of functions: it can be set up more than once
    is_async: bool = False


def checked(sharing: object, *, awaits: bool) -> Shared | None:
    """What the user passed as ``shared``. ``awaits`` says whether the evaluator is a coroutine function.

    >>> shared = checked((list, list.clear), awaits=False)
    >>> shared.is_pair, shared.is_async
    (True, False)
    """
    if sharing is None:
        return None
    kind = type(sharing)
    if isinstance(sharing, tuple | list) and len(sharing) == 2 and all(map(callable, sharing)):
        shared = Shared(sharing[0], sharing[1], is_pair=True, is_async=any(map(is_coroutine, sharing)))
    elif hasattr(kind, "__aenter__") and (awaits or not hasattr(kind, "__enter__")):
        manager: Any = sharing
        shared = Shared(manager.__aenter__, lambda _: manager.__aexit__(None, None, None), is_async=True)
    elif hasattr(kind, "__enter__"):
        manager = sharing
        shared = Shared(manager.__enter__, lambda _: manager.__exit__(None, None, None))
    else:
        rule = "must be a context manager or a pair of functions, (set_up, clean_up)"
        raise InvalidInput("shared", sharing, rule, "pass what it returns" if callable(sharing) else "")
    if shared.is_async and not awaits:
        rule = "needs an event loop, which a plain evaluator does not run on"
        raise InvalidInput("shared", sharing, rule, "make the evaluator a coroutine function")
    return shared


@contextlib.contextmanager
def entered(shared: Shared | None) -> Iterator[More]:
    """Inside the block it is set up. A clean-up that fails is logged."""
    if shared is None:
        yield ()
        return
    try:
        thing = shared.set_up()
    except Exception as error:
        raise _not_set_up(error) from error
    if inspect.iscoroutine(thing):
        thing.close()
        rule = "its set-up returned a coroutine, which a plain evaluator cannot await"
        raise InvalidInput("shared", shared.set_up, rule, "make the evaluator a coroutine function")
    try:
        yield (thing,)
    finally:
        try:
            shared.clean_up(thing)
        except Exception as error:
            _log(error)


@contextlib.asynccontextmanager
async def awaited(shared: Shared | None) -> AsyncIterator[More]:
    """The same in an event loop. It is set up and cleaned up in one task, as many libraries require."""
    if shared is None:
        yield ()
        return
    try:
        thing = await _result(shared.set_up())
    except Exception as error:
        raise _not_set_up(error) from error
    try:
        yield (thing,)
    finally:
        try:
            await _result(shared.clean_up(thing))
        except Exception as error:
            _log(error)


async def _result(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def _not_set_up(error: Exception) -> CannotGoOn:
    return CannotGoOn("shared", rule=f"its set-up failed: {told_of(error)}", remedy="no pull was issued")


def _log(error: Exception) -> None:
    log.warning(f"shared: its clean-up failed: {told_of(error)}; no reward is lost")
