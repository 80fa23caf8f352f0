"""How sure a verdict is, in words and numbers for people. Nothing here decides anything."""

from ..errors import shown
from . import evidence
from .evidence import BETS, OPEN
from .intervals import Interval, committed, way
from .ledger import Ledger

LABELS = {evidence.ABOVE: "above", evidence.BELOW: "below", evidence.CLOSE: "close"}
MOST_REPLAYED = 50_000  # rewards that a hint may look at again
MOST_NAMED = 5  # arms that a sentence names


def settled_label(ledger: Ledger, arm: int) -> str | None:
    """The label that is certain; None: not yet."""
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
    bottom, top = spec.bounds or (0.0, 1.0)
    found = ledger.intervals.get(arm)
    if found is None:
        found = ledger.intervals[arm] = Interval(1.0 / ledger.stakes.level)
    low, high = (bottom + end * (top - bottom) for end in found.follow(ledger, arm))
    if label == "above":
        return max(low, spec.threshold), max(high, spec.threshold)
    if label == "below":
        return min(low, spec.threshold), min(high, spec.threshold)
    if label == "close":
        near, far = spec.threshold - spec.tolerance, spec.threshold + spec.tolerance
        return min(max(low, near), far), max(min(high, far), near)
    if mean is not None:
        low, high = min(low, mean), max(high, mean)
    return max(low, bottom), min(high, top)


def progress(ledger: Ledger, arm: int) -> float | None:
    """The evidence as a share of the way to certainty: the logarithm of the capital against that of the level."""
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
        return "Nothing is certified: the study was created without a confidence; labels are the side of the mean."
    low, high = spec.bounds or (0.0, 1.0)
    within = f"counted as the nearest number within ({low:g}, {high:g})" if spec.clip else f"within ({low:g}, {high:g})"
    assumed = f"an arm's rewards are independent, identically distributed and {within}"
    if isinstance(spec.failure, float):
        assumed += f", a failed evaluation counting as {spec.failure:g}"
    if spec.failure == "ignore":
        assumed += ", and pulls are lost whatever their reward"
    caveats = _caveats(ledger)
    settled = ledger.certified
    if settled == 0:
        rest = f"provided that {assumed}, one is wrong in at most {1 - spec.confidence:.2g} of studies"
        return f"Nothing is certified yet: labels are the side of the mean. Once they are certified, {rest}.{caveats}"
    count = {1: "the certified label is", 2: "both certified labels are"}.get(settled)
    labels = f"{count or f'all {settled:,} certified labels are'} right"
    return (
        f"With probability at least {spec.confidence:g} {labels}, whenever you stop, provided that {assumed}.{caveats}"
    )


def _caveats(ledger: Ledger) -> str:
    """What else a reader of the guarantee must know, each in a sentence."""
    found = []
    if ledger.repeatable:
        found.append(
            "Some evaluations were repeated: what is certified is the mean of what the evaluator finally returns."
        )
    if ledger.outside:
        names = [shown(ledger.spec.arms[arm]) for arm in sorted(ledger.outside)]
        rest = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
        who = f"{', '.join(names[:MOST_NAMED])}{rest}"
        found.append(f"Not certified, because a reward lay outside the bounds: {who}.")
    if len(ledger.evaluators) > 1:
        commands = "; ".join(shown(text, 200) for text in ledger.evaluators[:MOST_NAMED])
        found.append(
            f"{len(ledger.evaluators)} evaluators that were accepted as the same measured the rewards: {commands}."
        )
    if ledger.imported:
        found.append(f"{ledger.imported:,} pulls were imported, and are as old as where they come from.")
    if ledger.unweighed:
        found.append("Imported results are weighed all together when the first pull is asked for.")
    return "".join(f" {sentence}" for sentence in found)


def hints(ledger: Ledger) -> tuple[str, ...]:
    """What would help a study that is over and has arms open."""
    if not ledger.certifies or not ledger.done:
        return ()
    arms = range(len(ledger.spec.arms))
    left = [arm for arm in arms if ledger.docket.settled[arm] == OPEN and arm not in ledger.retired]
    found = [_hint_of_tolerance(ledger, left), _hint_of_losses(ledger, left)]
    return tuple(hint for hint in found if hint)


def _hint_of_tolerance(ledger: Ledger, left: list[int]) -> str | None:
    docket, spec = ledger.docket, ledger.spec
    if (
        not left
        or sum(docket.committed[arm] for arm in left) > MOST_REPLAYED
        or not all(docket.committed[arm] for arm in left)
    ):
        return None
    low, high = spec.bounds or (0.0, 1.0)
    widest = max(abs(ledger.board.mean[arm] - ledger.stakes.threshold) for arm in left)
    for tolerance in (digit * 10.0**power for power in (-4, -3, -2) for digit in (1, 2, 5, 10)):
        if tolerance > max(widest, ledger.stakes.tolerance) and all(_is_close(ledger, arm, tolerance) for arm in left):
            share = sum(ledger.asked[arm] for arm in left) / ledger.issued
            who = "1 arm lies" if len(left) == 1 else f"{len(left):,} arms lie"
            text = f"{tolerance * (high - low):.4g}"
            where = f"{who} within ±{text} of the bar and took {share:.0%} of the pulls"
            return f"{where}; a tolerance of {text} would have ended this study"
    return None


def _is_close(ledger: Ledger, arm: int, tolerance: float) -> bool:
    """Whether the arm's committed rewards would have settled it with that (scaled) tolerance."""
    stakes = ledger.stakes._replace(tolerance=tolerance)
    capital = evidence.fresh(stakes)
    for pull, low, high in committed(ledger, arm):
        label = evidence.commit(capital, stakes, low, high)
        if label != OPEN and pull > ledger.imported:  # imported ones are looked at once, after the last
            return True
    return False


def _hint_of_losses(ledger: Ledger, left: list[int]) -> str | None:
    stuck = [arm for arm in left if _is_stuck(ledger, arm)]
    if not stuck:
        return None
    names = ", ".join(shown(ledger.spec.arms[arm]) for arm in stuck[:MOST_NAMED])
    more = f" and {len(stuck) - MOST_NAMED:,} more" if len(stuck) > MOST_NAMED else ""
    return f"too many pulls of {names}{more} were lost to settle them at this rate of losses, however many are made"


def _is_stuck(ledger: Ledger, arm: int) -> bool:
    """Whether the arm can never be settled if it goes on losing as large a share of its pulls.

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
