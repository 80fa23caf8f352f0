"""A policy: frozen data that names a score function, of ``kernel.py`` or a user's, and its settings."""

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

from ..errors import InvalidInput, shown
from . import checks, kernel, scores, steps
from .kernel import Formula
from .scores import FORMULAS

DOUBLING: Literal["doubling"] = "doubling"
Exploration = float | Literal["doubling"] | None


@dataclass(frozen=True, slots=True)
class Policy:
    """Which arm is pulled next: the one with the smallest score by ``formula``.

    ``formula`` names a function of the kernel or, as ``module:function``, one of the user's; then ``digest`` is that of
    its file. ``exploration`` is EVT's a: a number, None for the current budget / K, or ``"doubling"`` for anytime
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
    pending_ratio: float | None = None
    digest: str | None = None

    def __post_init__(self) -> None:
        is_own, remedy = self.formula in FORMULAS, "pass a function to thresher.custom"
        if self.digest is not None and (is_own or not scores.is_digest(self.digest)):
            raise InvalidInput("digest", self.digest, f"is not that of a score {shown(self.formula)}", remedy)
        if not is_own and not (scores.is_name(self.formula) and self.is_custom):
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
        ignored = {
            "exploration": not self._explores,
            "slack": self.formula == "uniform" and self.second is None,
            "pending_ratio": self.formula == "cheapest",
            "second": self.formula == "cheapest",
        }
        for name, is_ignored in ignored.items():
            if is_ignored and (value := getattr(self, name)):
                raise InvalidInput(name, value, f"has no effect on the formula {self.formula}", "leave it out")

    @property
    def is_custom(self) -> bool:
        """Whether a user's function scores the arms."""
        return self.digest is not None

    @property
    def obstacle(self) -> str | None:
        """Why a stored study cannot have this policy; None if it can."""
        return None if self.digest is None else scores.obstacle(self.formula, self.digest)

    @property
    def _explores(self) -> bool:
        return self.formula == "evt" or self.is_custom

    @property
    def follows_budget(self) -> bool:
        """Whether the exploration follows from the budget, if there is one."""
        return self.exploration is None and self._explores

    @property
    def needs_budget(self) -> bool:
        """Whether there must be one. A user's function may not look at the exploration at all."""
        return self.follows_budget and not self.is_custom

    def scored_by(self) -> Formula:
        """The function that scores the arms. A user's must have been passed in."""
        if self.is_custom:
            return scores.checked(scores.known(self.formula, self.digest).function)
        found: Formula = getattr(kernel, "evt_supplement" if self.variant == "supplement" else self.formula)
        return found

    @property
    def is_exact(self) -> bool:
        """Whether its decisions can be derived again on every machine, or only on the same one."""
        return self.formula != "lsa" and not self.is_custom

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
        """How arms are scored, for a scaled threshold and the current budget, after ``issued`` pulls.

        A user's function is not looked up here: another formula is in its place until it is needed (`scored_by`).
        Only `cheapest` needs the settling constant, the number of cases, and whether a few arms are to be found.
        """
        formula = kernel.uniform if self.is_custom else self.scored_by()
        blank = kernel.Rule(
            formula,
            threshold,
            constant,
            self.pending_weight,
            self.warmup,
            self.slack,
            doubles=self.exploration == DOUBLING,
            alternates=self.second is not None,
        )
        if self.formula == "cheapest":
            return second_rule(blank, constant, cases)._replace(finds=finds)
        if self.exploration == DOUBLING:
            exploration = steps.doubled(1.0, issued, arms)
        elif self.exploration is not None:
            exploration = self.exploration
        else:
            exploration = budget / arms if self.follows_budget and budget else 1.0
        ratio = kernel.UNBOUNDED if self.pending_ratio is None else self.pending_ratio
        return blank._replace(exploration=exploration, pending_ratio=ratio)

    @property
    def label(self) -> str:
        """A short name for tables and pictures: that of the function, if everything else is as `custom` sets it.

        >>> Policy("evt_pf").label
        'ap-evt-pf'
        """
        plain = self.is_custom and self == Policy(self.formula, digest=self.digest)
        return self.formula if plain else str(self)

    def to_json(self) -> dict[str, Any]:
        """The policy as JSON-ready data.

        >>> Policy("apt").to_json()["formula"]
        'apt'
        """
        return asdict(self)

    def __str__(self) -> str:
        """The constructor of this policy, with the arguments that differ from its defaults.

        >>> str(Policy("evt_pf", warmup=3))
        'ap-evt-pf(warmup=3)'
        """
        known = {"custom": Policy(self.formula, digest=self.digest)} if self.is_custom else NAMED

        def differing(name: str) -> list[str]:
            other = asdict(known[name])
            return [f"{key}={value!r}" for key, value in asdict(self).items() if other[key] != value]

        name = min(known, key=lambda name: len(differing(name)))
        arguments = [self.formula] * self.is_custom + differing(name)
        return f"{name}({', '.join(arguments)})" if arguments else name


def second_rule(first: kernel.Rule, constant: float, cases: int) -> kernel.Rule:
    """The rule of the second tournament, which `cheapest` scores."""
    return first._replace(formula=kernel.cheapest, exploration=constant, most=float(cases or kernel.UNBOUNDED))


def settling_constant(arms: int, confidence: float | None) -> float:
    """The constant c = 2 ln(16K/risk) of ``cheapest``. Computed once and stored in the specification."""
    risk = 0.05 if confidence is None else 1 - confidence
    return 2.0 * math.log(16.0 * arms / risk)


NAMED: dict[str, Policy] = {}  # with their defaults: `policies.py` enters thresher's own
