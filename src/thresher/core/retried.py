"""Rewards that came after a failed try: how many there are, and which labels rest on them.

A case that is tried until it succeeds is no sample: failures may be bad outcomes. So the labels are checked again with
each of these rewards at its worst, as if its case had failed for good. This decides nothing; it tells a reader.
"""

from typing import Any

from . import certificate
from .certificate import ABOVE, BELOW, OPEN, commit_to
from .error_rate import CERTAIN, e_value
from .events import LATE, TOLD
from .kernel import is_above, total_with
from .state import State


def count(ledger: State) -> int:
    """How many rewards came after a failed try."""
    return sum(map(len, ledger.cases.retried.values())) if ledger.cases else 0


def shaken(ledger: State) -> list[int]:
    """The arms whose certified label would not be certified with these rewards at their worst."""
    certified = [arm for arm in range(len(ledger.spec.arms)) if ledger.is_certified(arm)]
    level, labels = ledger.stakes.level, ledger.docket.settled
    if not ledger.ranking.level:
        return [arm for arm in certified if _retried(ledger, arm) and _evidence(ledger, arm) < level]
    found = []
    for label in set(labels) - {OPEN}:
        left = {arm: _evidence(ledger, arm) for arm in certified if labels[arm] == label}
        while weak := [arm for arm, found_evidence in left.items() if found_evidence * len(left) < level]:
            found += weak
            for arm in weak:
                del left[arm]
    return sorted(found)


def _retried(ledger: State, arm: int) -> set[int]:
    """The cases of an arm whose reward, or the baseline's, came after a failed try."""
    assert ledger.cases is not None
    found = ledger.cases.retried
    return found.get(arm, set()) | found.get(ledger.base, set())


def _evidence(ledger: State, arm: int) -> float:
    """The arm's evidence for its label with these rewards at their worst; `CERTAIN` if the label stands by itself."""
    retried, label = _retried(ledger, arm), ledger.docket.settled[arm]
    assert ledger.cases is not None
    docket, stakes, capital = ledger.docket, ledger.stakes, certificate.fresh(ledger.stakes)
    known = ledger.imported_sum(arm)
    counts: Any = [{arm: start} for start in (0, known, known + ledger.lacking)]
    sums = ledger.sheet._replace(least=counts[1], most=counts[2])
    passed = docket._replace(committed=counts[0], charged={arm: 0})  # type: ignore[arg-type]  # columns of one arm
    pull = ledger.first_pull[arm]
    while pull != 0:
        is_told = docket.outcome[pull] == certificate.TOLD and ledger.cases.pull_case[pull - 1] not in retried
        low, high = (docket.reward[pull], docket.reward[pull]) if is_told else (0.0, 1.0)
        if commit_to(passed, sums, arm, capital, stakes, low, high) == label:
            return CERTAIN
        counts[0][arm] += 1
        pull = docket.following[pull]
    return CERTAIN if _is_counted(ledger, arm, retried) else e_value(capital, label - 1, stakes)


def _is_counted(ledger: State, arm: int, retried: set[int]) -> bool:
    """Whether the label follows from the other rewards, whatever these are."""
    assert ledger.cases is not None
    spec, board, table = ledger.spec, ledger.board, ledger.table
    total, missing = board.total[arm], ledger.cases.count - board.seen[arm]
    for pull, owner in enumerate(ledger.pull_arm, 1):
        case = ledger.cases.pull_case[pull - 1]
        counts = ledger.pull_state[pull - 1] in (TOLD, LATE) and pull not in ledger.cases.spare
        if owner == arm and case in retried and counts:
            total -= spec.counted(ledger.pull_reward[pull - 1], table.get(case, 0.0))
            missing += 1
    low, high = (total_with(total, board.residue[arm], missing, end) for end in spec.span)
    label = ledger.docket.settled[arm]
    if label == ABOVE:
        return is_above(low, ledger.cases.count, spec.reach)
    return label == BELOW and not is_above(high, ledger.cases.count, spec.reach)
