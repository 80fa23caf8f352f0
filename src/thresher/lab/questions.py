"""What a setup asks of its arms: the rules of a study (`core/parameters.py`), and what can be simulated."""

import math
from typing import TYPE_CHECKING

from ..core import checks, parameters
from ..core.parameters import Asked
from ..core.sentences import Look
from ..errors import InvalidInput
from ..text.phrasing import plural

if TYPE_CHECKING:
    from .setup import Setup

BAR = 0.7  # unless another one is given, or a baseline: Section 4.1 of the paper
PAIRED_SHARES = ("bernoulli", "constant")  # families whose pairs are few, so that the true share of them is known


def asked_by(setup: "Setup") -> Asked:
    """The question of a setup, checked as that of a study."""
    name, others = None, ("other arms",) if setup.arms > 1 else ()
    if setup.baseline is not None:
        if checks.whole("baseline", setup.baseline, least=0) >= setup.arms:
            rule = f"is not the number of one of {plural(setup.arms, 'arm')}"
            raise InvalidInput("baseline", setup.baseline, rule, "they are numbered from 0")
        name = name_of(setup, setup.baseline)
    given = {key: getattr(setup, key) for key in (*parameters.BARS, "margin", "ratio", "lower_is_better", "share")}
    arms = others if name is None else (name, *others)
    found = parameters.asked({**given, "baseline": name}, bounds=setup.bounds, clip=False, arms=arms)
    if found.measure.within and not setup.cases:
        _check_truth(setup, found)
    if found.measure.ratio and _least(setup) < 0.0:
        raise InvalidInput("ratio", setup.ratio, "needs rewards of at least 0", "give a margin, or other arms")
    return found


def _least(setup: "Setup") -> float:
    """The smallest reward that can be drawn."""
    if setup.recorded is not None:
        return min(map(min, setup.recorded.rewards))
    if setup.family == "normal":
        return -math.inf
    spread = setup.spread_ranges[1] if setup.family == "uniform" else 0.0
    return float((setup.mean_ranges[0] - spread).min())


def _check_truth(setup: "Setup", found: Asked) -> None:
    """Labels are compared with the true share, so it must be known."""
    if found.measure.paired and setup.family not in PAIRED_SHARES:
        rule = "the true share of pairs is known for the families bernoulli and constant only"
        raise InvalidInput("family", setup.family, rule, "choose one of them, or give cases")
    if setup.family == "beta":
        rule = "its true share within a limit is not known"
        raise InvalidInput("family", "beta", rule, "choose another family, or give cases")


def name_of(setup: "Setup", arm: int) -> str:
    """An arm in words."""
    return f"arm {arm}" if setup.recorded is None else setup.recorded.names[arm]


def look_of(setup: "Setup") -> Look:
    """What the setup asks, as far as sentences and tables show it."""
    asked = setup.asked
    name = None if setup.baseline is None else name_of(setup, setup.baseline)
    shown = (asked.threshold, asked.lower_is_better, asked.share, name, asked.ratio)
    return Look(*shown, cases=setup.cases or None, find=setup.find)
