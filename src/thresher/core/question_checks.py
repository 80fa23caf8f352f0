"""The rules for what a study asks: the bar and its direction, a share, a baseline. See `spec_checks.py`."""

from collections.abc import Mapping
from typing import NamedTuple

from ..errors import InvalidInput, shown
from ..text.phrasing import listed
from . import checks
from .arguments import DEFAULTS
from .question import HALF, ROUNDING, Measure
from .spec_checks import MAX_REWARD, Bounds
from .spec_checks import bar as inside

BARS = ("at_least", "at_most")  # the names by which a bar can be given
OF_BASELINE = "belongs to a baseline"  # a rule
# texts that `cli/rewording.py` replaces with the names of options; other files have more
NAME_BASELINE, MARGIN_TOO = "name one of the arms as baseline", "a margin is given too"
MARGIN_OR_RATIO = "give a margin or a ratio"
LONGEST_UNIT = 16  # characters
DEFAULT: Bounds = DEFAULTS["bounds"]


class Asked(NamedTuple):
    """What is asked of an arm, checked, and what follows from it."""

    threshold: float  # the bar or the limit; with a baseline the margin
    lower_is_better: bool
    share: float | None
    baseline: str | None
    ratio: float | None
    bounds: Bounds | None  # of rewards
    limits: Bounds | None  # of what counts
    bar: float  # of what counts
    measure: Measure

    def reach(self, *, cases: bool) -> float:
        """The bar for exact means, lowered by the rounding error; a plain bar without cases stays as it is."""
        if self.limits is None or self.share is not None:
            return self.bar
        if self.baseline is None and not self.lower_is_better and not cases:
            return self.bar
        return self.bar - ROUNDING * max(map(abs, self.limits))


def asked(given: Mapping[str, object], *, bounds: Bounds | None, clip: bool, arms: tuple[str, ...]) -> Asked:
    """The question that some arguments of a study ask together."""
    lower = given.get("lower_is_better", False)
    if lower not in (False, True):
        raise InvalidInput("lower_is_better", lower, "must be True or False")
    name, number = named_bar({bar: given.get(bar) for bar in BARS})
    base, margin = baseline_or_none(given.get("baseline"), arms), given.get("margin")
    if base is None:
        for what in ("margin", "ratio"):
            if given.get(what) is not None:
                raise InvalidInput(what, given[what], OF_BASELINE, NAME_BASELINE)
        if lower:
            raise InvalidInput("lower_is_better", lower, OF_BASELINE, "give at_most")
        if name is None:
            raise InvalidInput("at_least", None, "there is no bar", "give at_least or at_most, or a baseline")
    elif name is not None:
        rule = "with a baseline, the bar is what the baseline reaches"
        raise InvalidInput(name, number, rule, f"leave it out, or {MARGIN_OR_RATIO}")
    else:
        name, number = "margin", 0.0 if margin is None else margin
    lower = bool(lower) or name == "at_most"
    ratio = _ratio_or_none(given.get("ratio"), margin)
    share = _share_or_none(given.get("share"), ratio)
    sign, limit = -1.0 if lower else 1.0, 0.0
    limits: Bounds | None
    if share is not None:  # what counts is whether a pull is within the limit
        _check_no_bounds(bounds, share, clip=clip)
        bounds, limits, bar = None, (0.0, 1.0), share
        threshold = inside(number, None, name)
        limit = threshold if base is not None else sign * threshold + 0.0
    elif base is not None:  # the difference from the baseline
        limits = spanned(bounds, lower=lower, paired=True)
        threshold = bar = inside(number, limits, name)
    else:  # the reward
        limits = spanned(bounds, lower=lower, paired=False)
        threshold = inside(number, bounds, name)
        bar = sign * threshold + 0.0
    low, high = bounds if clip and bounds else (-float("inf"), float("inf"))
    measure = Measure(sign, low, high, base is not None, ratio or 0.0, share is not None, limit)
    return Asked(threshold, lower, share, base, ratio, bounds, limits, bar, measure)


def spanned(bounds: Bounds | None, *, lower: bool, paired: bool) -> Bounds | None:
    """The range of what counts, from the range of rewards.

    >>> spanned((0.0, 2.0), lower=True, paired=False), spanned((0.0, 2.0), lower=False, paired=True)
    ((-2.0, 0.0), (-2.0, 2.0))
    """
    if bounds is None:
        return None
    low, high = bounds
    if paired:
        return low - high, high - low
    return (-high + 0.0, -low + 0.0) if lower else bounds


def baseline_or_none(given: object, arms: tuple[str, ...]) -> str | None:
    """The arm that the others are compared with."""
    if given is None:
        return None
    if not isinstance(given, str) or given not in arms:
        raise InvalidInput("baseline", given, "is not one of the arms", f"the arms are {listed(arms, show=shown)}")
    if len(arms) == 1:
        raise InvalidInput("baseline", given, "is the only arm", "name what is to be compared with it")
    return given


def unit_or_none(given: object) -> str | None:
    """The unit of rewards, for people."""
    if given is None:
        return None
    if (
        not isinstance(given, str)
        or not 0 < len(given) <= LONGEST_UNIT
        or not given.isprintable()
        or given != given.strip()
    ):
        raise InvalidInput("unit", given, f"must be a text of 1 to {LONGEST_UNIT} characters", "write s, for example")
    return str(given)


def named_bar(bars: Mapping[str, object]) -> tuple[str | None, object]:
    """The bar and the name by which it was given."""
    given = [(name, value) for name, value in bars.items() if value is not None]
    if len(given) > 1:
        names = " and ".join(name for name, _ in given)
        raise InvalidInput(given[1][0], given[1][1], f"a study has one bar, and {names} are given", "leave one out")
    return given[0] if given else (None, None)


def _ratio_or_none(ratio: object, margin: object) -> float | None:
    if ratio is None:
        return None
    if margin is not None:
        raise InvalidInput("ratio", ratio, MARGIN_TOO, "give one of them")
    found = checks.number("ratio", ratio)
    if not 0.0 < found <= MAX_REWARD:
        raise InvalidInput("ratio", ratio, "must be a number above 0", "write 1.05 for five percent more")
    return found


def _share_or_none(share: object, ratio: float | None) -> float | None:
    if share is None:
        return None if ratio is None else HALF
    return checks.share("share", share, remedy="write one such as 0.95")


def _check_no_bounds(bounds: Bounds | None, share: float, *, clip: bool) -> None:
    """A share needs no bounds, so none may be given."""
    if bounds not in (None, DEFAULT):
        raise InvalidInput("bounds", bounds, f"a share ({share:g}) needs none", "leave one of them out")
    if clip:
        raise InvalidInput("clip", clip, f"a share ({share:g}) has no bounds to count rewards as", "leave it out")
