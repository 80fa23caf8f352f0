"""The rules for each part of a specification. A check returns the value as it is stored, or raises `InvalidInput`."""

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from ..errors import InvalidInput, shown
from ..text.plural import plural
from . import checks
from .policies import Policy

MAX_BUDGET = 10**15  # pulls; stores count with 64 bits
MAX_EVALUATOR = 10_000  # characters
MAX_REWARD = 1e100  # without bounds: beyond it, squares of rewards leave the range of floats
NEAREST = 1e-9  # the least distance from the bar to a bound, as a share of the range: nearer, rounding would decide
Params = Mapping[str, Any]
Bounds = tuple[float, float]


def arm_names(given: object) -> tuple[str, ...]:
    """The names of the arms, all different."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise InvalidInput("arms", given, "must be a list of names, or a dict of names and parameters")
    names = tuple(given)
    if not names:
        raise InvalidInput("arms", [], "there must be at least one", "name the options to compare")
    known = set()
    for name in names:
        if checks.name("arm", name) in known:
            raise InvalidInput("arm", name, "is given twice", "give every arm its own name")
        known.add(name)
    return names


def params_by_arm(given: Mapping[str, object]) -> tuple[Params, ...]:
    """The parameters of each arm, as a user gives them, as plain JSON data."""
    return tuple(_params(name, params) for name, params in given.items())


def stored_params(params: object, arms: int) -> tuple[Params, ...]:
    """The parameters of each arm, as a log has them."""
    fits = isinstance(params, list | tuple) and len(params) == arms and all(isinstance(one, dict) for one in params)
    if not fits:
        raise InvalidInput("params", params, "must be a list of objects, one an arm")
    return tuple(params)  # type: ignore[arg-type]  # checked


def _params(arm: str, params: object) -> Params:
    what = f"parameters of arm {shown(arm)}"
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


def bar(threshold: object, bounds: Bounds | None) -> float:
    """The threshold, strictly inside the bounds."""
    found = checks.number("threshold", threshold)
    if bounds and not bounds[0] < found < bounds[1]:
        rule = f"must lie strictly inside the bounds ({bounds[0]:g}, {bounds[1]:g})"
        remedy = "choose another bar, or the bounds that rewards really have"
        if bounds == (0.0, 1.0) and 1 < found < 100:
            remedy = f"if it is a percentage, write {found / 100:g}; else give the bounds that rewards really have"
        raise InvalidInput("threshold", threshold, rule, remedy)
    if abs(found) > MAX_REWARD:
        raise InvalidInput("threshold", threshold, f"must lie within ±{MAX_REWARD:g}", "scale the rewards")
    return found


def confidence_or_none(confidence: object, threshold: float, bounds: Bounds | None, *, nearest: float) -> float | None:
    """The confidence, if certificates are wanted and can be given."""
    if confidence is None:
        return None
    remedy = "write one such as 0.95, or None (--no-confidence) to go without certificates"
    sure = checks.share("confidence", confidence, remedy=remedy)
    if bounds is None:
        raise InvalidInput("bounds", None, "certificates need bounded rewards", "give bounds, or confidence=None")
    scaled = (threshold - bounds[0]) / (bounds[1] - bounds[0])
    if not nearest < scaled < 1.0 - nearest:
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


def check_budget(budget: object, arms: int, policy: Policy, *, most: int = MAX_BUDGET) -> int:
    """A budget that lets every arm warm up, or an error."""
    pulls, least = checks.whole("budget", budget, least=1, most=most), policy.warmup * arms
    if pulls < least:
        each = f"{plural(policy.warmup, 'warm-up pull')} for each of {plural(arms, 'arm')}"
        rule = f"must be at least {least}: {each}"
        raise InvalidInput("budget", budget, rule, "give a larger budget, a smaller warmup or fewer arms")
    return pulls


def budget_or_none(budget: object, arms: int, policy: Policy, *, certifies: bool) -> int | None:
    """The budget; a study without one needs another way to end."""
    if budget is not None:
        return check_budget(budget, arms, policy)
    if not certifies:
        raise InvalidInput("budget", None, "without certificates a study ends with its budget alone", "give a budget")
    if policy.needs_budget:
        remedy = "give a budget or an exploration, or use anytime-evt"
        raise InvalidInput("policy", str(policy), "takes its exploration from the budget, and there is none", remedy)
    return None


def reward_of_failure(failure: object, bounds: Bounds | None) -> float | Literal["worst", "ignore"]:
    """What a failed pull means."""
    if failure == "worst":
        return "worst"
    if failure == "ignore":
        return "ignore"
    number = checks.as_float(failure)
    low, high = bounds or (-MAX_REWARD, MAX_REWARD)
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
