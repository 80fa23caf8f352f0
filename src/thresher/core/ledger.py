"""The fold: events in, state out. `apply_to_ledger` is the only way to change a study's state.

Nothing here reads a clock, a random number or the store. A state folded from the log equals the live one bit for bit.
"""

from collections.abc import Callable, Iterable, MutableSequence

from ..errors import InvalidInput
from . import board, error_rate, evidence, places, validity
from .capital import ABOVE, OPEN
from .cases import Cases
from .events import (
    BLAMED,
    DROPPED,
    FAILED,
    LATE,
    OUTSIDE,
    PENDING,
    REPEATABLE,
    TOLD,
    Event,
    event_baseline_reward,
    event_imported_case,
    event_named_case,
    event_remarks,
    total_event_cost,
)
from .evidence import weigh_imported_evidence
from .spec import Spec, spec_from_json
from .state import State


def new_ledger(spec: Spec) -> State:
    """The state of a study without events."""
    state = State(spec)
    for arm in range(len(spec.arms) if state.base >= 0 else 0):
        _shut(state, arm)
    return state


def ledger_after_created(first: Event | None) -> State:
    """The state after the first event of a log, which must be `created`."""
    if first is None or first.kind != "created" or first.seq != 1 or first.spec is None:
        raise InvalidInput("log", first and first.kind, "must begin with event 1, created", "give a study's log")
    state = new_ledger(spec_from_json(first.spec))
    state.last = first
    return state


def fold_ledger(events: Iterable[Event]) -> State:
    """The state after a whole log, which must begin with `created`."""
    stream = iter(events)
    state = ledger_after_created(next(stream, None))
    for event in stream:
        apply_to_ledger(state, event)
    return state


def apply_to_ledger(state: State, event: Event) -> None:
    """Check the event and fold it in. An invalid event changes nothing.

    After any other error, discard the state if its last event is this one: it may hold half of it.
    """
    seq, kind = event.seq, event.kind
    if seq != state.seq + 1 or state.due is not None or state.cases is not None or kind not in _FOLDS:
        validity.check_validity_of_order(state, event)
    validity.RULES[kind](state, event)
    state.last = event
    _FOLDS[kind](state, event)
    state.seq = seq


# -- events ------------------------------------------------------------------------------------------------------


def _asked(state: State, event: Event) -> None:
    arm: int = event.arm  # type: ignore[assignment]  # checked
    state.issued = pull = state.issued + 1
    state.pending += 1
    state.asked[arm] += 1
    imported = event.cause == "imported"
    state.imported += imported
    state.pull_arm.append(arm)
    state.pull_tag.append(int.from_bytes(event.digest[:4]) if event.digest else 0)
    state.pull_number.append(state.asked[arm])
    state.pull_state.append(PENDING)
    state.pull_origin.append(0)
    state.pull_reward.append(0.0)
    if state.spec.pairs:
        state.pull_other.append(0.0)
    state.board.pending[arm] += 1
    is_new = state.cases is None or _take_place(state, state.cases, arm, event)
    if state.certifies:
        docket = state.docket
        docket.following.append(0)
        docket.outcome.append(evidence.PENDING)
        docket.reward.append(0.0)
        if state.cases is None:
            state.unweighed = imported
        if is_new:
            evidence.enqueue_evidence(docket, arm, pull)
            state.first_pull[arm] = state.first_pull[arm] or pull
    if state.cases is not None:
        _shut(state, arm)
    if state.ranking.level:
        if error_rate.has_error_rank(state.ranking, arm):  # a pending pull only lowers its arm
            _rank(state, arm)
        else:
            _shut(state, arm)
    if state.stale is not None:
        state.stale.add(arm)
    if state.rule.doubles and pull >= 2.0 * state.rule.exploration * len(state.asked):
        _follow_rule(state)


def _told(state: State, event: Event) -> None:
    pull: int = event.pull  # type: ignore[assignment]  # checked
    reward: float = event.reward  # type: ignore[assignment]
    at = pull - 1
    arm = state.pull_arm[at]
    if event.late:
        state.pull_state[at] = LATE
    else:
        state.pull_state[at] = TOLD
        state.board.pending[arm] -= 1
        state.pending -= 1
    state.pull_reward[at] = reward
    state.told += 1
    state.own_told += pull > state.imported
    state.streak[arm] = 0
    if event.cause == "repeatable":
        state.pull_origin[at] = REPEATABLE
    if state.pull_origin[at]:
        state.repeatable = True
    if event.cause == "failed":  # a failure that counts as a reward, by the specification
        state.pull_origin[at] |= FAILED
        _blame(state, arm, event)
    if state.spec.pairs:
        state.pull_other[at] = event_baseline_reward(event)
    if event.reason is not None and event.reason.startswith("{"):
        _keep_remarks(state, pull, event)
    if state.cases is None:
        spec, counted = state.spec, reward
        if not state.plain:
            other = state.pull_other[at] if spec.pairs else 0.0
            counted = spec.counted(reward, other)
            _keep(state, arm, reward, other)
        scaled = spec.scale(counted)
        board.observe_on_board(state.board, arm, scaled, counted)
        if state.certifies:
            evidence.tell_evidence(state.docket, arm, pull, scaled)
            _weigh(state, arm)
    elif state.base >= 0:
        _count_against_table(state, state.cases, arm, pull)
    else:
        _count_case(state, state.cases, arm, pull, state.spec.counted(reward))
    if state.stale is not None:
        state.stale.add(arm)


def _repeated(state: State, event: Event) -> None:
    at: int = event.pull - 1  # type: ignore[operator]  # checked
    state.pull_origin[at] |= REPEATABLE
    state.repeatable = state.repeatable or state.pull_state[at] in (TOLD, LATE)


def _dropped(state: State, event: Event) -> None:
    pull: int = event.pull  # type: ignore[assignment]  # checked
    arm = state.pull_arm[pull - 1]
    state.pull_state[pull - 1] = DROPPED
    state.pending -= 1
    state.board.pending[arm] -= 1
    if event.cause in BLAMED:
        _blame(state, arm, event)
    if state.cases is None:
        is_failure = event.cause in BLAMED
        if state.certifies:
            evidence.give_up_evidence(state.docket, pull, _outcome_of(state, event))
    else:
        is_failure = _free_place(state, state.cases, arm, pull, event.cause)
    if is_failure:
        state.streak[arm] += 1
        limit = state.spec.max_failures
        if limit is not None and state.streak[arm] >= limit and state.board.shut[arm] != board.SHUT:
            state.due = arm
    if state.certifies:
        _weigh(state, arm)  # the pulls behind it may be committed now
    if state.cases is not None:
        _shut(state, arm)
        _open_arms(state, state.cases)
    _score_later(state, arm)


def _outcome_of(state: State, event: Event) -> int:
    """What a dropped pull of a study without cases means to the certificate."""
    if state.spec.failure == "ignore":
        return evidence.LEFT_OUT
    return evidence.CANCELLED if event.cause == "cancelled" else evidence.CHARGED


def _retired(state: State, event: Event) -> None:
    arm: int = event.arm  # type: ignore[assignment]  # checked
    state.due = None
    if event.cause == "bounds":
        _prove_wrong(state, arm, event)
    state.retired[arm] = event.reason or ""
    _shut_with_others(state, arm)


def _restored(state: State, event: Event) -> None:
    arm: int = event.arm  # type: ignore[assignment]  # checked
    del state.retired[arm]
    state.streak[arm] = 0
    _shut_with_others(state, arm)


def _shut_with_others(state: State, arm: int) -> None:
    """An arm was retired or restored. Without the baseline, no arm takes pulls."""
    for other in range(len(state.spec.arms)) if arm == state.base else (arm,):
        _shut(state, other)
        _score_later(state, other)


def _extended(state: State, event: Event) -> None:
    state.budget = event.budget
    if state.spec.policy.follows_budget:
        _follow_rule(state)


def _weighed(state: State, event: Event) -> None:
    state.unweighed, state.weighed, state.shuffle = False, True, event.reason or ""
    for arm in range(len(state.spec.arms)):
        if state.docket.first[arm]:
            weigh_imported_evidence(state.docket, state.board, state.sheet, arm, _capital(state, arm), state.stakes)
            if state.docket.settled[arm] != OPEN:
                _settle(state, arm)
            if state.finds:
                evidence.note_evidence_lead(state.board, arm, _capital(state, arm))
            if state.ranking.level:
                _rank(state, arm)
    state.stale = None


def _accepted(state: State, event: Event) -> None:
    state.evaluators.append(event.reason or "")


def _file(state: State, event: Event) -> None:
    digest, _, name = (event.reason or "").partition(" ")
    state.files.setdefault(name, []).append(digest)
    if event.cause == "vouched" and name not in state.vouched:
        state.vouched.append(name)


_FOLDS: dict[str, Callable[[State, Event], None]] = {
    "asked": _asked,
    "repeated": _repeated,
    "told": _told,
    "dropped": _dropped,
    "retired": _retired,
    "restored": _restored,
    "extended": _extended,
    "weighed": _weighed,
    "accepted": _accepted,
    "file": _file,
}


# -- counting rewards --------------------------------------------------------------------------------------------


def _keep(state: State, arm: int, reward: float, other: float) -> None:
    """Keep a reward, for display, where something else counts."""
    if state.values:
        state.values[arm].append(state.spec.clipped(reward))
        if state.others:
            state.others[arm].append(state.spec.clipped(other))


def _keep_remarks(state: State, pull: int, event: Event) -> None:
    """Keep the note and the cost of a reward, for people."""
    remarks = event_remarks(event)
    if remarks is not None and remarks != (None, None, None):
        state.remarks[pull] = event.reason or ""
        if remarks.cost is not None:
            state.cost = total_event_cost((state.cost or 0.0, remarks.cost))


def _blame(state: State, arm: int, event: Event) -> None:
    state.failures[arm] += 1
    state.complaint[arm] = event.reason or "no reason was given"


def _prove_wrong(state: State, arm: int, event: Event) -> None:
    """A pull of the arm returned a reward outside the bounds: nothing about the arm is certified any longer."""
    pull: int = event.pull  # type: ignore[assignment]  # checked
    before, pulled = state.pull_state[pull - 1], state.pull_arm[pull - 1]
    if before == PENDING:
        state.pending -= 1
        state.board.pending[pulled] -= 1
    if before in (PENDING, DROPPED):  # otherwise it keeps the reward that was told
        state.pull_state[pull - 1] = OUTSIDE
        rewards = state.pull_reward if pulled == arm else state.pull_other  # of a pair, the baseline's
        rewards[pull - 1] = event.reward  # type: ignore[assignment]
    state.outside.add(arm)
    if state.ranking.level:
        _leave(state, arm)
    _blame(state, arm, event)
    entry = pull
    if state.cases is not None:
        state.cases.drop(pulled, pull, "bounds")
        if state.sheet.place[pull] < 0:  # an imported case has no place
            return
        entry = state.cases.entry(pulled, pull)
    if state.certifies:
        evidence.give_up_evidence(state.docket, entry, evidence.CHARGED)
        _weigh(state, pulled)


# -- cases: every pull has a place, each case of an arm counts once, and a baseline goes first, through all of them


def _take_place(state: State, cases: Cases, arm: int, event: Event) -> bool:
    """Give the pull that was just issued its place. Returns whether it belongs into the queue of its arm."""
    named = event_named_case(event)
    state.hosted = state.hosted or named is not None
    is_new = cases.ask(arm, state.issued, event_imported_case(event), named=named)
    if arm == state.base:  # nothing is certified about the baseline
        return False
    if state.certifies and not is_new and event.cause != "imported":
        evidence.retry_evidence(state.docket, cases.entry(arm, state.issued))
    return is_new


def _count_case(state: State, cases: Cases, arm: int, pull: int, counted: float) -> None:
    """A case has one reward: the first that comes, from whichever try."""
    scaled = state.spec.scale(counted)
    before = state.docket.settled[arm] if state.certifies else OPEN
    if cases.tell(arm, pull):
        board.observe_on_board(state.board, arm, scaled, counted)
        _keep(state, arm, state.pull_reward[pull - 1], state.table.get(cases.pull_case[pull - 1], 0.0))
        if state.certifies and state.sheet.place[pull] < 0:  # imported: known, not a sample
            state.sheet.least[arm] += scaled
            state.sheet.most[arm] += scaled
            cases.imported_sum[arm] = state.sheet.least[arm]
        elif state.certifies:
            evidence.tell_evidence(state.docket, arm, cases.entry(arm, pull), scaled)
    if state.certifies:
        if evidence.settle_evidence_by_count(state.docket, state.board, state.sheet, arm, state.ends):
            _settle(state, arm)
            if state.ranking.level:
                _rank(state, arm, counted=True)
        else:  # where bets were wrong, the label has changed
            state.settled_above += (state.docket.settled[arm] == ABOVE) - (before == ABOVE)
        _weigh(state, arm)
    _shut(state, arm)


def _count_against_table(state: State, cases: Cases, arm: int, pull: int) -> None:
    """Count a reward against the baseline's of the same case; before all of these are known, only imports come."""
    reward, case = state.pull_reward[pull - 1], cases.pull_case[pull - 1]
    if arm == state.base:
        if cases.tell(arm, pull):
            state.table[case] = reward
            board.observe_on_board(state.board, arm, 0.0, state.spec.clipped(reward))
        _shut(state, arm)
        _open_arms(state, cases)
    elif state.awaits:
        state.deferred.append(pull)
    elif case in state.table:
        _count_case(state, cases, arm, pull, state.spec.counted(reward, state.table[case]))
    else:  # imported, where the baseline has no reward
        cases.spare.add(pull)


def _open_arms(state: State, cases: Cases) -> None:
    """Once all of the baseline's cases are known or given up, the other arms are pulled."""
    if not state.awaits or cases.awaits:
        return
    state.awaits = False
    for arm in range(len(state.spec.arms)):
        if arm != state.base and state.certifies:
            state.sheet.most[arm] += state.lacking
    for pull in state.deferred:
        _count_against_table(state, cases, state.pull_arm[pull - 1], pull)
    for arm in range(len(state.spec.arms)):
        _shut(state, arm)
        _score_later(state, arm)


def _free_place(state: State, cases: Cases, arm: int, pull: int, cause: str | None) -> bool:
    """A pull was dropped. Returns whether that is a failure of its arm.

    A case that may be tried again is no failure yet, and one that was lost too often is none of its arm.
    """
    gone = cases.drop(arm, pull, cause)
    if state.certifies:
        outcome = evidence.CHARGED if gone else evidence.FREED
        evidence.give_up_evidence(state.docket, cases.entry(arm, pull), outcome)
    return cause == "refused" or (gone and cause == "failed")


# -- certificates ------------------------------------------------------------------------------------------------


def _weigh(state: State, arm: int) -> None:
    """Commit every pull of the arm that can be committed."""
    if state.unweighed:
        return
    docket, board, capital = state.docket, state.board, state.capitals.get(arm)
    if capital is None and docket.first[arm] != 0 and evidence.is_evidence_ready(docket, arm, board.pending[arm]):
        capital = _capital(state, arm)  # capitals are made at the first commit
    if capital is not None:
        if evidence.weigh_evidence(docket, board, state.sheet, arm, capital, state.stakes):
            _settle(state, arm)
        if state.finds:
            evidence.note_evidence_lead(board, arm, capital)
    if state.ranking.level:
        _rank(state, arm)


def _capital(state: State, arm: int) -> MutableSequence[float]:
    capital = state.capitals.get(arm)
    if capital is None:
        capital = state.capitals[arm] = state.untouched[:]
    return capital


def _settle(state: State, arm: int) -> None:
    """The arm was just settled: it takes no further pulls."""
    state.settled += 1
    state.settled_above += state.docket.settled[arm] == ABOVE
    state.due = None if state.due == arm else state.due
    _shut(state, arm)


def _rank(state: State, arm: int, *, counted: bool = False) -> None:
    """Where the error rate is bounded: rank the arm again, and settle what its list has reached."""
    if (arm not in state.capitals and not counted) or arm in state.outside:
        return
    ranking, capital = state.ranking, _capital(state, arm)
    columns = (state.docket, state.board, state.sheet)
    for at in range(error_rate.update_error_rank(ranking, *columns, arm, capital, state.stakes, counted)):
        other = ranking.newly_settled[at]
        _settle(state, other)
        _score_later(state, other)
    _shut(state, arm)


def _leave(state: State, arm: int) -> None:
    """The arm proved the bounds wrong: it counts in no list, and what was settled on its strength is open again."""
    ranking = state.ranking
    error_rate.leave_error_rate_lists(ranking, arm)
    for which in range(error_rate.LISTS):
        ranking.reached[which] = error_rate.largest_error_rank(ranking, which)
    for other, label in enumerate(state.docket.settled):
        rank = ranking.rank[(label - 1) * len(state.spec.arms) + other]
        if label != OPEN and other not in state.outside and rank > ranking.reached[label - 1]:
            state.docket.settled[other] = OPEN
            state.settled -= 1
            state.settled_above -= label == ABOVE
            _shut(state, other)
            _score_later(state, other)


def _shut(state: State, arm: int) -> None:
    """Retired and settled arms take no further pulls, nor do those without a free case.

    If the baseline proved the bounds wrong, nothing can be certified any longer, so the others take none either.
    """
    waits = state.awaits or state.base in state.outside
    if arm in state.retired or board.stays_shut_on_board(arm, state.base, state.sheet.cases, waits):
        shut = board.SHUT
    elif state.certifies:
        capital, pending = state.capitals.get(arm, state.untouched), state.board.pending[arm]
        shut = error_rate.closed_by_error_rate(state.ranking, state.docket, state.sheet, arm, pending, capital)
    else:
        shut = board.SHUT if places.are_places_used_up(state.sheet, arm) else 0
    state.open += board.shut_on_board(state.board, arm, shut)


# -- scores ------------------------------------------------------------------------------------------------------


def _score_later(state: State, arm: int) -> None:
    """The arm has changed: score it before the next choice."""
    if state.stale is not None:
        state.stale.add(arm)


def _follow_rule(state: State) -> None:
    """Score all arms by the rule for the current budget and the pulls issued."""
    state.rule, state.stale = state.rule_for(state.budget, state.issued), None
