"""Policies: frozen data that names a score function, of ``kernel.py`` or a user's, and its settings.

>>> ap_evt()
Policy(formula='evt', exploration=None, pending_weight=1.0, warmup=2, slack=0.0, variant='main', second=None, \
pending_ratio=None, digest=None)
>>> policy("anytime-evt") == anytime_evt()
True
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from ..errors import InvalidInput
from . import checks, kernel, scores, steps
from .kernel import Formula
from .scores import FORMULAS

DOUBLING: Literal["doubling"] = "doubling"
YOUNGER = ("pending_ratio", "digest")  # fields that old logs do not have
Exploration = float | Literal["doubling"] | None


@dataclass(frozen=True, slots=True)
class Policy:
    """Which arm is pulled next: the one with the smallest score by ``formula``.

    ``formula`` names a function of the kernel or, as ``module:function``, one of the user's; then ``digest`` is that of
    its source. ``exploration`` is EVT's a: a number, None for the current budget / K, or ``"doubling"`` for anytime
    EVT. ``second`` names the formula for even pulls (see `balanced`). An arm with more than ``pending_ratio`` pending
    pulls per reward seen waits; None sets no bound.
    """

    formula: str
    exploration: Exploration = None
    pending_weight: float = 1.0
    warmup: int = 2
    slack: float = 0.0
    variant: Literal["main", "supplement"] = "main"
    second: Literal["cheapest"] | None = None
    pending_ratio: float | None = None  # None by default, so that logs older than this field keep their meaning
    digest: str | None = None

    def __post_init__(self) -> None:
        if self.formula not in FORMULAS and not (scores.is_name(self.formula) and isinstance(self.digest, str)):
            remedy = "pass a function to thresher.custom"
            raise InvalidInput("formula", self.formula, f"must be one of {', '.join(FORMULAS)}", remedy)
        if self.exploration is not None and self.exploration != DOUBLING:
            checks.number("exploration", self.exploration, 1e-9, 1e15)
        checks.number("pending_weight", self.pending_weight, 0.0, 1.0)
        checks.number("slack", self.slack, 0.0, 1e15)
        checks.whole("warmup", self.warmup, least=1)
        if self.variant not in ("main", "supplement"):
            raise InvalidInput("variant", self.variant, "must be 'main' or 'supplement'")
        if self.variant == "supplement" and self.formula != "evt":
            raise InvalidInput("variant", self.variant, "only EVT and AP-EVT have a form in the supplement")
        if self.second not in (None, "cheapest"):
            raise InvalidInput("second", self.second, "must be 'cheapest' or None")
        if self.pending_ratio is not None:
            checks.number("pending_ratio", self.pending_ratio, 1e-6, 1e6)

    @property
    def is_custom(self) -> bool:
        """Whether a user's function scores the arms."""
        return self.digest is not None

    @property
    def is_importable(self) -> bool:
        """Whether its function can be found by its name, in another process."""
        return self.digest is None or not self.digest.startswith(scores.IN_MEMORY)

    @property
    def follows_budget(self) -> bool:
        """Whether the exploration follows from the budget, if there is one."""
        return self.exploration is None and (self.formula == "evt" or self.is_custom)

    @property
    def needs_budget(self) -> bool:
        """Whether there must be one. A user's function may not look at the exploration at all."""
        return self.follows_budget and not self.is_custom

    @property
    def function(self) -> str:
        """The name of the function that scores the arms."""
        return "evt_supplement" if self.variant == "supplement" else self.formula

    def scored_by(self) -> Formula:
        """The function that scores the arms. A user's must have been passed in."""
        if self.is_custom:
            return scores.checked(scores.known(self.formula, self.digest).function)
        found: Formula = getattr(kernel, self.function)
        return found

    @property
    def is_exact(self) -> bool:
        """Whether its decisions can be derived again on every machine, or only on the same one."""
        if self.is_custom:
            return scores.is_exact(scores.known(self.formula, self.digest).function)
        return self.formula != "lsa"

    def rule(
        self,
        threshold: float,
        *,
        arms: int,
        budget: int | None,
        issued: int = 0,
        constant: float = 1.0,
        cases: int = 0,
        finds: bool = False,
    ) -> kernel.Rule:
        """The scalars of a score, for a scaled threshold and the current budget, after ``issued`` pulls.

        Only `cheapest` needs the settling constant, the number of cases, and whether a few arms are to be found.
        """
        if self.formula == "cheapest":
            blank = kernel.Rule(threshold, constant, self.pending_weight, self.warmup, self.slack)
            return second_rule(blank, constant, cases)._replace(finds=finds)
        if self.exploration == DOUBLING:
            exploration = steps.doubled(1.0, issued, arms)
        elif self.exploration is not None:
            exploration = self.exploration
        else:
            exploration = budget / arms if self.follows_budget and budget else 1.0
        ratio = kernel.UNBOUNDED if self.pending_ratio is None else self.pending_ratio
        return kernel.Rule(threshold, exploration, self.pending_weight, self.warmup, self.slack, ratio)

    @property
    def label(self) -> str:
        """A short name for tables and pictures: that of the function, if everything else is as `custom` sets it.

        >>> evt_pf().label, evt(2.0).label
        ('evt-pf', 'evt(exploration=2.0)')
        """
        plain = self.is_custom and self == Policy(self.formula, digest=self.digest)
        return self.formula if plain else str(self)

    def to_json(self) -> dict[str, Any]:
        """The policy as JSON-ready data. Fields that are younger than some logs are left out if they are None.

        >>> from_json(evt(2.5).to_json()) == evt(2.5)
        True
        """
        return {key: value for key, value in asdict(self).items() if value is not None or key not in YOUNGER}

    def __str__(self) -> str:
        """The constructor of this policy, with the arguments that differ from its defaults.

        >>> str(ap_evt_pf(warmup=3)), str(balanced())
        ('ap-evt-pf(warmup=3)', 'balanced')
        """
        mine = asdict(self)
        if self.is_custom:
            plain = asdict(Policy(self.formula, digest=self.digest))
            settings = [f"{key}={value!r}" for key, value in mine.items() if plain[key] != value]
            return f"custom({', '.join([self.formula, *settings])})"

        def differing(name: str) -> dict[str, Any]:
            other = asdict(CONSTRUCTORS[name]())
            return {key: value for key, value in mine.items() if other[key] != value}

        name, rest = min(((name, differing(name)) for name in CONSTRUCTORS), key=lambda pair: len(pair[1]))
        changed = ", ".join(f"{key}={value!r}" for key, value in rest.items())
        return f"{name}({changed})" if rest else name


def custom(
    score: Formula,
    *,
    exploration: Exploration = None,
    pending_weight: float = 1.0,
    warmup: int = 2,
    slack: float = 0.0,
) -> Policy:
    """A policy with a score of your own: the arm with the smallest is pulled next.

    ``score(gap, scatter, seen, weight, exploration)`` is a plain function that returns a number of at least 0, or
    infinity, and reads nothing but its arguments:
        gap: how far the arm's mean is from the bar, plus ``slack``; rewards and bar are scaled to [0, 1].
        scatter: Σ(x − mean)² over the arm's rewards.
        seen: how many rewards it has; at least 1.
        weight: seen + ``pending_weight`` × the pulls that are pending.
        exploration: the number that was given; budget / arms for None (1 without a budget); ``"doubling"`` doubles it
            whenever the pulls per arm have doubled.

    Every arm is pulled ``warmup`` times before it is scored. With ``+ - * / sqrt abs`` and comparisons alone, decisions
    are the same on every machine. A durable study needs a function that can be imported by its name.

    >>> def nearest(gap, scatter, seen, weight, exploration):
    ...     return gap * weight
    >>> print(custom(nearest, warmup=3))
    custom(thresher.core.policies:nearest, warmup=3)
    """
    formula, digest = scores.register(score)
    return Policy(formula, exploration, pending_weight, warmup, slack, digest=digest)


def uniform(*, slack: float = 0.0, warmup: int = 2, pending_weight: float = 1.0) -> Policy:
    """Equal allocation: pulls every arm equally often."""
    return custom(kernel.uniform, pending_weight=pending_weight, warmup=warmup, slack=slack)


def apt(*, slack: float = 0.0, warmup: int = 2, pending_weight: float = 0.0) -> Policy:
    """APT (Locatelli et al. 2016; the paper writes ATP), with the slack ε."""
    return custom(kernel.apt, pending_weight=pending_weight, warmup=warmup, slack=slack)


def evt(
    exploration: float | None = None,
    *,
    slack: float = 0.0,
    warmup: int = 2,
    pending_weight: float = 0.0,
    variant: Literal["main", "supplement"] = "main",
) -> Policy:
    """EVT: the paper's sequential rule; pending pulls are not counted."""
    found = custom(kernel.evt, exploration=exploration, pending_weight=pending_weight, warmup=warmup, slack=slack)
    return replace(found, variant=variant)


def ap_evt(
    exploration: float | None = None,
    *,
    slack: float = 0.0,
    warmup: int = 2,
    pending_weight: float = 1.0,
    variant: Literal["main", "supplement"] = "main",
) -> Policy:
    """AP-EVT: EVT that counts a pending pull as ``pending_weight`` (δ) of a seen one."""
    return evt(exploration, slack=slack, warmup=warmup, pending_weight=pending_weight, variant=variant)


def evt_pf(*, slack: float = 0.0, warmup: int = 2, pending_weight: float = 0.0) -> Policy:
    """EVT without its parameter, the paper's sequential form."""
    return custom(kernel.evt_pf, pending_weight=pending_weight, warmup=warmup, slack=slack)


def ap_evt_pf(*, slack: float = 0.0, warmup: int = 2, pending_weight: float = 1.0) -> Policy:
    """AP-EVT without its parameter."""
    return evt_pf(slack=slack, warmup=warmup, pending_weight=pending_weight)


def lsa(*, slack: float = 0.0, warmup: int = 2, pending_weight: float = 1.0) -> Policy:
    """LSA (Tao et al. 2019). It uses a logarithm, so its decisions repeat only on the same machine."""
    return custom(kernel.lsa, pending_weight=pending_weight, warmup=warmup, slack=slack)


def anytime_evt(*, slack: float = 0.0, warmup: int = 2, pending_weight: float = 1.0) -> Policy:
    """EVT whose exploration doubles whenever the number of pulls has: no parameter, good at any time."""
    return custom(kernel.evt, exploration=DOUBLING, pending_weight=pending_weight, warmup=warmup, slack=slack)


def balanced(
    *, slack: float = 0.0, warmup: int = 2, pending_weight: float = 1.0, pending_ratio: float | None = 1 / 32
) -> Policy:
    """Odd pulls follow anytime EVT; even pulls go to the arm that is cheapest to settle.

    Both skip arms that wait: see ``pending_ratio`` of `Policy`.
    """
    first = anytime_evt(slack=slack, warmup=warmup, pending_weight=pending_weight)
    return replace(first, second="cheapest", pending_ratio=pending_ratio)


def cheapest(*, slack: float = 0.0, warmup: int = 1, pending_weight: float = 1.0) -> Policy:
    """The arm that is cheapest to settle. With ``find``, arms above the bar come first, then the most promising one."""
    return custom(kernel.cheapest, pending_weight=pending_weight, warmup=warmup, slack=slack)


CONSTRUCTORS: Mapping[str, Callable[..., Policy]] = {
    "uniform": uniform,
    "apt": apt,
    "evt": evt,
    "ap-evt": ap_evt,
    "evt-pf": evt_pf,
    "ap-evt-pf": ap_evt_pf,
    "lsa": lsa,
    "anytime-evt": anytime_evt,
    "balanced": balanced,
    "cheapest": cheapest,
}


def policy(given: "Policy | str | None", *, certificates: bool = True, finds: bool = False) -> Policy:
    """The policy that the user named; None means `balanced` with certificates, `anytime_evt` without.

    Where a few arms are to be found, None means `cheapest`.

    >>> policy("ap_evt") == ap_evt()
    True
    """
    if given is None and finds:
        return cheapest()
    if given is None:
        return balanced() if certificates else anytime_evt()
    if isinstance(given, Policy):
        return given
    known = f"choose one of {', '.join(CONSTRUCTORS)}, or a function of your own with thresher.custom"
    if not isinstance(given, str):
        raise InvalidInput("policy", given, "must be a name, such as 'evt', or a policy, such as thresher.evt()", known)
    if (digest := scores.digest_of(given.strip())) is not None:
        return Policy(given.strip(), digest=digest)
    name = given.strip().lower().replace("_", "-")
    if name not in CONSTRUCTORS:
        raise InvalidInput("policy", given, "is not a policy that thresher knows", known)
    return CONSTRUCTORS[name]()


def from_json(data: Mapping[str, Any]) -> Policy:
    """The policy that `Policy.to_json` wrote."""
    return replace(Policy("evt"), **data)


def second_rule(first: kernel.Rule, constant: float, cases: int) -> kernel.Rule:
    """The rule of the second tournament, which `cheapest` scores."""
    return first._replace(exploration=constant, most=float(cases or kernel.UNBOUNDED))


def settling_constant(arms: int, risk: float) -> float:
    """The constant c = 2 ln(16K/risk) of ``cheapest``. Computed once and stored in the specification."""
    return 2.0 * math.log(16.0 * arms / risk)
