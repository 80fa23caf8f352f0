"""A study's specification: what was asked, fixed when the study is created. Frozen data that validates itself."""

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, Literal

from ..errors import InvalidInput, OutsideBounds, UnknownArm
from ..text.masking import masked
from ..text.plural import listed, plural
from . import checks, policies
from . import spec_checks as rules
from .evidence import RULE
from .policies import Policy
from .spec_checks import MAX_EVALUATOR, MAX_REWARD, Guarantee, Params, check_budget, check_evaluator

__all__ = ["CLIP", "NO_PARAMS", "Guarantee", "Params", "Spec", "check_budget", "check_evaluator", "finite", "from_json"]

MAX_SEED = 2**128 - 1
LARGEST = sys.float_info.max  # what stands for infinity in a log, where not every store knows it
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
    is_seed_open: ClassVar[bool]  # whether a new study draws its seed: there are cases, and none was given

    def __init__(
        self,
        *,
        arms: Iterable[str] | Mapping[str, Params],
        threshold: float,
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
        bar = rules.bar(threshold, span)
        sure = rules.confidence_or_none(confidence, bar, span, nearest=0.0 if rule == 1 else rules.NEAREST)
        keep("arms", names)
        keep("params", params)
        keep("threshold", bar)
        keep("bounds", span)
        keep("clip", rules.clips(clip, span))
        ends = sure is not None or listed_cases is not None
        keep("budget", rules.budget_or_none(budget, len(names), chosen, ends=ends))
        keep("policy", chosen)
        keep("confidence", sure)
        keep("tolerance", checks.number("tolerance", tolerance, 0.0, MAX_REWARD))
        keep("failure", rules.reward_of_failure(failure, span, cases=listed_cases is not None))
        keep("seed", 0 if seed is None else checks.whole("seed", seed, least=0, most=MAX_SEED))
        keep("is_seed_open", seed is None and listed_cases is not None)
        keep("max_failures", None if max_failures is None else checks.whole("max_failures", max_failures, least=1))
        keep("settling_constant", _constant(settling_constant, len(names), sure))
        keep("rule", int(rule))
        keep("cases", listed_cases)
        keep("case_params", case_params)
        keep("tries", rules.tries(tries, cases=listed_cases is not None))
        keep("guarantee", rules.guarantee(guarantee, certifies=sure is not None))
        keep("find", rules.find_or_none(find, len(names), guarantee, certifies=sure is not None))
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

    @property
    def span(self) -> tuple[float, float]:
        """The lowest and the highest reward; (0, 1) where there are no bounds."""
        return self.bounds or (0.0, 1.0)

    def unscale(self, value: float) -> float:
        """A number on the scale of the kernel in the user's units."""
        low, high = self.span
        return low + value * (high - low)

    def counted(self, reward: float) -> float:
        """What a reward counts as: itself, or with ``clip`` the nearest number within the bounds."""
        if not self.clip or self.bounds is None:
            return reward
        return min(max(reward, self.bounds[0]), self.bounds[1])

    def arm(self, name: object) -> int:
        """The number of the arm of that name."""
        if not isinstance(name, str) or name not in self.index:
            raise UnknownArm("arm", name, "is not an arm of this study", f"its arms are {listed(self.arms)}")
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
        if isinstance(name, str | int) and not isinstance(name, bool):
            found = self.case_index.get(str(name)) if isinstance(self.cases, tuple) else self._numbered(str(name))
        if found is None:
            first = listed([str(self.case_name(case)) for case in range(min(self.case_count, 8))])
            remedy = f"there are {plural(self.case_count, 'case')}, such as {first}"
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


def _constant(given: object, arms: int, confidence: float | None) -> float:
    """The settling constant. One from a log is kept: a logarithm's last digit may differ elsewhere."""
    computed = policies.settling_constant(arms, 0.05 if confidence is None else 1 - confidence)
    if given is None:
        return computed
    constant = checks.number("settling_constant", given)
    if not math.isclose(constant, computed, rel_tol=1e-9):
        raise InvalidInput("settling_constant", constant, f"must be about {computed!r}")
    return constant


def from_json(data: object) -> Spec:
    """The specification that `Spec.to_json` wrote, checked as if it had been asked for now.

    >>> import json
    >>> spec = Spec(arms={"a": {"depth": 2}}, threshold=0.5, budget=2)
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
    try:
        kept["policy"] = policies.from_json(kept["policy"])
    except TypeError:
        raise InvalidInput("policy", kept["policy"], "is not one that this version knows", "update thresher") from None
    kept["settling_constant"] = checks.number("settling_constant", kept["settling_constant"])
    if isinstance(kept["arms"], Mapping):  # a log has the parameters by themselves
        kept["arms"] = tuple(kept["arms"])
    evaluator = kept.pop("evaluator", None)
    spec = Spec(**kept)
    if evaluator is not None:  # it was masked when it was written
        vars(spec)["evaluator"] = check_evaluator(evaluator)
    return spec
