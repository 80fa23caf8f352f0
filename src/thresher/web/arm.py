"""One arm: its rewards, and how its evidence grew."""

from collections.abc import Callable, Iterator
from typing import Any

from ..core import evidence, sentences, wording
from ..core.events import DROPPED, LATE, PENDING, STATES
from ..core.evidence import BETS, Stakes
from ..core.intervals import Commit, Side, committed, way
from ..core.ledger import Ledger
from ..core.row import row_of
from .shapes import short
from .watched import Live

MOST_REWARDS = 2000  # the last ones are sent
MOST_REPLAYED = 20_000  # commits whose evidence is computed again
MOST_POINTS = 400


def arm_json(live: Live, name: str) -> dict[str, Any]:
    """What the arm's page shows. The replay runs outside the lock."""
    data, commits, stakes, risk, unscale = live.read(lambda ledger: _copied(ledger, ledger.spec.arm(name)))
    points = list(_replayed(commits, stakes, risk, unscale))
    data["evidence"] = points[: -1 : max(1, len(points) // MOST_POINTS)] + points[-1:]
    return data


def _copied(ledger: Ledger, arm: int) -> tuple[dict[str, Any], list[Commit], Stakes, float, Callable[[float], float]]:
    spec = ledger.spec
    row = row_of(ledger, arm)
    pulls = list(_pulls(ledger, arm))
    rewards = [
        {
            "pull": pull,
            "number": ledger.pull_number[pull - 1],
            "state": STATES[ledger.pull_state[pull - 1]],
            "reward": None if ledger.pull_state[pull - 1] in (PENDING, DROPPED) else ledger.pull_reward[pull - 1],
            **_case(ledger, pull),
        }
        for pull in pulls[-MOST_REWARDS:]
    ]
    commits = committed(ledger, arm)[:MOST_REPLAYED] if ledger.certifies else []
    commits = [commit._replace(pull=ledger.pull_number[commit.pull - 1]) for commit in commits]
    data = {
        "format": 1,
        "seq": ledger.seq,
        "index": arm,
        "question": wording.question_of(spec),
        "answer": sentences.standing(
            row.label, row.certified, row.progress, row.reason, outside=ledger.is_outside(arm)
        ),
        "threshold": spec.threshold,
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
    return data, commits, ledger.stakes, 1.0 / ledger.stakes.level if ledger.certifies else 1.0, spec.unscale


def _case(ledger: Ledger, pull: int) -> dict[str, Any]:
    case = ledger.case_of(pull)
    return {} if case is None else {"case": ledger.spec.case_name(case)}


def _pulls(ledger: Ledger, arm: int) -> Iterator[int]:
    """The arm's pulls in order; with certificates they form a linked list, in which a case is once."""
    if not ledger.certifies or ledger.cases:
        yield from (pull for pull, of in enumerate(ledger.pull_arm, start=1) if of == arm)
        return
    pull = ledger.first_pull[arm]
    while pull:
        yield pull
        pull = ledger.docket.following[pull]


def _replayed(
    commits: list[Commit], stakes: Stakes, risk: float, unscale: Callable[[float], float]
) -> Iterator[dict[str, Any]]:
    """After each commit: the evidence for either side, as a share of what settles the arm, and the interval."""
    if not commits:
        return
    capital = evidence.fresh(stakes)
    low, high = Side(risk, +1), Side(risk, -1)
    for commit in commits:
        bars = (commit.low_bar, commit.high_bar, stakes.tolerance * commit.scale)
        evidence.bet(capital, stakes, commit.low, commit.high, *bars)
        low.feed(commit.low, commit.scale, commit.scale * stakes.threshold - commit.low_bar)
        high.feed(commit.high, commit.scale, commit.scale * stakes.threshold - commit.high_bar)
        yield {
            "number": commit.pull,
            "above": short(way(capital, 0, stakes.level)),
            "below": short(way(capital, BETS, stakes.level)),
            "low": short(unscale(low.end)),
            "high": short(unscale(high.end)),
        }
