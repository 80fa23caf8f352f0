"""What people read about an arm, a log, times and durations."""

from .row import Row

# for people who see no colours
SIGNS = {"above": "▲", "below": "▼", "close": "≈", "undecided": "·", "retired": "✕", "baseline": "="}


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
        known = "certified"
    elif outside:
        known = "not certified, because a reward lay outside the bounds"
    elif row.progress is None:
        known = "not certified"
    else:
        known = f"{100 * row.progress:.0f} % of the evidence that would settle it"
    return f"{SIGNS[row.label]} {row.label}, {known}.{failure}"


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
