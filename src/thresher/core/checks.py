"""Checks of what comes from outside: single values, and the names of a call's arguments.

The check of a value returns it in its proper type, or raises `InvalidInput`.
"""

import functools
import inspect
import math
import numbers
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any, ParamSpec, TypeVar, get_args, get_type_hints

from ..errors import InvalidInput, UnknownArgument, UnknownArm, shown
from ..text.phrasing import listed
from ..text.quantities import PERCENT, read_quantity

LARGEST = sys.float_info.max  # stands for infinity in a log, because not every store has it
MAX_WHOLE = 2**63 - 1  # databases use 64 bits
MAX_SECONDS = 1e9  # 31 years; later dates overflow in databases
MAX_NAME = 1000  # characters: names are printed in tables
LINE = 120  # characters of a docstring's lines
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def name(kind: str, value: object) -> str:
    """A name of a study or an arm.

    >>> name("arm", "zlib-6")
    'zlib-6'
    """
    if not isinstance(value, str):
        raise InvalidInput(kind, value, "must be a string")
    if not value.strip():
        raise InvalidInput(kind, value, "must not be empty", "give it a name")
    is_study = kind == "study"  # which has no parameters
    if len(value) > MAX_NAME:
        remedy = "give it a shorter name" if is_study else "put the long text into a parameter"
        raise InvalidInput(kind, value, f"must not be longer than {MAX_NAME} characters", remedy)
    if not value.isprintable():
        remedy = "leave out tabs, line breaks and the like" if is_study else "put the text into a parameter"
        raise InvalidInput(kind, value, "must be printable, on one line", remedy)
    return value


def text(name: str, value: object) -> str:
    """A string."""
    if not isinstance(value, str):
        raise InvalidInput(name, value, "must be a string")
    return value


def whole(name: str, value: object, *, least: int, most: int = MAX_WHOLE, remedy: str = "") -> int:
    """A whole number from ``least`` to ``most``; no bool.

    >>> whole("repetitions", 0, least=1)
    Traceback (most recent call last):
    thresher.errors.InvalidInput: repetitions 0: must be a whole number of at least 1
    """
    if type(value) is int and least <= value <= most:  # the usual case
        return value
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
        raise InvalidInput(name, value, f"must be a whole number of at least {least}", remedy)
    if int(value) > most:
        raise InvalidInput(name, value, f"must be a whole number of at most {most:,}", remedy)
    return int(value)


def number(name: str, value: object, low: float = -math.inf, high: float = math.inf, *, remedy: str = "") -> float:
    """A finite number from ``low`` to ``high``; no bool."""
    amount = None if isinstance(value, bool) else as_float(value)
    if amount is None or math.isnan(amount) or math.isinf(amount):
        raise InvalidInput(name, value, "must be a finite number", percent_hint(value) or remedy)
    if not low <= amount <= high:
        within = f"of at least {low:g}" if high == math.inf else f"from {low:g} to {high:g}"
        raise InvalidInput(name, value, f"must be a number {within}", remedy)
    return amount


def pair(name: str, value: object) -> tuple[float, float]:
    """Two finite numbers.

    >>> pair("bounds", (0, 1))
    (0.0, 1.0)
    """
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise InvalidInput(name, value, "must be two numbers")
    return number(name, value[0]), number(name, value[1])


def share(name: str, value: object, *, remedy: str = "") -> float:
    """A number strictly between 0 and 1."""
    amount = None if isinstance(value, bool) else as_float(value)
    if amount is None or not 0 < amount < 1:
        remedy = (
            f"write {amount / 100:g}" if amount is not None and 2 <= amount < 100 else percent_hint(value) or remedy
        )
        raise InvalidInput(name, value, "must lie strictly between 0 and 1", remedy)
    return amount


def percent_hint(value: object) -> str:
    """The remedy for a percentage that was given as text; empty for anything else."""
    amount = read_quantity(value.strip()) if isinstance(value, str) and value.rstrip().endswith(PERCENT) else None
    return "" if amount is None else f"write {amount:g}"


def seconds(name: str, value: object) -> float:
    """A length of time."""
    length = None if isinstance(value, bool) else as_float(value)
    if length is None or not 0 < length <= MAX_SECONDS:
        raise InvalidInput(name, value, f"must be a number of seconds above 0, and at most {MAX_SECONDS:,.0f}")
    return length


def as_float(value: object) -> float | None:
    """Numbers and bools, Python's and numpy's, as floats; None for everything else.

    >>> as_float(True), as_float("1"), as_float(1j), as_float(-(10**400))
    (1.0, None, None, -inf)
    """
    if type(value) is float:  # the usual case
        return value
    if isinstance(value, numbers.Real | Decimal):
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf  # type: ignore[operator]
        except ValueError:  # a signalling NaN
            return None
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):  # a numpy scalar, a tensor of no dimension
        return as_float(value.item())
    return None


def finite(number: float) -> float:
    """A number that every store can keep: no infinity, no negative zero.

    >>> finite(-0.0), finite(float("inf")) == LARGEST
    (0.0, True)
    """
    return min(max(number, -LARGEST), LARGEST) + 0.0


def unknown_arm(name: object, arms: Sequence[str]) -> UnknownArm:
    """The error for a name that no arm has.

    >>> str(unknown_arm("terze", ["terse", "long"]))
    "arm 'terze': is not an arm of this study; did you mean 'terse'?"
    """
    remedy = nearest(name, arms) or f"its arms are {listed(list(arms), show=shown)}"
    return UnknownArm("arm", name, "is not an arm of this study", remedy)


def nearest(name: object, known: Iterable[str]) -> str:
    """A remedy that asks whether a similar name was meant; empty if none is similar."""
    from difflib import get_close_matches  # here: only mistakes need it

    near = get_close_matches(name, list(known)) if isinstance(name, str) else []
    return f"did you mean {listed(near, show=shown)}?" if near else ""


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
    signature = own.replace(parameters=[each for declared in own.parameters.values() for each in _unpacked(declared)])
    whose = function.__qualname__.removesuffix(".__init__")
    named = signature.parameters.values()
    by_position = [parameter.name for parameter in named if parameter.kind is parameter.POSITIONAL_OR_KEYWORD]

    def check(args: Sequence[object], names: Iterable[str]) -> None:
        for name in names:
            if name not in signature.parameters:
                remedy = nearest(name, signature.parameters) or f"help({whose}) lists them"
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


def table_of(arguments: Any) -> dict[str, Any]:
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
    table = table_of(arguments)
    for name, kind in get_type_hints(arguments).items():
        default = inspect.Parameter.empty if name in arguments.__required_keys__ else table[name].default
        yield inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def _explained(text: str | None, signature: inspect.Signature) -> str | None:
    """A docstring with a text about each of the unpacked arguments."""
    unpacked = [each.annotation for each in signature.parameters.values() if each.kind is each.VAR_KEYWORD]
    if text is None or "{arguments}" not in text:
        return text
    lines = textwrap.TextWrapper(LINE, " " * 8, " " * 12, break_on_hyphens=False)
    table = {name: row for kind in unpacked for name, row in table_of(*get_args(kind)).items()}
    texts = (lines.fill(f"{name}: {row.text}") for name, row in table.items())
    return text.replace("        {arguments}", "\n".join(texts))
