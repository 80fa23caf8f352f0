"""The arguments of a specification: the one list of them. `create_study` takes the same and documents them."""

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, ParamSpec, Protocol, Required, TypedDict, TypeVar, get_args, get_type_hints

from ..errors import UnknownArgument
from .checks import nearest
from .policies import Policy

Params = Mapping[str, Any]


class DataFrame(Protocol):
    """What is needed of a pandas DataFrame."""

    @property
    def columns(self) -> Any: ...
    @property
    def index(self) -> Any: ...
    @property
    def to_dict(self) -> Any: ...


class File(Protocol):
    """A `pathlib.Path`."""

    def __fspath__(self) -> str: ...


Named = Iterable[str] | Iterable[Params] | Mapping[str, Params] | DataFrame | File
Guarantee = Literal["all", "rate"]
Given = ParamSpec("Given")
Found = TypeVar("Found")


class SpecArguments(TypedDict, total=False):
    """What a study can be asked. All but the arms may be left out."""

    arms: Required[Named]
    at_least: float | None
    at_most: float | None
    share: float | None
    baseline: str | None
    margin: float | None
    ratio: float | None
    lower_is_better: bool
    unit: str | None
    bounds: tuple[float, float] | None
    budget: int | None
    policy: Policy | str | None
    confidence: float | None
    tolerance: float
    failure: float | Literal["worst", "ignore"]
    seed: int | None
    max_failures: int | None
    clip: bool
    evaluator: str | None
    cases: int | Named | None
    tries: int
    guarantee: Guarantee
    find: int | None


class StoredArguments(SpecArguments, total=False):
    """What a log also has."""

    params: Sequence[Params] | None  # of each arm, where the arms are names alone
    case_params: Sequence[Params] | None  # of each case, where the cases are names alone
    settling_constant: float | None  # None: it is computed


DEFAULTS: dict[str, Any] = {  # None for all others. A log leaves out what is equal to these, so they cannot change.
    "lower_is_better": False,
    "bounds": (0.0, 1.0),
    "confidence": 0.95,
    "tolerance": 0.0,
    "failure": "worst",
    "max_failures": 3,
    "clip": False,
    "tries": 3,
    "guarantee": "all",
}


def named_arguments(function: Callable[Given, Found]) -> Callable[Given, Found]:
    """Refuse an unknown argument in one line, and show each argument of ``**given: Unpack[…]`` in the signature.

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
    signature = inspect.signature(function)
    shown = signature.replace(parameters=[one for given in signature.parameters.values() for one in _each(given)])

    whose = function.__qualname__.removesuffix(".__init__")
    first = [name for name, each in shown.parameters.items() if each.kind is each.POSITIONAL_OR_KEYWORD]

    def check(args: Sequence[object], given: Mapping[str, object]) -> None:
        for name in given:
            if name not in shown.parameters:
                meant = nearest(name, shown.parameters) or f"help({whose}) lists them"
                raise UnknownArgument("argument", name, f"{whose} has no such argument", meant)
        for extra in args[len(first) :]:
            some = " and ".join(name for name in first if name != "self") or "nothing"
            rule = f"{whose} takes {some} by position, all other arguments by name"
            raise UnknownArgument("argument", extra, rule, f"help({whose}) lists the names")

    @functools.wraps(function)
    def call(*args: Given.args, **given: Given.kwargs) -> Found:
        check(args, given)
        return function(*args, **given)

    @functools.wraps(function)
    async def acall(*args: Given.args, **given: Given.kwargs) -> Any:
        check(args, given)
        return await function(*args, **given)  # type: ignore[misc]  # a coroutine function's

    found: Any = acall if inspect.iscoroutinefunction(function) else call  # both stay what they are to inspect
    found.__signature__ = shown  # for inspect.signature, help and completion
    return found  # type: ignore[no-any-return]


def _each(parameter: inspect.Parameter) -> Iterator[inspect.Parameter]:
    """The parameter, or the keyword arguments that it stands for."""
    if parameter.kind is not inspect.Parameter.VAR_KEYWORD:
        yield parameter
        return
    (listed,) = get_args(parameter.annotation)
    for name, kind in get_type_hints(listed).items():
        default = inspect.Parameter.empty if name in listed.__required_keys__ else DEFAULTS.get(name)
        yield inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
