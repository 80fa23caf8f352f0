"""Arguments that are given by name: unknown ones are refused in one line, and help shows those of a ``TypedDict``."""

import functools
import inspect
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ParamSpec, TypeVar, get_args, get_type_hints

from ..errors import UnknownArgument
from .checks import name_check_remedy

LINE = 120  # characters of a docstring's lines
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def named_arguments(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Refuse an unknown argument in one line, and let help show each argument of ``**given: Unpack[…]``.

    The signature gets a parameter for each, and the docstring a text about each in place of ``{arguments}``.

    >>> @named_arguments
    ... def run(*, workers=16): ...
    >>> run(worker=3)
    Traceback (most recent call last):
    thresher.errors.UnknownArgument: argument 'worker': run has no such argument; did you mean 'workers'?
    >>> @named_arguments
    ... def create(name, *, arms): ...
    >>> create("s", ["a", "b"])
    Traceback (most recent call last):
    thresher.errors.UnknownArgument: argument ['a', 'b']: create takes name by position, all other arguments by \
name; help(create) lists the names
    """
    own = inspect.signature(function)
    signature = own.replace(
        parameters=[parameter for declared in own.parameters.values() for parameter in _unpacked(declared)]
    )
    whose = function.__qualname__.removesuffix(".__init__")
    named = signature.parameters.values()
    by_position = [parameter.name for parameter in named if parameter.kind is parameter.POSITIONAL_OR_KEYWORD]

    def check(args: Sequence[object], names: Iterable[str]) -> None:
        for name in names:
            if name not in signature.parameters:
                remedy = name_check_remedy(name, signature.parameters) or f"help({whose}) lists them"
                raise UnknownArgument("argument", name, f"{whose} has no such argument", remedy)
        for extra in args[len(by_position) :]:
            some = " and ".join(name for name in by_position if name != "self") or "nothing"
            rule = f"{whose} takes {some} by position, all other arguments by name"
            raise UnknownArgument("argument", extra, rule, f"help({whose}) lists the names")

    @functools.wraps(function)
    def call(*args: Arguments.args, **named: Arguments.kwargs) -> Result:
        check(args, named)
        return function(*args, **named)

    @functools.wraps(function)
    async def acall(*args: Arguments.args, **named: Arguments.kwargs) -> Any:
        check(args, named)
        return await function(*args, **named)  # type: ignore[misc]  # a coroutine function's

    wrapper: Any = acall if inspect.iscoroutinefunction(function) else call  # both stay what they are to inspect
    wrapper.__signature__ = signature  # for inspect.signature, help and completion
    wrapper.__doc__ = _explained(function.__doc__, own)
    return wrapper  # type: ignore[no-any-return]


def argument_table(arguments: Any) -> dict[str, Any]:
    """The metadata of each field of a ``TypedDict``: what `Annotated` says besides its type."""
    table = {}
    for name, kind in get_type_hints(arguments, include_extras=True).items():
        while not hasattr(kind, "__metadata__"):  # Required[…]
            (kind,) = get_args(kind)
        (table[name],) = kind.__metadata__
    return table


def _unpacked(parameter: inspect.Parameter) -> Iterator[inspect.Parameter]:
    """The parameter, or the keyword arguments that it stands for."""
    if parameter.kind is not inspect.Parameter.VAR_KEYWORD:
        yield parameter
        return
    (arguments,) = get_args(parameter.annotation)
    table = argument_table(arguments)
    for name, kind in get_type_hints(arguments).items():
        default = inspect.Parameter.empty if name in arguments.__required_keys__ else table[name].default
        yield inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def _explained(text: str | None, signature: inspect.Signature) -> str | None:
    """A docstring with a text about each of the unpacked arguments."""
    declared = signature.parameters.values()
    unpacked = [parameter.annotation for parameter in declared if parameter.kind is parameter.VAR_KEYWORD]
    if text is None or "{arguments}" not in text:
        return text
    lines = textwrap.TextWrapper(LINE, " " * 8, " " * 12, break_on_hyphens=False)
    table = {name: row for kind in unpacked for name, row in argument_table(*get_args(kind)).items()}
    texts = (lines.fill(f"{name}: {row.text}") for name, row in table.items())
    return text.replace("        {arguments}", "\n".join(texts))
