"""thresher's own policies, and `custom` for those of users.

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

from ..errors import InvalidInput, shown
from ..text.naming import Naming
from . import board, checks, custom_scores
from .board import FORMULAS, Formula

DOUBLING: Literal["doubling"] = "doubling"
Exploration = float | Literal["doubling"] | None


@dataclass(frozen=True, slots=True)
class Policy:
    """Which arm is pulled next: the one with the smallest score by ``formula``.

    ``formula`` names one of `FORMULAS` or, as ``module:function``, one of the user's; then ``digest`` is that of
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
        if self.digest is not None and (is_own or not custom_scores.is_score_digest(self.digest)):
            raise InvalidInput("digest", self.digest, f"is not that of a score {shown(self.formula)}", remedy)
        if not is_own and not (custom_scores.is_score_name(self.formula) and self.is_custom):
            raise InvalidInput("formula", self.formula, f"must be one of {', '.join(FORMULAS)}", remedy)
        if self.exploration is not None and self.exploration != DOUBLING:
            checks.checked_number("exploration", self.exploration, 1e-9, 1e15)
        checks.checked_number("pending_weight", self.pending_weight, 0.0, 1.0)
        checks.checked_number("slack", self.slack, 0.0, 1e15)
        checks.checked_whole("warmup", self.warmup, least=1)
        if self.variant not in ("main", "supplement"):
            raise InvalidInput("variant", self.variant, "must be 'main' or 'supplement'")
        if self.variant == "supplement" and self.formula != "evt":
            raise InvalidInput("variant", self.variant, "only EVT and AP-EVT have a form in the supplement")
        if self.second not in (None, "cheapest"):
            raise InvalidInput("second", self.second, "must be 'cheapest' or None")
        if self.pending_ratio is not None:
            checks.checked_number("pending_ratio", self.pending_ratio, 1e-6, 1e6)
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
        return None if self.digest is None else custom_scores.why_custom_score_unavailable(self.formula, self.digest)

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
            return custom_scores.with_score_checks(custom_scores.registered_score(self.formula, self.digest).function)
        return board.evt_supplement_formula if self.variant == "supplement" else FORMULAS[self.formula]

    @property
    def is_exact(self) -> bool:
        """Whether its decisions can be derived again on every machine, or only on the same one."""
        return self.formula != "lsa" and not self.is_custom

    def rule(
        self,
        bar: float,
        tolerance: float = 0.0,
        *,
        arms: int,
        budget: int | None,
        issued: int = 0,
        constant: float = 1.0,
        cases: int = 0,
        finds: bool = False,
    ) -> board.Rule:
        """How arms are scored, for a scaled bar, tolerance and the current budget, after ``issued`` pulls.

        A user's function is not looked up here: another formula is in its place until it is needed (`scored_by`).
        Only `cheapest` needs the settling constant, the number of cases, and whether a few arms are to be found.
        """
        formula = board.uniform_formula if self.is_custom else self.scored_by()
        blank = board.Rule(
            formula,
            bar,
            constant,
            self.pending_weight,
            self.warmup,
            max(self.slack, tolerance),
            doubles=self.exploration == DOUBLING,
            alternates=self.second is not None,
        )
        if self.formula == "cheapest":
            return second_policy_rule(blank, constant, cases)._replace(finds=finds)
        if self.exploration == DOUBLING:
            exploration = board.doubled_formula_exploration(1.0, issued, arms)
        elif self.exploration is not None:
            exploration = self.exploration
        else:
            exploration = budget / arms if self.follows_budget and budget else 1.0
        ratio = board.UNBOUNDED if self.pending_ratio is None else self.pending_ratio
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


def second_policy_rule(first: board.Rule, constant: float, cases: int) -> board.Rule:
    """The rule of the second tournament, which `cheapest` scores."""
    return first._replace(formula=board.cheapest_formula, exploration=constant, most=float(cases or board.UNBOUNDED))


def settling_policy_constant(arms: int, confidence: float | None) -> float:
    """The constant c = 2 ln(16K/risk) of ``cheapest``. Computed once and stored in the specification."""
    risk = 0.05 if confidence is None else 1 - confidence
    return 2.0 * math.log(16.0 * arms / risk)


NAMED: dict[str, Policy] = {}  # thresher's own, with their defaults: entered below


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
    formula, digest = custom_scores.register_score(score)
    return Policy(formula, exploration, pending_weight, warmup, slack, digest=digest)


def uniform(*, slack: float = 0.0, warmup: int = 2, pending_weight: float = 1.0) -> Policy:
    """Equal allocation: pulls every arm equally often."""
    return custom(board.uniform_formula, pending_weight=pending_weight, warmup=warmup, slack=slack)


def apt(*, slack: float = 0.0, warmup: int = 2, pending_weight: float = 0.0) -> Policy:
    """APT (Locatelli et al. 2016; the paper writes ATP), with the slack ε."""
    return custom(board.apt_formula, pending_weight=pending_weight, warmup=warmup, slack=slack)


def evt(
    exploration: float | None = None,
    *,
    slack: float = 0.0,
    warmup: int = 2,
    pending_weight: float = 0.0,
    variant: Literal["main", "supplement"] = "main",
) -> Policy:
    """EVT: the paper's sequential rule; pending pulls are not counted."""
    plain = custom(
        board.evt_formula, exploration=exploration, pending_weight=pending_weight, warmup=warmup, slack=slack
    )
    return replace(plain, variant=variant)


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
    return custom(board.evt_pf_formula, pending_weight=pending_weight, warmup=warmup, slack=slack)


def ap_evt_pf(*, slack: float = 0.0, warmup: int = 2, pending_weight: float = 1.0) -> Policy:
    """AP-EVT without its parameter."""
    return evt_pf(slack=slack, warmup=warmup, pending_weight=pending_weight)


def lsa(*, slack: float = 0.0, warmup: int = 2, pending_weight: float = 1.0) -> Policy:
    """LSA (Tao et al. 2019). It uses a logarithm, so its decisions repeat only on the same machine."""
    return custom(board.lsa_formula, pending_weight=pending_weight, warmup=warmup, slack=slack)


def anytime_evt(*, slack: float = 0.0, warmup: int = 2, pending_weight: float = 1.0) -> Policy:
    """EVT whose exploration doubles whenever the number of pulls has doubled: no parameter, good at any time."""
    return custom(board.evt_formula, exploration=DOUBLING, pending_weight=pending_weight, warmup=warmup, slack=slack)


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
    return custom(board.cheapest_formula, pending_weight=pending_weight, warmup=warmup, slack=slack)


_ALL: tuple[Any, ...] = (uniform, apt, evt, ap_evt, evt_pf, ap_evt_pf, lsa, anytime_evt, balanced, cheapest)
CONSTRUCTORS: Mapping[str, Callable[..., Policy]] = {make.__name__.replace("_", "-"): make for make in _ALL}
NAMED.update({name: make() for name, make in CONSTRUCTORS.items()})


def policy(choice: "Policy | str | None", *, certificates: bool = True, finds: bool = False) -> Policy:
    """The policy that the user named; None means `balanced` with certificates, `anytime_evt` without.

    Where a few arms are to be found, None means `cheapest`.

    >>> policy("ap_evt") == ap_evt()
    True
    """
    if choice is None and finds:
        return cheapest()
    if choice is None:
        return balanced() if certificates else anytime_evt()
    if isinstance(choice, Policy):
        return choice
    known = Naming(f"choose one of {', '.join(CONSTRUCTORS)}, or {{thresher.custom}}, a score of your own")
    if not isinstance(choice, str):
        raise InvalidInput(
            "policy", choice, "must be a name, such as 'evt', or a policy, such as thresher.evt()", known
        )
    if (digest := custom_scores.score_digest(choice.strip())) is not None:
        return Policy(choice.strip(), digest=digest)
    name = choice.strip().lower().replace("_", "-")
    if name not in CONSTRUCTORS:
        raise InvalidInput("policy", choice, "is not a policy that thresher knows", known)
    return CONSTRUCTORS[name]()


def policy_from_json(data: Mapping[str, Any]) -> Policy:
    """The policy that `Policy.to_json` wrote.

    >>> policy_from_json(evt(2.5).to_json()) == evt(2.5)
    True
    """
    return replace(Policy("evt"), **data)
