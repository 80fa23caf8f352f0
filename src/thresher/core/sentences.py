"""The question and the answer in words, and sentences about an arm and about where rewards came from."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from ..errors import shown
from ..text.escapes import visible
from ..text.phrasing import listed, plural
from ..text.quantities import amount, number, percent
from .parameters import BARS
from .rows import Row, sides
from .spec import Spec

LONGEST_NAME = 40  # characters of the baseline's name in a sentence
Asks = Literal["mean", "share", "difference"]
# for people who see no colours
SIGNS = {"above": "▲", "below": "▼", "close": "≈", "undecided": "·", "retired": "✕", "baseline": "="}


class Wording(NamedTuple):
    """What a study asks, as far as sentences, tables and pictures say it, and how they write its numbers."""

    stated_bar: float  # at_least, at_most or the margin
    lower_is_better: bool = False
    share: float | None = None
    baseline: str | None = None
    ratio: float | None = None
    unit: str | None = None
    cases: int | None = None  # how many; None: rewards have none
    find: int | None = None

    @property
    def asks(self) -> Asks:
        """What is compared with the bar: `Row.estimate`."""
        if self.share is not None:
            return "share"
        return "mean" if self.baseline is None else "difference"

    @property
    def bar(self) -> float:
        """The bar on the scale of `Row.estimate`: a mean, a share, or the arm's mean less the baseline's."""
        if self.share is not None:
            return self.share
        return 0.0 - self.stated_bar if self.baseline is not None and self.lower_is_better else self.stated_bar

    @property
    def asked(self) -> dict[str, Any]:
        """The question as data: the stated bar by the name that users give it, and None by the other names; the rest.

        >>> Wording(0.05, lower_is_better=True).asked["at_most"], Wording(0.0, baseline="a").asked["at_least"]
        (0.05, None)
        """
        name = "margin" if self.baseline is not None else "at_most" if self.lower_is_better else "at_least"
        bar = None if self.ratio is not None else self.stated_bar
        names = ("lower_is_better", "share", "baseline", "ratio", "unit")
        return {**dict.fromkeys((*BARS, "margin")), name: bar, **{name: getattr(self, name) for name in names}}

    @property
    def draws(self) -> str:
        """What `Row.seen` counts."""
        return "pulls" if self.cases is None else "cases"

    def amount(self, value: float | None, *, exact: bool = False) -> str:
        """A reward, or a mean of rewards; ``exact`` for what the user wrote, such as the bar.

        >>> Wording(0.05, unit="s").amount(0.0123), Wording(0.5).amount(0.0123), Wording(5, unit="points").amount(12)
        ('12.3 ms', '0.0123', '12 points')
        """
        return amount(value, self.unit, exact=exact)

    def estimate(self, value: float | None, *, exact: bool = False) -> str:
        """A mean, a share in percent, or a difference with its sign, whichever the question is about.

        >>> Wording(0.2, share=0.95).estimate(0.975), Wording(0.0, baseline="a").estimate(0.03)
        ('97.5 %', '+0.03')
        """
        if value is None or self.asks == "mean":
            return self.amount(value, exact=exact)
        if self.asks == "share":
            return percent(value, exact=exact)
        return f"{'+' if value > 0 else ''}{self.amount(value, exact=exact)}"

    def span(self, low: float | None, high: float | None) -> str:
        """An interval of what is asked about.

        >>> Wording(0.5).span(0.25, 0.75), Wording(0.5).span(None, None)
        ('0.25 – 0.75', '')
        """
        if low is None or high is None:
            return ""
        first, last = self.estimate(low), self.estimate(high)
        unit = first[first.index(" ") :] if " " in first else ""
        if unit and last.endswith(unit):  # one unit serves both
            first = first.removesuffix(unit)
        return f"{first} – {last}"

    def quantile(self) -> str:
        """The name of the quantile that a share asks about: p95, or p5 where higher is better.

        >>> Wording(0.2, lower_is_better=True, share=0.95).quantile(), Wording(0.2, share=0.95).quantile()
        ('p95', 'p5')
        """
        share = self.share or 0.0
        return f"p{100 * (share if self.lower_is_better else 1.0 - share):.6g}"

    def value(self, value: float | None) -> str:
        """A median or quantile: of rewards, or with a ratio of the arm's reward over the baseline's."""
        return amount(value, None if self.ratio is not None else self.unit) + ("×" if self.ratio and value else "")


def wording_of(spec: Spec) -> Wording:
    """The wording of a study's question."""
    asked = (spec.stated_bar, spec.lower_is_better, spec.share, spec.baseline, spec.ratio, spec.unit)
    return Wording(*asked, spec.case_count or None, spec.find)


def short(name: str) -> str:
    """A name, shortened where it is long."""
    text = visible(name)
    return text if len(text) <= LONGEST_NAME else f"{text[: LONGEST_NAME - 1]}…"


def quoted(name: str) -> str:
    """A name in a sentence: in quotes if it has several words.

    >>> quoted("current"), quoted("sleep 0.03")
    ('current', "'sleep 0.03'")
    """
    return f"'{short(name)}'" if " " in name else short(name)


def claim(wording: Wording) -> str:
    """What an arm that reaches the bar does, after "Which arms" or "Does the arm".

    >>> claim(Wording(0.2, lower_is_better=True, share=0.95, unit="s")), claim(Wording(0.02, baseline="current"))
    ('stay within 200 ms in at least 95 % of pulls', 'beat current by 0.02')
    """
    reach = "stay within" if wording.lower_is_better else "reach"
    if wording.baseline is None:
        done = f"{reach} {wording.amount(wording.stated_bar, exact=True)}"
    elif wording.ratio is not None:
        done = f"{reach} {number(wording.ratio, exact=True)} times {quoted(wording.baseline)}"
    elif wording.stated_bar == 0.0:
        done = f"match or beat {quoted(wording.baseline)}"
    elif wording.stated_bar > 0.0:
        done = f"beat {quoted(wording.baseline)} by {wording.amount(wording.stated_bar, exact=True)}"
    else:
        done = f"lose at most {wording.amount(-wording.stated_bar, exact=True)} to {quoted(wording.baseline)}"
    if wording.share is None:
        return f"{done} on {plural(wording.cases, 'case')}" if wording.cases else done
    draws = plural(wording.cases, "case") if wording.cases else "pairs" if wording.baseline is not None else "pulls"
    return f"{done} in at least {percent(wording.share, exact=True)} of {draws}"


def question(wording: Wording, arms: int) -> str:
    """The question about this number of arms.

    >>> question(Wording(0.9), 3), question(Wording(0.9), 1)
    ('Which of 3 arms reach 0.9?', 'Does the arm reach 0.9?')
    >>> question(Wording(0.9, cases=500), 40), question(Wording(0.9, find=2), 40)
    ('Which of 40 arms reach 0.9 on 500 cases?', 'Which 2 of 40 arms reach 0.9?')
    >>> question(Wording(0.9, find=1), 40)
    'Does any of 40 arms reach 0.9?'
    """
    if arms == 1:
        return f"Does the arm {claim(wording)}?"
    if wording.find == 1:
        return f"Does any of {arms:,} arms {claim(wording)}?"
    return f"Which {f'{wording.find:,} ' if wording.find else ''}of {arms:,} arms {claim(wording)}?"


def question_of(spec: Spec) -> str:
    """The question of a study with this specification."""
    return question(wording_of(spec), spec.contenders)


def answer(
    counts: Mapping[Any, int],
    certified: Mapping[Any, int] | None,
    *,
    lower_is_better: bool,
    issued: int,
    budget: int | None,
    pending: int,
) -> str:
    """How many arms have each label, and how many of these labels are certified (None: the study certifies none).

    >>> counts, certified = {"above": 2, "below": 1, "close": 1}, {"above": 1, "below": 0, "close": 1}
    >>> answer(counts, certified, lower_is_better=False, issued=30, budget=90, pending=3)
    '2 do (1 certified), 1 does not (0 certified), 1 close, after 30 of 90 pulls, 3 pending.'
    >>> answer({"above": 0, "below": 1}, {"below": 1}, lower_is_better=False, issued=30, budget=90, pending=0)
    'It does not (certified), after 30 of 90 pulls.'
    """
    parts, both = [], sides(lower_is_better)
    there = {label: count for label, count in counts.items() if count and label != "baseline"}
    if sum(there.values()) == 1:
        parts.append(_about_one(next(iter(there)), certified, lower_is_better=lower_is_better))
    else:
        for label, rest in zip(both, ("", " not"), strict=True):
            known = f" ({certified[label]:,} certified)" if certified else ""
            parts.append(f"{counts[label]:,} {'does' if counts[label] == 1 else 'do'}{rest}{known}")
        parts += [f"{count:,} {label}" for label, count in there.items() if label not in both]
    waiting = f", {pending:,} pending" if pending else ""
    return f"{', '.join(parts)}, after {pulls_made(issued, budget)}{waiting}."


def _about_one(label: str, certified: Mapping[Any, int] | None, *, lower_is_better: bool) -> str:
    """The answer about the only arm that is asked about.

    >>> _about_one("below", {"below": 0}, lower_is_better=True), _about_one("undecided", None, lower_is_better=True)
    ('It does (not certified)', 'No reward yet')
    """
    reached, missed = sides(lower_is_better)
    if label == "undecided":
        return "No reward yet"
    said = {reached: "It does", missed: "It does not", "close": "It is close to the bar"}.get(label)
    if said is None or certified is None:
        return said or f"It is {label}"
    return f"{said} ({'certified' if certified[label] else 'not certified'})"


def found_arms(names: Sequence[str], *, done: bool) -> str:
    """Which arms were found, in a sentence after the answer, where a study looks for some; nothing if it still looks.

    >>> found_arms(["a", "b"], done=False), found_arms([], done=True), found_arms([], done=False)
    (" Found: 'a', 'b'.", ' Found: none.', '')
    """
    return f" Found: {listed(names, show=shown) if names else 'none'}." if names or done else ""


def pulls_made(issued: int, budget: int | None) -> str:
    """How many pulls were issued, and of how many.

    >>> pulls_made(30, 90), pulls_made(1, None)
    ('30 of 90 pulls', '1 pull')
    """
    return plural(issued, "pull") if budget is None else f"{issued:,} of {plural(budget, 'pull')}"


def standing(row: Row, *, outside: bool) -> str:
    """The state of one arm, in a sentence; ``outside``: a reward lay outside the bounds.

    >>> row = Row("a", "above", False, 0.9, 0.5, 1.0, 8, 0, 0, 1, progress=0.4, reason="it timed out")
    >>> standing(row, outside=False)
    '▲ above, 40 % of the evidence that would settle it. Last failure: it timed out'
    """
    failure = f" Last failure: {row.reason}" if row.reason else ""
    if row.label == "baseline":
        return f"{SIGNS[row.label]} the baseline, which the other arms are compared with.{failure}"
    if row.label == "retired" and not outside:
        return f"{SIGNS[row.label]} {row.label}{f': {row.reason}' if row.reason else '.'}"
    if row.certified:
        known = "certified, but its interval disagrees" if row.interval_disagrees else "certified"
    elif outside:
        known = "not certified, because a reward lay outside the bounds"
    elif row.progress is None:
        known = "not certified"
    else:
        known = f"{percent(round(row.progress, 2))} of the evidence that would settle it"
    return f"{SIGNS[row.label]} {row.label}, {known}.{failure}"


def origin(earlier: int, told: int, since: str | None, others: int = 0, *, noun: str = "rewards") -> str | None:
    """How many rewards are from earlier runs or other agents, in a sentence; None: none is.

    Those that were there before cannot be told apart: other agents may have just written them.

    >>> origin(50, 70, "2026-11-17T02:41:12Z")
    '50 of these 70 rewards are from earlier runs or other agents, since 2026-11-17 02:41:12 UTC.'
    """
    count = earlier + others
    if not count:
        return None
    many = f"{count:,} of these {told:,} {noun} are" if count < told else f"All {noun} are"
    return f"{many} from {f'earlier runs or other agents, since {plain_time(since)}' if earlier else 'other agents'}."


def plain_time(moment: str | None) -> str:
    """A time for people.

    >>> plain_time("2026-11-17T02:41:12Z")
    '2026-11-17 02:41:12 UTC'
    """
    return "an unknown time" if moment is None else f"{moment.replace('T', ' ').removesuffix('Z')} UTC"
