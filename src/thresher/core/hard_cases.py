"""The cases of an eval set, the hardest first."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..errors import InvalidInput
from ..text.naming import Naming
from .events import LATE, TOLD
from .state import State

Key = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class CaseRow:
    """One case that has a reward; the names in JSON and CSV are the names here."""

    case: str | int
    failed: int  # arms whose reward does not reach the bar, or is worse than the baseline's
    passed: int
    mean: float  # of the arms' rewards
    rewards: dict[str, float]  # by arm; an arm that has not seen the case is left out
    failed_by: tuple[str, ...] = ()  # the arms that failed it
    missing_by: tuple[str, ...] = ()  # the arms whose evaluation of it failed for good, which have no reward of it

    def to_dict(self) -> dict[str, Any]:
        """The row as JSON-ready data."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(slots=True)
class _Count:
    failed: int = 0
    seen: int = 0
    total: float = 0.0


def hardest_cases(ledger: State, most: int | None = None) -> list[CaseRow]:
    """The cases that have a reward, or the ``most`` hardest of them.

    Cases come in the order of how many arms failed them. Where rewards are graded, the worst mean comes first.

    >>> import thresher
    >>> study = thresher.create_study("evals", arms=["terse", "cot"], cases=["easy", "hard"], at_least=0.9)
    >>> study.add_many([("terse", 1, "easy"), ("terse", 0, "hard"), ("cot", 0, "hard")])
    >>> [(row.case, row.failed, row.rewards) for row in study.cases()]
    [('hard', 2, {'terse': 0.0, 'cot': 0.0}), ('easy', 0, {'terse': 1.0})]
    """
    ends, sign = set[float](), -1.0 if ledger.spec.lower_is_better else 1.0
    counts: dict[int, _Count] = {}
    for arm, case, reward in _rewards(ledger):
        count = counts.setdefault(case, _Count())
        count.failed += _fails(ledger, arm, case, reward)
        count.seen += 1
        count.total += reward
        if len(ends) < 3:
            ends.add(reward)
    graded = len(ends) > 2  # otherwise there are two rewards: pass and fail

    def key(case: int) -> Key:
        count = counts[case]
        share = count.failed / count.seen
        return (sign * count.total / count.seen, -share, case) if graded else (-count.failed, -share, case)

    order = sorted(counts, key=key)[:most]
    rewards: dict[int, dict[str, float]] = {case: {} for case in order}
    for arm, case, reward in _rewards(ledger):
        if case in rewards:
            rewards[case][ledger.spec.arms[arm]] = reward
    missing: dict[int, list[str]] = {case: [] for case in order}
    for arm, name in enumerate(ledger.spec.arms):
        for case in ledger.cases.given_up(arm) if ledger.cases and ledger.cases.missing[arm] else ():
            missing.get(case, []).append(name)
    return [_row(ledger, case, counts[case], rewards[case], missing[case]) for case in order]


def _fails(ledger: State, arm: int, case: int, reward: float) -> bool:
    """Whether the reward of a case by itself does not reach the bar; the baseline fails none.

    With a baseline, a margin is asked of the mean: an arm fails a case on which it is worse than the baseline.
    """
    spec = ledger.spec
    if arm == ledger.base or (ledger.base >= 0 and case not in ledger.table):
        return False
    counted = spec.counted(reward, ledger.table.get(case, 0.0))
    if spec.share is not None:
        return counted < 1.0
    return counted < (spec.bar if ledger.base < 0 else min(spec.bar, 0.0))


def seen_cases(ledger: State) -> int:
    """How many cases have a reward of some arm."""
    return len({case for _, case, _ in _rewards(ledger)})


def _rewards(ledger: State) -> Iterator[tuple[int, int, float]]:
    """Arm, case and reward, for each reward that counts."""
    cases = ledger.cases
    if cases is None:
        raise InvalidInput("cases", rule="this study has none", remedy=Naming("create one with {cases}"))
    pulls = zip(ledger.pull_state, ledger.pull_arm, cases.pull_case, ledger.pull_reward, strict=True)
    for pull, (state, arm, case, reward) in enumerate(pulls, start=1):
        if state in (TOLD, LATE) and pull not in cases.spare and arm >= 0:
            yield arm, case, ledger.spec.clipped(reward)


def _row(ledger: State, case: int, count: _Count, rewards: dict[str, float], missing: list[str]) -> CaseRow:
    names = {name: rewards[name] for name in ledger.spec.arms if name in rewards}
    mean, spec = count.total / count.seen, ledger.spec
    failing = tuple(name for name, reward in names.items() if _fails(ledger, spec.index[name], case, reward))
    passed = count.seen - count.failed
    return CaseRow(spec.case_name(case), count.failed, passed, mean, names, failing, tuple(missing))
