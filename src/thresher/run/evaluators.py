"""Evaluators as engines call them: with a pull and a shared object, such as a client or a database, if there is one.

The object is set up before the first pull, and cleaned up after the last.
"""

import contextlib
import functools
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from typing import Any

from ..errors import CannotGoOn, InvalidInput, error_line
from ..study import Pull
from ..text.logs import log
from .pairs import Pair

Functions = tuple[Callable[[], Any], Callable[[Any], Any]]  # set_up, clean_up
Sharing = AbstractAsyncContextManager[Any] | AbstractContextManager[Any] | Functions
More = tuple[object, ...]  # the arguments of an evaluator after the pull: the shared object, once it is set up


class WrappedEvaluator:
    """Calls the evaluator with a pull, and with the shared object if there is one; for a pair, once for each side.

    >>> pull = Pull(1, "new", 1, {}, 7, baseline="old", baseline_first=True)
    >>> WrappedEvaluator(lambda side: len(side.arm))(pull)
    (3, 3)
    >>> WrappedEvaluator(lambda side: side.seed)(Pull(1, "new", 1, {}, 7))
    7
    """

    def __init__(self, evaluate: Callable[..., object]) -> None:
        self.evaluate: Callable[..., Any] = evaluate
        self.more: More = ()

    def __call__(self, pull: Pull) -> object:
        if pull.baseline is None:
            return self.evaluate(pull, *self.more)
        pair = Pair(pull)
        for side in pull.both():
            try:
                pair.rewards[side.arm] = self.evaluate(side, *self.more)
            except BaseException as error:
                if not pair.can_go_on(side, error):
                    raise
        return pair.both()

    def rest(self) -> None:
        """The run is over: let an evaluator that has processes end the idle ones."""
        if (rest := getattr(self.evaluate, "rest", None)) is not None:
            rest()

    def __repr__(self) -> str:
        return repr(self.evaluate)


class WrappedCoroutine(WrappedEvaluator):
    """Like `WrappedEvaluator`, for a coroutine function."""

    async def __call__(self, pull: Pull) -> object:
        if pull.baseline is None:
            return await self.evaluate(pull, *self.more)
        pair = Pair(pull)
        for side in pull.both():
            try:
                pair.rewards[side.arm] = await self.evaluate(side, *self.more)
            except BaseException as error:
                if not pair.can_go_on(side, error):
                    raise
        return pair.both()


def is_coroutine_evaluator(function: object) -> bool:
    """Whether calling it gives a coroutine. It may also be a partial function, or an object with ``__call__``.

    >>> async def evaluate(pull): ...
    >>> is_coroutine_evaluator(functools.partial(evaluate)), is_coroutine_evaluator(len)
    (True, False)
    """
    while isinstance(function, functools.partial):
        function = function.func
    plain = inspect.isroutine(function)
    return inspect.iscoroutinefunction(function if plain else type(function).__call__)


# -- The shared object ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shared:
    """How to set up the shared object and clean it up, in whatever form the user passed it."""

    set_up: Callable[[], Any]
    clean_up: Callable[[Any], Any]
    is_pair: bool = False  # a pair of functions, which can set it up more than once
    is_async: bool = False


def shared_by_evaluators(sharing: object, *, awaits: bool) -> Shared | None:
    """Read the argument ``shared``. ``awaits`` says whether the evaluator is a coroutine function.

    >>> shared = shared_by_evaluators((list, list.clear), awaits=False)
    >>> shared.is_pair, shared.is_async
    (True, False)
    """
    if sharing is None:
        return None
    kind = type(sharing)
    if isinstance(sharing, tuple | list) and len(sharing) == 2 and all(map(callable, sharing)):
        shared = Shared(sharing[0], sharing[1], is_pair=True, is_async=any(map(is_coroutine_evaluator, sharing)))
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
def shared_argument(shared: Shared | None) -> Iterator[More]:
    """Set it up, yield it as an argument, and clean it up. A clean-up that fails is logged."""
    if shared is None:
        yield ()
        return
    try:
        value = shared.set_up()
    except Exception as error:
        raise _not_set_up(error) from error
    if inspect.iscoroutine(value):
        value.close()
        rule = "its set-up returned a coroutine, which a plain evaluator cannot await"
        raise InvalidInput("shared", shared.set_up, rule, "make the evaluator a coroutine function")
    try:
        yield (value,)
    finally:
        try:
            shared.clean_up(value)
        except Exception as error:
            _log(error)


@contextlib.asynccontextmanager
async def shared_argument_async(shared: Shared | None) -> AsyncIterator[More]:
    """Like `shared_argument`, in an event loop. One task sets it up and cleans it up, as many libraries require."""
    if shared is None:
        yield ()
        return
    try:
        value = await _result(shared.set_up())
    except Exception as error:
        raise _not_set_up(error) from error
    try:
        yield (value,)
    finally:
        try:
            await _result(shared.clean_up(value))
        except Exception as error:
            _log(error)


async def _result(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def _not_set_up(error: Exception) -> CannotGoOn:
    return CannotGoOn("shared", rule=f"its set-up failed: {error_line(error)}", remedy="no pull was issued")


def _log(error: Exception) -> None:
    log.warning(f"shared: its clean-up failed: {error_line(error)}; no reward is lost")
