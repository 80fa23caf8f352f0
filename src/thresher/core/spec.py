"""A study's specification: what was asked, fixed when the study is created. Frozen data that validates itself."""

import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, Literal

from ..errors import InvalidInput, OutsideBounds
from ..text.masking import masked
from ..text.plural import MOST_NAMED
from . import checks, policies, question, question_checks
from . import spec_checks as rules
from .evidence import RULE
from .policies import Policy
from .spec_checks import MAX_EVALUATOR, MAX_REWARD, Guarantee, Params, check_budget, check_evaluator

__all__ = ["CLIP", "NO_PARAMS", "Guarantee", "Params", "Spec", "check_budget", "check_evaluator"]

MAX_SEED = 2**128 - 1
CLIP = (
    "start over (--fresh) with the bounds that rewards can really take, "
    "or with clip=True (--clip) to count such rewards as the bound"
)
FORMAT_1 = (  # the fields of a specification in a log of version 0.1
    "arms", "params", "threshold", "bounds", "budget", "policy", "confidence", "tolerance", "failure", "seed",
    "max_failures", "settling_constant",
)  # fmt: skip
NO_PARAMS: Params = {}


@dataclass(frozen=True, init=False)
class Spec:
    """Everything that a study's decisions depend on besides its rewards; `create_study` documents the arguments.

    >>> Spec(arms=["a", "b"], threshold=90)
    Traceback (most recent call last):
    thresher.errors.InvalidInput: threshold 90: must lie strictly inside the bounds (0, 1); if it is a percentage, ...
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
    seed: int
    max_failures: int | None
    settling_constant: float
    rule: int = RULE  # of certificates
    clip: bool = False
    evaluator: str | None = None
    cases: tuple[str, ...] | int | None = None  # names, or how many; None: rewards have no cases
    case_params: tuple[Params, ...] | None = None
    tries: int = 3  # how often a failing case is tried
    guarantee: Guarantee = "all"
    find: int | None = None
    lower_is_better: bool = False  # arms reach the bar from above
    share: float | None = None  # of pulls that must be within the limit, which is the threshold; None: the mean counts
    baseline: str | None = None  # the arm that the others are compared with; the threshold is the margin
    ratio: float | None = None  # of the baseline's reward; None: the difference counts
    unit: str | None = None  # of rewards, for people
    measure: ClassVar[question.Measure]  # what a reward counts as; the next two are on its scale
    limits: ClassVar[tuple[float, float] | None]
    bar: ClassVar[float]
    reach: ClassVar[float]  # the bar for means that are known exactly
    is_seed_open: ClassVar[bool]  # whether a new study draws its seed: there are cases, and none was given

    def __init__(
        self,
        *,
        arms: Iterable[str] | Mapping[str, Params],
        threshold: float | None = None,
        at_least: float | None = None,
        at_most: float | None = None,
        lower_is_better: bool = False,
        share: float | None = None,
        baseline: str | None = None,
        margin: float | None = None,
        ratio: float | None = None,
        unit: str | None = None,
        bounds: tuple[float, float] | None = (0.0, 1.0),
        budget: int | None = None,
        policy: Policy | str | None = None,
        confidence: float | None = 0.95,
        tolerance: float = 0.0,
        failure: float | Literal["worst", "ignore"] = "worst",
        seed: int | None = None,
        max_failures: int | None = 3,
        clip: bool = False,
        evaluator: str | None = None,
        cases: int | Iterable[str] | Mapping[str, Params] | None = None,
        tries: int = 3,
        guarantee: Guarantee = "all",
        find: int | None = None,
        params: Sequence[Params] | None = None,  # where the arms are names alone
        case_params: Sequence[Params] | None = None,  # where the cases are names alone
        settling_constant: float | None = None,  # None: it is computed
        rule: int = RULE,
    ) -> None:
        keep = vars(self).__setitem__  # the fields are frozen for everybody else
        if rule not in (1, 2) or isinstance(rule, bool):
            raise InvalidInput("rule", rule, "is not a rule of certificates that this version knows", "update thresher")
        if rule == 1 and (cases is not None or guarantee != "all" or find is not None):
            raise InvalidInput("rule", rule, "knows no cases, rates or finds", "leave the rule out")
        names = rules.arm_names(arms)
        if isinstance(arms, Mapping):
            params = rules.params_by_name("arm", arms)
        elif params is not None:
            params = rules.stored_params("params", params, len(names))
        listed_cases = rules.cases_or_none(cases)
        if isinstance(cases, Mapping):
            case_params = rules.params_by_name("case", cases)
        elif case_params is not None:
            case_params = rules.stored_params("case_params", case_params, rules.count_of(listed_cases))
        finds, certifies = find is not None, confidence is not None
        chosen, span = policies.policy(policy, certificates=certifies, finds=finds), rules.bounds_or_none(bounds)
        bars = {"threshold": threshold, "at_least": at_least, "at_most": at_most}
        against = {"baseline": baseline, "margin": margin, "ratio": ratio}
        clips = rules.clips(clip, span)
        asked = question_checks.asked(
            bars, against, lower_is_better=lower_is_better, share=share, bounds=span, clip=clips, arms=names
        )
        if rule == 1 and asked.measure != question.PLAIN:
            raise InvalidInput("rule", rule, "knows one question alone", "leave the rule out")
        nearest = 0.0 if rule == 1 else rules.NEAREST
        sure = rules.confidence_or_none(confidence, asked.bar, asked.span, nearest=nearest)
        keep("arms", names)
        keep("params", params)
        for name in ("threshold", "lower_is_better", "share", "baseline", "ratio", "bounds", "bar", "measure"):
            keep(name, getattr(asked, name))
        keep("limits", asked.span)
        keep("reach", asked.reach(cases=listed_cases is not None))
        keep("unit", question_checks.unit_or_none(unit))
        keep("clip", bool(clip))
        rules.check_offset(asked.span, counts=sure is not None and listed_cases is not None)
        ends = sure is not None or listed_cases is not None
        rivals, before = self.contenders, rules.count_of(listed_cases) if asked.baseline is not None else 0
        keep("budget", rules.budget_or_none(budget, rivals, chosen, ends=ends, before=before))
        keep("policy", chosen)
        keep("confidence", sure)
        keep("tolerance", checks.number("tolerance", tolerance, 0.0, MAX_REWARD))
        pairs = asked.baseline is not None and listed_cases is None
        kind = {"cases": listed_cases is not None, "pairs": pairs, "ratio": asked.ratio is not None}
        keep("failure", rules.reward_of_failure(failure, asked.bounds, **kind))
        keep("seed", 0 if seed is None else checks.whole("seed", seed, least=0, most=MAX_SEED))
        keep("is_seed_open", seed is None and listed_cases is not None)
        keep("max_failures", None if max_failures is None else checks.whole("max_failures", max_failures, least=1))
        keep("settling_constant", rules.constant(settling_constant, rivals, sure))
        keep("rule", int(rule))
        keep("cases", listed_cases)
        keep("case_params", case_params)
        keep("tries", rules.tries(tries, cases=listed_cases is not None, told=isinstance(self.failure, float)))
        keep("guarantee", rules.guarantee(guarantee, certifies=sure is not None))
        keep("find", rules.find_or_none(find, rivals, guarantee, certifies=sure is not None))
        keep("evaluator", None if evaluator is None else masked(check_evaluator(evaluator))[:MAX_EVALUATOR])

    def seeded(self, seed: int) -> "Spec":
        """The same specification with another seed."""
        found = copy(self)
        vars(found).update(seed=seed, is_seed_open=False)
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

    @property
    def case_count(self) -> int:
        """How many cases there are; 0: rewards have none."""
        return rules.count_of(self.cases)

    def case_name(self, case: int) -> str | int:
        """A case as users see it: its name, or its number from 0 if cases have none."""
        return self.cases[case] if isinstance(self.cases, tuple) else case

    @cached_property
    def case_index(self) -> dict[str, int]:
        """The number of each case, by its name; empty if cases are numbers."""
        return {name: case for case, name in enumerate(self.cases)} if isinstance(self.cases, tuple) else {}

    def case(self, name: object) -> int:
        """The number of the case of that name."""
        if self.cases is None:
            raise InvalidInput("case", name, "this study has no cases", "give results without a case")
        found = None
        if isinstance(name, str | numbers.Integral) and not isinstance(name, bool):
            found = self.case_index.get(str(name)) if isinstance(self.cases, tuple) else self._numbered(str(name))
        if found is None:
            first = ", ".join(str(self.case_name(case)) for case in range(min(self.case_count, MOST_NAMED)))
            many = (
                f"{self.case_count:,} cases, such as {first}" if self.case_count > MOST_NAMED else f"the cases {first}"
            )
            remedy = f"there are {many}" if self.case_count > 1 else f"there is only the case {first}"
            raise InvalidInput("case", name, "is not a case of this study", remedy)
        return found

    def _numbered(self, text: str) -> int | None:
        """The case of that number. There may be more cases than a dict of them would hold."""
        if not text.isdecimal() or len(text) > len(str(self.case_count)) or str(int(text)) != text:
            return None
        return int(text) if int(text) < self.case_count else None

    def reward(self, value: object) -> float:
        """A reward as a float, or an error that says what is wrong with it.

        >>> Spec(arms=["a"], threshold=0.5, budget=2).reward(True)
        1.0
        """
        number = checks.as_float(value)
        if number is None or math.isnan(number) or (math.isinf(number) and self.bounds is None):
            remedy = "to fail, raise an exception or, in a command, exit with a non-zero status"
            raise InvalidInput("reward", value, "must be a finite number or a bool", remedy)
        if self.ratio is not None and number < 0.0:
            raise InvalidInput("reward", number, "a ratio needs rewards of at least 0", "give a margin instead")
        if self.is_outside(number):
            low, high = self.bounds or (-MAX_REWARD, MAX_REWARD)
            kind, remedy = (OutsideBounds, CLIP) if self.bounds else (InvalidInput, "scale the rewards")
            raise kind("reward", number, f"must lie within the bounds ({low:g}, {high:g})", remedy)
        return checks.finite(number)

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
