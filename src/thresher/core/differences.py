"""How two specifications differ: a study resumes only with its original specification."""

from dataclasses import fields

from ..errors import shown
from .policies import Policy
from .spec import NO_PARAMS, Params, Spec

# The arms are compared one by one, and a budget may grow. The settling constant follows from the rest, but through a
# logarithm whose last digit may differ between machines. A study keeps the rule it was created with. A study may
# accept several evaluators; the ledger knows which.
LEFT_OUT = ("arms", "params", "budget", "settling_constant", "rule", "evaluator")


def differences(mine: Spec, other: Spec) -> list[str]:
    """The differences in words, without the budget; none if both ask the same question.

    >>> from thresher.core.spec import Spec
    >>> first, second = (Spec(arms=["a", arm], threshold=bar, budget=4) for bar, arm in [(0.5, "b"), (0.6, "c")])
    >>> differences(first, second)
    ["arm 2 is 'b', not 'c'", 'threshold is 0.5, not 0.6']
    """
    names = [field.name for field in fields(Spec) if field.name not in LEFT_OUT]
    pairs = [(name, getattr(mine, name), getattr(other, name)) for name in names]
    return [
        *_arms(mine, other),
        *(f"{name} is {_told(one)}, not {_told(two)}" for name, one, two in pairs if one != two),
    ]


def _arms(mine: Spec, other: Spec) -> list[str]:
    """The first arm that differs. No parameters at all is the same as no parameters for each arm."""
    if len(mine.arms) != len(other.arms):
        return [f"arms are {len(mine.arms):,}, not {len(other.arms):,}"]
    none: tuple[Params, ...] = (NO_PARAMS,) * len(mine.arms)
    arms = zip(mine.arms, other.arms, mine.params or none, other.params or none, strict=True)
    for number, (name, theirs, params, their_params) in enumerate(arms, start=1):
        if name != theirs:
            return [f"arm {number} is {_told(name)}, not {_told(theirs)}"]
        if params != their_params:
            return [f"params of arm {_told(name)} are {_told(dict(params))}, not {_told(dict(their_params))}"]
    return []


def _told(value: object) -> str:
    return str(value) if isinstance(value, Policy) else shown(value, 60)
