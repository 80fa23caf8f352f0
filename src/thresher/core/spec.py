"""A study's specification: what was asked, fixed when the study is created. Frozen data that validates itself."""

import math
import numbers
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, Literal, Unpack

from ..errors import InvalidInput, OutsideBounds, shown
from ..text.masking import masked
from ..text.naming import Naming
from ..text.phrasing import MOST_NAMED
from ..text.quantities import amount
from . import checks, parameters, policies, question
from .named_items import Params
from .parameters import (
    BARS,
    DEFAULTS,
    MAX_EVALUATOR,
    MAX_REWARD,
    Guarantee,
    StoredArguments,
    check_budget,
    check_evaluator,
    named_arguments,
)
from .policies import Policy

__all__ = ["NO_PARAMS", "Guarantee", "Params", "Spec", "check_budget", "check_evaluator"]

MAX_SEED = 2**128 - 1
REAL_BOUNDS = (
    "create the study with the {bounds} that rewards can really take, "
    "or with {clip=True} to count such rewards as the bound"
)
ALWAYS_STORED = (  # the others are left out of a log where they have their default
    "arms", "params", "bounds", "budget", "policy", "confidence", "tolerance", "failure", "seed",
    "max_failures", "settling_constant",
)  # fmt: skip
NO_PARAMS: Params = {}


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
    bounds: tuple[float, float] | None
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
    measure: ClassVar[question.Measure]  # what a reward counts as; the next three are on its scale
    limits: ClassVar[tuple[float, float] | None]
    bar: ClassVar[float]
    reach: ClassVar[float]  # the bar for means that are known exactly

    @named_arguments
    def __init__(self, **given: Unpack[StoredArguments]) -> None:
        of = {**DEFAULTS, **given}.get  # what was given, or the default
        keep = vars(self).update  # the fields are frozen for everybody else

        # What is compared, and on which cases
        arms, params = parameters.arms(of("arms"), of("params"))
        cases, case_params = parameters.cases(of("cases"), of("case_params"))
        keep(arms=arms, params=params, cases=cases, case_params=case_params)
        has_cases = self.cases is not None

        # What is asked of an arm
        certificates, finds = of("confidence") is not None, of("find") is not None
        keep(policy=policies.policy(of("policy"), certificates=certificates, finds=finds))
        bounds = parameters.bounds_or_none(of("bounds"))
        keep(clip=parameters.clips(of("clip"), bounds))
        asked = parameters.asked(given, bounds=bounds, clip=self.clip, arms=self.arms)
        keep(**asked._asdict(), reach=asked.reach(cases=has_cases))
        keep(unit=parameters.unit_or_none(of("unit")))

        # How sure to be, and when to end
        keep(confidence=parameters.confidence_or_none(of("confidence"), self.bar, self.limits))
        certifies, rivals = self.confidence is not None, self.contenders
        parameters.check_offset(self.limits, counts=certifies and has_cases)
        before = self.case_count if self.baseline is not None else 0
        ends = certifies or has_cases
        keep(budget=parameters.budget_or_none(of("budget"), rivals, self.policy, ends=ends, before=before))
        keep(tolerance=checks.number("tolerance", of("tolerance"), 0.0, MAX_REWARD))
        keep(settling_constant=parameters.constant(of("settling_constant"), rivals, self.confidence))
        keep(guarantee=parameters.guarantee(of("guarantee"), certifies=certifies))
        keep(find=parameters.find_or_none(of("find"), rivals, self.guarantee, certifies=certifies))

        # What failures mean
        asks = {"cases": has_cases, "pairs": self.pairs, "ratio": self.ratio is not None}
        keep(failure=parameters.reward_of_failure(of("failure"), self.bounds, **asks))
        keep(tries=parameters.tries(of("tries"), cases=has_cases, told=isinstance(self.failure, float)))
        most = of("max_failures")
        keep(max_failures=None if most is None else checks.whole("max_failures", most, least=1))

        # What identifies it
        seed, evaluator = of("seed"), of("evaluator")
        keep(seed=None if seed is None else checks.whole("seed", seed, least=0, most=MAX_SEED))
        keep(evaluator=None if evaluator is None else masked(check_evaluator(evaluator))[:MAX_EVALUATOR])

    def seeded(self, seed: int) -> "Spec":
        """The same specification with another seed."""
        found = copy(self)
        vars(found).update(seed=seed)
        return found

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
        found = None
        if isinstance(name, str | numbers.Integral) and not isinstance(name, bool):
            found = self.case_index.get(str(name)) if isinstance(self.cases, tuple) else _numbered(str(name), count)
        if found is None:
            first = ", ".join(str(self.case_name(case)) for case in range(min(count, MOST_NAMED)))
            many = f"{count:,} cases, such as {first}" if count > MOST_NAMED else f"the cases {first}"
            remedy = f"there are {many}" if count > 1 else f"there is only the case {first}"
            raise InvalidInput("case", name, "is not a case of this study", remedy)
        return found

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

    # -- on the scale of what counts ----------------------------------------------------------------------------

    def counted(self, reward: float, other: float = 0.0) -> float:
        """What a reward counts as; ``other`` is the baseline's."""
        return question.count(self.measure, reward, other)

    def clipped(self, reward: float) -> float:
        """A reward, or with ``clip`` the nearest number within the bounds."""
        return min(max(reward, self.measure.low), self.measure.high)

    @property
    def scaled_bar(self) -> float:
        """The bar on the scale of the kernel."""
        return self.scale(self.bar)

    def scale(self, counted: float) -> float:
        """What counts, on the scale of the kernel: [0, 1], or as it is where there are no bounds."""
        if self.limits is None:
            return counted
        low, high = self.limits
        return (counted - low) / (high - low)

    @property
    def span(self) -> tuple[float, float]:
        """The lowest and the highest that can count; (0, 1) where there are no bounds."""
        return self.limits or (0.0, 1.0)

    @property
    def worst(self) -> float | None:
        """The worst reward there is; None where there are no bounds."""
        return self.bounds and self.bounds[self.lower_is_better]

    def unscale(self, value: float) -> float:
        """A number on the scale of the kernel on that of what counts."""
        low, high = self.span
        return low + value * (high - low)

    def shown(self, counted: float) -> float:
        """A mean of what counts as people see it: a mean, a share, or the difference from the baseline."""
        return counted if self.share is not None or not self.lower_is_better else 0.0 - counted

    def arm(self, name: object) -> int:
        """The number of the arm of that name."""
        if not isinstance(name, str) or name not in self.index:
            raise checks.unknown_arm(name, self.arms)
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
        return checks.finite(number)

    def is_outside(self, reward: float) -> bool:
        """Whether the reward lies outside what is allowed and is not clipped: it proves the bounds, if any, wrong."""
        low, high = self.bounds or (-MAX_REWARD, MAX_REWARD)
        return not low <= reward <= high and not self.clip

    def to_json(self) -> dict[str, Any]:
        """The specification as JSON-ready data; `from_json` reads it back, equal to the bit."""
        data: dict[str, Any] = {"format": 1}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "stated_bar":
                if self.ratio is None:
                    data[self.bar_name] = value
            elif field.name == "lower_is_better" and self.baseline is None:
                continue  # at_most says so
            elif field.name in ALWAYS_STORED or value != DEFAULTS.get(field.name):
                data[field.name] = value.to_json() if isinstance(value, Policy) else value
        return data


def _numbered(text: str, count: int) -> int | None:
    """The case of that number. There may be more cases than a dict of them would hold."""
    if not text.isdecimal() or len(text) > len(str(count)) or str(int(text)) != text:
        return None
    return int(text) if int(text) < count else None


# Reading a specification from a log.


def from_json(data: object) -> Spec:
    """The specification that `Spec.to_json` wrote, checked as if it had been asked for now.

    >>> import json
    >>> from thresher.core.spec import Spec
    >>> spec = Spec(arms={"a": {"depth": 2}}, at_least=0.5, budget=2, seed=7)
    >>> from_json(json.loads(json.dumps(spec.to_json()))) == spec
    True
    """
    if not isinstance(data, Mapping):
        raise InvalidInput("specification", data, "must be a JSON object")
    if data.get("format") != 1:
        raise InvalidInput("format", data.get("format"), "is not one that this version reads", "update thresher")
    kept = {key: value for key, value in data.items() if key != "format"}
    wanted, known = {*ALWAYS_STORED}, {*BARS, "margin", *(field.name for field in fields(Spec))} - {"stated_bar"}
    for name in sorted((wanted - kept.keys()) | (kept.keys() - known)):
        rule = "is not there" if name in wanted else "is not one that this version knows"
        raise InvalidInput("specification: field", name, rule, "" if name in wanted else "update thresher")
    try:
        kept["policy"] = policies.from_json(kept["policy"])
    except TypeError:
        raise InvalidInput("policy", kept["policy"], "is not one that this version knows", "update thresher") from None
    for name in ("settling_constant", "seed"):  # None means something else to a specification that is asked for now
        checks.number(name, kept[name])
    if isinstance(kept["arms"], Mapping):  # a log has the parameters by themselves
        kept["arms"] = tuple(kept["arms"])
    evaluator = kept.pop("evaluator", None)
    spec = Spec(**kept)
    if evaluator is not None:  # it was masked when it was written
        vars(spec)["evaluator"] = check_evaluator(evaluator)
    return spec


# How two specifications differ: a study resumes only with its original specification.

# The arms are compared one by one, and a budget may grow. The settling constant follows from the rest, but through a
# logarithm whose last digit may differ between machines. A study keeps the rule it was created with. A study may
# accept several evaluators; the ledger knows which.
Named = tuple[tuple[str, ...], tuple[Params, ...] | None]
LEFT_OUT = ("arms", "params", "cases", "case_params", "budget", "settling_constant", "rule", "evaluator")


def differences(mine: Spec, other: Spec) -> list[str]:
    """The differences in words, without the budget; none if both ask the same question.

    >>> from thresher.core.spec import Spec
    >>> first, second = (Spec(arms=["a", arm], at_least=bar, budget=4) for bar, arm in [(0.5, "b"), (0.6, "c")])
    >>> differences(first, second)
    ["arm 2 is 'b', not 'c'", 'at_least is 0.5, not 0.6']
    """
    left_out = (*LEFT_OUT, "seed") if other.seed is None else LEFT_OUT
    bars, covered = _bars(mine, other)
    left_out = (*left_out, *covered) if bars else left_out
    names = [field.name for field in fields(Spec) if field.name not in left_out]
    pairs = [(_field(name, mine), getattr(mine, name), getattr(other, name)) for name in names]
    return [
        *_named("arm", (mine.arms, mine.params), (other.arms, other.params)),
        *_cases(mine, other),
        *bars,
        *(_differs(name, one, two) for name, one, two in pairs if one != two),
    ]


def _differs(name: str, one: object, two: object) -> str:
    if isinstance(one, Policy) and str(one) == str(two):
        return f"the file that defines {one.formula} has changed"
    return f"{name} is {_told(one)}, not {_told(two)}"


def _bars(mine: Spec, other: Spec) -> tuple[list[str], tuple[str, ...]]:
    """How the bars differ, if more than a number does, and the fields that this covers."""
    lower = ["lower" if spec.lower_is_better else "higher" for spec in (mine, other)]
    if mine.baseline is not None and other.baseline is not None:
        return ([f"{lower[0]} is better, not {lower[1]}"] if lower[0] != lower[1] else []), ("lower_is_better",)
    one, two = _bar(mine), _bar(other)
    plain = mine.baseline == other.baseline and "lower" not in lower
    return ([] if one == two or plain else [f"the bar is {one}, not {two}"]), (
        "stated_bar",
        "lower_is_better",
        "baseline",
    )


def _bar(spec: Spec) -> str:
    if spec.baseline is not None:
        return f"the baseline {_told(spec.baseline)}"
    return f"at {'most' if spec.lower_is_better else 'least'} {amount(spec.stated_bar, spec.unit, exact=True)}"


def _field(name: str, spec: Spec) -> str:
    """A field as people name it."""
    return spec.bar_name if name == "stated_bar" else name


def _cases(mine: Spec, other: Spec) -> list[str]:
    if isinstance(mine.cases, tuple) and isinstance(other.cases, tuple):
        return _named("case", (mine.cases, mine.case_params), (other.cases, other.case_params))
    if mine.cases == other.cases:
        return []
    one, two = ("none" if spec.cases is None else f"{spec.case_count:,}" for spec in (mine, other))
    if one == two:
        return ["only one of the two names its cases"]
    return [f"cases are {one}, not {two}"]


def _named(what: str, mine: Named, other: Named) -> list[str]:
    """The first arm or case that differs. No parameters at all is the same as none for each."""
    if len(mine[0]) != len(other[0]):
        return [f"{what}s are {len(mine[0]):,}, not {len(other[0]):,}"]
    none: tuple[Params, ...] = (NO_PARAMS,) * len(mine[0])
    both = zip(mine[0], other[0], mine[1] or none, other[1] or none, strict=True)
    for number, (name, theirs, params, their_params) in enumerate(both, start=1):
        if name != theirs:
            return [f"{what} {number} is {_told(name)}, not {_told(theirs)}"]
        if params != their_params:
            return [f"params of {what} {_told(name)} are {_told(dict(params))}, not {_told(dict(their_params))}"]
    return []


def _told(value: object) -> str:
    return "none" if value is None else str(value) if isinstance(value, Policy) else shown(value, 60)
