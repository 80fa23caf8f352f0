"""How two specifications differ: a study resumes only with its original specification."""

from dataclasses import fields

from ..errors import shown
from ..text.quantities import amount
from .policies import Policy
from .spec import NO_PARAMS, Params, Spec

# The arms are compared one by one, and a budget may grow. The settling constant follows from the rest, but through a
# logarithm whose last digit may differ between machines. A study keeps the rule it was created with. A study may
# accept several evaluators; the ledger knows which.
Named = tuple[tuple[str, ...], tuple[Params, ...] | None]
LEFT_OUT = ("arms", "params", "cases", "case_params", "budget", "settling_constant", "rule", "evaluator")


def differences(mine: Spec, other: Spec) -> list[str]:
    """The differences in words, without the budget; none if both ask the same question.

    >>> from thresher.core.spec import Spec
    >>> first, second = (Spec(arms=["a", arm], at_least=bar, budget=4) for bar, arm in [(0.5, "b"), (0.6, "c")])
    >>> differences(first, second)
    ["arm 2 is 'b', not 'c'", 'at_least is 0.5, not 0.6']
    """
    left_out = (*LEFT_OUT, "seed") if other.seed is None else LEFT_OUT
    bars, covered = _bars(mine, other)
    left_out = (*left_out, *covered) if bars else left_out
    names = [field.name for field in fields(Spec) if field.name not in left_out]
    pairs = [(_field(name, mine), getattr(mine, name), getattr(other, name)) for name in names]
    return [
        *_named("arm", (mine.arms, mine.params), (other.arms, other.params)),
        *_cases(mine, other),
        *bars,
        *(_differs(name, one, two) for name, one, two in pairs if one != two),
    ]


def _differs(name: str, one: object, two: object) -> str:
    if isinstance(one, Policy) and str(one) == str(two):
        return f"the file that defines {one.formula} has changed"
    return f"{name} is {_told(one)}, not {_told(two)}"


def _bars(mine: Spec, other: Spec) -> tuple[list[str], tuple[str, ...]]:
    """How the bars differ, if more than a number does, and the fields that this covers."""
    lower = ["lower" if spec.lower_is_better else "higher" for spec in (mine, other)]
    if mine.baseline is not None and other.baseline is not None:
        return ([f"{lower[0]} is better, not {lower[1]}"] if lower[0] != lower[1] else []), ("lower_is_better",)
    one, two = _bar(mine), _bar(other)
    plain = mine.baseline == other.baseline and "lower" not in lower
    return ([] if one == two or plain else [f"the bar is {one}, not {two}"]), (
        "threshold",
        "lower_is_better",
        "baseline",
    )


def _bar(spec: Spec) -> str:
    if spec.baseline is not None:
        return f"the baseline {_told(spec.baseline)}"
    return f"at {'most' if spec.lower_is_better else 'least'} {amount(spec.threshold, spec.unit, exact=True)}"


def _field(name: str, spec: Spec) -> str:
    """A field as people name it."""
    return spec.bar_name if name == "threshold" else name


def _cases(mine: Spec, other: Spec) -> list[str]:
    if isinstance(mine.cases, tuple) and isinstance(other.cases, tuple):
        return _named("case", (mine.cases, mine.case_params), (other.cases, other.case_params))
    if mine.cases == other.cases:
        return []
    one, two = ("none" if spec.cases is None else f"{spec.case_count:,}" for spec in (mine, other))
    if one == two:
        return ["only one of the two names its cases"]
    return [f"cases are {one}, not {two}"]


def _named(what: str, mine: Named, other: Named) -> list[str]:
    """The first arm or case that differs. No parameters at all is the same as none for each."""
    if len(mine[0]) != len(other[0]):
        return [f"{what}s are {len(mine[0]):,}, not {len(other[0]):,}"]
    none: tuple[Params, ...] = (NO_PARAMS,) * len(mine[0])
    both = zip(mine[0], other[0], mine[1] or none, other[1] or none, strict=True)
    for number, (name, theirs, params, their_params) in enumerate(both, start=1):
        if name != theirs:
            return [f"{what} {number} is {_told(name)}, not {_told(theirs)}"]
        if params != their_params:
            return [f"params of {what} {_told(name)} are {_told(dict(params))}, not {_told(dict(their_params))}"]
    return []


def _told(value: object) -> str:
    return "none" if value is None else str(value) if isinstance(value, Policy) else shown(value, 60)
