"""thresher's own policies, and `custom` for those of users.

>>> ap_evt()
Policy(formula='evt', exploration=None, pending_weight=1.0, warmup=2, slack=0.0, variant='main', second=None, \
pending_ratio=None, digest=None)
>>> policy("anytime-evt") == anytime_evt()
True
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal

from ..errors import InvalidInput
from . import kernel, scores
from .kernel import Formula
from .policy import DOUBLING, NAMED, Exploration, Policy, second_rule, settling_constant

__all__ = ["CONSTRUCTORS", "DOUBLING", "Policy", "custom", "from_json", "policy", "second_rule", "settling_constant"]

YOUR_OWN = "or a function of your own with thresher.custom"  # a remedy


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
    """EVT whose exploration doubles whenever the number of pulls has doubled: no parameter, good at any time."""
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


_ALL: tuple[Any, ...] = (uniform, apt, evt, ap_evt, evt_pf, ap_evt_pf, lsa, anytime_evt, balanced, cheapest)
CONSTRUCTORS: Mapping[str, Callable[..., Policy]] = {make.__name__.replace("_", "-"): make for make in _ALL}
NAMED.update({name: make() for name, make in CONSTRUCTORS.items()})


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
    known = f"choose one of {', '.join(CONSTRUCTORS)}, {YOUR_OWN}"
    if not isinstance(given, str):
        raise InvalidInput("policy", given, "must be a name, such as 'evt', or a policy, such as thresher.evt()", known)
    if (digest := scores.digest_of(given.strip())) is not None:
        return Policy(given.strip(), digest=digest)
    name = given.strip().lower().replace("_", "-")
    if name not in CONSTRUCTORS:
        raise InvalidInput("policy", given, "is not a policy that thresher knows", known)
    return CONSTRUCTORS[name]()


def from_json(data: Mapping[str, Any]) -> Policy:
    """The policy that `Policy.to_json` wrote.

    >>> from_json(evt(2.5).to_json()) == evt(2.5)
    True
    """
    return replace(Policy("evt"), **data)
