"""The question and the answer in words, and sentences about an arm and about where rewards came from."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from ..errors import shown
from ..text.escapes import escaped_visible
from ..text.phrasing import listed_phrase, plural
from ..text.quantities import (
    PERCENT,
    amount_text,
    duration_text,
    edges_quantity_text,
    number_text,
    percent_text,
    points_quantity_text,
)
from .parameters import BARS
from .question import HALF
from .revisions import Changes
from .rows import Row
from .spec import Spec

LONGEST_NAME = 40  # characters of the baseline's name in a sentence
Asks = Literal["mean", "share", "difference"]
# for people who see no colours
SIGNS = {"reaches": "✓", "misses": "✗", "open": "·", "retired": "✕", "baseline": "="}


class SentenceWording(NamedTuple):
    """What a study asks, as far as sentences, tables and pictures say it, and how they write its numbers."""

    stated_bar: float  # at_least, at_most or the margin
    lower_is_better: bool = False
    share: float | None = None
    baseline: str | None = None
    ratio: float | None = None
    unit: str | None = None
    cases: int | None = None  # how many; None: rewards have none
    find: int | None = None
    tolerance: float = 0.0  # around the bar, a difference or a share: within it, either answer is right

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
    def edges(self) -> tuple[float, float]:
        """The bar less and plus the tolerance, on the scale of `Row.estimate`.

        >>> SentenceWording(0.95, tolerance=0.02).edges
        (0.93, 0.97)
        """
        return edges_quantity_text(self.bar, self.tolerance)

    @property
    def asked(self) -> dict[str, Any]:
        """The question as data: the stated bar by the name that users give it, and None by the other names; the rest.

        >>> (SentenceWording(0.05, lower_is_better=True).asked["at_most"],
        ...  SentenceWording(0.0, baseline="a").asked["at_least"])
        (0.05, None)
        """
        name = "margin" if self.baseline is not None else "at_most" if self.lower_is_better else "at_least"
        bar = None if self.ratio is not None else self.stated_bar
        names = ("lower_is_better", "share", "baseline", "ratio", "unit", "tolerance")
        return {**dict.fromkeys((*BARS, "margin")), name: bar, **{name: getattr(self, name) for name in names}}

    @property
    def draws(self) -> str:
        """What `Row.seen` counts."""
        return "pulls" if self.cases is None else "cases"

    def amount(self, value: float | None, *, exact: bool = False) -> str:
        """A reward, or a mean of rewards; ``exact`` for what the user wrote, such as the bar.

        >>> SentenceWording(0.05, unit="s").amount(0.0123), SentenceWording(5, unit="points").amount(12)
        ('12.3 ms', '12 points')
        """
        return amount_text(value, self.unit, exact=exact)

    def estimate(self, value: float | None, *, exact: bool = False) -> str:
        """A mean, a share in percent, or a difference with its sign, whichever the question is about.

        >>> (SentenceWording(0.2, share=0.95).estimate(0.975),
        ...  SentenceWording(0.0, baseline="a", unit="%").estimate(0.03))
        ('97.5 %', '+3 points')
        """
        if value is None or self.asks == "mean":
            return self.amount(value, exact=exact)
        if self.asks == "share":
            return percent_text(value, exact=exact)
        return f"{'+' if value > 0 else ''}{self.difference(value, exact=exact)}"

    def difference(self, value: float, *, exact: bool = False) -> str:
        """A difference between rewards: of percentages, in points."""
        return points_quantity_text(value, exact=exact) if self.unit == PERCENT else self.amount(value, exact=exact)

    def distance(self, value: float) -> str:
        """How far something is from the bar.

        >>> SentenceWording(0.9, unit="%").distance(0.02), SentenceWording(0.2, unit="s").distance(0.002)
        ('2 points', '2 ms')
        """
        return points_quantity_text(value, exact=True) if self.asks == "share" else self.difference(value, exact=True)

    def span(self, low: float | None, high: float | None) -> str:
        """An interval of what is asked about.

        >>> SentenceWording(0.5).span(0.25, 0.75), SentenceWording(0.0, baseline="a", unit="%").span(0.01, 0.03)
        ('0.25 – 0.75', '+1 – +3 points')
        """
        if low is None or high is None:
            return ""
        first, last = self.estimate(low), self.estimate(high)
        unit = first.partition(" ")[2]
        if unit and unit.removesuffix("s") == last.partition(" ")[2].removesuffix("s"):  # one unit serves both
            first = first.removesuffix(f" {unit}")
        return f"{first} – {last}"

    def quantile(self) -> str:
        """The name of the quantile that a share asks about: p95, or p5 where higher is better.

        >>> (SentenceWording(0.2, lower_is_better=True, share=0.95).quantile(),
        ...  SentenceWording(0.2, share=0.95).quantile())
        ('p95', 'p5')
        """
        share = self.share or 0.0
        return f"p{100 * (share if self.lower_is_better else 1.0 - share):.6g}"

    def value(self, value: float | None) -> str:
        """A median or quantile: of rewards, or with a ratio of the arm's reward over the baseline's."""
        return amount_text(value, None if self.ratio is not None else self.unit) + ("×" if self.ratio and value else "")


def sentence_wording(spec: Spec) -> SentenceWording:
    """The wording of a study's question."""
    asked = (spec.stated_bar, spec.lower_is_better, spec.share, spec.baseline, spec.ratio, spec.unit)
    return SentenceWording(*asked, spec.case_count or None, spec.find, spec.tolerance)


def short_in_sentence(name: str) -> str:
    """A name, shortened where it is long."""
    text = escaped_visible(name)
    return text if len(text) <= LONGEST_NAME else f"{text[: LONGEST_NAME - 1]}…"


def quoted_name_in_sentence(name: str) -> str:
    """A name in a sentence: in quotes if it has several words.

    >>> quoted_name_in_sentence("current"), quoted_name_in_sentence("sleep 0.03")
    ('current', "'sleep 0.03'")
    """
    return f"'{short_in_sentence(name)}'" if " " in name else short_in_sentence(name)


class Claim(NamedTuple):
    """What an arm that reaches the bar does: a verb, for many arms and for one, and its object."""

    many: str
    one: str
    rest: str


def claim_sentence(wording: SentenceWording) -> Claim:
    """What an arm that reaches the bar does.

    >>> " ".join(claim_sentence(SentenceWording(0.2, lower_is_better=True, share=0.95, unit="s"))[1:])
    'stays within 200 ms in at least 95 % of pulls'
    >>> " ".join(claim_sentence(SentenceWording(0.0, True, 0.5, "before", 1.05, "s"))[1:])
    'is at most 5 % slower than before in at least half of the pairs'
    """
    lower, bar = wording.lower_is_better, wording.difference(abs(wording.stated_bar), exact=True)
    base = None if wording.baseline is None else quoted_name_in_sentence(wording.baseline)
    if base is None:
        bar = wording.amount(wording.stated_bar, exact=True)
        verbs, rest = (("stay within", "stays within") if lower else ("reach", "reaches")), bar
    elif wording.ratio is not None:
        verbs, rest = ("are", "is"), _times(wording, wording.ratio, base)
    elif wording.stated_bar == 0.0:
        verbs, rest = ("match or beat", "matches or beats"), base
    elif wording.stated_bar > 0.0:
        verbs, rest = ("beat", "beats"), f"{base} by {bar}"
    else:
        verbs, rest = ("lose", "loses"), f"at most {bar} to {base}"
    if wording.share is not None:
        draws = plural(wording.cases, "case") if wording.cases else "pulls" if base is None else "pairs"
        half = wording.share == HALF and base is not None and not wording.cases
        rest += f" in at least {'half of the' if half else f'{percent_text(wording.share, exact=True)} of'} {draws}"
    return Claim(*verbs, rest)


def _times(wording: SentenceWording, ratio: float, base: str) -> str:
    """How an arm compares with the baseline by a ratio: for times, how much slower or faster."""
    if wording.unit == "s" and wording.lower_is_better and ratio != 1.0:
        change = percent_text(round(abs(ratio - 1.0), 12), exact=True)
        return f"at most {change} slower than {base}" if ratio > 1.0 else f"at least {change} faster than {base}"
    limit = "at most" if wording.lower_is_better else "at least"
    return f"{limit} {'as much as' if ratio == 1.0 else f'{number_text(ratio, exact=True)} times'} {base}"


def question_sentence(wording: SentenceWording, arms: int) -> str:
    """The question about this number of arms.

    >>> question_sentence(SentenceWording(0.9), 3), question_sentence(SentenceWording(0.9), 1)
    ('Which of 3 arms reach 0.9?', 'Does the arm reach 0.9?')
    >>> question_sentence(SentenceWording(0.9, cases=500), 40), question_sentence(SentenceWording(0.9, find=2), 40)
    ('Which of 40 arms reach 0.9 on 500 cases?', 'Which 2 of 40 arms reach 0.9?')
    >>> question_sentence(SentenceWording(0.9, find=1, unit="%", tolerance=0.02), 40)
    'Does any of 40 arms reach 90 %, give or take 2 points?'
    """
    does, one, rest = claim_sentence(wording)
    if wording.cases and wording.share is None:
        rest += f" on {plural(wording.cases, 'case')}"
    rest += f"{tolerance_in_sentence(wording)}?"
    if arms == 1 or wording.find == 1:
        who = "the arm" if arms == 1 else f"any of {arms:,} arms"
        return f"Is {who} {rest}" if one == "is" else f"Does {who} {does} {rest}"
    return f"Which {f'{wording.find:,} ' if wording.find else ''}of {arms:,} arms {does} {rest}"


def tolerance_in_sentence(wording: SentenceWording) -> str:
    """The tolerance, after the bar in a sentence.

    >>> (tolerance_in_sentence(SentenceWording(0.9, unit="%", tolerance=0.02)),
    ...  tolerance_in_sentence(SentenceWording(0.9)))
    (', give or take 2 points', '')
    """
    return f", give or take {wording.distance(wording.tolerance)}" if wording.tolerance else ""


def question_sentence_of(spec: Spec) -> str:
    """The question of a study with this specification."""
    return question_sentence(sentence_wording(spec), spec.contenders)


def answer_sentence(wording: SentenceWording, reached: int, missed: int, others: int, *, certifies: bool = True) -> str:
    """How many arms reach the bar, miss it and are open, in a sentence.

    >>> (answer_sentence(SentenceWording(0.9, unit="%"), 7, 5, 0),
    ...  answer_sentence(SentenceWording(0.9, unit="%"), 4, 1, 7))
    ('7 of 12 reach 90 %, 5 miss it.', '4 reach it, 1 misses it, 7 open.')
    >>> answer_sentence(SentenceWording(0.9), 1, 0, 0), answer_sentence(SentenceWording(0.9), 0, 0, 1)
    ('It reaches 0.9.', 'It is open.')
    >>> answer_sentence(SentenceWording(0.9), 2, 1, 0, certifies=False)
    'By their means, 2 of 3 reach 0.9, 1 misses it; nothing is certified.'
    """
    many, one, rest = claim_sentence(wording)
    arms = reached + missed + others
    does, fails = (one if reached == 1 else many), _fails(one, missed)
    if arms == 1:
        is_not = f"is not {rest}" if one == "is" else f"misses {rest}"
        said = "It is open" if others else f"It {f'{one} {rest}' if reached else is_not}"
    elif not others:
        said = f"{reached:,} of {arms:,} {does} {rest}{f', {missed:,} {fails}' if missed else ''}"
    else:
        it = does if one == "is" else f"reach{'es' if reached == 1 else ''} it"
        said = f"{reached:,} {it}, {missed:,} {fails}, {others:,} open"
    if certifies or others == arms:
        return f"{said}."
    means = "By its mean, it" + said[2:] if arms == 1 else f"By their means, {said}"
    return f"{means}; nothing is certified."


def _fails(one: str, missed: int) -> str:
    if one == "is":
        return "is not" if missed == 1 else "are not"
    return "misses it" if missed == 1 else "miss it"


def found_sentence(names: Sequence[str], find: int, missed: int, others: int, *, done: bool) -> str:
    """Which arms were found, in a sentence, where a study looks for some.

    >>> found_sentence(["a", "b"], 2, 3, 35, done=True), found_sentence([], 1, 4, 36, done=False)
    ("Found 2 of 2: 'a', 'b'.", 'Found 0 of 1 so far, 4 miss it, 36 open.')
    """
    counts = f"Found {len(names):,} of {find:,}"
    names_found = f": {listed_phrase(names, show=shown)}" if names else ""
    if done:
        return f"{counts}{names_found}."
    return f"{counts} so far{names_found}, {missed:,} {_fails('', missed)}, {others:,} open."


def spent_sentence(
    issued: int,
    pending: int,
    budget: int | None,
    full: int | None,
    cost: float | None,
    *,
    left: int | None = None,
    done: bool = True,
    seconds: float | None = None,
    noun: str = "pull",
) -> str:
    """What the answer took, or has taken so far, next to a full run if there is one, and about what is left.

    >>> spent_sentence(1649, 0, None, 3600, None, seconds=40), spent_sentence(30, 3, 90, None, 1.5)
    ('It took 1,649 of 3,600 pulls (46 %) and 40 s.', 'It took 30 of at most 90 pulls, 3 pending, at a cost of 1.5.')
    """
    time = "" if seconds is None else f" and {duration_text(seconds, rounded=True)}"
    waits = f", {pending:,} pending" if pending else ""
    at_cost = f", at a cost of {cost_in_sentence(cost, issued, full)}" if cost is not None else ""
    rest = f", {remaining_in_sentence(left, noun=noun)}" if left else ""
    pulls = pulls_in_sentence(issued, budget, full, noun=noun)
    return f"{'It took' if done else 'So far'} {pulls}{time}{waits}{at_cost}{rest}."


def pulls_in_sentence(issued: int, budget: int | None, full: int | None, *, noun: str = "pull") -> str:
    """How many pulls were issued, of how many in a full run or in the budget.

    >>> pulls_in_sentence(1649, None, 3600), pulls_in_sentence(30, 90, None), pulls_in_sentence(90, 90, None)
    ('1,649 of 3,600 pulls (46 %)', '30 of at most 90 pulls', '90 pulls')
    """
    if full is not None and issued < full:
        return f"{issued:,} of {full:,} {noun}s ({round(100 * issued / full)} %)"
    if budget is not None and issued < budget:
        return f"{issued:,} of at most {budget:,} {noun}s"
    return plural(issued, noun)


def cost_in_sentence(cost: float, issued: int, full: int | None) -> str:
    """What the rewards cost, and about what those of a full run would.

    >>> cost_in_sentence(3.3, 1649, 3600), cost_in_sentence(1.5, 30, None)
    ('3.3 of about 7.204', '1.5')
    """
    whole = f" of about {cost * full / issued:.4g}" if full is not None and 0 < issued < full else ""
    return f"{cost:,.6g}{whole}"


def remaining_in_sentence(left: int | None, *, noun: str = "pull") -> str:
    """About how many pulls are left: an estimate, so with one or two digits.

    >>> remaining_in_sentence(347), remaining_in_sentence(12_345), remaining_in_sentence(4)
    ('about 350 pulls left', 'about 12,000 pulls left', 'about 4 pulls left')
    """
    if left is None:
        return ""
    return f"about {plural(int(float(f'{left:.2g}')), noun)} left"


def standing_in_sentence(row: Row) -> str:
    """Where an arm stands, in a word or two; a leaning is what its mean says so far.

    >>> standing_in_sentence(Row("a", True, False, 0.9, 0.5, 1.0, 8, 0, 0, 1, 40, None))
    '· open, so far ✓'
    """
    sign, leaning = SIGNS[row.standing], ""
    if row.standing == "open" and row.reached is not None:
        leaning = f", so far {SIGNS['reaches' if row.reached else 'misses']}"
    return f"{sign} {row.standing}{f', {row.qualifier}' if row.qualifier else ''}{leaning}"


def standing_sentence(row: Row, *, outside: bool) -> str:
    """What is known about one arm, in sentences; ``outside``: a reward lay outside the bounds.

    >>> row = Row("a", True, False, 0.9, 0.5, 1.0, 8, 0, 0, 1, 40, "it timed out")
    >>> standing_sentence(row, outside=False)
    '· open, so far ✓: about 40 pulls left. Last failure: it timed out'
    """
    failure = f" Last failure: {row.reason}" if row.reason else ""
    if row.standing == "baseline":
        return f"{SIGNS[row.standing]} the baseline, which the other arms are compared with.{failure}"
    if row.standing == "retired" and not outside:
        return f"{standing_in_sentence(row)}{f': {row.reason}' if row.reason else '.'}"
    if row.certified:
        known = ", certified"
    elif outside:
        known = ", not certified, because a reward lay outside the bounds"
    else:
        known = f": {remaining_in_sentence(row.left)}" if row.left is not None else ""
    return f"{standing_in_sentence(row)}{known}.{failure}"


def origin_sentence(
    earlier: int, told: int, since: str | None, others: int = 0, *, noun: str = "rewards"
) -> str | None:
    """How many rewards are from earlier runs or other agents, in a sentence; None: none is.

    Those that were there before cannot be told apart: other agents may have just written them.

    >>> origin_sentence(50, 70, "2026-11-17T02:41:12Z")
    '50 of these 70 rewards are from earlier runs or other agents, since 2026-11-17 02:41:12 UTC.'
    """
    count = earlier + others
    if not count:
        return None
    many = f"{count:,} of these {told:,} {noun} are" if count < told else f"All {noun} are"
    began = f", since {time_in_sentence(since)}" if since else ""
    sources = f"earlier runs or other agents{began}" if earlier else "other agents"
    return f"{many} from {sources}."


def time_in_sentence(moment: str | None) -> str:
    """A time for people.

    >>> time_in_sentence("2026-11-17T02:41:12Z")
    '2026-11-17 02:41:12 UTC'
    """
    return "an unknown time" if moment is None else f"{moment.replace('T', ' ').removesuffix('Z')} UTC"


# -- what a revision changes -------------------------------------------------------------------------------------------

MOST_CHANGED = 2  # names of one kind in a sentence about changes; of more, only how many


def changes_sentence(changes: Changes, *, arm: str = "arm") -> str:
    """What a revision changes, and how many results hold.

    >>> changes = Changes(arms_new=("cot",), files=("terse.txt",), cases_changed=("q17",), results=1649, held=1490)
    >>> changes_sentence(changes)
    'arm cot is new, terse.txt changed, case q17 changed · 1,490 of 1,649 results hold'
    >>> changes_sentence(Changes(common=("ask.py",), results=1649))
    'ask.py changed · nothing holds'
    >>> changes_sentence(Changes(arms_gone=("a", "b", "c")))
    '3 arms are gone'
    >>> changes_sentence(Changes(common=("lib.py",), files_new=("lib.py",), question=("at_least is 0.9, not 0.8",)))
    'lib.py counts now, the bar is 0.9, not 0.8'
    """
    names = (*changes.common, *changes.files)
    files = [name for name in names if name not in (*changes.files_new, *changes.files_gone)]
    new, gone = (
        ((), ()) if changes.evaluator else (changes.files_new, changes.files_gone)
    )  # another command names others
    groups = [
        (arm, changes.arms_new, " is new", " are new"),
        (arm, changes.arms_gone, " is gone", " are gone"),
        (arm, changes.arms_changed, " changed", " changed"),
        ("", files, " changed", " changed"),
        ("", new, " counts now", " count now"),
        ("", gone, " no longer counts", " no longer count"),
        ("case", changes.cases_new, " is new", " are new"),
        ("case", changes.cases_gone, " is gone", " are gone"),
        ("case", changes.cases_changed, " changed", " changed"),
    ]
    parts = [_changed(noun, names, one, many) for noun, names, one, many in groups if names]
    parts += ["the command changed"] if changes.evaluator else []
    for difference in changes.question:  # it begins with the name of a field
        name, verb, rest = difference.partition(" is ")
        words = "the bar" if name in ("at_least", "at_most") else name.replace("_", " ")
        parts.append(f"{words}{verb}{rest}")
    sentence = ", ".join(parts) or "nothing changed"
    holds = results_hold_phrase(changes)
    return f"{sentence} · {holds}" if holds else sentence


def results_hold_phrase(changes: Changes) -> str:
    """How many results a revision takes over.

    >>> results_hold_phrase(Changes(results=3, held=3)), results_hold_phrase(Changes())
    ('all 3 results hold', '')
    >>> results_hold_phrase(Changes(results=3, again=8)), results_hold_phrase(Changes(results=3, held=1, again=8))
    ('8 earlier results hold again', '1 of 3 results hold, and 8 earlier ones again')
    """
    results = plural(changes.results, "result")
    if not changes.held:
        if changes.again:
            return f"{plural(changes.again, 'earlier result')} {'holds' if changes.again == 1 else 'hold'} again"
        return "nothing holds" if changes.results else ""
    if changes.held < changes.results:
        phrase = f"{changes.held:,} of {results} hold"
    else:
        phrase = f"the {results} holds" if changes.results == 1 else f"all {results} hold"
    return (
        f"{phrase}, and {changes.again:,} earlier {'one' if changes.again == 1 else 'ones'} again"
        if changes.again
        else phrase
    )


def _changed(noun: str, names: Sequence[str], one: str, many: str) -> str:
    if len(names) > MOST_CHANGED:
        return plural(len(names), noun or "file") + many
    shown_names = " and ".join(map(quoted_name_in_sentence, names))
    plural_noun = f"{noun}{'s' if len(names) > 1 else ''} " if noun else ""
    return f"{plural_noun}{shown_names}{one if len(names) == 1 else many}"
