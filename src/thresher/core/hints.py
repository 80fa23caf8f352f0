"""Hints: what would help a finished study that still has open arms."""

from ..text.phrasing import plural
from ..text.quantities import amount, percent
from . import evidence
from .evidence import OPEN
from .guarantees import named
from .intervals import committed
from .ledger import Ledger
from .places import is_used_up

MOST_REPLAYED = 50_000  # rewards that a hint may replay
IS_OUTSIDE = "returned a reward outside the bounds"
NEW_STUDY = "a new study needs the bounds that rewards can really take"
WIDEST = 0.5  # the widest tolerance that a hint proposes, as a share of the way from the bar to the nearer bound


def hints(ledger: Ledger) -> tuple[str, ...]:
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
    lacking = [arm for arm in left if ledger.cases and ledger.cases.missing[arm] and is_used_up(ledger.sheet, arm)]
    stuck = [arm for arm in left if not ledger.cases and _is_stuck(ledger, arm)]
    slow = [arm for arm in left if arm not in stuck and not is_used_up(ledger.sheet, arm)]
    found = []
    if lacking:
        why = f"without the cases that failed {plural(ledger.spec.tries, 'time')}"
        remedy = "repair what fails, and import the other results into a new study"
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


def _hint_of_tolerance(ledger: Ledger, left: list[int]) -> str | None:
    """The smallest tolerance that would have settled these arms; None: only one that is too wide to be of use."""
    docket, spec, bar = ledger.docket, ledger.spec, ledger.stakes.threshold
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


def _hint_of_budget(ledger: Ledger, left: list[int]) -> str:
    is_open, them = ("is", "it") if len(left) == 1 else ("are", "them")
    return f"{named(ledger, left)} {is_open} still open; a larger budget would continue with {them}."


def _is_close(ledger: Ledger, arm: int, tolerance: float) -> bool:
    """Whether the arm's committed rewards would have settled it with that (scaled) tolerance."""
    stakes = ledger.stakes._replace(tolerance=tolerance, alone=ledger.stakes.level)
    capital = evidence.fresh(stakes)
    for pull, low, high, low_bar, high_bar, scale in committed(ledger, arm):
        label = evidence.bet(capital, stakes, low, high, low_bar, high_bar, tolerance * scale)
        if label != OPEN and pull > ledger.imported:  # imported rewards are weighed once, after the last
            return True
    return False


def _is_stuck(ledger: Ledger, arm: int) -> bool:
    """Whether the arm can never be settled if it keeps losing as large a share of its pulls.

    Lost pulls count as 0 to "above" and as 1 to "below", so with share c lost and told mean m the two capitals see
    means of (1 − c) m and c + (1 − c) m.
    """
    docket, bar, tolerance = ledger.docket, ledger.stakes.threshold, ledger.stakes.tolerance
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
