"""Question and answer in words, and what people read about an arm and a log."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from ..errors import shown
from ..text.escapes import visible
from ..text.phrasing import MOST_NAMED, listed, plural
from ..text.quantities import amount, number, percent
from . import certificate, retried
from .certificate import OPEN
from .intervals import committed
from .parameters import BARS
from .places import is_used_up
from .rows import Row, sides
from .spec import Spec
from .state import State

LONGEST_NAME = 40  # characters of the baseline's name in a sentence
Asks = Literal["mean", "share", "difference"]
# for people who see no colours
SIGNS = {"above": "▲", "below": "▼", "close": "≈", "undecided": "·", "retired": "✕", "baseline": "="}


class Look(NamedTuple):
    """What a study asks, as far as sentences, tables and pictures show it."""

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
    def bars(self) -> dict[str, float | None]:
        """The stated bar, by the name that users give it; None by the other names.

        >>> Look(0.05, lower_is_better=True).bars, Look(0.0, baseline="a").bars
        ({'at_least': None, 'at_most': 0.05, 'margin': None}, {'at_least': None, 'at_most': None, 'margin': 0.0})
        """
        name = "margin" if self.baseline is not None else "at_most" if self.lower_is_better else "at_least"
        bar = None if self.ratio is not None else self.stated_bar
        return {**dict.fromkeys((*BARS, "margin")), name: bar}

    @property
    def draws(self) -> str:
        """What `Row.seen` counts."""
        return "pulls" if self.cases is None else "cases"

    def amount(self, value: float | None, *, exact: bool = False) -> str:
        """A reward, or a mean of rewards; ``exact`` for what the user wrote, such as the bar.

        >>> Look(0.05, unit="s").amount(0.0123), Look(0.5).amount(0.0123), Look(5, unit="points").amount(12)
        ('12.3 ms', '0.0123', '12 points')
        """
        return amount(value, self.unit, exact=exact)

    def estimate(self, value: float | None, *, exact: bool = False) -> str:
        """What is asked about: a mean, a share in percent, or a difference with its sign.

        >>> Look(0.2, share=0.95).estimate(0.975), Look(0.0, baseline="a").estimate(0.03)
        ('97.5 %', '+0.03')
        """
        if value is None or self.asks == "mean":
            return self.amount(value, exact=exact)
        if self.asks == "share":
            return percent(value, exact=exact)
        return f"{'+' if value > 0 else ''}{self.amount(value, exact=exact)}"

    def span(self, low: float | None, high: float | None) -> str:
        """An interval of what is asked about.

        >>> Look(0.5).span(0.25, 0.75), Look(0.5).span(None, None)
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

        >>> Look(0.2, lower_is_better=True, share=0.95).quantile(), Look(0.2, share=0.95).quantile()
        ('p95', 'p5')
        """
        share = self.share or 0.0
        return f"p{100 * (share if self.lower_is_better else 1.0 - share):.6g}"

    def value(self, value: float | None) -> str:
        """A median or quantile: of rewards, or with a ratio of the arm's reward over the baseline's."""
        return amount(value, None if self.ratio is not None else self.unit) + ("×" if self.ratio and value else "")


def look_of(spec: Spec) -> Look:
    """How the numbers of this question are shown."""
    asked = (spec.stated_bar, spec.lower_is_better, spec.share, spec.baseline, spec.ratio, spec.unit)
    return Look(*asked, spec.case_count or None, spec.find)


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


def claim(look: Look) -> str:
    """What an arm that reaches the bar does, after "Which arms" or "Does the arm".

    >>> claim(Look(0.2, lower_is_better=True, share=0.95, unit="s")), claim(Look(0.02, baseline="current"))
    ('stay within 200 ms in at least 95 % of pulls', 'beat current by 0.02')
    """
    reach = "stay within" if look.lower_is_better else "reach"
    if look.baseline is None:
        done = f"{reach} {look.amount(look.stated_bar, exact=True)}"
    elif look.ratio is not None:
        done = f"{reach} {number(look.ratio, exact=True)} times {quoted(look.baseline)}"
    elif look.stated_bar == 0.0:
        done = f"match or beat {quoted(look.baseline)}"
    elif look.stated_bar > 0.0:
        done = f"beat {quoted(look.baseline)} by {look.amount(look.stated_bar, exact=True)}"
    else:
        done = f"lose at most {look.amount(-look.stated_bar, exact=True)} to {quoted(look.baseline)}"
    if look.share is None:
        return f"{done} on {plural(look.cases, 'case')}" if look.cases else done
    draws = plural(look.cases, "case") if look.cases else "pairs" if look.baseline is not None else "pulls"
    return f"{done} in at least {percent(look.share, exact=True)} of {draws}"


def question(look: Look, arms: int) -> str:
    """What a study asks about so many arms.

    >>> question(Look(0.9), 3), question(Look(0.9), 1)
    ('Which of 3 arms reach 0.9?', 'Does the arm reach 0.9?')
    >>> question(Look(0.9, cases=500), 40), question(Look(0.9, find=2), 40)
    ('Which of 40 arms reach 0.9 on 500 cases?', 'Which 2 of 40 arms reach 0.9?')
    >>> question(Look(0.9, find=1), 40)
    'Does any of 40 arms reach 0.9?'
    """
    if arms == 1:
        return f"Does the arm {claim(look)}?"
    if look.find == 1:
        return f"Does any of {arms:,} arms {claim(look)}?"
    return f"Which {f'{look.find:,} ' if look.find else ''}of {arms:,} arms {claim(look)}?"


def question_of(spec: Spec) -> str:
    """What a study of this specification asks."""
    return question(look_of(spec), spec.contenders)


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


def found(names: Sequence[str], *, done: bool) -> str:
    """Which arms were found, in a sentence after the answer, where a study looks for some; nothing if it still looks.

    >>> found(["a", "b"], done=False), found([], done=True), found([], done=False)
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
    """What is known about one arm; ``outside``: a reward lay outside the bounds.

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


def origin(earlier: int, told: int, since: str | None, others: int = 0, *, what: str = "rewards") -> str | None:
    """How many rewards are from earlier runs or other agents, in a sentence; None: none is.

    Those that were there before cannot be told apart: other agents may have just written them.

    >>> origin(50, 70, "2026-11-17T02:41:12Z")
    '50 of these 70 rewards are from earlier runs or other agents, since 2026-11-17 02:41:12 UTC.'
    """
    count = earlier + others
    if not count:
        return None
    many = f"{count:,} of these {told:,} {what} are" if count < told else f"All {what} are"
    return f"{many} from {f'earlier runs or other agents, since {plain_time(since)}' if earlier else 'other agents'}."


def plain_time(moment: str | None) -> str:
    """A time for people.

    >>> plain_time("2026-11-17T02:41:12Z")
    '2026-11-17 02:41:12 UTC'
    """
    return "an unknown time" if moment is None else f"{moment.replace('T', ' ').removesuffix('Z')} UTC"


# What may be relied on, in a sentence with its assumptions, and what else a reader must know.

SIDE = "a label only says on which side of the bar the {} is"


class Words(NamedTuple):
    """What the readers of a guarantee call things."""

    arms: str = "arms"
    rewards: str = "an arm's rewards"


USUAL = Words()


def guarantee(ledger: State, words: Words = USUAL) -> str:
    """What may be relied on, in one sentence with its assumptions."""
    spec = ledger.spec
    if spec.confidence is None:
        lacking = "a confidence" if spec.limits else "bounds, which certificates need"
        return f"Nothing is certified: the study was created without {lacking}; {SIDE.format('mean')}."
    assumed = _assumed(ledger, words.rewards)
    if isinstance(spec.failure, float):
        assumed += f", a failed evaluation counting as {number(spec.failure, exact=True)}"
    if spec.failure == "ignore":
        assumed += ", and whether a pull is lost does not depend on its reward"
    caveats = _caveats(ledger)
    settled = ledger.certified
    risk = percent(round(1 - spec.confidence, 12), exact=True)
    if ledger.cases:
        size = ledger.cases.count
        which = "this one case" if size == 1 else f"these {size:,} cases"
        what = "mean over exactly" if spec.baseline is None else "difference from the baseline on exactly"
        caveats = f" The labels are about the {what} {which}.{caveats}"
    share = f"{risk} are wrong on average"
    if settled == 0:
        rest = f"at most {risk} of studies contain a wrong one"
        if spec.guarantee == "rate":
            rest = f"at most {share}, in each list"
        once = f"Once labels are certified, {rest}, provided that {assumed}."
        if ledger.base in ledger.outside:
            return f"Nothing is certified: a reward of the baseline lay outside the bounds.{caveats}"
        return f"Nothing is certified yet: {SIDE.format(look_of(spec).asks)}. {once}{caveats}"
    if spec.guarantee == "rate":
        close = " or close" if spec.tolerance else ""
        one, two = ("below", "above") if spec.lower_is_better else ("above", "below")
        lists = f"Of the {words.arms} certified {one}, at most {share}, and likewise of those certified {two}{close}"
        return f"{lists}, whenever you stop, provided that {assumed}.{caveats}"
    count = {1: "the certified label is", 2: "both certified labels are"}.get(settled)
    labels = f"{count or f'all {settled:,} certified labels are'} right"
    sure = number(spec.confidence, exact=True)
    return f"With probability at least {sure} {labels}, whenever you stop, provided that {assumed}.{caveats}"


def _assumed(ledger: State, rewards: str) -> str:
    """What the certificates rest on."""
    spec = ledger.spec
    within = ""
    if spec.bounds is not None:
        low, high = spec.bounds
        between = f"between {number(low, exact=True)} and {number(high, exact=True)}"
        within = f"counted as the nearest number {between}" if spec.clip else between
    if ledger.cases:
        rest = f" and is {within}" if within else ""
        return f"a case's reward does not depend on when or how often it is tried{rest}"
    if spec.pairs:
        rest = f" and rewards are {within}" if within else ""
        return f"the pairs of an arm are independent and identically distributed{rest}"
    if not within:
        return f"{rewards} are independent and identically distributed"
    return f"{rewards} are independent, identically distributed and {within}"


def named(ledger: State, arms: list[int]) -> str:
    """The first few arms by name, and how many more there are."""
    return listed([ledger.spec.arms[arm] for arm in arms], show=shown)


def _caveats(ledger: State) -> str:
    """What else a reader of the guarantee must know, each in a sentence."""
    found = []
    if ledger.repeatable:
        found.append(
            "Some evaluations were, or may have been, repeated: what is certified is the mean of what the evaluator"
            " finally returns."
        )
    if (again := retried.count(ledger)) or ledger.spec.tries > 1:
        found.append(_of_retried(ledger, again))
    if ledger.hosted:
        found.append("It also assumes that the host which chose the order of the cases had shuffled them.")
    if ledger.outside:
        names = named(ledger, sorted(ledger.outside))
        found.append(f"Not certified, because a reward lay outside the bounds: {names}.")
    if len(ledger.evaluators) > 1:
        commands = "; ".join(shown(text, 200) for text in ledger.evaluators[:MOST_NAMED])
        accepted = f"{len(ledger.evaluators)} evaluators that were accepted as equivalent"
        found.append(f"The rewards were measured by {accepted}: {commands}.")
    if ledger.vouched:
        them = "this makes" if len(ledger.vouched) == 1 else "these changes make"
        names = listed(ledger.vouched, show=shown)
        found.append(f"After rewards were measured, {names} changed; somebody vouched that {them} no difference.")
    if ledger.imported:
        they, were = ("it", "was") if ledger.imported == 1 else ("they", "were")
        unknown = f"when, by what and how often {they} {were} evaluated"
        found.append(f"{plural(ledger.imported, 'pull')} {were} imported; this log does not record {unknown}.")
    lacking = [arm for arm in range(len(ledger.spec.arms)) if ledger.cases and ledger.cases.missing[arm]]
    if ledger.cases and lacking:
        count = sum(ledger.cases.missing[arm] for arm in lacking)
        tried = f"{plural(count, 'case')} of {named(ledger, lacking)} failed for good"
        they = "it has no reward, and counts" if count == 1 else "they have no reward, and count"
        found.append(f"{tried}: {they} as the worst.")
    if ledger.lacking:
        them = "which counts" if ledger.lacking == 1 else "which count"
        found.append(
            f"The baseline has no reward for {plural(ledger.lacking, 'case')}, {them} as the worst for every arm."
        )
    if ledger.unweighed:
        found.append("Imported results are weighed all together when the first pull is asked for.")
    return "".join(f" {sentence}" for sentence in found)


def _of_retried(ledger: State, count: int) -> str:
    """How many rewards came after a failed try, and whether the labels depend on them."""
    if not count:
        return "No reward came after a failed try."
    came = f"{plural(count, 'reward')} came after a failed try: the labels are about what the evaluator finally returns"
    if not ledger.certified:
        return f"{came}."
    weak = retried.shaken(ledger)
    its, at = ("it", "its") if count == 1 else ("these", "their")
    if not weak:
        return f"{came}. Every certified label stands also with {its} at {at} worst."
    would = "label would not stand" if len(weak) == 1 else "labels would not stand"
    return f"{came}. With {its} at {at} worst, the {would} of {named(ledger, weak)}."


# Hints: what would help a finished study that still has open arms.

MOST_REPLAYED = 50_000  # rewards that a hint may replay
IS_OUTSIDE = "returned a reward outside the bounds"
NEW_STUDY = "a new study needs the bounds that rewards can really take"
WIDEST = 0.5  # the widest tolerance that a hint proposes, as a share of the way from the bar to the nearer bound


def hints(ledger: State) -> tuple[str, ...]:
    """What would help a finished study with open arms, in a sentence each; every hint names its arms."""
    if not ledger.certifies or not ledger.done:
        return ()
    arms = range(len(ledger.spec.arms))
    over = {*ledger.retired, *ledger.outside, ledger.base}  # no pull can help them
    left = [arm for arm in arms if ledger.docket.settled[arm] == OPEN and arm not in over]
    if ledger.base in ledger.retired and (ledger.awaits or ledger.base in ledger.outside):
        name = named(ledger, [ledger.base])
        return (f"The baseline {name} is retired, and no arm can be compared: find out why it fails.",)
    if ledger.base in ledger.outside:
        name = named(ledger, [ledger.base])
        return (f"The baseline {name} {IS_OUTSIDE}, so no arm can be certified in this study: {NEW_STUDY}.",)
    if ledger.spec.find is not None and ledger.found >= ledger.spec.find:
        return ()
    lacking = [arm for arm in arms if _lacks_cases(ledger, arm)]
    stuck = [arm for arm in left if not ledger.cases and _is_stuck(ledger, arm)]
    slow = [arm for arm in left if arm not in stuck and not is_used_up(ledger.sheet, arm)]
    found = []
    if lacking:
        why = "without the cases that failed"
        worst = ledger.spec.worst
        counts = "=" if worst is None else f"={number(worst, exact=True)}"
        counts += " says what a failure counts as" if worst is None else f" counts a failure as {counts[1:]}"
        remedy = f"in a new study, failure{counts}; or repair what fails"
        found.append(f"{named(ledger, lacking)} cannot be settled {why}: {remedy}.")
    if stuck:
        them = "it" if len(stuck) == 1 else "them"
        why = f"are lost that no number of pulls would settle {them}"
        found.append(f"So many pulls of {named(ledger, stuck)} {why}: find out why pulls are lost.")
    if ledger.outside:
        names = named(ledger, sorted(ledger.outside))
        found.append(f"{names} {IS_OUTSIDE}, and can never be certified in this study: {NEW_STUDY}.")
    if slow:
        found.append(_hint_of_tolerance(ledger, slow) or _hint_of_budget(ledger, slow))
    return tuple(found)


def _lacks_cases(ledger: State, arm: int) -> bool:
    """Whether the arm stays open for cases that failed: no others are left, or it was retired for them."""
    is_open = ledger.docket.settled[arm] == OPEN and arm not in ledger.outside and arm != ledger.base
    if ledger.cases is None or not ledger.cases.missing[arm] or not is_open:
        return False
    limit = ledger.spec.max_failures
    failed = limit is not None and ledger.streak[arm] >= limit
    return failed if arm in ledger.retired else is_used_up(ledger.sheet, arm)


def _hint_of_tolerance(ledger: State, left: list[int]) -> str | None:
    """The smallest tolerance that would have settled these arms; None: only one that is too wide to be of use."""
    docket, spec, bar = ledger.docket, ledger.spec, ledger.stakes.bar
    counts = [docket.committed[arm] for arm in left]
    if sum(counts) > MOST_REPLAYED or not all(counts):
        return None
    low, high = spec.span
    farthest = max(abs(ledger.board.mean[arm] - bar) for arm in left)
    least, most = max(farthest, ledger.stakes.tolerance), WIDEST * min(bar, 1.0 - bar)
    for tolerance in (digit * 10.0**power for power in (-4, -3, -2) for digit in (1, 2, 5, 10)):
        if least < tolerance <= most and all(_is_close(ledger, arm, tolerance) for arm in left):
            share = sum(ledger.asked[arm] for arm in left) / ledger.issued
            text = amount(tolerance * (high - low), None if spec.share is not None else spec.unit)
            where = f"within ±{text} of the bar and took {percent(round(share, 2))} of the pulls"
            lie = f"{named(ledger, left)} {'lies' if len(left) == 1 else 'lie'} {where}"
            return f"{lie}; a tolerance of {text} would have settled {'it' if len(left) == 1 else 'them'}."
    return None


def _hint_of_budget(ledger: State, left: list[int]) -> str:
    is_open, them = ("is", "it") if len(left) == 1 else ("are", "them")
    return f"{named(ledger, left)} {is_open} still open; a larger budget would continue with {them}."


def _is_close(ledger: State, arm: int, tolerance: float) -> bool:
    """Whether the arm's committed rewards would have settled it with that (scaled) tolerance."""
    stakes = ledger.stakes._replace(tolerance=tolerance, alone=ledger.stakes.level)
    capital = certificate.fresh(stakes)
    for pull, low, high, low_bar, high_bar, scale in committed(ledger, arm):
        label = certificate.bet(capital, stakes, low, high, low_bar, high_bar, tolerance * scale)
        if label != OPEN and pull > ledger.imported:  # imported rewards are weighed once, after the last
            return True
    return False


def _is_stuck(ledger: State, arm: int) -> bool:
    """Whether the arm can never be settled if it keeps losing as large a share of its pulls.

    Lost pulls count as 0 to "above" and as 1 to "below", so with share c lost and told mean m the two capitals see
    means of (1 − c) m and c + (1 − c) m.
    """
    docket, bar, tolerance = ledger.docket, ledger.stakes.bar, ledger.stakes.tolerance
    charged, seen = docket.charged[arm], ledger.board.seen[arm]
    if not charged or not docket.committed[arm]:
        return False
    share = charged / (charged + docket.committed[arm])
    mean = (ledger.board.total[arm] + ledger.board.residue[arm]) / seen
    low = (1.0 - share) * ledger.spec.scale(mean)
    high = share + low
    near = low > bar - tolerance or bar - tolerance <= 0.0
    if tolerance > 0.0 and near and (high < bar + tolerance or bar + tolerance >= 1.0):
        return False  # it can still be close
    return low <= bar <= high
