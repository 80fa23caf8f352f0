"""What people read: question, answer, how sure it is, numbers and durations. Nothing here decides anything."""

from collections.abc import Mapping
from typing import Any, Literal

from ..errors import shown
from ..text.plural import MOST_NAMED, listed, plural
from . import evidence
from .evidence import BETS, OPEN
from .intervals import Interval, way
from .ledger import Ledger
from .spec import Spec

Settled = Literal["above", "below", "close"]
LABELS: dict[int, Settled] = {evidence.ABOVE: "above", evidence.BELOW: "below", evidence.CLOSE: "close"}
SIGNS = {"above": "▲", "below": "▼", "close": "≈", "undecided": "·", "retired": "✕"}  # for those who see no colours


def question(arms: int, threshold: float, cases: int | None = None, find: int | None = None) -> str:
    """What a study asks.

    >>> question(3, 0.9), question(1, 0.9)
    ('Which of 3 arms reach 0.9?', 'Does the arm reach 0.9?')
    >>> question(40, 0.9, 500), question(40, 0.9, None, 2)
    ('Which of 40 arms reach 0.9 on 500 cases?', 'Which 2 of 40 arms reach 0.9?')
    """
    on = f" on {plural(cases, 'case')}" if cases else ""
    if arms == 1:
        return f"Does the arm reach {threshold:g}{on}?"
    return f"Which {f'{find:,} ' if find else ''}of {arms:,} arms reach {threshold:g}{on}?"


def question_of(spec: Spec) -> str:
    """What a study of this specification asks."""
    return question(len(spec.arms), spec.threshold, spec.case_count or None, spec.find)


def answer(
    counts: Mapping[Any, int], certified: Mapping[Any, int] | None, *, issued: int, budget: int | None, pending: int
) -> str:
    """How many arms have which label, how many labels are certified (None: the study certifies none), after how much.

    >>> answer({"above": 2, "below": 0, "close": 1}, {"above": 1, "below": 0}, issued=30, budget=90, pending=3)
    '2 above (1 certified), 0 below (0 certified), 1 close, after 30 of 90 pulls, 3 pending.'
    """
    parts = []
    for label, count in counts.items():
        if count or label in ("above", "below"):
            known = certified is not None and label in ("above", "below")
            parts.append(f"{count:,} {label}{f' ({certified[label]:,} certified)' if certified and known else ''}")
    waiting = f", {pending:,} pending" if pending else ""
    return f"{', '.join(parts)}, after {pulls_made(issued, budget)}{waiting}."


def pulls_made(issued: int, budget: int | None) -> str:
    """How many pulls were issued, and of how many.

    >>> pulls_made(30, 90), pulls_made(1, None)
    ('30 of 90 pulls', '1 pull')
    """
    return plural(issued, "pull") if budget is None else f"{issued:,} of {plural(budget, 'pull')}"


def standing(label: str, certified: bool, progress: float | None, reason: str | None, *, outside: bool) -> str:
    """What is known about one arm.

    >>> standing("above", False, 0.4, "it timed out", outside=False)
    '▲ above, 40 % of the evidence that would settle it. Last failure: it timed out'
    """
    if label == "retired" and not outside:
        return f"{SIGNS[label]} {label}{f': {reason}' if reason else '.'}"
    if certified:
        known = "certified"
    elif outside:
        known = "not certified, because a reward lay outside the bounds"
    else:
        known = "not certified" if progress is None else f"{100 * progress:.0f} % of the evidence that would settle it"
    return f"{SIGNS[label]} {label}, {known}.{f' Last failure: {reason}' if reason else ''}"


def origin(earlier: int, told: int, since: str | None, others: int = 0) -> str | None:
    """Which rewards are from earlier runs or other agents, in a sentence each; None: all are new and ours.

    >>> origin(50, 70, "2026-11-17T02:41:12Z")
    '50 of these 70 rewards are from earlier runs, since 2026-11-17 02:41:12 UTC.'
    """
    theirs = f"{others:,} of these {told:,} rewards are from other agents." if others else ""
    if not earlier:
        return theirs or None
    many = f"{earlier:,} of these {told:,} rewards are" if earlier < told else "All rewards are"
    return f"{many} from earlier runs, since {plain_time(since)}. {theirs}".rstrip()


def plain_time(moment: str | None) -> str:
    """A time for people.

    >>> plain_time("2026-11-17T02:41:12Z")
    '2026-11-17 02:41:12 UTC'
    """
    return "an unknown time" if moment is None else f"{moment.replace('T', ' ').removesuffix('Z')} UTC"


def head(events: int, digest: str | None) -> str:
    """Where a log ends: two people who see the same line have the same log.

    >>> head(6001, "3f2a")
    'Head of the log: event 6,001, 3f2a'
    """
    return f"Head of the log: event {events:,}{f', {digest}' if digest else ''}"


def duration(seconds: float | None) -> str:
    """A length of time, to two units.

    >>> duration(0.42), duration(75), duration(7300), duration(None)
    ('0.4 s', '1 min 15 s', '2 h 1 min', '?')
    """
    if seconds is None:
        return "?"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, days = minutes // 60, minutes // 1440
    if days:
        return f"{days} d {hours % 24} h"
    if hours:
        return f"{hours} h {minutes % 60} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def speed(rate: float) -> str:
    """A rate per second, or in the unit that makes it a number one can picture.

    >>> speed(1234.5), speed(2.345), speed(0.05)
    ('1,234 a second', '2.3 a second', '3 a minute')
    """
    for unit, seconds in (("second", 1), ("minute", 60), ("hour", 3600)):
        count = rate * seconds
        if count >= 1 or unit == "hour":
            break
    return f"{count:,.0f} a {unit}" if count >= 10 else f"{count:.2g} a {unit}"


def number(value: float | None) -> str:
    """A mean, to four digits."""
    return "–" if value is None else f"{value:.4g}"


def span(low: float | None, high: float | None) -> str:
    """An interval.

    >>> span(0.25, 0.75), span(None, None)
    ('0.25 – 0.75', '')
    """
    return "" if low is None or high is None else f"{number(low)} – {number(high)}"


def settled_label(ledger: Ledger, arm: int) -> Settled | None:
    """The settled label; None: not settled."""
    return LABELS.get(ledger.docket.settled[arm]) if ledger.certifies else None


def interval(ledger: Ledger, arm: int, mean: float | None) -> tuple[float, float] | None:
    """Where the arm's mean lies, in the user's units: together with all other arms' at the study's confidence.

    Clipped at the bar once the arm is settled and stretched to the mean while it is not, so that it never contradicts
    the label. As clipped, labels and intervals are right together with probability 1 − 2 · risk, for either may be
    wrong. None without certificates, and for an arm that proved the bounds wrong.
    """
    if not ledger.certifies or arm in ledger.outside:
        return None
    spec, label = ledger.spec, settled_label(ledger, arm)
    found = ledger.intervals.get(arm)
    if found is None:
        found = ledger.intervals[arm] = Interval(1.0 / ledger.stakes.level)
    low, high = map(spec.unscale, found.follow(ledger, arm))
    least, most = _by_count(ledger, arm)
    low, high = max(low, least), min(high, most)
    if low > high or ledger.is_exact(arm):
        return least, most
    if label == "above":
        return max(low, spec.threshold), max(high, spec.threshold)
    if label == "below":
        return min(low, spec.threshold), min(high, spec.threshold)
    if label == "close":
        near, far = spec.threshold - spec.tolerance, spec.threshold + spec.tolerance
        return min(max(low, near), far), max(min(high, far), near)
    if mean is not None:
        low, high = min(low, mean), max(high, mean)
    return max(low, least), min(high, most)


def _by_count(ledger: Ledger, arm: int) -> tuple[float, float]:
    """Where the arm's mean lies for certain: within the bounds, and with cases, whatever the missing rewards are."""
    low, high = ledger.spec.span
    if not ledger.cases:
        return low, high
    board, cases = ledger.board, ledger.cases.count
    known, missing = board.total[arm] + board.residue[arm], cases - board.seen[arm]
    return (known + missing * low) / cases, (known + missing * high) / cases


def progress(ledger: Ledger, arm: int) -> float | None:
    """The evidence as a share of what settles the arm; None: nothing can settle it."""
    if not ledger.certifies or arm in ledger.outside:
        return None
    if ledger.docket.settled[arm] != OPEN:
        return 1.0
    capital = ledger.capitals.get(arm)
    if capital is None:
        return 0.0
    level = ledger.stakes.level
    sides = max(way(capital, 0, level), way(capital, BETS, level))
    if ledger.stakes.tolerance <= 0:
        return sides
    near = [1.0 if capital[4 * BETS + side] else way(capital, (2 + side) * BETS, level) for side in (0, 1)]
    return max(sides, min(near))


def guarantee(ledger: Ledger) -> str:
    """What may be relied on, in one sentence with its assumptions."""
    spec = ledger.spec
    if spec.confidence is None:
        lacking = "a confidence" if spec.bounds else "bounds (--bounds none), which certificates need"
        return f"Nothing is certified: the study was created without {lacking}; labels are the side of the mean."
    low, high = spec.span
    within = (
        f"counted as the nearest number between {low:g} and {high:g}" if spec.clip else f"between {low:g} and {high:g}"
    )
    assumed = f"an arm's rewards are independent, identically distributed and {within}"
    if ledger.cases:
        assumed = f"a case's reward does not depend on when or how often it is tried and is {within}"
    if isinstance(spec.failure, float):
        assumed += f", a failed evaluation counting as {spec.failure:g}"
    if spec.failure == "ignore":
        assumed += ", and pulls are lost whatever their reward"
    caveats = _caveats(ledger)
    settled = ledger.certified
    risk = f"{1 - spec.confidence:.2g}"
    if ledger.cases:
        size = ledger.cases.count
        which = "this one case" if size == 1 else f"these {size:,} cases"
        caveats = f" What is certified is the score on {which}.{caveats}"
    share = f"{100 * (1 - spec.confidence):.2g} % are wrong on average"
    if settled == 0:
        rest = f"one is wrong in at most {risk} of studies"
        if spec.guarantee == "rate":
            rest = f"at most {share}, in each list"
        once = f"Once they are certified, provided that {assumed}, {rest}."
        return f"Nothing is certified yet: labels are the side of the mean. {once}{caveats}"
    if spec.guarantee == "rate":
        close = " or close" if spec.tolerance else ""
        lists = f"Of the arms certified above, at most {share}, and likewise of those certified below{close}"
        return f"{lists}, whenever you stop, provided that {assumed}.{caveats}"
    count = {1: "the certified label is", 2: "both certified labels are"}.get(settled)
    labels = f"{count or f'all {settled:,} certified labels are'} right"
    return (
        f"With probability at least {spec.confidence:g} {labels}, whenever you stop, provided that {assumed}.{caveats}"
    )


def named(ledger: Ledger, arms: list[int]) -> str:
    """The first few arms by name, and how many more there are."""
    return listed([ledger.spec.arms[arm] for arm in arms], show=shown)


def _caveats(ledger: Ledger) -> str:
    """What else a reader of the guarantee must know, each in a sentence."""
    found = []
    if ledger.repeatable:
        found.append(
            "Some evaluations were repeated: what is certified is the mean of what the evaluator finally returns."
        )
    if ledger.outside:
        names = named(ledger, sorted(ledger.outside))
        found.append(f"Not certified, because a reward lay outside the bounds: {names}.")
    if len(ledger.evaluators) > 1:
        commands = "; ".join(shown(text, 200) for text in ledger.evaluators[:MOST_NAMED])
        found.append(
            f"{len(ledger.evaluators)} evaluators that were accepted as the same measured the rewards: {commands}."
        )
    if ledger.imported:
        were = "was" if ledger.imported == 1 else "were"
        found.append(f"{plural(ledger.imported, 'pull')} {were} imported; this log does not record how old they are.")
    lacking = [arm for arm in range(len(ledger.spec.arms)) if ledger.cases and ledger.cases.missing[arm]]
    if ledger.cases and lacking:
        count = sum(ledger.cases.missing[arm] for arm in lacking)
        tried = f"{plural(count, 'case')} of {named(ledger, lacking)} failed {plural(ledger.spec.tries, 'time')}"
        found.append(f"{tried}: {'it has' if count == 1 else 'they have'} no reward, and count as the worst.")
    if ledger.unweighed:
        found.append("Imported results are weighed all together when the first pull is asked for.")
    return "".join(f" {sentence}" for sentence in found)
