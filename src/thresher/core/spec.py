"""A study's specification: what was asked, fixed when the study is created. Frozen data that validates itself."""

import math
from copy import copy
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, Literal, Unpack

from ..errors import InvalidInput, OutsideBounds
from ..text.masking import masked
from . import checks, policies, question, question_checks
from . import spec_checks as rules
from .arguments import DEFAULTS, Guarantee, Params, StoredArguments, named_arguments
from .case_names import CaseNames
from .policies import Policy
from .spec_checks import MAX_EVALUATOR, MAX_REWARD, check_budget, check_evaluator

__all__ = ["NO_PARAMS", "REAL_BOUNDS", "Guarantee", "Params", "Spec", "check_budget", "check_evaluator"]

MAX_SEED = 2**128 - 1
REAL_BOUNDS = (
    "create the study with the bounds that rewards can really take, "
    "or with clip=True to count such rewards as the bound"
)
ALWAYS_STORED = (  # the others are left out of a log where they have their default
    "arms", "params", "bounds", "budget", "policy", "confidence", "tolerance", "failure", "seed",
    "max_failures", "settling_constant",
)  # fmt: skip
NO_PARAMS: Params = {}


@dataclass(frozen=True, init=False)
class Spec(CaseNames):
    """Everything that a study's decisions depend on besides its rewards; `create_study` documents the arguments.

    >>> Spec(arms=["a", "b"], at_least=90)
    Traceback (most recent call last):
    thresher.errors.InvalidInput: at_least 90: must lie strictly inside the bounds (0, 1); if it is a percentage, ...
    """

    arms: tuple[str, ...]
    params: tuple[Params, ...] | None
    threshold: float
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
    share: float | None  # of pulls that must be within the limit, which is the threshold; None: the mean counts
    baseline: str | None  # the arm that the others are compared with; the threshold is the margin
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
        arms, params = rules.arms(of("arms"), of("params"))
        cases, case_params = rules.cases(of("cases"), of("case_params"))
        keep(arms=arms, params=params, cases=cases, case_params=case_params)
        has_cases = self.cases is not None

        # What is asked of an arm
        certificates, finds = of("confidence") is not None, of("find") is not None
        keep(policy=policies.policy(of("policy"), certificates=certificates, finds=finds))
        bounds = rules.bounds_or_none(of("bounds"))
        keep(clip=rules.clips(of("clip"), bounds))
        asked = question_checks.asked(given, bounds=bounds, clip=self.clip, arms=self.arms)
        keep(**asked._asdict(), reach=asked.reach(cases=has_cases))
        keep(unit=question_checks.unit_or_none(of("unit")))

        # How sure to be, and when to end
        keep(confidence=rules.confidence_or_none(of("confidence"), self.bar, self.limits))
        certifies, rivals = self.confidence is not None, self.contenders
        rules.check_offset(self.limits, counts=certifies and has_cases)
        before = self.case_count if self.baseline is not None else 0
        ends = certifies or has_cases
        keep(budget=rules.budget_or_none(of("budget"), rivals, self.policy, ends=ends, before=before))
        keep(tolerance=checks.number("tolerance", of("tolerance"), 0.0, MAX_REWARD))
        keep(settling_constant=rules.constant(of("settling_constant"), rivals, self.confidence))
        keep(guarantee=rules.guarantee(of("guarantee"), certifies=certifies))
        keep(find=rules.find_or_none(of("find"), rivals, self.guarantee, certifies=certifies))

        # What failures mean
        asks = {"cases": has_cases, "pairs": self.pairs, "ratio": self.ratio is not None}
        keep(failure=rules.reward_of_failure(of("failure"), self.bounds, **asks))
        keep(tries=rules.tries(of("tries"), cases=has_cases, told=isinstance(self.failure, float)))
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
    def scaled_threshold(self) -> float:
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
        number = checks.as_float(value)
        if number is None or math.isnan(number) or (math.isinf(number) and self.bounds is None):
            raise InvalidInput("reward", value, "must be a finite number or a bool")
        if self.ratio is not None and number < 0.0:
            raise InvalidInput("reward", number, "a ratio needs rewards of at least 0", "give a margin instead")
        if self.is_outside(number):
            low, high = self.bounds or (-MAX_REWARD, MAX_REWARD)
            kind, remedy = (OutsideBounds, REAL_BOUNDS) if self.bounds else (InvalidInput, "scale the rewards")
            if self.bounds == (0.0, 1.0) and 1 < number <= 100:
                remedy = f"if it is a percentage, divide by 100; else {remedy}"
            raise kind("reward", number, f"must lie within the bounds ({low:g}, {high:g})", remedy)
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
            if field.name == "threshold":
                if self.ratio is None:
                    data[self.bar_name] = value
            elif field.name == "lower_is_better" and self.baseline is None:
                continue  # at_most says so
            elif field.name in ALWAYS_STORED or value != DEFAULTS.get(field.name):
                data[field.name] = value.to_json() if isinstance(value, Policy) else value
        return data
