"""What evaluators share, such as a client or a database: set up before the first pull, cleaned up after the last."""

import contextlib
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from typing import Any

from ..errors import CannotGoOn, InvalidInput, told_of
from ..text.logs import log
from .wrapped import is_coroutine

Pair = tuple[Callable[[], Any], Callable[[Any], Any]]  # set_up, clean_up
Sharing = AbstractAsyncContextManager[Any] | AbstractContextManager[Any] | Pair
More = tuple[object, ...]  # further arguments of the evaluator, after the pull: what is shared, or none


@dataclass(frozen=True)
class Shared:
    """How to set it up and clean it up, whatever the user passed."""

    set_up: Callable[[], Any]
    clean_up: Callable[[Any], Any]
    is_pair: bool = False  # of functions: it can be set up more than once
    is_async: bool = False


def checked(given: object, *, awaits: bool) -> Shared | None:
    """What the user passed as ``shared``. ``awaits`` says whether the evaluator is a coroutine function.

    >>> found = checked((list, list.clear), awaits=False)
    >>> found.is_pair, found.is_async
    (True, False)
    """
    if given is None:
        return None
    kind = type(given)
    if isinstance(given, tuple | list) and len(given) == 2 and all(map(callable, given)):
        shared = Shared(given[0], given[1], is_pair=True, is_async=any(map(is_coroutine, given)))
    elif hasattr(kind, "__aenter__") and (awaits or not hasattr(kind, "__enter__")):
        manager: Any = given
        shared = Shared(manager.__aenter__, lambda _: manager.__aexit__(None, None, None), is_async=True)
    elif hasattr(kind, "__enter__"):
        manager = given
        shared = Shared(manager.__enter__, lambda _: manager.__exit__(None, None, None))
    else:
        rule = "must be a context manager or a pair of functions, (set_up, clean_up)"
        raise InvalidInput("shared", given, rule, "pass what it returns" if callable(given) else "")
    if shared.is_async and not awaits:
        rule = "needs an event loop, which a plain evaluator does not run on"
        raise InvalidInput("shared", given, rule, "make the evaluator a coroutine function")
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
