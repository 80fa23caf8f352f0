"""A study's specification: what was asked, fixed when the study is created. Frozen data, checked at the border."""

import json
import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Literal

from ..errors import InvalidInput, OutsideBounds, shown
from ..text.masking import masked
from ..text.plural import plural
from . import checks, policies
from .evidence import RULE
from .policies import Policy

MAX_BUDGET = 10**15  # pulls; stores count with 64 bits
MAX_SEED = 2**128 - 1
MAX_EVALUATOR = 10_000  # characters
LARGEST = sys.float_info.max  # what stands for infinity in a log, where not every store knows it
CLIP = "declare the bounds that rewards can really take, or clip=True (--clip) to count such rewards as the bound"
MAX_REWARD = 1e100  # without bounds: beyond it squares of rewards leave the range of floats
NEAREST = 1e-9  # how near to a bound the bar may lie, as a share of the range: nearer, rounding would decide
FORMAT_1 = (  # the fields of a specification in a log of version 0.1
    "arms", "params", "threshold", "bounds", "budget", "policy", "confidence", "tolerance", "failure", "seed",
    "max_failures", "settling_constant",
)  # fmt: skip
Params = Mapping[str, Any]
NO_PARAMS: Params = {}


@dataclass(frozen=True)
class Spec:
    """Everything that a study's decisions depend on besides its rewards. Made by `specify`."""

    arms: tuple[str, ...]
    params: tuple[Params, ...] | None
    threshold: float
    bounds: tuple[float, float] | None
    budget: int | None
    policy: Policy
    confidence: float | None
    tolerance: float
    failure: float | Literal["worst", "ignore"]
    seed: int
    max_failures: int | None
    settling_constant: float
    rule: int = RULE  # of certificates
    clip: bool = False
    evaluator: str | None = None

    @cached_property
    def index(self) -> dict[str, int]:
        """The number of each arm, by name."""
        return {name: arm for arm, name in enumerate(self.arms)}

    @property
    def scaled_threshold(self) -> float:
        """The bar on the scale of the kernel."""
        return self.scale(self.threshold)

    def scale(self, reward: float) -> float:
        """A reward that counts on the scale of the kernel: [0, 1], or as it is where there are no bounds."""
        if self.bounds is None:
            return reward
        low, high = self.bounds
        return (reward - low) / (high - low)

    def counted(self, reward: float) -> float:
        """What a reward counts as: itself, or with ``clip`` the nearest number within the bounds."""
        if not self.clip or self.bounds is None:
            return reward
        return min(max(reward, self.bounds[0]), self.bounds[1])

    def arm(self, name: object) -> int:
        """The number of the arm of that name."""
        if not isinstance(name, str) or name not in self.index:
            raise InvalidInput("arm", name, "is not an arm of this study", f"its arms are {_listed(self.arms)}")
        return self.index[name]

    def reward(self, value: object) -> float:
        """A reward as a float, or an error that says what is wrong with it.

        >>> specify(arms=["a"], threshold=0.5, budget=2).reward(True)
        1.0
        """
        number = checks.as_float(value)
        if number is None or math.isnan(number) or (math.isinf(number) and self.bounds is None):
            raise InvalidInput(
                "reward", value, "must be a finite number or a bool", "return a number, or raise an exception to fail"
            )
        if self.is_outside(number):
            low, high = self.bounds or (-MAX_REWARD, MAX_REWARD)
            kind, remedy = (OutsideBounds, CLIP) if self.bounds else (InvalidInput, "scale the rewards")
            raise kind("reward", number, f"must lie within the bounds ({low:g}, {high:g})", remedy)
        return finite(number)

    def is_outside(self, reward: float) -> bool:
        """Whether no reward may be like this; where there are bounds, it proves them wrong."""
        low, high = self.bounds or (-MAX_REWARD, MAX_REWARD)
        return not low <= reward <= high and not self.clip

    def to_json(self) -> dict[str, Any]:
        """The specification as JSON-ready data; `from_json` reads it back, equal to the bit."""
        data: dict[str, Any] = {"format": 1 if self.rule == 1 else 2}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in FORMAT_1 or (self.rule > 1 and (field.name == "rule" or value != field.default)):
                data[field.name] = value.to_json() if isinstance(value, Policy) else value
        return data


def finite(number: float) -> float:
    """A number that every store can keep: no infinity, no negative zero.

    >>> finite(-0.0), finite(float("inf")) == LARGEST
    (0.0, True)
    """
    return min(max(number, -LARGEST), LARGEST) + 0.0


def specify(
    *,
    arms: Iterable[str] | Mapping[str, Params],
    threshold: float,
    bounds: tuple[float, float] | None = (0.0, 1.0),
    budget: int | None = None,
    policy: Policy | str | None = None,
    confidence: float | None = 0.95,
    tolerance: float = 0.0,
    failure: float | Literal["worst", "ignore"] = "worst",
    seed: int = 0,
    max_failures: int | None = 3,
    clip: bool = False,
    evaluator: str | None = None,
) -> Spec:
    """A checked specification; `create_study` documents the arguments."""
    names, params = _arms(arms)
    return _checked(
        names,
        params,
        threshold=threshold,
        bounds=bounds,
        budget=budget,
        policy=policies.policy(policy, certificates=confidence is not None),
        confidence=confidence,
        tolerance=tolerance,
        failure=failure,
        seed=seed,
        max_failures=max_failures,
        clip=clip,
        evaluator=None if evaluator is None else masked(check_evaluator(evaluator))[:MAX_EVALUATOR],
    )


def _checked(
    names: tuple[str, ...],
    params: tuple[Params, ...] | None,
    *,
    threshold: object,
    bounds: object,
    budget: object,
    policy: Policy,
    confidence: object,
    tolerance: object,
    failure: object,
    seed: object,
    max_failures: object,
    rule: object = RULE,
    clip: object = False,
    evaluator: object = None,
) -> Spec:
    """The rules that hold for every specification, wherever it comes from."""
    if rule not in (1, 2) or isinstance(rule, bool):
        raise InvalidInput("rule", rule, "is not a rule of certificates that this version knows", "update thresher")
    span = _bounds(bounds)
    bar = checks.number("threshold", threshold)
    if span and not span[0] < bar < span[1]:
        rule = f"must lie strictly inside the bounds ({span[0]:g}, {span[1]:g})"
        raise InvalidInput("threshold", threshold, rule, "choose another bar, or the bounds that rewards really have")
    if abs(bar) > MAX_REWARD:
        raise InvalidInput("threshold", threshold, f"must lie within ±{MAX_REWARD:g}", "scale the rewards")
    sure = None
    if confidence is not None:
        sure = checks.share("confidence", confidence, remedy="confidence=None goes without certificates")
        if span is None:
            raise InvalidInput("bounds", None, "certificates need bounded rewards", "give bounds, or confidence=None")
        scaled, nearest = (bar - span[0]) / (span[1] - span[0]), 0.0 if rule == 1 else NEAREST
        if not nearest < scaled < 1.0 - nearest:
            wide = f"are so wide that the bar {bar:g} cannot be told from one of them"
            raise InvalidInput("bounds", span, wide, "give the bounds that rewards really have")
    if clip not in (False, True):
        raise InvalidInput("clip", clip, "must be True or False")
    if clip and span is None:
        raise InvalidInput("clip", clip, "there are no bounds to count rewards as", "give bounds, or leave it out")
    pulls = None if budget is None else check_budget(budget, names, policy)
    if pulls is None and sure is None:
        raise InvalidInput("budget", None, "without certificates a study ends with its budget alone", "give a budget")
    if pulls is None and policy.needs_budget:
        remedy = "give a budget or an exploration, or use anytime-evt"
        raise InvalidInput("policy", str(policy), "takes its exploration from the budget, and there is none", remedy)
    return Spec(
        arms=names,
        params=params,
        threshold=bar,
        bounds=span,
        budget=pulls,
        policy=policy,
        confidence=sure,
        tolerance=checks.number("tolerance", tolerance, 0.0, MAX_REWARD),
        failure=_failure(failure, span),
        seed=checks.whole("seed", seed, least=0, most=MAX_SEED),
        max_failures=None if max_failures is None else checks.whole("max_failures", max_failures, least=1),
        settling_constant=policies.settling_constant(len(names), 0.05 if sure is None else 1 - sure),
        rule=int(rule),
        clip=bool(clip),
        evaluator=None if evaluator is None else check_evaluator(evaluator),
    )


def check_evaluator(text: object) -> str:
    """What identifies an evaluator: any text that a log can keep."""
    if not isinstance(text, str) or not text.strip() or len(text) > MAX_EVALUATOR:
        rule = f"must be a text of 1 to {MAX_EVALUATOR:,} characters"
        raise InvalidInput("evaluator", text, rule, "name the command or the version that measures the rewards")
    return text


def from_json(data: object) -> Spec:
    """The specification that `Spec.to_json` wrote, checked as if it had been asked for now.

    >>> spec = specify(arms={"a": {"depth": 2}}, threshold=0.5, budget=2)
    >>> from_json(json.loads(json.dumps(spec.to_json()))) == spec
    True
    """
    if not isinstance(data, Mapping):
        raise InvalidInput("specification", data, "must be a JSON object")
    if data.get("format") not in (1, 2):
        raise InvalidInput("format", data.get("format"), "is not one that this version reads", "update thresher")
    kept = {key: value for key, value in data.items() if key != "format"}
    old = data["format"] == 1
    wanted = {*FORMAT_1} if old else {*FORMAT_1, "rule"}
    known = wanted if old else {field.name for field in fields(Spec)}
    for name in sorted((wanted - kept.keys()) | (kept.keys() - known)):
        rule = "is not there" if name in wanted else "is not one that this version knows"
        raise InvalidInput("specification: field", name, rule, "" if name in wanted else "update thresher")
    if old:
        kept["rule"] = 1
    names, params = _names(kept.pop("arms")), kept.pop("params")
    if params is not None and not (
        isinstance(params, list | tuple) and len(params) == len(names) and all(isinstance(one, dict) for one in params)
    ):
        raise InvalidInput("params", params, "must be a list of objects, one an arm")
    try:
        kept["policy"] = policies.from_json(kept["policy"])
    except TypeError:
        raise InvalidInput("policy", kept["policy"], "is not one that this version knows", "update thresher") from None
    constant = checks.number("settling_constant", kept.pop("settling_constant"))
    spec = _checked(names, None if params is None else tuple(params), **kept)
    if not math.isclose(constant, spec.settling_constant, rel_tol=1e-9):
        raise InvalidInput("settling_constant", constant, f"must be about {spec.settling_constant!r}")
    return replace(spec, settling_constant=constant)  # by a logarithm, whose last digit may differ elsewhere


def check_budget(budget: object, arms: tuple[str, ...], policy: Policy) -> int:
    """A budget that lets every arm warm up, or an error."""
    pulls, least = checks.whole("budget", budget, least=1, most=MAX_BUDGET), policy.warmup * len(arms)
    if pulls < least:
        rule = f"must be at least {least}: {policy.warmup} warm-up pulls for each of {plural(len(arms), 'arm')}"
        raise InvalidInput("budget", budget, rule, "give a larger budget, a smaller warmup or fewer arms")
    return pulls


def _arms(given: Iterable[str] | Mapping[str, Params]) -> tuple[tuple[str, ...], tuple[Params, ...] | None]:
    names = _names(given)
    if not isinstance(given, Mapping):
        return names, None
    return names, tuple(_params(name, given[name]) for name in names)


def _names(given: object) -> tuple[str, ...]:
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise InvalidInput("arms", given, "must be a list of names, or a dict of names and parameters")
    names = tuple(given)
    if not names:
        raise InvalidInput("arms", [], "there must be at least one", "name the options to compare")
    known = set()
    for name in names:
        if checks.name("arm", name) in known:
            raise InvalidInput("arm", name, "is there twice", "give every arm a name of its own")
        known.add(name)
    return names


def _params(arm: str, params: object) -> Params:
    what = f"parameters of arm {shown(arm)}"
    if not isinstance(params, Mapping) or not all(isinstance(key, str) for key in params):
        raise InvalidInput(what, params, "must be a dict with string keys")
    try:
        plain: Params = json.loads(json.dumps(dict(params), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            what, params, f"must be plain JSON data ({error})", "use strings, numbers, lists, dicts"
        ) from None
    return plain


def _bounds(bounds: object) -> tuple[float, float] | None:
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


def _failure(failure: object, bounds: tuple[float, float] | None) -> float | Literal["worst", "ignore"]:
    if failure == "worst":
        return "worst"
    if failure == "ignore":
        return "ignore"
    number = checks.as_float(failure)
    low, high = bounds or (-MAX_REWARD, MAX_REWARD)
    if number is None or not low <= number <= high:
        raise InvalidInput("failure", failure, f"must be 'worst', 'ignore', or a reward within ({low:g}, {high:g})")
    return number


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names[:5]) + (f", … ({len(names)} in all)" if len(names) > 5 else "")
