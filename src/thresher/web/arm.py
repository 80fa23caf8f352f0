"""One arm: its rewards, and how its evidence grew."""

from collections.abc import Iterator
from typing import Any

from ..core import certificate, sentences
from ..core.certificate import BETS, Stakes
from ..core.events import DROPPED, LATE, OUTSIDE, PENDING, STATES
from ..core.intervals import Commit, Interval, committed, way
from ..core.ledger import Ledger
from ..core.row_text import details, head_of
from ..core.rows import MOST, Row, row_of
from ..core.sentences import Look
from ..core.spec import Spec
from .shapes import amounts_of, asked_json, short
from .watched import Live

MOST_REWARDS = 2000  # the last ones are sent
MOST_REPLAYED = 20_000  # commits whose evidence is computed again
MOST_POINTS = 400


def arm_json(live: Live, name: str) -> dict[str, Any]:
    """What the arm's page shows. The replay runs outside the lock."""
    data, commits, stakes, spec = live.read(lambda ledger: _copied(ledger, ledger.spec.arm(name)))
    points = list(_replayed(commits, stakes, spec))
    data["evidence"] = points[: -1 : max(1, len(points) // MOST_POINTS)] + points[-1:]
    return data


def _copied(ledger: Ledger, arm: int) -> tuple[dict[str, Any], list[Commit], Stakes, Spec]:
    spec, look = ledger.spec, sentences.look_of(ledger.spec)
    row = row_of(ledger, arm)
    pulls = [pull for pull, of in enumerate(ledger.pull_arm, start=1) if of == arm]
    rewards = [_pull(ledger, arm, pull, look) for pull in pulls[-MOST_REWARDS:]]
    commits = committed(ledger, arm)[:MOST_REPLAYED] if ledger.certifies else []
    commits = [commit._replace(pull=ledger.pull_number[commit.pull - 1]) for commit in commits]
    data = {
        "format": 1,
        "seq": ledger.seq,
        "index": arm,
        "question": sentences.question_of(spec),
        "answer": sentences.standing(row, outside=ledger.is_outside(arm)),
        **asked_json(look),
        "facts": facts(row, look),
        "amounts": {} if look.ratio is not None else amounts_of(look),
        "bounds": spec.bounds,
        "tolerance": spec.tolerance,
        "confidence": spec.confidence,
        "cases": spec.case_count or None,
        "row": {field: getattr(row, field) for field in row.__dataclass_fields__},
        "params": dict(spec.params[arm]) if spec.params else {},
        "outside": ledger.is_outside(arm),
        "asked": len(pulls),
        "late": sum(ledger.pull_state[pull - 1] == LATE for pull in pulls),
        "rewards": rewards,
    }
    return data, commits, ledger.stakes, spec


def facts(row: Row, look: Look) -> list[tuple[str, str]]:
    """The numbers of an arm by what they are, as people read them."""
    if row.label == "baseline":
        return [("mean", look.amount(row.mean))]
    found = {head_of(look): look.estimate(row.estimate), "interval": look.span(row.low, row.high) or "–"}
    found["bar"] = look.estimate(look.bar, exact=True)
    if look.asks == "share" and look.baseline is None:
        found["limit"] = look.amount(look.stated_bar, exact=True)
    return [*found.items(), *((head, cells[0] or "–") for head, cells in details([row], look).items())]


def _pull(ledger: Ledger, arm: int, pull: int, look: Look) -> dict[str, Any]:
    """One pull: its reward, and as ``value`` what a picture shows against the bar or the limit."""
    spec, state, case = ledger.spec, ledger.pull_state[pull - 1], ledger.case_of(pull)
    told = ledger.pull_reward[pull - 1] if ledger.has_reward(pull) else None
    found: dict[str, Any] = {"pull": pull, "number": ledger.pull_number[pull - 1], "state": STATES[state]}
    found |= {"reward": told, "value": told, "text": look.amount(told)}
    if case is not None:
        found["case"] = spec.case_name(case)
    if ledger.base < 0 or arm == ledger.base:
        return found if spec.share is None or told is None else {**found, "within": spec.counted(told) == 1.0}
    known = None if state in (PENDING, DROPPED) else pull
    other = ledger.table.get(case) if case is not None else ledger.pull_other[known - 1] if known else None
    found |= {"baseline": other, "value": None, "baseline_text": look.amount(other)}
    if told is None or other is None or state == OUTSIDE:
        return found
    if spec.share is not None:
        found["within"] = spec.counted(told, other) == 1.0
    if spec.ratio is None:
        return {**found, "value": told - other}
    return {**found, "value": min(told / other, MOST) if other else None}


def _replayed(commits: list[Commit], stakes: Stakes, spec: Spec) -> Iterator[dict[str, Any]]:
    """After each commit: the evidence for either side, as a share of what settles the arm, and the interval.

    In people's terms: where lower is better, evidence in favour of an arm says that it lies below the bar.
    """
    if not commits:
        return
    capital = certificate.fresh(stakes)
    interval = Interval(1.0 / stakes.level)
    for commit in commits:
        bars = (commit.low_bar, commit.high_bar, stakes.tolerance * commit.scale)
        certificate.bet(capital, stakes, commit.low, commit.high, *bars)
        interval.feed(commit, stakes.bar)
        ends = sorted(spec.shown(spec.unscale(side.end)) for side in (interval.low, interval.high))
        ways = [short(way(capital, side, stakes.level)) for side in (0, BETS)]  # of reaching the bar, and of not
        above, below = reversed(ways) if spec.lower_is_better else ways
        span = {"low": short(ends[0]), "high": short(ends[1])}
        yield {"number": commit.pull, "above": above, "below": below, **span}
