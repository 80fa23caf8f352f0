"""Results that are already known, from elsewhere: as a caller gives them, checked, and written."""

from collections.abc import Sequence
from typing import NamedTuple

from ..core.events import FAILED, ONCE, REPEATABLE, EventCause
from ..core.spec import Spec
from ..errors import InvalidInput
from .calls import mark_repeated
from .journal import Draft


class Result(NamedTuple):
    """A result that is already known."""

    arm: str
    reward: object  # None: the pull has no reward
    late: bool = False  # the reward came after its pull was dropped
    case: object = None  # its name or number, where the study has cases
    origin: int = ONCE  # how the reward came about


def result(given: object) -> Result:
    """A result, from a pair of arm and reward, or with its case."""
    if not isinstance(given, tuple | list) or len(given) not in (2, 3):
        raise InvalidInput("result", given, "must be a pair of arm and reward, or with the case as third")
    return Result(given[0], given[1], case=given[2] if len(given) == 3 else None)


Checked = tuple[int, float | None, bool, int | None, int]  # arm, reward (None: there is none), late, case, origin


def checked(spec: Spec, given: Result) -> Checked:
    """A result as numbers. A failure that counted as a reward is one here only if it counts as the same number."""
    if spec.pairs:
        rule = "with a baseline and without cases, results come in pairs, which cannot be imported"
        raise InvalidInput("result", given.reward, rule, "start without them")
    if given.case is None and spec.cases is not None:
        rule = "is missing: every result of this study needs its case"
        raise InvalidInput("case", rule=rule, remedy="name the case of each result")
    case = None if given.case is None else spec.case(given.case)
    value = None if given.reward is None else spec.reward(given.reward)
    if given.origin & FAILED and value != spec.failure:
        return spec.arm(given.arm), None, False, case, ONCE
    return spec.arm(given.arm), value, given.late, case, given.origin


def add(draft: Draft, results: Sequence[Checked]) -> None:
    """Record results from elsewhere. Those without a reward are dropped, and late ones too, before they are told."""
    ledger = draft.ledger
    for arm, value, late, case, origin in results:
        if case is not None and value is None:
            continue  # it uses up no case
        late = late and case is None  # a case's reward is the same whenever it came
        reason = None if case is None else str(case)
        draft.write("asked", pull=ledger.issued + 1, arm=arm, cause="imported", reason=reason)
        pull = ledger.issued
        if origin & REPEATABLE:
            mark_repeated(draft, pull)
        if value is None or late:
            draft.write("dropped", pull=pull, arm=arm, cause="lost", reason="imported without a reward")
        if value is not None:
            cause: EventCause = "failed" if origin & FAILED else "imported"
            why = "imported" if origin & FAILED else None
            draft.write("told", pull=pull, arm=arm, reward=value, cause=cause, reason=why, late=late or None)
