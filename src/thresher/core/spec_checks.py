"""The rules for each part of a specification. A check returns the value as it is stored, or raises `InvalidInput`."""

import json
import math
import numbers
from collections.abc import Iterable, Mapping
from typing import Literal

from ..errors import InvalidInput, shown
from ..text.phrasing import only, plural
from . import checks, policies
from .arguments import DEFAULTS, Guarantee, Params
from .named_items import ARMS, CASES, from_python
from .policies import Policy

MAX_BUDGET = 10**15  # pulls; stores count with 64 bits
MAX_EVALUATOR = 10_000  # characters
MAX_REWARD = 1e100  # without bounds: beyond it, squares of rewards leave the range of floats
NEAREST = 1e-9  # the least distance from the bar to a bound, as a share of the range: nearer, rounding would decide
MOST_CASES = 10**9
MOST_NAMED_CASES = 5_000_000  # their names are in the log's first event
WARM_UP, NO_GUARANTEE = "give a larger budget, a smaller warmup or fewer arms", "leave the guarantee out"  # remedies
GIVE_BUDGET = "give a budget or an exploration, or use anytime-evt"
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
        raise InvalidInput("tries", given, "only cases can be tried again", "give cases, or leave tries out")
    if told:
        rule = "a failed case has the reward of a failure at once, and is not tried again"
        raise InvalidInput("tries", given, rule, "leave tries out, or failure")
    return found


def guarantee(given: object, *, certifies: bool) -> Guarantee:
    """What certificates promise."""
    if given not in ("all", "rate"):
        rule = "must be 'all' (no certified label is wrong) or 'rate' (few of them are, on average)"
        raise InvalidInput("guarantee", given, rule)
    if given == "rate" and not certifies:
        raise InvalidInput("guarantee", given, "nothing is certified without a confidence", "give a confidence")
    return given


def find_or_none(given: object, arms: int, guarantee: object, *, certifies: bool) -> int | None:
    """How many arms that reach the bar are enough."""
    if given is None:
        return None
    found = checks.whole("find", given, least=1)
    if found > arms:
        raise InvalidInput("find", given, only(arms, "arm"), "find fewer")
    if not certifies:
        raise InvalidInput("find", given, "nothing is certified without a confidence", "give a confidence")
    if guarantee == "rate":
        rule = "the first arms found are the most likely to be wrong, so the guarantee must be 'all'"
        raise InvalidInput("find", given, rule, NO_GUARANTEE)
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
            "bounds", bounds, "the lower bound must come first and be smaller", f"did you mean ({high:g}, {low:g})?"
        )
    if math.isinf(high - low) or max(abs(low), abs(high)) > MAX_REWARD:
        raise InvalidInput("bounds", bounds, f"must lie within ±{MAX_REWARD:g}", "scale the rewards")
    return low, high


def bar(threshold: object, bounds: Bounds | None, what: str) -> float:
    """The bar, strictly inside the bounds; ``what`` is the name by which it was given."""
    found = checks.number(what, threshold)
    if bounds and not bounds[0] < found < bounds[1]:
        inner = "the range of differences" if what == "margin" else "the bounds"
        rule = f"must lie strictly inside {inner} ({bounds[0]:g}, {bounds[1]:g})"
        remedy = "choose another bar, or the bounds that rewards really have"
        if bounds == (0.0, 1.0) and 1 < found < 100:
            remedy = f"if it is a percentage, write {found / 100:g}; else give the bounds that rewards really have"
        raise InvalidInput(what, threshold, rule, remedy)
    if abs(found) > MAX_REWARD:
        raise InvalidInput(what, threshold, f"must lie within ±{MAX_REWARD:g}", "scale the rewards")
    return found


def confidence_or_none(confidence: object, threshold: float, bounds: Bounds | None) -> float | None:
    """The confidence, if certificates are wanted and can be given."""
    if confidence is None:
        return None
    remedy = "write one such as 0.95, or None (--confidence off) to go without certificates"
    sure = checks.share("confidence", confidence, remedy=remedy)
    if bounds is None:
        remedy = "give bounds, ask about a share, or confidence=None"
        raise InvalidInput("bounds", None, "certificates need bounded rewards", remedy)
    scaled = (threshold - bounds[0]) / (bounds[1] - bounds[0])
    if not NEAREST < scaled < 1.0 - NEAREST:
        wide = f"are so wide that the bar {threshold:g} cannot be told from one of them"
        raise InvalidInput("bounds", bounds, wide, "give the bounds that rewards really have")
    return sure


def clips(clip: object, bounds: Bounds | None) -> bool:
    """Whether rewards outside the bounds count as the bound."""
    if clip not in (False, True):
        raise InvalidInput("clip", clip, "must be True or False")
    if clip and bounds is None:
        raise InvalidInput("clip", clip, "there are no bounds to count rewards as", "give bounds, or leave it out")
    return bool(clip)


def check_budget(budget: object, arms: int, policy: Policy, *, most: int = MAX_BUDGET, before: int = 0) -> int:
    """A budget that lets every arm warm up, ``before`` pulls of the baseline having been made, or an error."""
    pulls, least = checks.whole("budget", budget, least=1, most=most), policy.warmup * arms
    if before and pulls <= before:
        rule = f"must be more than {before:,}: the baseline goes through all cases first"
        raise InvalidInput("budget", budget, rule, "give a larger budget, or none")
    if pulls < least:
        each = f"{plural(policy.warmup, 'warm-up pull')} for each of {plural(arms, 'arm')}"
        rule = f"must be at least {least}: {each}"
        raise InvalidInput("budget", budget, rule, WARM_UP)
    return pulls


def budget_or_none(budget: object, arms: int, policy: Policy, *, ends: bool, before: int = 0) -> int | None:
    """The budget; a study without one needs another way to end."""
    if budget is not None:
        return check_budget(budget, arms, policy, before=before)
    if not ends:
        raise InvalidInput("budget", None, "without certificates a study ends with its budget alone", "give a budget")
    if policy.needs_budget:
        rule = "takes its exploration from the budget, and there is none"
        raise InvalidInput("policy", str(policy), rule, GIVE_BUDGET)
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
        raise InvalidInput("failure", failure, rule, "with a baseline, use 'worst' or 'ignore'")
    if failure == "ignore" and cases:
        raise InvalidInput("failure", failure, "no case may be left out", "with cases, use 'worst' or a reward")
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
