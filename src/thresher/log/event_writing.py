"""What the calls of a study write: each function decides on the newest ledger and writes events to a draft.

Asking, telling and dropping, and results that are known already.
"""

import os
from collections.abc import Callable, Iterable, Sequence
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
from ..core.pulls import Pull, pull_id_in, pull_of
from ..core.results import Checked, rewards_of_result
from ..core.spec import Spec
from ..core.state import State
from ..errors import AlreadyTold, InvalidInput, OutsideBounds
from ..text.masking import masked
from .journal import JournalDraft, storable_journal_reason

_tuple = tuple.__new__  # what a named tuple's name does, in a third of the time
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
    """A reward that is to be told; the fields are the arguments of `Study.tell`.

    >>> import thresher
    >>> study = thresher.create_study("coins", arms=["fair", "loaded"], at_least=0.6, budget=20)
    >>> pull, other = study.ask_many(2)
    >>> more = study.exchange([thresher.Telling(pull, 1, note="on its edge"), (other, 0)], 2)
    """

    pull: Pull | int | str
    reward: object
    repeatable: bool = False
    note: str | None = None
    cost: float | None = None


class _CheckedTelling(NamedTuple):
    """A reward that may be recorded: nothing can be wrong with it any more."""

    pull: int
    told: Telling
    values: tuple[float, ...] | None  # the rewards as numbers; None: one of them lies outside the bounds
    remarks: EventRemarks


def tellings_of(rewards: Iterable[Telling | tuple[Pull | int | str, object]]) -> list[Telling]:
    """The rewards that a caller tells, given as `Telling` or as pairs of a pull and its reward."""
    tellings = []
    for row in rewards:
        try:
            tellings.append(row if isinstance(row, Telling) else Telling(*row))
        except TypeError:
            remedy = "write (pull, reward), or Telling(pull, reward, note=…)"
            raise InvalidInput("rewards", row, "must be pairs of a pull and its reward", remedy) from None
    return tellings


def write_tell_event(draft: JournalDraft, telling: Telling) -> OutsideBounds | None:
    """The same as `write_tell_events` for one reward."""
    ledger, (which, reward, repeatable, note, cost) = draft.ledger, telling
    bounds, is_plain = ledger.spec.bounds, note is None and cost is None and not repeatable and not ledger.spec.pairs
    if is_plain and type(reward) is float and bounds and bounds[0] <= reward <= bounds[1]:  # nearly always
        pull = pull_id_in(ledger, which, "write tell(pull, reward)")
        if ledger.pull_state[pull - 1] == PENDING:
            draft.write("told", pull=pull, arm=ledger.pull_arm[pull - 1], reward=reward + 0.0)  # no −0
            return None
    return _write_telling(draft, _check_telling(ledger, telling, named=False))


def write_tell_events(
    draft: JournalDraft, rewards: Sequence[Telling], *, is_final: bool = False
) -> dict[int, OutsideBounds]:
    """Record the rewards of pulls, all or none; return the errors of those outside the bounds, by pull.

    Telling the same reward again writes nothing, even with another note or cost. A reward outside the bounds retires
    its arm; the error is returned, so that this is written. If the rewards are final, a pull that was told another one
    keeps that.
    """
    checked: list[_CheckedTelling] = []  # all are checked first: an error after a write costs reading the log again
    for telling in rewards:
        try:
            checked.append(_check_telling(draft.ledger, telling, named=len(rewards) > 1))
        except AlreadyTold:
            if not is_final:
                raise
    if len(checked) > 1:
        checked = list(_each_pull_once(checked, is_final=is_final))
    outside = {}
    for reward in checked:
        error = _write_telling(draft, reward)
        if error is not None:
            outside[reward.pull] = error
    return outside


def _each_pull_once(checked: Iterable[_CheckedTelling], *, is_final: bool) -> Iterable[_CheckedTelling]:
    """Leave out rewards that are told twice in one call. Raises `AlreadyTold` where they differ."""
    first: dict[int, _CheckedTelling] = {}
    for telling in checked:
        before = first.setdefault(telling.pull, telling)
        if before is telling:
            yield telling
        elif before.values != telling.values and not is_final:
            raise _told_before(telling.pull, "reward", telling.told.reward, before.told.reward)


def _check_telling(ledger: State, telling: Telling, *, named: bool) -> _CheckedTelling:
    """Raise, and change nothing, unless this reward may be recorded. Errors about it can name the pull."""
    which, reward, _, note, cost = telling
    pull = pull_id_in(ledger, which, "write tell(pull, reward)")
    remarks = NO_REMARKS if note is None and cost is None else _remarks(note, cost)
    check: Callable[[object], float] = ledger.spec.reward
    pairs = ledger.spec.pairs
    if ledger.pull_arm[pull - 1] < 0:  # its history has ended
        check, pairs = _any_reward, isinstance(reward, tuple | list)
    try:
        values = tuple(map(check, rewards_of_result(reward))) if pairs else (check(reward),)
    except OutsideBounds:
        return _CheckedTelling(pull, telling, None, remarks)
    except InvalidInput as error:
        _check_one(ledger, reward)
        if named and error.what == "reward":
            raise InvalidInput(f"pull {pull}, reward", error.value, error.rule, error.remedy) from None
        raise
    if ledger.pull_state[pull - 1] in (TOLD, LATE, OUTSIDE):
        _check_same(ledger, pull, values)
    if len(values) > 1:
        remarks = remarks._replace(baseline=values[1])
    return _tuple(_CheckedTelling, (pull, telling, values, remarks))


def _check_same(ledger: State, pull: int, values: Sequence[float]) -> None:
    """Raise `AlreadyTold` unless these are the rewards that the pull was told before."""
    before = ledger.pull_reward[pull - 1]
    if before != values[0] or (ledger.pull_state[pull - 1] == OUTSIDE and ledger.pull_arm[pull - 1] >= 0):
        raise _told_before(pull, "reward", values[0], before)
    if len(values) > 1 and ledger.pull_arm[pull - 1] >= 0 and ledger.pull_other[pull - 1] != values[1]:
        raise _told_before(pull, "the baseline's reward", values[1], ledger.pull_other[pull - 1])


def _told_before(pull: int, what: str, reward: object, before: object) -> AlreadyTold:
    return AlreadyTold(f"pull {pull}, {what}", reward, f"it was told {before!r} before", "a pull has one reward")


def _any_reward(value: object) -> float:
    """The reward of a pull whose history has ended: any number, because it counts nowhere now."""
    return checks.checked_number("reward", float(value) if isinstance(value, bool) else value)


def _write_telling(draft: JournalDraft, telling: _CheckedTelling) -> OutsideBounds | None:
    """Record a reward that was checked; return the error if it lies outside the bounds."""
    ledger, (pull, told, values, remarks) = draft.ledger, telling
    if values is None:
        return _retire_for_bounds(draft, pull, told.reward, remarks)
    state, arm = ledger.pull_state[pull - 1], ledger.pull_arm[pull - 1]
    if state not in (PENDING, DROPPED):
        if told.repeatable and arm >= 0:
            write_repeated_pull_event(draft, pull)
        return None
    late = True if state == DROPPED else None
    reason = None if remarks is NO_REMARKS else remarks.text()
    cause: EventCause | None = "repeatable" if told.repeatable and arm >= 0 else None
    draft.write(
        "told", pull=pull, arm=None if arm < 0 else arm, reward=values[0], late=late, cause=cause, reason=reason
    )
    return None


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
    spec = revisions.in_order_of_revision(ledger.spec, spec)
    changes = revisions.revision_changes(ledger, spec, taking)
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
