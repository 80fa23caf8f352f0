"""The calls of a study: each decides on the newest ledger and writes events to a draft."""

import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..core import checks, kernel
from ..core.events import DROPPED, LATE, OUTSIDE, PENDING, TOLD, Cause, EventCause, Remarks
from ..core.ledger import Ledger
from ..core.pulls import Pull, pull_of
from ..core.spec import CLIP, Spec
from ..errors import AlreadyTold, InvalidInput, OutsideBounds
from ..text.masking import masked
from .journal import Draft, plain

REPEATABLE: EventCause = "repeatable"  # of a reward
LONGEST_NOTE = 2000  # characters
LOST = "its agent did not renew its lease"  # the reason of a drop


class Told(NamedTuple):
    """What became of a reward."""

    late: bool = False  # its pull was dropped before
    outside: OutsideBounds | None = None  # it lies outside the bounds, and its arm is retired


class Asked(NamedTuple):
    """What an ask returns."""

    pulls: list[Pull]
    done: bool  # as `Study.done`, after these pulls
    wait: bool = False  # there are none now, but a later ask may get some: what is pending may free a case


class Host(NamedTuple):
    """What a caller chose itself. Nobody but adapters may name cases.

    A caller who chooses the order of the cases could begin with those that are easy for the arm, so a host that names
    them must have shuffled them.
    """

    arm: str | None = None
    cases: Sequence[int] | None = None  # in this order; None: the study chooses


def ask(draft: Draft, n: int, host: Host) -> list[Pull]:
    """Issue pulls, fewer only when the study is done, or takes no more pulls of the arm that the caller has chosen.

    Of the cases that a host names, those that are known, pending or given up are left out.
    """
    ledger, pulls = draft.ledger, []
    named = None if host.arm is None else ledger.spec.arm(host.arm)
    cause: EventCause | None = None if host.arm is None else "chosen"
    if n and ledger.unweighed:
        draft.write("weighed", reason=os.urandom(8).hex())
    for case in [None] * n if host.cases is None else host.cases:
        arm = ledger.choose() if named is None else _if_open(ledger, named)
        if arm is None:
            break
        if case is None or (ledger.cases and ledger.cases.is_free(arm, case)):
            reason = None if case is None else str(case)
            draft.write("asked", pull=ledger.issued + 1, arm=arm, cause=cause, reason=reason)
            pulls.append(pull_of(ledger, ledger.issued))
    return pulls


def _if_open(ledger: Ledger, arm: int) -> int | None:
    return None if ledger.done or ledger.board.shut[arm] == kernel.SHUT else arm


class Result(NamedTuple):
    """A result that is already known."""

    arm: str
    reward: object  # None: the pull has no reward
    late: bool = False  # the reward came after its pull was dropped
    case: object = None  # its name or number, where the study has cases


def result(given: object) -> Result:
    """A result, from a pair of arm and reward, or with its case."""
    if not isinstance(given, tuple | list) or len(given) not in (2, 3):
        raise InvalidInput("result", given, "must be a pair of arm and reward, or with the case as third")
    return Result(given[0], given[1], case=given[2] if len(given) == 3 else None)


def checked(spec: Spec, given: Result) -> tuple[int, float | None, bool, int | None]:
    """A result as numbers: arm, reward, whether it was late, and case."""
    if spec.pairs:
        rule = "with a baseline and without cases, results come in pairs, which cannot be imported"
        raise InvalidInput("result", given.reward, rule, "start without them")
    if given.case is None and spec.cases is not None:
        raise InvalidInput("case", None, "every result of this study needs its case", "name the case of each result")
    case = None if given.case is None else spec.case(given.case)
    return spec.arm(given.arm), None if given.reward is None else spec.reward(given.reward), given.late, case


def tell(
    draft: Draft,
    pull: int,
    reward: object,
    *,
    repeatable: bool,
    note: str | None = None,
    cost: float | None = None,
) -> Told:
    """Record the reward of a pull. Telling the same reward again writes nothing, whatever is said about it."""
    ledger = draft.ledger
    state = ledger.state_of(pull)
    words, price = _remark(note, cost)  # before an arm is retired
    more = _in_words(words, price)
    mine, theirs = both(reward) if ledger.spec.pairs else (_one(reward), None)
    try:
        value = ledger.spec.reward(mine)
    except OutsideBounds as error:
        outside = _retire_for_bounds(draft, pull, _arm(ledger, pull), error, more)
        if ledger.spec.pairs:
            _check_baseline(draft, pull, theirs, more)
        return Told(outside=outside)
    try:
        other = ledger.spec.reward(theirs) if ledger.spec.pairs else None
    except OutsideBounds as error:
        return Told(outside=_retire_for_bounds(draft, pull, ledger.base, error, more))
    if state in (TOLD, LATE) and ledger.pull_reward[pull - 1] == value:
        if other is None or ledger.pull_other[pull - 1] == other:
            return Told(late=state == LATE)
        rule = f"it was told {ledger.pull_other[pull - 1]!r} before"
        raise AlreadyTold(f"pull {pull}, the baseline's reward", other, rule, "a pull has one reward")
    late, cause = state == DROPPED, REPEATABLE if repeatable else None
    reason = None if other is None else repr(other)
    if words is not None or price is not None:
        reason = Remarks(other, words, price).text()
    draft.write("told", pull=pull, arm=_arm(ledger, pull), reward=value, late=late or None, cause=cause, reason=reason)
    return Told(late=late)


def _remark(note: str | None, cost: float | None) -> tuple[str | None, float | None]:
    """What is said about a reward, without secrets."""
    words = None if note is None else plain(masked(checks.text("note", note)))[:LONGEST_NOTE] or None
    return words, None if cost is None else checks.number("cost", cost, 0.0) + 0.0  # no −0


def _in_words(note: str | None, cost: float | None) -> str:
    """The same at the end of a reason: a retirement has no reward that could hold it."""
    return ("" if cost is None else f"; cost {cost:g}") + (f"; note: {note}" if note else "")


def _check_baseline(draft: Draft, pull: int, reward: object, more: str) -> None:
    """Retire the baseline too, if its reward in the same pair lies outside the bounds."""
    try:
        draft.ledger.spec.reward(reward)
    except OutsideBounds as error:
        _retire_for_bounds(draft, pull, draft.ledger.base, error, more)
    except InvalidInput:
        return


def _one(reward: object) -> object:
    """The reward of a pull that evaluates one arm."""
    if isinstance(reward, tuple | list) and len(reward) == 2:
        rule = "must be one number: the pulls of this study are no pairs"
        raise InvalidInput("reward", reward, rule, "tell the reward of the pull's arm alone")
    return reward


def both(reward: object) -> tuple[object, object]:
    """The rewards of the arm and of the baseline."""
    if not isinstance(reward, tuple | list) or len(reward) != 2:
        rule = "must be a pair: with a baseline and without cases, every pull evaluates both"
        raise InvalidInput("reward", reward, rule, "tell the arm's reward and the baseline's, as (0.8, 0.7)")
    return reward[0], reward[1]


def drop(draft: Draft, pull: int, cause: Cause, reason: str) -> None:
    """Drop a pull, and retire its arm if that was one failure too many. Dropping it again writes nothing."""
    ledger = draft.ledger
    checks.text("reason", reason)
    state, failure = ledger.state_of(pull), ledger.spec.failure
    if state in (DROPPED, OUTSIDE):
        return
    if state != PENDING:
        rule = f"was told {ledger.pull_reward[pull - 1]!r} before"
        raise AlreadyTold("pull", pull, rule, "nothing is left to drop")
    arm = _arm(ledger, pull)
    if cause == "failed" and isinstance(failure, float):
        draft.write("told", pull=pull, arm=arm, reward=failure, cause="failed", reason=reason)
        return
    draft.write("dropped", pull=pull, arm=arm, cause=cause, reason=reason)
    if ledger.due is not None:
        why = f"{ledger.streak[arm]} failures in a row, the last: {reason}"
        draft.write("retired", arm=arm, cause="failures", reason=why)


def drop_lost(draft: Draft, pulls: Iterable[int]) -> int:
    """Drop those of the pulls that are still pending, because their leases ran out. Returns how many."""
    lost = [pull for pull in pulls if draft.ledger.state_of(pull) == PENDING]
    for pull in lost:
        draft.write("dropped", pull=pull, arm=_arm(draft.ledger, pull), cause="lost", reason=LOST)
    return len(lost)


def add(draft: Draft, results: Sequence[tuple[int, float | None, bool, int | None]]) -> None:
    """Record results from elsewhere: arm, reward (None: dropped), whether it came after a drop, and its case."""
    ledger = draft.ledger
    for arm, value, late, case in results:
        if case is not None and value is None:
            continue  # it uses up no case
        late = late and case is None  # a case's reward is the same whenever it came
        reason = None if case is None else str(case)
        draft.write("asked", pull=ledger.issued + 1, arm=arm, cause="imported", reason=reason)
        pull = ledger.issued
        if value is None or late:
            draft.write("dropped", pull=pull, arm=arm, cause="lost", reason="imported without a reward")
        if value is not None:
            draft.write("told", pull=pull, arm=arm, reward=value, cause="imported", late=late or None)


def extend(draft: Draft, budget: int) -> None:
    if budget != draft.ledger.budget:
        draft.write("extended", budget=budget)


def retire(draft: Draft, arm: str, reason: str) -> None:
    number = draft.ledger.spec.arm(arm)
    if number not in draft.ledger.retired:
        draft.write("retired", arm=number, reason=checks.text("reason", reason))


def restore(draft: Draft, arm: str) -> None:
    number = draft.ledger.spec.arm(arm)
    if number in draft.ledger.retired:
        draft.write("restored", arm=number)


def accept(draft: Draft, evaluator: str) -> None:
    """Record that this evaluator measures the same thing as the earlier ones."""
    if evaluator not in draft.ledger.evaluators:
        draft.write("accepted", reason=evaluator)


def _retire_for_bounds(draft: Draft, pull: int, arm: int, error: OutsideBounds, more: str) -> OutsideBounds:
    ledger = draft.ledger
    state, reward = ledger.state_of(pull), checks.finite(float(error.value))  # type: ignore[arg-type]
    if state in (PENDING, DROPPED) or arm not in ledger.outside:
        low, high = ledger.spec.bounds or ledger.spec.span
        what = f"pull {pull} returned {error.value!r}, outside the bounds ({low:g}, {high:g})"
        draft.write("retired", arm=arm, pull=pull, reward=reward, cause="bounds", reason=f"{what}; {CLIP}{more}")
    rule = f"{error.rule}: they are wrong, so arm {ledger.spec.arms[arm]!r} is retired and not certified"
    return OutsideBounds("reward", error.value, rule, CLIP)


def _arm(ledger: Ledger, pull: int) -> int:
    return ledger.pull_arm[pull - 1]
