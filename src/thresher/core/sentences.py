"""What people read about an arm and a log: where it stands, where its mean lies, durations. Nothing here decides."""

from typing import Literal

from . import evidence
from .evidence import ABOVE, BELOW, BETS, CLOSE, OPEN
from .intervals import Interval, way
from .ledger import Ledger
from .spec import Spec

Settled = Literal["above", "below", "close"]
LABELS: dict[int, Settled] = {evidence.ABOVE: "above", evidence.BELOW: "below", evidence.CLOSE: "close"}
SIGNS = {
    "above": "▲",
    "below": "▼",
    "close": "≈",
    "undecided": "·",
    "retired": "✕",
    "baseline": "=",
}  # for those who see no colours


def standing(label: str, certified: bool, progress: float | None, reason: str | None, *, outside: bool) -> str:
    """What is known about one arm.

    >>> standing("above", False, 0.4, "it timed out", outside=False)
    '▲ above, 40 % of the evidence that would settle it. Last failure: it timed out'
    """
    if label == "baseline":
        return f"{SIGNS[label]} the baseline, which the other arms are compared with.{_failure(reason)}"
    if label == "retired" and not outside:
        return f"{SIGNS[label]} {label}{f': {reason}' if reason else '.'}"
    if certified:
        known = "certified"
    elif outside:
        known = "not certified, because a reward lay outside the bounds"
    else:
        known = "not certified" if progress is None else f"{100 * progress:.0f} % of the evidence that would settle it"
    return f"{SIGNS[label]} {label}, {known}.{_failure(reason)}"


def _failure(reason: str | None) -> str:
    return f" Last failure: {reason}" if reason else ""


def origin(earlier: int, told: int, since: str | None, others: int = 0, *, what: str = "rewards") -> str | None:
    """Which rewards are from earlier runs or other agents, in a sentence each; None: all are new and ours.

    >>> origin(50, 70, "2026-11-17T02:41:12Z")
    '50 of these 70 rewards are from earlier runs, since 2026-11-17 02:41:12 UTC.'
    """
    theirs = f"{others:,} of these {told:,} {what} are from other agents." if others else ""
    if not earlier:
        return theirs or None
    many = f"{earlier:,} of these {told:,} {what} are" if earlier < told else f"All {what} are"
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


def settled_label(ledger: Ledger, arm: int) -> Settled | None:
    """The settled label; None: not settled."""
    return LABELS.get(side(ledger.spec, ledger.docket.settled[arm])) if ledger.certifies else None


def side(spec: Spec, label: int) -> int:
    """A label as people see it: where lower is better, an arm that reaches the bar lies below it."""
    if not spec.lower_is_better or label not in (ABOVE, BELOW):
        return label
    return BELOW if label == ABOVE else ABOVE


def interval(ledger: Ledger, arm: int, mean: float | None) -> tuple[float, float] | None:
    """Where what is asked about lies, in the user's units: together with all other arms' at the study's confidence.

    ``mean`` is that of what counts. Clipped at the bar once the arm is settled and stretched to the mean while it is
    not, so that it never contradicts the label. As clipped, labels and intervals are right together with probability
    1 − 2 · risk, for either may be wrong. None without certificates, for the baseline, and for an arm that proved the
    bounds wrong.
    """
    if not ledger.certifies or arm == ledger.base or ledger.is_outside(arm):
        return None
    low, high = sorted(map(ledger.spec.shown, _counted_interval(ledger, arm, mean)))
    return low, high


def _counted_interval(ledger: Ledger, arm: int, mean: float | None) -> tuple[float, float]:
    """The same on the scale of what counts."""
    spec, label, bar = ledger.spec, ledger.docket.settled[arm], ledger.spec.bar
    found = ledger.intervals.get(arm)
    if found is None:
        found = ledger.intervals[arm] = Interval(1.0 / ledger.stakes.level)
    low, high = map(spec.unscale, found.follow(ledger, arm))
    least, most = _by_count(ledger, arm)
    low, high = max(low, least), min(high, most)
    if low > high or ledger.is_exact(arm):
        return least, most
    if label == ABOVE:
        return max(low, bar), max(high, bar)
    if label == BELOW:
        return min(low, bar), min(high, bar)
    if label == CLOSE:
        near, far = bar - spec.tolerance, bar + spec.tolerance
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
    if not ledger.certifies or arm == ledger.base or ledger.is_outside(arm):
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
