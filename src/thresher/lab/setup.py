"""A setup says what to simulate: a question, arms of a family, and a delay."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from ..core import checks, policies, state
from ..core.evidence import Stakes
from ..core.named_items import MOST_CASES
from ..core.parameters import BARS, DEFAULTS, PARAMETERS, Bounds, Guarantee, bounds_parameter
from ..core.policies import Policy
from ..core.question import PLAIN
from ..core.spec import CONFIDENCE, Spec
from ..errors import InvalidInput
from ..text.naming import Naming
from ..text.phrasing import plural
from . import delays, families
from .delays import Delay
from .families import Reals
from .recorded import Recorded

BAR = 0.7  # unless another one is given, or a baseline: Section 4.1 of the paper
PAIRED_SHARES = ("bernoulli", "constant")  # families whose pairs are few, so that the true share of them is known
Range = tuple[float, float] | Sequence[float] | float
BUDGET = 20_000  # unless another one is given, or cases
MOST_ARMS = 5_000_000
MOST_PULLS = 10**12


@dataclass(frozen=True)
class Setup:
    """One line of an experiment. The defaults are Section 4.1 of the paper, small variance.

    ``means`` and ``spreads`` are a range ``(low, high)`` from which each repetition draws, a number, or a list with one
    number for each arm. The family defines what the spread is (`families.Family.spread`).

    With a ``confidence``, arms are settled as in a live study: a settled arm gets no more pulls, and a repetition ends
    when all arms are settled. ``lost`` has two chances that a pull is lost: if its reward is below the bar, and if it
    is not. ``failure`` says how the certificate treats lost pulls; ``hung`` is the chance that a pull never returns.

    With ``cases``, each repetition draws the reward of every case of every arm, and an arm's true mean is that of its
    cases. Recorded rewards are then one for each case. The budget is the full run, all cases of all arms, unless
    another one is given. ``guarantee`` and ``find`` are those of `create_study`.

    So are the bar, ``share``, ``margin``, ``ratio`` and ``lower_is_better``; ``baseline`` is the number of an arm.
    Without cases, a pull draws a reward of the arm and one of the baseline.

    Results count arms with a wrong answer, and arms that are wrong by more than ``within``: the tolerance, or without
    certificates the policy's slack, unless another number is given.

    With ``common``, the n-th pull of an arm draws the same reward whatever was pulled before, so policies that are
    compared meet the same luck.

    >>> Setup(means=(0.2, 0.9), family="bernoulli", budget=500).arms
    100
    >>> Setup(family="cauchy")
    Traceback (most recent call last):
    thresher.errors.InvalidInput: family 'cauchy': is not a family that thresher knows; choose one of uniform, \
bernoulli, beta, normal, clipped, constant
    """

    policy: Policy | str | None = None
    family: str = "uniform"
    arms: int = 100
    at_least: float | None = None  # 0.7 unless there is another bar or a baseline
    means: Range = (0.6, 0.8)
    spreads: Range = (0.15, 0.25)
    budget: int = None  # type: ignore[assignment]  # 20,000; with cases, all of them
    delay: Delay | str = "none"
    checkpoints: Sequence[int] = ()
    bounds: Bounds = DEFAULTS["bounds"]  # a share needs none
    confidence: float | None = None
    tolerance: float = 0.0
    failure: Literal["worst", "ignore"] = "worst"
    lost: tuple[float, float] = (0.0, 0.0)
    hung: float = 0.0
    recorded: Recorded | None = field(default=None, repr=False)
    cases: int = 0
    guarantee: Guarantee = "all"
    find: int | None = None
    at_most: float | None = None
    lower_is_better: bool = False
    share: float | None = None
    baseline: int | None = None
    margin: float | None = None
    ratio: float | None = None
    common: bool = False
    unit: str | None = None  # of rewards, for people
    within: float = None  # type: ignore[assignment]  # the tolerance; without certificates the policy's slack
    spec: Spec = field(init=False, repr=False, compare=False)  # of a study that asks the same

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "policy", policies.policy(self.policy, certificates=self.certifies, finds=self.find is not None))
        put(
            self,
            "delay",
            delays.parsed_delay(self.delay) if isinstance(self.delay, str) else delays.checked_delay(self.delay),
        )
        if families.family(self.family).recorded != (self.recorded is not None):
            rule = "recorded rewards and the family 'recorded' go together"
            raise InvalidInput("family", self.family, rule, Naming("give both, or neither; {recorded} is enough"))
        if self.recorded is not None:
            if not isinstance(self.recorded, Recorded):
                raise InvalidInput(
                    "recorded", self.recorded, "must be a Recorded", "read it with thresher.lab.recorded.read_recorded"
                )
            put(self, "family", self.recorded.family)
            put(self, "arms", len(self.recorded.names))
        put(self, "arms", checks.checked_whole("arms", self.arms, least=1, most=MOST_ARMS))
        cases = checks.checked_whole("cases", self.cases, least=0, most=MOST_CASES)
        if self.budget is None:
            put(self, "budget", self.arms * max(cases, self.rules.warmup) if cases else BUDGET)
        put(self, "budget", checks.checked_whole("budget", self.budget, least=1, most=MOST_PULLS))
        if self.bounds is None:
            if self.share is None and self.ratio is None:
                remedy = "give bounds, or ask about a share"
                raise InvalidInput("bounds", None, "the laboratory draws rewards within bounds", remedy)
            put(self, "bounds", DEFAULTS["bounds"])
        put(self, "bounds", bounds_parameter("bounds", self.bounds))
        if self.at_least is None and self.at_most is None and self.baseline is None:
            put(self, "at_least", BAR)
        put(self, "spec", self._specified())
        self._check_question()
        self._check_within()
        self._check_lost()
        put(self, "checkpoints", _checkpoints(self.checkpoints, self.budget, self.contenders))
        self._check_arms()

    def _specified(self) -> Spec:
        """The specification of a study that asks the same."""
        question = {own.name: getattr(self, own.name) for own in fields(self) if own.name in PARAMETERS}
        names = [f"arm {arm}" for arm in range(self.arms)] if self.recorded is None else self.recorded.names
        if self.baseline is not None:
            if checks.checked_whole("baseline", self.baseline, least=0) >= self.arms:
                rule = f"is not the number of one of {plural(self.arms, 'arm')}"
                raise InvalidInput("baseline", self.baseline, rule, "they are numbered from 0")
            question["baseline"] = names[self.baseline]
        return Spec(**{**question, "arms": names, "cases": self.cases or None})

    def _check_question(self) -> None:
        """Raise if a study can ask this, and the laboratory cannot simulate it."""
        if self.failure not in ("worst", "ignore"):
            raise InvalidInput("failure", self.failure, "must be 'worst' or 'ignore'")
        if self.spec.measure.within and not self.cases:
            self._check_truth()
        if self.spec.measure.ratio and self._least_reward() < 0.0:
            raise InvalidInput("ratio", self.ratio, "needs rewards of at least 0", "give a margin, or other arms")
        if self.certifies and self.spec.share is None and not families.family(self.family).bounded:
            self._check_bounded()
        if self.cases and not self.certifies:
            raise InvalidInput("cases", self.cases, "are simulated with certificates only", CONFIDENCE)
        replayed = self.recorded if self.family == "recorded" else None  # arms of a pilot are drawn anew
        if self.cases and replayed is not None and any(len(arm) != self.cases for arm in replayed.rewards):
            rule = "every recorded arm must have one reward for each case"
            raise InvalidInput("cases", self.cases, rule, "record all cases of every arm, or leave them out")

    def _check_within(self) -> None:
        """Set ``within``, unless it was given: in the unit of what counts, as the tolerance is."""
        least, most = self.spec.span
        slack = 0.0 if self.certifies else self.rules.slack * (most - least)
        value = (self.tolerance if self.certifies else slack) if self.within is None else self.within
        object.__setattr__(self, "within", checks.checked_number("within", value))
        if self.within < 0.0 or (self.certifies and self.within != self.tolerance):
            rule = "must be at least 0, and with certificates it is the tolerance"
            raise InvalidInput("within", self.within, rule, "leave it out")

    def _check_truth(self) -> None:
        """Labels are compared with the true share, so it must be known."""
        if self.spec.measure.paired and self.family not in PAIRED_SHARES:
            rule = "the true share of pairs is known for the families bernoulli and constant only"
            raise InvalidInput("family", self.family, rule, "choose one of them, or give cases")
        if self.family == "beta":
            rule = "its true share within a limit is not known"
            raise InvalidInput("family", "beta", rule, "choose another family, or give cases")

    def _least_reward(self) -> float:
        """The smallest reward that can be drawn."""
        if self.recorded is not None:
            return min(map(min, self.recorded.rewards))
        if self.family == "normal":
            return -math.inf
        spread = self.spread_ranges[1] if self.family == "uniform" else 0.0
        return float((self.mean_ranges[0] - spread).min())

    def _check_lost(self) -> None:
        for name, shares in (
            ("lost", checks.checked_pair("lost", self.lost)),
            ("hung", (checks.checked_number("hung", self.hung),)),
        ):
            for share in shares:
                if not 0.0 <= share < 1.0:
                    raise InvalidInput(name, share, "must be a share from 0 to below 1")
        if self.timing.model == delays.NONE and (self.hung > 0.0 or max(self.lost) > 0.0):
            remedy = Naming("give {delay='workers:1'}")
            raise InvalidInput("delay", "none", "only pending pulls can be lost or hang", remedy)
        if self.hung > 0.0 and self.timing.model != delays.WORKERS:
            raise InvalidInput("hung", self.hung, "only workers can hang", Naming("give {delay='workers:16'}"))

    def _check_bounded(self) -> None:
        """Certificates need rewards within the bounds."""
        low, high = self.bounds
        reach = self.spread_ranges[1] if self.family == "uniform" else np.full(self.arms, math.inf)
        if np.any(self.mean_ranges[0] - reach < low) or np.any(self.mean_ranges[1] + reach > high):
            rule = f"certificates need rewards within the bounds ({low:g}, {high:g})"
            remedy = "give smaller spreads, wider bounds, or the family clipped"
            raise InvalidInput("family", self.family, rule, remedy)

    def _check_arms(self) -> None:
        low, high = self.bounds
        anywhere = self.spec.share is not None  # rewards count as 0 or 1, wherever they lie
        if self.recorded is not None:
            self.recorded.check_bounds(*((-math.inf, math.inf) if anywhere else (low, high)))
            return
        mean_low, mean_high = self.mean_ranges
        spread_low, _ = self.spread_ranges
        anywhere = anywhere and self.family in ("uniform", "normal", "constant")
        if not anywhere and (mean_low.min() < low or mean_high.max() > high):
            value = mean_low.min() if mean_low.min() < low else mean_high.max()
            rule = f"must lie within the bounds ({low:g}, {high:g})"
            raise InvalidInput("mean", float(value), rule, "give other means, or the bounds that rewards have")
        if spread_low.min() < 0.0:
            raise InvalidInput("spread", float(spread_low.min()), "must not be negative")
        if self.family == "beta":
            families.check_beta_family(self.mean_ranges, self.spread_ranges, self.bounds)

    @property
    def rules(self) -> Policy:
        """The policy, as data."""
        assert isinstance(self.policy, Policy)
        return self.policy

    @property
    def timing(self) -> Delay:
        """The delay, as data."""
        assert isinstance(self.delay, Delay)
        return self.delay

    @property
    def stakes(self) -> Stakes:
        """The stakes of the certificates; without certificates the level is infinite."""
        return state.state_stakes(self.spec)

    @cached_property
    def mean_ranges(self) -> tuple[Reals, Reals]:
        """The lower and upper end of each arm's mean; for recorded arms, where their rewards are."""
        if self.recorded is not None:
            return self.recorded.begins, self.recorded.ends
        return _ranges("means", self.means, self.arms)

    @cached_property
    def spread_ranges(self) -> tuple[Reals, Reals]:
        """The lower and upper end of each arm's spread; for recorded arms, how many rewards they have."""
        if self.recorded is not None:
            return self.recorded.counts, self.recorded.counts
        return _ranges("spreads", self.spreads, self.arms)

    @property
    def contenders(self) -> int:
        """How many arms are asked about: all but the baseline."""
        return self.spec.contenders

    @property
    def certifies(self) -> bool:
        """Whether arms are settled."""
        return self.confidence is not None

    @property
    def ranks(self) -> bool:
        """Whether the error rate is bounded."""
        return self.guarantee == "rate"

    @property
    def counts(self) -> bool:
        """Whether a reward counts as something other than itself."""
        return self.spec.measure != PLAIN

    def but(self, **changes: Any) -> "Setup":
        """The same setup with some things changed. A bar or a baseline replaces the one before."""
        if changes.keys() & {*BARS, "baseline"}:
            changes = {**dict.fromkeys((*BARS, "baseline")), **changes}
        kept: dict[str, Any] = {} if "checkpoints" in changes or "budget" not in changes else {"checkpoints": ()}
        if changes.keys() & {"policy", "confidence", "tolerance", "bounds"}:
            kept["within"] = None
        return replace(self, **{**kept, **changes})


def _ranges(name: str, value: Range, arms: int) -> tuple[Reals, Reals]:
    ends: tuple[Any, Any] = value if isinstance(value, tuple) and len(value) == 2 else (value, value)
    try:
        columns = [np.asarray(end, dtype=np.float64) for end in ends]
    except (TypeError, ValueError):
        raise InvalidInput(name, value, "must be numbers", "give a range, a number, or one for each arm") from None
    for column in columns:
        if column.shape not in ((), (arms,)):
            rule = f"there must be one for each of {arms} arms, not {column.size}"
            raise InvalidInput(name, value, rule, "give a range LO:HI, or one number for each arm")
    low, high = (np.broadcast_to(column, arms).copy() for column in columns)
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low <= high).all()):
        raise InvalidInput(name, value, "must be finite, the lower end first", "write LO:HI")
    return low, high


def _checkpoints(checkpoints: Sequence[int], budget: int, least: int) -> tuple[int, ...]:
    """Increasing numbers of pulls that end with the budget; by default 1, 2, 5, 10, … that are at least ``least``.

    They do not depend on the policy, so that policies can be compared.
    """
    if not isinstance(checkpoints, Sequence) or isinstance(checkpoints, str):
        raise InvalidInput("checkpoints", checkpoints, "must be numbers of pulls", "write (100, 200), for example")
    if not checkpoints:
        steps = (digit * 10**power for power in range(13) for digit in (1, 2, 5))
        return (*(step for step in steps if least <= step < budget), budget)
    points = tuple(checks.checked_whole("checkpoint", point, least=1, most=budget) for point in checkpoints)
    if any(earlier >= later for earlier, later in pairwise(points)):
        raise InvalidInput("checkpoints", checkpoints, "must increase")
    return points if points[-1] == budget else (*points, budget)
