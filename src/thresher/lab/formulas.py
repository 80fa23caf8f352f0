"""The formulas of the kernel in compiled code, where a rule's formula is its number: one loop is for all of them."""

from typing import Any

from ..core.kernel import Rule, apt, cheapest, evt, evt_pf, evt_supplement, lsa, uniform
from .repetition import INVALID

NAMES = ("uniform", "apt", "evt", "evt_supplement", "evt_pf", "lsa", "cheapest")
APT, EVT, EVT_SUPPLEMENT, EVT_PF, LSA, CHEAPEST, OWN = range(1, len(NAMES) + 1)
IS_CUSTOM = False  # whether loops are compiled with a user's function, which has the number OWN


def numbered(rule: Rule, *, is_custom: bool = False) -> Any:
    """The rule as compiled code takes it."""
    return rule._replace(formula=OWN if is_custom else NAMES.index(rule.formula.__name__))  # type: ignore[arg-type]


def custom(gap: float, scatter: float, seen: int, weight: float, exploration: float) -> float:
    """`compiler.py` puts the user's function in its place."""
    return weight


def applied(rule: Any, gap: float, scatter: float, seen: int, weight: float) -> float:
    """The value of the rule's formula, in place of the function of that name in `kernel.py`; INVALID if it is none."""
    number, exploration = rule.formula, rule.exploration
    if IS_CUSTOM and number == OWN:
        value = float(custom(gap, scatter, seen, weight, exploration))
        return value if value >= 0.0 else INVALID
    if number == EVT:
        return evt(gap, scatter, seen, weight, exploration)
    if number == CHEAPEST:
        return cheapest(gap, scatter, seen, weight, exploration)
    if number == APT:
        return apt(gap, scatter, seen, weight, exploration)
    if number == EVT_PF:
        return evt_pf(gap, scatter, seen, weight, exploration)
    if number == EVT_SUPPLEMENT:
        return evt_supplement(gap, scatter, seen, weight, exploration)
    if number == LSA:
        return lsa(gap, scatter, seen, weight, exploration)
    return uniform(gap, scatter, seen, weight, exploration)
