"""What the calls of a study write: each function decides on the newest ledger and writes events to a draft.

Asking, telling and dropping, and results that are known already.
"""

import contextlib
import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..core import checks, revisions
from ..core.board import SHUT
from ..core.events import (
    DROPPED,
    FAILED,
    LATE,
    OUTSIDE,
    PENDING,
    REPEATABLE,
    TOLD,
    Cause,
    EventCause,
    EventRemarks,
)
from ..core.pulls import Pull, pull_id_in, pull_id_of, pull_of
from ..core.results import Checked, rewards_of_result
from ..core.spec import Spec
from ..core.state import State
from ..errors import AlreadyTold, InvalidInput, OutsideBounds
from ..text.masking import masked
from .journal import JournalDraft, storable_journal_reason

LOST = "its agent did not renew its lease"  # the reason of a drop
NO_REMARKS = EventRemarks()
SEED_BYTES = 6  # of a seed that a study draws: no two have the same, and every reader of JSON can hold it


class Host(NamedTuple):
    """What a caller chose itself. Nobody but adapters may name cases.

    A caller who chooses the order of the cases could begin with those that are easy for the arm, so a host that names
    them must have shuffled them.
    """

    arm: str | None = None
    cases: Sequence[int] | None = None  # in this order; None: the study chooses


ANY = Host()  # the study chooses everything


def host_for_writing(spec: Spec, arm: str | None) -> Host:
    """The choice of a caller that names an arm, or none."""
    return ANY if arm is None else Host(spec.arms[spec.arm(arm)])


def write_ask_events(draft: JournalDraft, n: int, host: Host, lease: float | None = None) -> list[Pull]:
    """Issue pulls, fewer only when the study is done, or takes no more pulls of the arm that the caller has chosen.

    They get a lease of ``lease`` seconds; None: the study's.
    """
    ledger, draft.lease = draft.ledger, lease or draft.lease
    if n and ledger.unweighed:
        draft.write("weighed", reason=os.urandom(8).hex())
    if host.arm is not None:
        return _ask_for(draft, n, ledger.spec.arm(host.arm), host.cases)
    pulls: list[Pull] = []
    while len(pulls) < n and (arm := ledger.choose()) is not None:
        draft.write("asked", pull=ledger.last_pull + 1, arm=arm)
        pulls.append(pull_of(ledger, ledger.last_pull))
    return pulls


def _ask_for(draft: JournalDraft, n: int, arm: int, cases: Sequence[int] | None) -> list[Pull]:
    """Issue pulls of an arm that the caller has chosen, and perhaps their cases.

    Of the cases, those that are known, pending or given up are left out.
    """
    ledger, pulls = draft.ledger, []
    for case in [None] * n if cases is None else cases:
        if ledger.done or ledger.board.shut[arm] == SHUT:
            break
        if case is None or (ledger.cases and ledger.cases.is_free(arm, case)):
            reason = None if case is None else str(case)
            draft.write("asked", pull=ledger.last_pull + 1, arm=arm, cause="chosen", reason=reason)
            pulls.append(pull_of(ledger, ledger.last_pull))
    return pulls


def write_repeated_ask_events(draft: JournalDraft, pulls: Iterable[int]) -> None:
    """A repeated ask hands out its pulls again: an agent may have evaluated them, and died because of the result."""
    for pull in pulls:
        if draft.ledger.state_of(pull) in (PENDING, DROPPED):
            write_repeated_pull_event(draft, pull)


def write_repeated_pull_event(draft: JournalDraft, pull: int) -> None:
    """Record that a pull was, or may be, evaluated more than once."""
    if not draft.ledger.pull_origin[pull - 1] & REPEATABLE:
        draft.write("repeated", pull=pull, arm=_arm(draft.ledger, pull))


class Telling(NamedTuple):
    """A reward that is to be told; the fields are the arguments of `Study.tell`."""

    pull: Pull | int | str
    reward: object
    repeatable: bool = False
    note: str | None = None
    cost: float | None = None


def write_tell_event(
    draft: JournalDraft,
    which: Pull | int | str,
    reward: object,
    repeatable: bool = False,
    note: str | None = None,
    cost: float | None = None,
) -> OutsideBounds | None:
    """Record the reward of a pull. Telling the same reward again writes nothing, even with another note or cost.

    A reward outside the bounds retires the arm; the error is returned, so that this is written.
    """
    ledger = draft.ledger
    pull = pull_id_in(ledger, which, "write tell(pull, reward)")
    state, remarks = ledger.pull_state[pull - 1], NO_REMARKS if note is None and cost is None else _remarks(note, cost)
    if ledger.pull_arm[pull - 1] < 0:
        _tell_ended(draft, pull, reward, remarks)
        return None
    try:
        check = ledger.spec.reward
        values = tuple(map(check, rewards_of_result(reward))) if ledger.spec.pairs else (check(reward),)
    except OutsideBounds:
        return _retire_for_bounds(draft, pull, reward, remarks)
    except InvalidInput:
        _check_one(ledger, reward)
        raise
    if state in (TOLD, LATE) and _is_same(ledger, pull, values):
        if repeatable:
            write_repeated_pull_event(draft, pull)
        return None
    if len(values) > 1:
        remarks = remarks._replace(baseline=values[1])
    reason = None if remarks is NO_REMARKS else remarks.text()
    cause: EventCause | None = "repeatable" if repeatable else None
    late = True if state == DROPPED else None
    arm = ledger.pull_arm[pull - 1]
    draft.write("told", pull=pull, arm=arm, reward=values[0], late=late, cause=cause, reason=reason)
    return None


def _tell_ended(draft: JournalDraft, pull: int, reward: object, remarks: EventRemarks) -> None:
    """Record the reward of a pull whose history has ended: it counts nowhere now."""
    values = rewards_of_result(reward) if isinstance(reward, tuple | list) else (reward,)
    numbers = [checks.checked_number("reward", bool_as_number(value)) for value in values]
    state = draft.ledger.pull_state[pull - 1]
    if state != DROPPED and draft.ledger.pull_reward[pull - 1] == numbers[0]:
        return
    remarks = remarks._replace(baseline=numbers[1]) if len(numbers) > 1 else remarks
    draft.write("told", pull=pull, reward=numbers[0], late=state == DROPPED or None, reason=remarks.text())


def bool_as_number(value: object) -> object:
    """A bool as the number that it counts as."""
    return float(value) if isinstance(value, bool) else value


def write_all_tell_events(draft: JournalDraft, rewards: Iterable[Telling]) -> dict[int, OutsideBounds]:
    """Record the rewards of several pulls; return the errors of those outside the bounds, by pull.

    A pull that was told another reward meanwhile keeps that one.
    """
    outside = {}
    for telling in rewards:
        with contextlib.suppress(AlreadyTold):
            error = write_tell_event(draft, *telling)
            if error is not None:
                outside[pull_id_of(telling.pull)] = error
    return outside


def _retire_for_bounds(draft: JournalDraft, pull: int, reward: object, remarks: EventRemarks) -> OutsideBounds | None:
    """Retire the arm, the baseline of a pair, or both, whose reward lies outside the bounds; return the first error."""
    ledger, arm = draft.ledger, draft.ledger.pull_arm[pull - 1]
    first: OutsideBounds | None = None
    arms: list[str] = []
    both = zip((arm, ledger.base), rewards_of_result(reward), strict=True) if ledger.spec.pairs else ((arm, reward),)
    for whose, number in both:
        try:
            ledger.spec.reward(number)
        except OutsideBounds as error:
            _prove_wrong(draft, pull, whose, error, remarks)
            first, arms = first or error, [*arms, ledger.spec.arms[whose]]
        except InvalidInput:  # of a pair; the pull has ended all the same
            continue
    return first and first.of(arms)


def _is_same(ledger: State, pull: int, values: Sequence[float]) -> bool:
    """Whether these rewards were told before. Raises `AlreadyTold` if only the baseline's is another one."""
    if ledger.pull_reward[pull - 1] != values[0]:
        return False
    if len(values) > 1 and ledger.pull_other[pull - 1] != values[1]:
        rule = f"it was told {ledger.pull_other[pull - 1]!r} before"
        raise AlreadyTold(f"pull {pull}, the baseline's reward", values[1], rule, "a pull has one reward")
    return True


def _remarks(note: str | None, cost: float | None) -> EventRemarks:
    """What is said about a reward, without secrets."""
    words = None if note is None else storable_journal_reason(masked(checks.checked_text("note", note))) or None
    return EventRemarks(
        note=words, cost=None if cost is None else checks.checked_number("cost", cost, 0.0) + 0.0
    )  # no −0


def _in_words(remarks: EventRemarks) -> str:
    """The same at the end of a reason: a retirement has no reward that could hold it."""
    cost = "" if remarks.cost is None else f"; cost {remarks.cost:g}"
    return cost + (f"; note: {remarks.note}" if remarks.note else "")


def _check_one(ledger: State, reward: object) -> None:
    """A better message where a pair was told, but the pull evaluates one arm."""
    if not ledger.spec.pairs and isinstance(reward, tuple | list) and len(reward) == 2:
        rule = "must be one number: the pulls of this study are no pairs"
        raise InvalidInput("reward", reward, rule, "tell the reward of the pull's arm alone") from None


def write_drop_events(draft: JournalDraft, which: Pull | int | str, cause: Cause, reason: str) -> None:
    """Drop a pull, and retire its arm if that was one failure too many. Dropping it again writes nothing."""
    ledger = draft.ledger
    checks.checked_text("reason", reason)
    pull = pull_id_in(ledger, which)
    state, failure = ledger.pull_state[pull - 1], ledger.spec.failure
    if state in (DROPPED, OUTSIDE):
        return
    if state != PENDING:
        rule = f"was told {ledger.pull_reward[pull - 1]!r} before"
        raise AlreadyTold("pull", pull, rule, "nothing is left to drop")
    arm = ledger.pull_arm[pull - 1]
    if cause == "failed" and isinstance(failure, float):
        draft.write("told", pull=pull, arm=arm, reward=failure, cause="failed", reason=reason)
        return
    draft.write("dropped", pull=pull, arm=arm, cause=cause, reason=reason)
    if ledger.due is not None:
        why = f"{ledger.streak[arm]} failures in a row, the last: {reason}"
        draft.write("retired", arm=arm, cause="failures", reason=why)


def write_lost_events(draft: JournalDraft, pulls: Iterable[int]) -> int:
    """Drop those of the pulls that are still pending, because their leases ran out. Returns how many."""
    lost = [pull for pull in pulls if draft.ledger.state_of(pull) == PENDING]
    for pull in lost:
        draft.write("dropped", pull=pull, arm=_arm(draft.ledger, pull), cause="lost", reason=LOST)
    return len(lost)


def write_extended_event(draft: JournalDraft, budget: int) -> None:
    if budget != draft.ledger.budget:
        draft.write("extended", budget=budget)


def write_retired_event(draft: JournalDraft, arm: str, reason: str) -> None:
    number = draft.ledger.spec.arm(arm)
    if number not in draft.ledger.retired:
        draft.write("retired", arm=number, reason=checks.checked_text("reason", reason))


def write_restored_event(draft: JournalDraft, arm: str) -> None:
    number = draft.ledger.spec.arm(arm)
    if number in draft.ledger.retired:
        draft.write("restored", arm=number)


def write_revised_event(draft: JournalDraft, spec: Spec, taking: revisions.Taking = None) -> revisions.Changes | None:
    """Make the next revision, and say what changed; None, and nothing is written, if nothing did.

    Its seed is drawn here: whoever decided what to change cannot have known it.
    """
    ledger = draft.ledger
    spec = revisions.in_order(ledger.spec, spec)
    changes = revisions.changes_of(ledger, spec, taking)
    if not changes.any and taking != "fresh":
        return None
    if ledger.unweighed:
        draft.write("weighed", reason=os.urandom(8).hex())
    draft.write("revised", spec=spec.seeded(int.from_bytes(os.urandom(SEED_BYTES))).to_json(), cause=taking)
    return changes


def _prove_wrong(draft: JournalDraft, pull: int, arm: int, error: OutsideBounds, remarks: EventRemarks) -> None:
    ledger = draft.ledger
    state, reward = ledger.state_of(pull), checks.checked_finite(float(error.value))  # type: ignore[arg-type]
    if state in (PENDING, DROPPED) or arm not in ledger.outside:
        low, high = ledger.spec.bounds or ledger.spec.span
        reason = f"pull {pull} returned {error.value!r}, outside the bounds ({low:g}, {high:g})"
        draft.write("retired", arm=arm, pull=pull, reward=reward, cause="bounds", reason=reason + _in_words(remarks))


def _arm(ledger: State, pull: int) -> int | None:
    return ledger.arm_of(pull)


def write_result_events(draft: JournalDraft, results: Sequence[Checked]) -> None:
    """Record results from elsewhere. Those without a reward are dropped, and late ones too, before they are told."""
    ledger = draft.ledger
    for arm, value, late, case, origin in results:
        if case is not None and value is None:
            continue  # it uses up no case
        late = late and case is None  # a case's reward is the same whenever it came
        reason = None if case is None else str(case)
        draft.write("asked", pull=ledger.last_pull + 1, arm=arm, cause="imported", reason=reason)
        pull = ledger.last_pull
        if origin & REPEATABLE:
            write_repeated_pull_event(draft, pull)
        if value is None or late:
            draft.write("dropped", pull=pull, arm=arm, cause="lost", reason="imported without a reward")
        if value is not None:
            cause: EventCause = "failed" if origin & FAILED else "imported"
            why = "imported" if origin & FAILED else None
            draft.write("told", pull=pull, arm=arm, reward=value, cause=cause, reason=why, late=late or None)
