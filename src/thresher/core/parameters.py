"""The parameters of a specification: the one list of them, and their checks. `create_study` documents them."""

import functools
import inspect
import json
import math
import numbers
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, ParamSpec, Protocol, Required, TypedDict, TypeVar, get_args, get_type_hints

from ..errors import InvalidInput, UnknownArgument, shown
from ..text.naming import Naming
from ..text.phrasing import listed, only, plural
from . import checks, policies
from .checks import nearest
from .named_items import ARMS, CASES, Params, from_python
from .policies import Policy
from .question import HALF, ROUNDING, Measure


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
    "tries": 1,
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


# The rules for each part of a specification. A check returns the value as it is stored, or raises `InvalidInput`.

MAX_BUDGET = 10**15  # pulls; stores count with 64 bits
MAX_EVALUATOR = 10_000  # characters
MAX_REWARD = 1e100  # without bounds: beyond it, squares of rewards leave the range of floats
NEAREST = 1e-9  # the least distance from the bar to a bound, as a share of the range: nearer, rounding would decide
MOST_CASES = 10**9
MOST_NAMED_CASES = 5_000_000  # their names are in the log's first event
CONFIDENCE, LARGER = Naming("give a {confidence}"), Naming("give a larger {budget}, or none")  # remedies
Bounds = tuple[float, float]


def arms(given: object, stored: object) -> tuple[tuple[str, ...], tuple[Params, ...] | None]:
    """The names of the arms, all different, and their parameters; a log has those by themselves."""
    named = from_python(given, ARMS)
    names = _names("arm", named, empty="name the arms")
    return names, _params_or_none("arm", named, stored, len(names))


def cases(given: object, stored: object) -> tuple[tuple[str, ...] | int | None, tuple[Params, ...] | None]:
    """The cases of an eval set: how many, or their names, all different, and their parameters."""
    if given is None:
        return None, _params_or_none("case", None, stored, 0)
    if isinstance(given, numbers.Integral) and not isinstance(given, bool):
        count = checks.whole("cases", given, least=1, most=MOST_CASES)
        return count, _params_or_none("case", None, stored, count)
    named = from_python(given, CASES)
    names = _names("case", named, empty="name the cases, or give their number")
    if len(names) > MOST_NAMED_CASES:
        rule = f"are more names than a specification holds ({MOST_NAMED_CASES:,})"
        raise InvalidInput("cases", f"{len(names):,} names", rule, "give their number instead")
    return names, _params_or_none("case", named, stored, len(names))


def _names(what: str, given: Iterable[object], *, empty: str) -> tuple[str, ...]:
    """Names that are all different; ``what`` is what they name."""
    names: dict[str, None] = {}
    for value in given:
        name = str.__str__(checks.name(what, value))  # numpy's and enumerations' are subclasses
        if name in names:
            raise InvalidInput(what, name, "is given twice", f"give every {what} its own name")
        names[name] = None
    if not names:
        raise InvalidInput(f"{what}s", [], "there must be at least one", empty)
    return tuple(names)


def _params_or_none(what: str, named: object, stored: object, count: int) -> tuple[Params, ...] | None:
    """The parameters of each arm or case: a user gives them with the names, and a log has them by themselves."""
    if isinstance(named, Mapping):
        return tuple(_params(f"{what} {shown(name)}", params) for name, params in named.items())
    if stored is None:
        return None
    if isinstance(stored, list | tuple) and len(stored) == count and all(isinstance(one, dict) for one in stored):
        return tuple(stored)
    field = "params" if what == "arm" else "case_params"
    raise InvalidInput(field, stored, f"must be a list of {count:,} objects")


def tries(given: object, *, cases: bool, told: bool) -> int:
    """How often a failing case is tried; ``told``: a failure is told a reward, and so is never tried again."""
    found = checks.whole("tries", given, least=1, most=1000)
    if found == DEFAULTS["tries"]:
        return found
    if not cases:
        raise InvalidInput("tries", given, "only cases can be tried again", Naming("give {cases}, or leave it out"))
    if told:
        rule = "a failed case has the reward of a failure at once, and is not tried again"
        raise InvalidInput("tries", given, rule, Naming("leave it out, or {failure}"))
    return found


def guarantee(given: object, *, certifies: bool) -> Guarantee:
    """What certificates promise."""
    if given not in ("all", "rate"):
        rule = "must be 'all' (no certified label is wrong) or 'rate' (few of them are, on average)"
        raise InvalidInput("guarantee", given, rule)
    if given == "rate" and not certifies:
        raise InvalidInput("guarantee", given, "nothing is certified without a confidence", CONFIDENCE)
    return given


def find_or_none(given: object, arms: int, guarantee: object, *, certifies: bool) -> int | None:
    """How many arms that reach the bar are enough."""
    if given is None:
        return None
    found = checks.whole("find", given, least=1)
    if found > arms:
        raise InvalidInput("find", given, only(arms, "arm"), "find fewer")
    if not certifies:
        raise InvalidInput("find", given, "nothing is certified without a confidence", CONFIDENCE)
    if guarantee == "rate":
        rule = "the first arms found are the most likely to be wrong, so the guarantee must be 'all'"
        raise InvalidInput("find", given, rule, Naming("leave the {guarantee} out"))
    return found


def _params(whose: str, params: object) -> Params:
    what = f"parameters of {whose}"
    if not isinstance(params, Mapping) or not all(isinstance(key, str) for key in params):
        raise InvalidInput(what, params, "must be a dict with string keys")
    try:
        plain: Params = json.loads(json.dumps(dict(params), allow_nan=False, default=_plain_number))
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            what, params, f"must be plain JSON data ({error})", "use strings, numbers, lists, dicts"
        ) from None
    return plain


def _plain_number(value: object) -> object:
    """A number of numpy as Python's own; JSON knows no other."""
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        plain = value.item()
        if isinstance(plain, bool | int | float):
            return plain
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def bounds_or_none(bounds: object) -> Bounds | None:
    """The range of rewards, if there is one."""
    if bounds is None:
        return None
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise InvalidInput("bounds", bounds, "must be a pair (low, high), or None")
    low, high = (checks.number("bounds", end) for end in bounds)
    if not low < high:
        raise InvalidInput(
            "bounds",
            bounds,
            "the lower bound must come first and be smaller",
            Naming(f"did you mean {{bounds=({high:g}, {low:g})}}?"),
        )
    if math.isinf(high - low) or max(abs(low), abs(high)) > MAX_REWARD:
        raise InvalidInput("bounds", bounds, f"must lie within ±{MAX_REWARD:g}", "scale the rewards")
    return low, high


def strictly_inside(bar: object, bounds: Bounds | None, what: str) -> float:
    """The bar, strictly inside the bounds; ``what`` is the name by which it was given."""
    found = checks.number(what, bar)
    if bounds and not bounds[0] < found < bounds[1]:
        inner = "the range of differences" if what == "margin" else "the bounds"
        rule = f"must lie strictly inside {inner} ({bounds[0]:g}, {bounds[1]:g})"
        remedy = Naming("choose another bar, or the {bounds} that rewards really have")
        if bounds == (0.0, 1.0) and 1 < found < 100:
            real = "give the {bounds} that rewards really have"
            remedy = Naming(f"if it is a percentage, write {found / 100:g}; else {real}")
        raise InvalidInput(what, bar, rule, remedy)
    if abs(found) > MAX_REWARD:
        raise InvalidInput(what, bar, f"must lie within ±{MAX_REWARD:g}", "scale the rewards")
    return found


def confidence_or_none(confidence: object, bar: float, bounds: Bounds | None) -> float | None:
    """The confidence, if certificates are wanted and can be given."""
    if confidence is None:
        return None
    remedy = Naming("write one such as 0.95, or {confidence=None} to go without certificates")
    sure = checks.share("confidence", confidence, remedy=remedy)
    if bounds is None:
        remedy = Naming("give {bounds}, ask about a {share}, or {confidence=None}")
        raise InvalidInput("bounds", None, "certificates need bounded rewards", remedy)
    scaled = (bar - bounds[0]) / (bounds[1] - bounds[0])
    if not NEAREST < scaled < 1.0 - NEAREST:
        wide = f"are so wide that the bar {bar:g} cannot be told from one of them"
        raise InvalidInput("bounds", bounds, wide, "give the bounds that rewards really have")
    return sure


def clips(clip: object, bounds: Bounds | None) -> bool:
    """Whether rewards outside the bounds count as the bound."""
    if clip not in (False, True):
        raise InvalidInput("clip", clip, "must be True or False")
    if clip and bounds is None:
        raise InvalidInput(
            "clip", clip, "there are no bounds to count rewards as", Naming("give {bounds}, or leave it out")
        )
    return bool(clip)


def check_budget(budget: object, arms: int, policy: Policy, *, most: int = MAX_BUDGET, before: int = 0) -> int:
    """A budget that lets every arm warm up, ``before`` pulls of the baseline having been made, or an error."""
    pulls, least = checks.whole("budget", budget, least=1, most=most), policy.warmup * arms
    if before and pulls <= before:
        rule = f"must be more than {before:,}: the baseline goes through all cases first"
        raise InvalidInput("budget", budget, rule, LARGER)
    if pulls < least:
        each = f"{plural(policy.warmup, 'warm-up pull')} for each of {plural(arms, 'arm')}"
        rule = f"must be at least {least}: {each}"
        raise InvalidInput("budget", budget, rule, Naming("give a larger {budget} or fewer arms"))
    return pulls


def budget_or_none(budget: object, arms: int, policy: Policy, *, ends: bool, before: int = 0) -> int | None:
    """The budget; a study without one needs another way to end."""
    if budget is not None:
        return check_budget(budget, arms, policy, before=before)
    if not ends:
        rule = "without certificates a study ends with its budget alone"
        raise InvalidInput("budget", None, rule, Naming("give a {budget}"))
    if policy.needs_budget:
        rule = "takes its exploration from the budget, and there is none"
        raise InvalidInput("policy", str(policy), rule, Naming("give a {budget}, or {policy='anytime-evt'}"))
    return None


def check_offset(bounds: Bounds | None, *, counts: bool) -> None:
    """Counting adds rewards in their own units: far from 0, sums would lose the differences between them."""
    if bounds and counts and max(map(abs, bounds)) * 2.0**-52 > NEAREST * (bounds[1] - bounds[0]):
        rule = "lie so far from 0 that sums of rewards lose their differences"
        raise InvalidInput("bounds", bounds, rule, "subtract the same number from rewards, bounds and bar")


def reward_of_failure(
    failure: object, bounds: Bounds | None, *, cases: bool = False, pairs: bool = False, ratio: bool = False
) -> float | Literal["worst", "ignore"]:
    """What a failed pull means."""
    if failure == "worst":
        return "worst"
    if failure != "ignore" and pairs:
        rule = "a failed pull of a pair has no reward of its own"
        raise InvalidInput("failure", failure, rule, Naming("with a {baseline}, use 'worst' or 'ignore'"))
    if failure == "ignore" and cases:
        raise InvalidInput(
            "failure", failure, "no case may be left out", Naming("with {cases}, use 'worst' or a reward")
        )
    if failure == "ignore":
        return "ignore"
    number = checks.as_float(failure)
    low, high = bounds or (0.0 if ratio else -MAX_REWARD, MAX_REWARD)  # a ratio needs rewards of at least 0
    if number is None or not low <= number <= high:
        rule = f"must be 'worst', 'ignore', or a reward between {low:g} and {high:g}"
        raise InvalidInput("failure", failure, rule)
    return number


def check_evaluator(text: object) -> str:
    """What identifies an evaluator: any text that a log can keep."""
    if not isinstance(text, str) or not text.strip() or len(text) > MAX_EVALUATOR:
        rule = f"must be a text of 1 to {MAX_EVALUATOR:,} characters"
        raise InvalidInput("evaluator", text, rule, "name the command or the version that measures the rewards")
    return text


def constant(given: object, arms: int, confidence: float | None) -> float:
    """The settling constant. One from a log is kept: a logarithm's last digit may differ elsewhere."""
    computed = policies.settling_constant(arms, confidence)
    if given is None:
        return computed
    constant = checks.number("settling_constant", given)
    if not math.isclose(constant, computed, rel_tol=1e-9):
        raise InvalidInput("settling_constant", constant, f"must be about {computed!r}")
    return constant


# The rules for what a study asks: the bar and its direction, a share, a baseline.

BARS = ("at_least", "at_most")  # the names by which a bar can be given
OF_BASELINE = "belongs to a baseline"  # a rule
MARGIN_OR_RATIO = "leave it out, or give a {margin} or a {ratio}"  # a remedy
LONGEST_UNIT = 16  # characters
DEFAULT: Bounds = DEFAULTS["bounds"]


class Asked(NamedTuple):
    """What is asked of an arm, checked, and what follows from it."""

    stated_bar: float  # at_least, at_most or the margin: a bar for means, or with a share a limit of rewards
    lower_is_better: bool
    share: float | None
    baseline: str | None
    ratio: float | None
    bounds: Bounds | None  # of rewards
    limits: Bounds | None  # of what counts
    bar: float  # of what counts
    measure: Measure

    def reach(self, *, cases: bool) -> float:
        """The bar for exact means, lowered by the rounding error; a plain bar without cases stays as it is."""
        if self.limits is None or self.share is not None:
            return self.bar
        if self.baseline is None and not self.lower_is_better and not cases:
            return self.bar
        return self.bar - ROUNDING * max(map(abs, self.limits))


def asked(given: Mapping[str, object], *, bounds: Bounds | None, clip: bool, arms: tuple[str, ...]) -> Asked:
    """The question that some arguments of a study ask together."""
    lower = given.get("lower_is_better", False)
    if lower not in (False, True):
        raise InvalidInput("lower_is_better", lower, "must be True or False")
    name, number = named_bar({bar: given.get(bar) for bar in BARS})
    base, margin = baseline_or_none(given.get("baseline"), arms), given.get("margin")
    if base is None:
        for what in ("margin", "ratio"):
            if given.get(what) is not None:
                raise InvalidInput(what, given[what], OF_BASELINE, Naming("name one of the arms with {baseline}"))
        if lower:
            raise InvalidInput("lower_is_better", lower, OF_BASELINE, Naming("give {at_most}"))
        if name is None:
            remedy = Naming("give {at_least} or {at_most}, or a {baseline}")
            raise InvalidInput("at_least", None, "there is no bar", remedy)
    elif name is not None:
        rule = "with a baseline, the bar is what the baseline reaches"
        raise InvalidInput(name, number, rule, Naming(MARGIN_OR_RATIO))
    else:
        name, number = "margin", 0.0 if margin is None else margin
    lower = bool(lower) or name == "at_most"
    ratio = _ratio_or_none(given.get("ratio"), margin)
    share = _share_or_none(given.get("share"), ratio)
    sign, limit = -1.0 if lower else 1.0, 0.0
    limits: Bounds | None
    if share is not None:  # what counts is whether a pull is within the limit
        _check_no_bounds(bounds, share, clip=clip)
        bounds, limits, bar = None, (0.0, 1.0), share
        stated = strictly_inside(number, None, name)
        limit = stated if base is not None else sign * stated + 0.0
    elif base is not None:  # the difference from the baseline
        limits = spanned(bounds, lower=lower, paired=True)
        stated = bar = strictly_inside(number, limits, name)
    else:  # the reward
        limits = spanned(bounds, lower=lower, paired=False)
        stated = strictly_inside(number, bounds, name)
        bar = sign * stated + 0.0
    low, high = bounds if clip and bounds else (-float("inf"), float("inf"))
    measure = Measure(sign, low, high, base is not None, ratio or 0.0, share is not None, limit)
    return Asked(stated, lower, share, base, ratio, bounds, limits, bar, measure)


def spanned(bounds: Bounds | None, *, lower: bool, paired: bool) -> Bounds | None:
    """The range of what counts, from the range of rewards.

    >>> spanned((0.0, 2.0), lower=True, paired=False), spanned((0.0, 2.0), lower=False, paired=True)
    ((-2.0, 0.0), (-2.0, 2.0))
    """
    if bounds is None:
        return None
    low, high = bounds
    if paired:
        return low - high, high - low
    return (-high + 0.0, -low + 0.0) if lower else bounds


def baseline_or_none(given: object, arms: tuple[str, ...]) -> str | None:
    """The arm that the others are compared with."""
    if given is None:
        return None
    if not isinstance(given, str) or given not in arms:
        raise InvalidInput("baseline", given, "is not one of the arms", f"the arms are {listed(arms, show=shown)}")
    if len(arms) == 1:
        raise InvalidInput("baseline", given, "is the only arm", "name what is to be compared with it")
    return given


def unit_or_none(given: object) -> str | None:
    """The unit of rewards, for people."""
    if given is None:
        return None
    if (
        not isinstance(given, str)
        or not 0 < len(given) <= LONGEST_UNIT
        or not given.isprintable()
        or given != given.strip()
    ):
        raise InvalidInput("unit", given, f"must be a text of 1 to {LONGEST_UNIT} characters", "write s, for example")
    return str(given)


def named_bar(bars: Mapping[str, object]) -> tuple[str | None, object]:
    """The bar and the name by which it was given."""
    given = [(name, value) for name, value in bars.items() if value is not None]
    if len(given) > 1:
        names = " and ".join(f"{{{name}}}" for name, _ in given)
        rule = Naming(f"a study has one bar, and {names} are given")
        raise InvalidInput(given[1][0], given[1][1], rule, "leave one out")
    return given[0] if given else (None, None)


def _ratio_or_none(ratio: object, margin: object) -> float | None:
    if ratio is None:
        return None
    if margin is not None:
        raise InvalidInput("ratio", ratio, Naming("a {margin} is given too"), "give one of them")
    found = checks.number("ratio", ratio)
    if not 0.0 < found <= MAX_REWARD:
        raise InvalidInput("ratio", ratio, "must be a number above 0", "write 1.05 for five percent more")
    return found


def _share_or_none(share: object, ratio: float | None) -> float | None:
    if share is None:
        return None if ratio is None else HALF
    return checks.share("share", share, remedy="write one such as 0.95")


def _check_no_bounds(bounds: Bounds | None, share: float, *, clip: bool) -> None:
    """A share needs no bounds, so none may be given."""
    if bounds not in (None, DEFAULT):
        raise InvalidInput("bounds", bounds, Naming(f"a {{share}} ({share:g}) needs none"), "leave one of them out")
    if clip:
        rule = Naming(f"a {{share}} ({share:g}) has no bounds to count rewards as")
        raise InvalidInput("clip", clip, rule, "leave it out")
