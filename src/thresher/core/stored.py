"""Reading a specification from a log."""

from collections.abc import Mapping
from dataclasses import fields

from ..errors import InvalidInput
from . import checks, policies
from .question_checks import BARS
from .spec import ALWAYS_STORED, Spec, check_evaluator


def from_json(data: object) -> Spec:
    """The specification that `Spec.to_json` wrote, checked as if it had been asked for now.

    >>> import json
    >>> from thresher.core.spec import Spec
    >>> spec = Spec(arms={"a": {"depth": 2}}, at_least=0.5, budget=2, seed=7)
    >>> from_json(json.loads(json.dumps(spec.to_json()))) == spec
    True
    """
    if not isinstance(data, Mapping):
        raise InvalidInput("specification", data, "must be a JSON object")
    if data.get("format") != 1:
        raise InvalidInput("format", data.get("format"), "is not one that this version reads", "update thresher")
    kept = {key: value for key, value in data.items() if key != "format"}
    wanted, known = {*ALWAYS_STORED}, {*BARS, "margin", *(field.name for field in fields(Spec))} - {"threshold"}
    for name in sorted((wanted - kept.keys()) | (kept.keys() - known)):
        rule = "is not there" if name in wanted else "is not one that this version knows"
        raise InvalidInput("specification: field", name, rule, "" if name in wanted else "update thresher")
    try:
        kept["policy"] = policies.from_json(kept["policy"])
    except TypeError:
        raise InvalidInput("policy", kept["policy"], "is not one that this version knows", "update thresher") from None
    for name in ("settling_constant", "seed"):  # None means something else to a specification that is asked for now
        checks.number(name, kept[name])
    if isinstance(kept["arms"], Mapping):  # a log has the parameters by themselves
        kept["arms"] = tuple(kept["arms"])
    evaluator = kept.pop("evaluator", None)
    spec = Spec(**kept)
    if evaluator is not None:  # it was masked when it was written
        vars(spec)["evaluator"] = check_evaluator(evaluator)
    return spec
