"""A study's specification: what was asked, fixed when the study is created. Frozen data that validates itself."""

import math
import numbers
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, Literal, NoReturn, Unpack

from ..errors import InvalidInput, OutsideBounds, shown
from ..text.naming import Naming
from ..text.phrasing import MOST_NAMED, listed_phrase, only_this_many, plural
from ..text.quantities import PERCENT, amount_text, edges_quantity_text
from . import checks, named_items, parameters, policies, question
from .named_arguments import named_arguments
from .named_items import NO_PARAMS, Params
from .parameters import (
    BARS,
    DEFAULTS,
    MAX_REWARD,
    STORED,
    Bounds,
    Guarantee,
    StoredArguments,
    evaluator_parameter,
)
from .policies import Policy
from .question import HALF, ROUNDING

NEAREST = 1e-9  # the least distance from the bar to a bound, as a share of the range: nearer, rounding would decide
CONFIDENCE, LARGER = Naming("give a {confidence}"), Naming("give a larger {budget}, or none")  # remedies
OF_BASELINE = "belongs to a baseline"  # a rule
REAL_BOUNDS = (
    "create the study with the {bounds} that rewards can really take, "
    "or with {clip=True} to count such rewards as the bound"
)


@dataclass(frozen=True, init=False)
class Spec:
    """Everything that a study's decisions depend on besides its rewards; `create_study` documents the arguments.

    >>> Spec(arms=["a", "b"], at_least=90)
    Traceback (most recent call last):
    thresher.errors.InvalidInput: at_least 90: must lie strictly inside the bounds (0, 1); if it is a percentage, ...
    """

    arms: tuple[str, ...]
    params: tuple[Params, ...] | None
    stated_bar: float  # at_least, at_most or the margin: `bar_name` says which
    bounds: Bounds | None
    budget: int | None
    policy: Policy
    confidence: float | None
    tolerance: float
    failure: float | Literal["worst", "ignore"]
    seed: int | None  # None: the study that is created draws one
    max_failures: int | None
    settling_constant: float
    clip: bool
    evaluator: str | None
    cases: tuple[str, ...] | int | None  # names, or how many; None: rewards have no cases
    case_params: tuple[Params, ...] | None
    tries: int  # how often a failing case is tried
    guarantee: Guarantee
    find: int | None
    lower_is_better: bool  # arms reach the bar from above
    share: float | None  # of pulls that must be within the stated bar; None: the mean counts
    baseline: str | None  # the arm that the others are compared with; the stated bar is the margin
    ratio: float | None  # of the baseline's reward; None: the difference counts
    unit: str | None  # of rewards, for people
    depends: Mapping[str, Any] | None  # the files on which results depend: see `revisions.py`
    identity: str | None  # what was run, by which the study is found again
    measure: ClassVar[question.Measure]  # what a reward counts as; the next three are on its scale
    limits: ClassVar[Bounds | None]
    bar: ClassVar[float]
    low_edge: ClassVar[float]  # the bar less the tolerance, and plus it
    high_edge: ClassVar[float]
    reach: ClassVar[float]  # the three for exact means, lowered by the rounding error
    low_reach: ClassVar[float]
    high_reach: ClassVar[float]

    @named_arguments
    def __init__(self, **arguments: Unpack[StoredArguments]) -> None:
        values = parameters.checked_parameters(arguments)
        keep = vars(self).update  # the fields are frozen for everybody else
        keep({field.name: values[field.name] for field in fields(self) if field.name in values})
        arms, params = named_items.named_arms(values["arms"], values["params"])
        cases, case_params = named_items.named_cases(values["cases"], values["case_params"])
        keep(arms=arms, params=params, cases=cases, case_params=case_params)
        certifies, finds = self.confidence is not None, self.find is not None
        keep(policy=policies.policy(values["policy"], certificates=certifies, finds=finds))
        raw = {**values, **arguments}  # as errors show it
        name = _bar_name(self, raw)
        keep(_counted(self, name, values[name] or 0.0, raw[name]))
        keep(_edges(self, raw["tolerance"]))
        _check_certificates(self)
        _check_end(self)
        keep(settling_constant=_constant(self))
        keep(failure=_reward_of_failure(self))
        _check_tries(self)

    def seeded(self, seed: int) -> "Spec":
        """The same specification with another seed."""
        spec = copy(self)
        vars(spec).update(seed=seed)
        return spec

    def with_depends(self, depends: Mapping[str, Any], identity: str | None = None) -> "Spec":
        """The same specification with what its results depend on, if anything, and what the study is found again by."""
        spec = copy(self)
        vars(spec).update(depends=parameters.depends_parameter("depends", depends) or None, identity=identity)
        return spec

    def with_cases(self, order: Sequence[int]) -> "Spec":
        """The same specification with its named cases in another order."""
        spec = copy(self)
        assert isinstance(self.cases, tuple)
        params = self.case_params and tuple(self.case_params[case] for case in order)
        vars(spec).update(cases=tuple(self.cases[case] for case in order), case_params=params)
        vars(spec).pop("case_index", None)
        return spec

    # -- cases: inside, a case is a number; users see its name if it has one ------------------------------------

    @property
    def case_count(self) -> int:
        """How many cases there are; 0: rewards have none."""
        return len(self.cases) if isinstance(self.cases, tuple) else self.cases or 0

    def case_name(self, case: int) -> str | int:
        """A case as users see it: its name, or its number from 0 if cases have none."""
        return self.cases[case] if isinstance(self.cases, tuple) else case

    @cached_property
    def case_index(self) -> dict[str, int]:
        """The number of each case, by its name; empty if cases are numbers."""
        return {name: case for case, name in enumerate(self.cases)} if isinstance(self.cases, tuple) else {}

    def case(self, name: object) -> int:
        """The number of the case of that name."""
        count = self.case_count
        if not count:
            raise InvalidInput("case", name, "this study has no cases", "give results without a case")
        case = None
        if isinstance(name, str | numbers.Integral) and not isinstance(name, bool):
            case = self.case_index.get(str(name)) if isinstance(self.cases, tuple) else _numbered(str(name), count)
        if case is None:
            first = ", ".join(str(self.case_name(case)) for case in range(min(count, MOST_NAMED)))
            many = f"{count:,} cases, such as {first}" if count > MOST_NAMED else f"the cases {first}"
            remedy = f"there are {many}" if count > 1 else f"there is only the case {first}"
            raise InvalidInput("case", name, "is not a case of this study", remedy)
        return case

    # -- arms ---------------------------------------------------------------------------------------------------

    @cached_property
    def index(self) -> dict[str, int]:
        """The number of each arm, by name."""
        return {name: arm for arm, name in enumerate(self.arms)}

    @cached_property
    def base(self) -> int:
        """The number of the baseline; −1: there is none."""
        return -1 if self.baseline is None else self.index[self.baseline]

    @cached_property
    def pairs(self) -> bool:
        """Whether every pull evaluates an arm and the baseline."""
        return self.baseline is not None and self.cases is None

    @property
    def contenders(self) -> int:
        """How many arms are asked about: all but the baseline."""
        return len(self.arms) - (self.baseline is not None)

    @property
    def bar_name(self) -> Literal["at_least", "at_most", "margin"]:
        """The argument that gives the bar."""
        return "margin" if self.baseline is not None else "at_most" if self.lower_is_better else "at_least"

    # -- counted rewards: what each reward counts as for the question -------------------------------------------

    def counted(self, reward: float, other: float = 0.0) -> float:
        """What a reward counts as; ``other`` is the baseline's reward."""
        return question.reward_for_question(self.measure, reward, other)

    def clipped(self, reward: float) -> float:
        """A reward, or with ``clip`` the nearest number within the bounds."""
        return min(max(reward, self.measure.low), self.measure.high)

    @property
    def scaled_bar(self) -> float:
        """The bar on the scale of the board."""
        return self.scale(self.bar)

    def scale(self, counted: float) -> float:
        """A counted reward on the scale of the board: [0, 1], or unchanged where there are no bounds."""
        if self.limits is None:
            return counted
        low, high = self.limits
        return (counted - low) / (high - low)

    @property
    def span(self) -> tuple[float, float]:
        """The range of counted rewards; (0, 1) where there are no bounds."""
        return self.limits or (0.0, 1.0)

    @property
    def worst(self) -> float | None:
        """The worst reward there is; None where there are no bounds."""
        return self.bounds and self.bounds[self.lower_is_better]

    def unscale(self, value: float) -> float:
        """The inverse of `scale`."""
        low, high = self.span
        return low + value * (high - low)

    def shown(self, counted: float) -> float:
        """A mean of counted rewards as people see it: a mean, a share, or the difference from the baseline."""
        return counted if self.share is not None or not self.lower_is_better else 0.0 - counted

    def arm(self, name: object) -> int:
        """The number of the arm of that name."""
        if not isinstance(name, str) or name not in self.index:
            raise checks.arm_check_error(name, self.arms)
        return self.index[name]

    def reward(self, value: object) -> float:
        """A reward as a float, or an error that says what is wrong with it.

        >>> Spec(arms=["a"], at_least=0.5, budget=2).reward(True)
        1.0
        """
        bounds = self.bounds
        if type(value) is float and bounds and bounds[0] <= value <= bounds[1] and (self.ratio is None or value >= 0.0):
            return value + 0.0  # no −0
        number = checks.as_float(value)
        if number is None or math.isnan(number) or (math.isinf(number) and self.bounds is None):
            raise InvalidInput("reward", value, "must be a finite number or a bool")
        if self.ratio is not None and number < 0.0:
            raise InvalidInput(
                "reward", number, "a ratio needs rewards of at least 0", Naming("give a {margin} instead")
            )
        if self.is_outside(number):
            low, high = self.bounds or (-MAX_REWARD, MAX_REWARD)
            kind, remedy = (OutsideBounds, REAL_BOUNDS) if self.bounds else (InvalidInput, "scale the rewards")
            if self.bounds == (0.0, 1.0) and 1 < number <= 100:
                remedy = f"if it is a percentage, divide by 100; else {remedy}"
            raise kind("reward", number, f"must lie within the bounds ({low:g}, {high:g})", Naming(remedy))
        return checks.checked_finite(number)

    def is_outside(self, reward: float) -> bool:
        """Whether the reward lies outside what is allowed and is not clipped: it proves the bounds, if any, wrong."""
        low, high = self.bounds or (-MAX_REWARD, MAX_REWARD)
        return not low <= reward <= high and not self.clip

    def to_json(self) -> dict[str, Any]:
        """The specification as JSON-ready data; `spec_from_json` reads it back, equal to the bit."""
        data: dict[str, Any] = {"format": 1}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "stated_bar":
                if self.ratio is None:
                    data[self.bar_name] = value
            elif field.name == "lower_is_better" and self.baseline is None:
                continue  # at_most says so
            elif STORED[field.name].always_stored or value != DEFAULTS[field.name]:
                data[field.name] = value.to_json() if isinstance(value, Policy) else value
        return data


def _numbered(text: str, count: int) -> int | None:
    """The case of that number. There may be more cases than a dict of them would hold."""
    if not text.isdecimal() or len(text) > len(str(count)) or str(int(text)) != text:
        return None
    return int(text) if int(text) < count else None


# -- how parameters go together ------------------------------------------------------------------------------------


def _bar_name(spec: Spec, raw: Mapping[str, Any]) -> str:
    """The parameter that gives the bar. There is exactly one bar, or a baseline."""
    names = [name for name in BARS if raw[name] is not None]
    if len(names) > 1:
        rule = Naming(f"a study has one bar, and {' and '.join(f'{{{name}}}' for name in names)} are given")
        raise InvalidInput(names[1], raw[names[1]], rule, "leave one out")
    if spec.baseline is not None:
        if not isinstance(spec.baseline, str) or spec.baseline not in spec.arms:
            known = f"the arms are {listed_phrase(spec.arms, show=shown)}"
            raise InvalidInput("baseline", spec.baseline, "is not one of the arms", known)
        if len(spec.arms) == 1:
            raise InvalidInput("baseline", spec.baseline, "is the only arm", "name what is to be compared with it")
        if names:
            remedy = Naming("leave it out, or give a {margin} or a {ratio}")
            raise InvalidInput(names[0], raw[names[0]], "with a baseline, the bar is what the baseline reaches", remedy)
        if spec.ratio is not None and raw["margin"] is not None:
            raise InvalidInput("ratio", raw["ratio"], Naming("a {margin} is given too"), "give one of them")
        return "margin"
    for name in ("margin", "ratio"):
        if raw[name] is not None:
            raise InvalidInput(name, raw[name], OF_BASELINE, Naming("name one of the arms with {baseline}"))
    if spec.lower_is_better:
        raise InvalidInput("lower_is_better", spec.lower_is_better, OF_BASELINE, Naming("give {at_most}"))
    if not names:
        remedy = Naming("give {at_least} or {at_most}, or a {baseline}")
        raise InvalidInput("at_least", None, "there is no bar", remedy)
    return names[0]


def _counted(spec: Spec, name: str, stated: float, raw: object) -> dict[str, Any]:
    """What a reward counts as, and the bar for it, from the bar as it was stated by this name."""
    lower, bounds = spec.lower_is_better or name == "at_most", spec.bounds
    share = HALF if spec.share is None and spec.ratio is not None else spec.share
    sign, paired = -1.0 if lower else 1.0, spec.baseline is not None
    if spec.clip and bounds is None:
        remedy = Naming("give {bounds}, or leave it out")
        raise InvalidInput("clip", spec.clip, "there are no bounds to count rewards as", remedy)
    limit, limits = 0.0, spec_span(bounds, lower=lower, paired=paired)
    if share is not None:  # what counts is whether a pull is within the limit
        _check_no_bounds(spec, share)
        bounds, limits, bar = None, (0.0, 1.0), share
        _check_inside(name, stated, raw, None)
        limit = stated if paired else sign * stated + 0.0
    elif paired:  # the difference from the baseline
        _check_inside(name, stated, raw, limits)
        bar = stated
    else:  # the reward
        _check_inside(name, stated, raw, bounds)
        bar = sign * stated + 0.0
    low, high = bounds if spec.clip and bounds else (-math.inf, math.inf)
    measure = question.Measure(sign, low, high, paired, spec.ratio or 0.0, share is not None, limit)
    kept = {"stated_bar": stated, "lower_is_better": lower, "share": share, "bounds": bounds, "limits": limits}
    return {**kept, "bar": bar, "measure": measure}


def _edges(spec: Spec, raw: object) -> dict[str, float]:
    """The bar less and plus the tolerance, and all three for exact means."""
    bar, low, high = spec.bar, spec.bar, spec.bar
    if spec.tolerance > 0.0:
        if spec.confidence is None:
            needed = "{bounds}" if spec.bounds is None and spec.share is None else "a {confidence}"
            remedy = f"leave it out, or give {needed}; if a slack of the scores is meant, use a policy, apt(slack=…)"
            raise InvalidInput("tolerance", raw, "belongs to certificates", Naming(remedy))
        low, high = edges_quantity_text(bar, spec.tolerance)
        if spec.limits is not None and not _lies_inside(spec.limits, low, high):
            _refuse_tolerance(spec, raw, spec.limits)
    rounding = 0.0
    if (
        spec.limits is not None
        and spec.share is None
        and (spec.pairs or spec.lower_is_better or spec.cases is not None)
    ):
        rounding = ROUNDING * max(map(abs, spec.limits))
    exact_means = {"reach": bar - rounding, "low_reach": low - rounding, "high_reach": high - rounding}
    return {"low_edge": low, "high_edge": high, **exact_means}


def _refuse_tolerance(spec: Spec, raw: object, limits: Bounds) -> NoReturn:
    """Raise, because the edges cannot be told from the bounds, or from each other."""
    (low, high), shown, tolerance = sorted(map(spec.shown, limits)), spec.shown(spec.bar), spec.tolerance
    room = min(shown - low, high - shown)
    if tolerance < room / 2:
        raise InvalidInput("tolerance", raw, f"is too small to change {shown:.12g}", "give a larger one, or 0")
    rule = f"{shown:.12g} ± {tolerance:.12g} must lie strictly inside ({low:g}, {high:g})"
    is_in_points = tolerance >= 1.0 >= high and tolerance / 100 < room
    remedy = f"for {tolerance:g} points write {tolerance / 100:g}" if is_in_points else f"give less than {room:.6g}"
    raise InvalidInput("tolerance", raw, rule, remedy)


def _lies_inside(limits: Bounds, low: float, high: float) -> bool:
    """Whether the edges can be told from the bounds, and from each other."""
    nearest = NEAREST * (limits[1] - limits[0])
    return limits[0] + nearest < low < high < limits[1] - nearest


def spec_span(bounds: Bounds | None, *, lower: bool, paired: bool) -> Bounds | None:
    """The range of what counts, from the range of rewards.

    >>> spec_span((0.0, 2.0), lower=True, paired=False), spec_span((0.0, 2.0), lower=False, paired=True)
    ((-2.0, 0.0), (-2.0, 2.0))
    """
    if bounds is None:
        return None
    low, high = bounds
    if paired:
        return low - high, high - low
    return (-high + 0.0, -low + 0.0) if lower else bounds


def _check_no_bounds(spec: Spec, share: float) -> None:
    """A share needs no bounds, so none may be given."""
    if spec.bounds not in (None, DEFAULTS["bounds"]):
        rule = Naming(f"a {{share}} ({share:g}) needs none")
        raise InvalidInput("bounds", spec.bounds, rule, "leave one of them out")
    if spec.clip:
        rule = Naming(f"a {{share}} ({share:g}) has no bounds to count rewards as")
        raise InvalidInput("clip", spec.clip, rule, "leave it out")


def _check_inside(name: str, bar: float, raw: object, bounds: Bounds | None) -> None:
    """Raise unless the bar lies strictly inside the bounds."""
    if bounds and not bounds[0] < bar < bounds[1]:
        inner = "the range of differences" if name == "margin" else "the bounds"
        rule = f"must lie strictly inside {inner} ({bounds[0]:g}, {bounds[1]:g})"
        remedy = Naming("choose another bar, or the {bounds} that rewards really have")
        if bounds == (0.0, 1.0) and 1 < bar < 100:
            remedy = Naming(
                f"if it is a percentage, write {bar / 100:g}; else give the {{bounds}} that rewards really have"
            )
        raise InvalidInput(name, raw, rule, remedy)
    if abs(bar) > MAX_REWARD:
        raise InvalidInput(name, raw, f"must lie within ±{MAX_REWARD:g}", "scale the rewards")


def _check_certificates(spec: Spec) -> None:
    """Raise if certificates are wanted and cannot be given, or are needed and not wanted."""
    certifies, limits = spec.confidence is not None, spec.limits
    if certifies and limits is None:
        remedy = Naming("give {bounds}, ask about a {share}, or {confidence=None}")
        raise InvalidInput("bounds", None, "certificates need bounded rewards", remedy)
    if certifies and limits and not NEAREST < spec.scaled_bar < 1.0 - NEAREST:
        rule = f"are so wide that the bar {spec.bar:g} cannot be told from one of them"
        raise InvalidInput("bounds", spec.bounds, rule, "give the bounds that rewards really have")
    sums = certifies and spec.cases is not None  # counting adds rewards in their own units
    if sums and limits and max(map(abs, limits)) * 2.0**-52 > NEAREST * (limits[1] - limits[0]):
        rule = "lie so far from 0 that sums of rewards lose their differences"
        raise InvalidInput("bounds", limits, rule, "subtract the same number from rewards, bounds and bar")
    unwanted = "nothing is certified without a confidence"
    if spec.guarantee == "rate" and not certifies:
        raise InvalidInput("guarantee", spec.guarantee, unwanted, CONFIDENCE)
    if spec.find is None:
        return
    if spec.find > spec.contenders:
        raise InvalidInput("find", spec.find, only_this_many(spec.contenders, "arm"), "find fewer")
    if not certifies:
        raise InvalidInput("find", spec.find, unwanted, CONFIDENCE)
    if spec.guarantee == "rate":
        rule = "the first arms found are the most likely to be wrong, so the guarantee must be 'all'"
        raise InvalidInput("find", spec.find, rule, Naming("leave the {guarantee} out"))


def check_spec_budget(budget: object, arms: int, policy: Policy, *, before: int = 0) -> int:
    """A budget that lets every arm warm up, ``before`` pulls of the baseline having been made, or an error."""
    pulls = checks.checked_whole("budget", budget, least=1, most=parameters.MAX_BUDGET)
    if before and pulls <= before:
        rule = f"must be more than {before:,}: the baseline goes through all cases first"
        raise InvalidInput("budget", budget, rule, LARGER)
    if pulls < (least := policy.warmup * arms):
        rule = f"must be at least {least}: {plural(policy.warmup, 'warm-up pull')} for each of {plural(arms, 'arm')}"
        raise InvalidInput("budget", budget, rule, Naming("give a larger {budget} or fewer arms"))
    return pulls


def _check_end(spec: Spec) -> None:
    """Raise if the budget is too small; a study without one needs another way to end."""
    if spec.budget is not None:
        before = spec.case_count if spec.baseline is not None else 0
        check_spec_budget(spec.budget, spec.contenders, spec.policy, before=before)
    elif spec.confidence is None and spec.cases is None:
        rule = "without certificates a study ends with its budget alone"
        raise InvalidInput("budget", None, rule, Naming("give a {budget}"))
    elif spec.policy.needs_budget:
        rule = "takes its exploration from the budget, and there is none"
        raise InvalidInput("policy", str(spec.policy), rule, Naming("give a {budget}, or {policy='anytime-evt'}"))


def _constant(spec: Spec) -> float:
    """The settling constant. One from a log is kept: a logarithm's last digit may differ elsewhere."""
    stored, computed = spec.settling_constant, policies.settling_policy_constant(spec.contenders, spec.confidence)
    if stored is not None and not math.isclose(stored, computed, rel_tol=1e-9):
        raise InvalidInput("settling_constant", stored, f"must be about {computed!r}")
    return computed if stored is None else stored


def _reward_of_failure(spec: Spec) -> float | Literal["worst", "ignore"]:
    """What a failed pull means."""
    failure: object = spec.failure
    if failure == "worst":
        return "worst"
    if failure != "ignore" and spec.pairs:
        rule = "a failed pull of a pair has no reward of its own"
        raise InvalidInput("failure", failure, rule, Naming("with a {baseline}, use 'worst' or 'ignore'"))
    if failure == "ignore" and spec.cases is not None:
        remedy = Naming("with {cases}, use 'worst' or a reward")
        raise InvalidInput("failure", failure, "no case may be left out", remedy)
    if failure == "ignore":
        return "ignore"
    number = checks.as_float(failure)
    smallest = 0.0 if spec.ratio is not None else -MAX_REWARD  # a ratio needs rewards of at least 0
    low, high = spec.bounds or (smallest, MAX_REWARD)
    if number is None or not low <= number <= high:
        rule = f"must be 'worst', 'ignore', or a reward between {low:g} and {high:g}"
        raise InvalidInput("failure", failure, rule)
    return number


def _check_tries(spec: Spec) -> None:
    """Raise if a case is to be tried again, and there are none, or none is ever tried again."""
    if spec.tries == DEFAULTS["tries"]:
        return
    if spec.cases is None:
        remedy = Naming("give {cases}, or leave it out")
        raise InvalidInput("tries", spec.tries, "only cases can be tried again", remedy)
    if isinstance(spec.failure, float):
        rule = "a failed case has the reward of a failure at once, and is not tried again"
        raise InvalidInput("tries", spec.tries, rule, Naming("leave it out, or {failure}"))


# -- reading a specification from a log ----------------------------------------------------------------------------


def spec_from_json(data: object) -> Spec:
    """The specification that `Spec.to_json` wrote, checked as if it had been asked for now.

    >>> import json
    >>> spec = Spec(arms={"a": {"depth": 2}}, at_least=0.5, budget=2, seed=7)
    >>> spec_from_json(json.loads(json.dumps(spec.to_json()))) == spec
    True
    """
    if not isinstance(data, Mapping):
        raise InvalidInput("specification", data, "must be a JSON object")
    if data.get("format") != 1:
        raise InvalidInput("format", data.get("format"), "is not one that this version reads", "update thresher")
    kept = {key: value for key, value in data.items() if key != "format"}
    wanted = {name for name, parameter in STORED.items() if parameter.always_stored}
    for name in sorted((wanted - kept.keys()) | (kept.keys() - STORED.keys())):
        rule = "is not there" if name in wanted else "is not one that this version knows"
        raise InvalidInput("specification: field", name, rule, "" if name in wanted else "update thresher")
    try:
        kept["policy"] = policies.policy_from_json(kept["policy"])
    except TypeError:
        raise InvalidInput("policy", kept["policy"], "is not one that this version knows", "update thresher") from None
    for name in ("settling_constant", "seed"):  # None means something else to a specification that is asked for now
        checks.checked_number(name, kept[name])
    if isinstance(kept["arms"], Mapping):  # a log has the parameters by themselves
        kept["arms"] = tuple(kept["arms"])
    evaluator = kept.pop("evaluator", None)
    spec = Spec(**kept)
    if evaluator is not None:  # it was masked when it was written
        vars(spec)["evaluator"] = evaluator_parameter(evaluator)
    return spec


# -- how two specifications differ: a study resumes only with its original specification ---------------------------

# The arms are compared one by one, and a budget may grow. The settling constant follows from the rest, but through a
# logarithm whose last digit may differ between machines. A study may accept several evaluators; its log has them.
Named = tuple[tuple[str, ...], tuple[Params, ...] | None]
LEFT_OUT = ("arms", "params", "cases", "case_params", "budget", "settling_constant", "evaluator", "depends", "identity")


def spec_differences(mine: Spec, other: Spec) -> list[str]:
    """The differences in words, without the budget; none if both ask the same question.

    >>> first, second = (Spec(arms=["a", arm], at_least=bar, budget=4) for bar, arm in [(0.5, "b"), (0.6, "c")])
    >>> spec_differences(first, second)
    ["arm 2 is 'b', not 'c'", 'at_least is 0.5, not 0.6']
    """
    return [
        *_named("arm", (mine.arms, mine.params), (other.arms, other.params)),
        *_cases(mine, other),
        *question_differences(mine, other, seed=other.seed is not None),
    ]


def question_differences(mine: Spec, other: Spec, *, seed: bool = False) -> list[str]:
    """The differences in words, without those of arms, cases, the budget and what the results depend on."""
    left_out = LEFT_OUT if seed else (*LEFT_OUT, "seed")
    if {mine.unit, other.unit} <= {None, PERCENT}:  # 90% and 0.9 ask the same
        left_out = (*left_out, "unit")
    bars, covered = _bars(mine, other)
    left_out = (*left_out, *covered) if bars else left_out
    names = [field.name for field in fields(Spec) if field.name not in left_out]
    differing = [name for name in names if getattr(mine, name) != getattr(other, name)]
    return [*bars, *(_differs(name, mine, other) for name in differing)]


def _differs(name: str, mine: Spec, other: Spec) -> str:
    """How a field differs, in the unit in which people gave it."""
    values = getattr(mine, name), getattr(other, name)
    if isinstance(values[0], Policy) and str(values[0]) == str(values[1]):
        return f"the file that defines {values[0].formula} has changed"
    unit = mine.unit or other.unit
    if unit is not None and name in ("stated_bar", "tolerance"):
        texts = [amount_text(value, unit, exact=True) for value in values]
    else:
        texts = [_in_words(value) for value in values]
    return f"{_field(name, mine)} is {texts[0]}, not {texts[1]}"


def _bars(mine: Spec, other: Spec) -> tuple[list[str], tuple[str, ...]]:
    """How the bars differ, if more than a number does, and the fields that this covers."""
    lower = ["lower" if spec.lower_is_better else "higher" for spec in (mine, other)]
    if mine.baseline is not None and other.baseline is not None:
        return ([f"{lower[0]} is better, not {lower[1]}"] if lower[0] != lower[1] else []), ("lower_is_better",)
    my_bar, other_bar = _bar(mine), _bar(other)
    plain = mine.baseline == other.baseline and "lower" not in lower
    return ([] if my_bar == other_bar or plain else [f"the bar is {my_bar}, not {other_bar}"]), (
        "stated_bar",
        "lower_is_better",
        "baseline",
    )


def _bar(spec: Spec) -> str:
    if spec.baseline is not None:
        return f"the baseline {_in_words(spec.baseline)}"
    unit = None if spec.unit == PERCENT else spec.unit
    return f"at {'most' if spec.lower_is_better else 'least'} {amount_text(spec.stated_bar, unit, exact=True)}"


def _field(name: str, spec: Spec) -> str:
    """A field as people name it."""
    return spec.bar_name if name == "stated_bar" else name


def _cases(mine: Spec, other: Spec) -> list[str]:
    if isinstance(mine.cases, tuple) and isinstance(other.cases, tuple):
        return _named("case", (mine.cases, mine.case_params), (other.cases, other.case_params))
    if mine.cases == other.cases:
        return []
    my_count, other_count = ("none" if spec.cases is None else f"{spec.case_count:,}" for spec in (mine, other))
    if my_count == other_count:
        return ["only one of the two names its cases"]
    return [f"cases are {my_count}, not {other_count}"]


def _named(noun: str, mine: Named, other: Named) -> list[str]:
    """The first arm or case that differs. No parameters at all is the same as none for each."""
    if len(mine[0]) != len(other[0]):
        return [f"{noun}s are {len(mine[0]):,}, not {len(other[0]):,}"]
    none: tuple[Params, ...] = (NO_PARAMS,) * len(mine[0])
    both = zip(mine[0], other[0], mine[1] or none, other[1] or none, strict=True)
    for number, (name, theirs, params, their_params) in enumerate(both, start=1):
        if name != theirs:
            return [f"{noun} {number} is {_in_words(name)}, not {_in_words(theirs)}"]
        if params != their_params:
            return [
                f"params of {noun} {_in_words(name)} are {_in_words(dict(params))}, not {_in_words(dict(their_params))}"
            ]
    return []


def _in_words(value: object) -> str:
    return "none" if value is None else str(value) if isinstance(value, Policy) else shown(value, 60)
