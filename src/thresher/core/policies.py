"""Policies: frozen data that names a formula in ``kernel.py`` and its settings.

>>> ap_evt()
Policy(formula='evt', exploration=None, pending_weight=1.0, warmup=2, slack=0.0, variant='main', second=None, \
pending_ratio=None)
>>> policy("anytime-evt") == anytime_evt()
True
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from ..errors import InvalidInput
from . import checks, kernel, steps

DOUBLING: Literal["doubling"] = "doubling"
FORMULAS = ("uniform", "apt", "evt", "evt_pf", "lsa", "cheapest")


@dataclass(frozen=True, slots=True)
class Policy:
    """Which arm is pulled next: the one with the smallest score by ``formula``.

    ``exploration`` is EVT's a: a number, None for the current budget / K, or ``"doubling"`` for anytime EVT. ``second``
    names the formula for even pulls (see `balanced`). An arm with more than ``pending_ratio`` pending pulls per reward
    seen waits; None sets no bound.
    """

    formula: str
    exploration: float | Literal["doubling"] | None = None
    pending_weight: float = 1.0
    warmup: int = 2
    slack: float = 0.0
    variant: Literal["main", "supplement"] = "main"
    second: Literal["cheapest"] | None = None
    pending_ratio: float | None = None  # None by default, so that logs older than this field keep their meaning

    def __post_init__(self) -> None:
        if self.formula not in FORMULAS:
            raise InvalidInput("formula", self.formula, f"must be one of {', '.join(FORMULAS)}")
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
    def needs_budget(self) -> bool:
        """Whether the exploration follows from the budget."""
        return self.formula == "evt" and self.exploration is None

    @property
    def function(self) -> str:
        """The name of the function in the kernel that scores the arms."""
        return "evt_supplement" if self.variant == "supplement" else self.formula

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
            exploration = budget / arms if self.needs_budget and budget else 1.0
        ratio = kernel.UNBOUNDED if self.pending_ratio is None else self.pending_ratio
        return kernel.Rule(threshold, exploration, self.pending_weight, self.warmup, self.slack, ratio)

    def to_json(self) -> dict[str, Any]:
        """The policy as JSON-ready data. A ``pending_ratio`` of None is left out, as in logs older than the field.

        >>> from_json(evt(2.5).to_json()) == evt(2.5)
        True
        """
        data = asdict(self)
        if self.pending_ratio is None:
            del data["pending_ratio"]
        return data

    def __str__(self) -> str:
        """The constructor of this policy, with the arguments that differ from its defaults.

        >>> str(ap_evt_pf(warmup=3)), str(balanced())
        ('ap-evt-pf(warmup=3)', 'balanced')
        """
        mine = asdict(self)

        def differing(name: str) -> dict[str, Any]:
            other = asdict(CONSTRUCTORS[name]())
            return {key: value for key, value in mine.items() if other[key] != value}

        name, rest = min(((name, differing(name)) for name in CONSTRUCTORS), key=lambda pair: len(pair[1]))
        settings = ", ".join(f"{key}={value!r}" for key, value in rest.items())
        return f"{name}({settings})" if rest else name


def uniform(*, slack: float = 0.0, warmup: int = 2, pending_weight: float = 1.0) -> Policy:
    """Equal allocation: pulls every arm equally often."""
    return Policy("uniform", None, pending_weight, warmup, slack)


def apt(*, slack: float = 0.0, warmup: int = 2, pending_weight: float = 0.0) -> Policy:
    """APT (Locatelli et al. 2016; the paper writes ATP), with the slack ε."""
    return Policy("apt", None, pending_weight, warmup, slack)


def evt(
    exploration: float | None = None,
    *,
    slack: float = 0.0,
    warmup: int = 2,
    pending_weight: float = 0.0,
    variant: Literal["main", "supplement"] = "main",
) -> Policy:
    """EVT: the paper's sequential rule; pending pulls are not counted."""
    return Policy("evt", exploration, pending_weight, warmup, slack, variant)


def ap_evt(
    exploration: float | None = None,
    *,
    slack: float = 0.0,
    warmup: int = 2,
    pending_weight: float = 1.0,
    variant: Literal["main", "supplement"] = "main",
) -> Policy:
    """AP-EVT: EVT that counts a pending pull as ``pending_weight`` (δ) of a seen one."""
    return Policy("evt", exploration, pending_weight, warmup, slack, variant)


def evt_pf(*, slack: float = 0.0, warmup: int = 2, pending_weight: float = 0.0) -> Policy:
    """EVT without its parameter, the paper's sequential form."""
    return Policy("evt_pf", None, pending_weight, warmup, slack)


def ap_evt_pf(*, slack: float = 0.0, warmup: int = 2, pending_weight: float = 1.0) -> Policy:
    """AP-EVT without its parameter."""
    return Policy("evt_pf", None, pending_weight, warmup, slack)


def lsa(*, slack: float = 0.0, warmup: int = 2, pending_weight: float = 1.0) -> Policy:
    """LSA (Tao et al. 2019). It uses a logarithm, so its decisions repeat only on the same machine."""
    return Policy("lsa", None, pending_weight, warmup, slack)


def anytime_evt(*, slack: float = 0.0, warmup: int = 2, pending_weight: float = 1.0) -> Policy:
    """EVT whose exploration doubles whenever the number of pulls has: no parameter, good at any time."""
    return Policy("evt", DOUBLING, pending_weight, warmup, slack)


def balanced(
    *, slack: float = 0.0, warmup: int = 2, pending_weight: float = 1.0, pending_ratio: float | None = 1 / 32
) -> Policy:
    """Odd pulls follow anytime EVT; even pulls go to the arm that is cheapest to settle.

    Both skip arms that wait: see ``pending_ratio`` of `Policy`.
    """
    return Policy("evt", DOUBLING, pending_weight, warmup, slack, second="cheapest", pending_ratio=pending_ratio)


def cheapest(*, slack: float = 0.0, warmup: int = 1, pending_weight: float = 1.0) -> Policy:
    """The arm that is cheapest to settle. With ``find``, arms above the bar come first, then the most promising one."""
    return Policy("cheapest", None, pending_weight, warmup, slack)


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
    known = f"choose one of {', '.join(CONSTRUCTORS)}"
    if not isinstance(given, str):
        raise InvalidInput("policy", given, "must be a name, such as 'evt', or a policy, such as thresher.evt()", known)
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
