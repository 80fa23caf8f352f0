"""Which of a sample's scores is the reward, as a number. Nothing here imports inspect_ai."""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..errors import InvalidInput
from ..text.phrasing import listed

Value = Callable[[Any], float]  # turns a score's value into a reward
WORDS = {"c": 1.0, "i": 0.0, "p": 0.5, "n": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}


def scorer_of(names: Iterable[str], wanted: str | None) -> str:
    """Which of a task's scorers gives the reward.

    >>> scorer_of(["match"], None), scorer_of(["match", "inspect_ai/includes"], "includes")
    ('match', 'includes')
    >>> scorer_of(["match", "includes"], None)
    Traceback (most recent call last):
    thresher.errors.InvalidInput: scorer None: the task has several: match, includes; name one, as scorer='match'
    """
    known = [name.rsplit("/", 1)[-1] for name in names]
    if not known:
        raise InvalidInput("scorer", wanted, "the task has none, so its samples have no reward", "give it a scorer")
    if wanted is None and len(known) > 1:
        rule = f"the task has several: {', '.join(known)}"
        raise InvalidInput("scorer", wanted, rule, f"name one, as scorer={known[0]!r}")
    if wanted is not None and wanted not in known:
        raise InvalidInput("scorer", wanted, "is not a scorer of the task", f"it has {listed(known)}")
    return wanted or known[0]


def reward_of(scores: Mapping[str, Any], scorer: str, value: Value | None) -> float | None:
    """The reward in a sample's scores; None if the scorer gave none, or says that the sample cannot be scored."""
    score = scores.get(scorer)
    if score is None:
        return None
    found = score.score.value
    reward = number_of(found) if value is None else value(found)
    return None if isinstance(reward, float) and math.isnan(reward) else reward


def number_of(value: object) -> float:
    """The number that inspect_ai's metrics make of a value. Values that they count as 0 with a warning are refused.

    >>> number_of("C"), number_of("P"), number_of(True), number_of("0.25"), number_of("no")
    (1.0, 0.5, 1.0, 0.25, 0.0)
    >>> number_of({"helpful": 1})
    Traceback (most recent call last):
    thresher.errors.InvalidInput: score {'helpful': 1}: is not a number; pass value=, a function that makes it one
    """
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, str) and value.lower() in WORDS:
        return WORDS[value.lower()]
    try:
        return float(value)  # type: ignore[arg-type]  # anything else raises
    except (TypeError, ValueError):
        remedy = "pass value=, a function that makes it one"
        raise InvalidInput("score", value, "is not a number", remedy) from None
