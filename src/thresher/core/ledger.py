"""The fold: events in, state out. `apply_to_ledger` is the only way to change a study's state.

Nothing here reads a clock, a random number or the store. A state folded from the log equals the live one bit for bit.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator, MutableSequence
from copy import copy

from ..errors import InvalidInput
from . import board, error_rate, evidence, places, revisions, validity
from .cases import Cases
from .columns import blank_ranking_columns, column_of_zeros
from .events import (
    BLAMED,
    DROPPED,
    FAILED,
    IMPORTED,
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
from .evidence import ABOVE, BETS, OPEN, UNREACHED, capital_label, mean_capital, resolve_capital_label
from .spec import Spec, spec_from_json
from .state import State, later_stakes


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
    state.issued += 1
    state.last_pull = pull = state.last_pull + 1
    state.pending += 1
    state.asked[arm] += 1
    imported = event.cause == "imported"
    state.imported += imported
    state.pull_arm.append(arm)
    state.pull_tag.append(int.from_bytes(event.digest[:4]) if event.digest else 0)
    state.pull_number.append(state.asked[arm])
    state.pull_state.append(PENDING)
    state.pull_origin.append(IMPORTED if imported else 0)
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
    if state.rule.doubles and state.issued >= 2.0 * state.rule.exploration * len(state.asked):
        _follow_rule(state)


def _told(state: State, event: Event) -> None:
    pull: int = event.pull  # type: ignore[assignment]  # checked
    reward: float = event.reward  # type: ignore[assignment]
    at = pull - 1
    arm = state.pull_arm[at]
    if arm < 0:
        state.pull_state[at], state.pull_reward[at] = LATE, reward
        state.strays.add(pull)
        return
    if event.late:
        state.pull_state[at] = LATE
    else:
        state.pull_state[at] = TOLD
        state.board.pending[arm] -= 1
        state.pending -= 1
    state.pull_reward[at] = reward
    state.told += 1
    origin, cause, reason, spec = state.pull_origin[at], event.cause, event.reason, state.spec
    state.own_told += not origin & IMPORTED
    state.streak[arm] = 0
    if origin or cause is not None:
        origin |= REPEATABLE if cause == "repeatable" else 0
        state.repeatable = state.repeatable or bool(origin & REPEATABLE)
        if cause == "failed":  # a failure that counts as a reward, by the specification
            origin |= FAILED
            _blame(state, arm, event)
        state.pull_origin[at] = origin
    if spec.pairs:
        state.pull_other[at] = event_baseline_reward(event)
    if reason is not None and reason.startswith("{"):
        _keep_remarks(state, pull, event)
    if state.cases is None:
        counted = reward
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
            capital, stakes = _capital(state, arm), state.stakes_of(arm)
            columns = (state.docket, state.board, state.sheet)
            evidence.weigh_imported_evidence(*columns, arm, capital, stakes, state.last_pull)
            if state.docket.settled[arm] != OPEN:
                _settle(state, arm)
            if state.finds:
                evidence.note_evidence_lead(state.board, arm, capital)
            if state.ranking.level:
                _rank(state, arm)
    state.stale = None


# -- a new revision: see `revisions.py` --------------------------------------------------------------------------------

PULLS = ("pull_tag", "pull_number", "pull_state", "pull_origin", "pull_reward", "pull_other", "strays", "remarks")
HISTORY = ("asked", "failures", "streak")  # columns of arms that belong to their history
REWARDS = ("seen", "mean", "scatter", "total", "residue")  # ... and are statistics of its rewards


def _revised(state: State, event: Event) -> None:
    spec, before = spec_from_json(event.spec), copy(state)
    taking: revisions.Taking = event.cause  # type: ignore[assignment]  # checked
    before.lineage = before.lineage or revisions.RevisionLineage(before.spec)
    sources = revisions.revision_sources(before, spec, taking)
    going = {source.ended.arm for source in sources if source.ended and source.ended.state is before}
    for pull in before.pending_pulls():  # nobody waits for them any longer
        if before.pull_arm[pull - 1] not in going:
            _dropped(before, Event(0, "dropped", pull, before.pull_arm[pull - 1], cause="lost"))
    new = _next_state(before, spec, event)
    revisions.end_histories_for_revision(before, new, sources, taking)
    _take_pulls(new, before, sources)
    lists = (
        [frozenset(revisions.revision_case_keys(each)) for each in (before.spec, spec)]
        if spec.cases is not None
        else []
    )
    for arm, source in enumerate(sources):
        if source.ended is not None:
            _go_on(new, arm, source.ended)
        elif source.translated is not None:
            _begin_translated(new, arm, before, source.translated, lists[0])
        if arm in new.phases:
            phases = [
                revisions.translated_revision_phase(phase, spec, lists[1], source.values) for phase in new.phases[arm]
            ]
            new.phases[arm] = tuple(phases)
    new.deferred = [pull for pull in new.deferred if new.pull_arm[pull - 1] >= 0]
    if new.cases is not None:
        _fix_cases(new, new.cases, sources)
    _count_pulls(new)
    _forget_labels(new)
    new.weighed = new.weighed and new.imported > 0
    for arm in range(len(spec.arms)):
        _weigh_again(new, arm)
        _shut(new, arm)
    new.rule, new.stale = new.rule_for(new.budget, new.issued), None
    before_results = set(revisions.pulls_with_result_in_revision(before))
    taken = [pull in before_results for pull in revisions.pulls_with_result_in_revision(new)]
    new.lineage.held, new.lineage.again = sum(taken), len(taken) - sum(taken)
    vars(state).clear()
    vars(state).update(vars(new))


def _next_state(state: State, spec: Spec, event: Event) -> State:
    """A state for another specification, with all pulls of the old one, which are nobody's yet."""
    new = State(spec)
    new.revision, new.lineage, new.last, new.seq = state.revision + 1, state.lineage, event, state.seq
    for column in PULLS:
        setattr(new, column, getattr(state, column))
    pulls = state.last_pull
    new.last_pull, new.pull_arm = pulls, array("q", [-1]) * pulls
    if spec.pairs:  # pulls of revisions without pairs have no entries yet
        new.pull_other.extend([0.0] * (pulls - len(new.pull_other)))
    columns = {name: getattr(state.docket, name) for name in ("following", "outcome", "reward")}
    new.docket = new.docket._replace(**columns)
    if new.certifies:  # pulls of revisions that certified nothing have no entries yet
        for column in columns.values():
            column.extend([0] * (pulls + 1 - len(column)))
    if new.cases is not None:
        new.cases.pull_case = state.cases.pull_case[:] if state.cases else array("q", [-1]) * pulls
        place = state.sheet.place[:] if state.cases else array("q", [-1]) * (pulls + 1)
        new.cases.sheet = new.sheet = new.sheet._replace(place=place)
        new.cases.spare = state.cases.spare if state.cases else set()
        new.cases.retried = state.cases.retried if state.cases else set()
    elif state.cases is not None:
        new.strays = state.strays | state.cases.spare
    new.weighed, new.shuffle, new.hosted = state.weighed, state.shuffle, state.hosted
    return new


def _take_pulls(state: State, before: State, sources: list[revisions.Source]) -> None:
    """Give the histories that go on their pulls."""
    going = {}
    for arm, ended in enumerate(source.ended for source in sources):
        if ended is not None and ended.state is before:
            going[ended.arm] = arm
        elif ended is not None:
            for pull in sorted(ended.pulls):
                _take_pull(state, arm, pull, ended.state)
    for pull, owner in enumerate(before.pull_arm, start=1):
        if owner in going:
            _take_pull(state, going[owner], pull, before)


def _take_pull(state: State, arm: int, pull: int, before: State) -> None:
    state.pull_arm[pull - 1] = arm
    if state.cases is not None and before.cases is not None:
        state.cases.pull_case[pull - 1] = before.cases.pull_case[pull - 1]
        state.sheet.place[pull] = before.sheet.place[pull]
    if pull in state.strays and state.spec.is_outside(state.pull_reward[pull - 1]):
        _retire_outside(state, arm, pull)


def _retire_outside(state: State, arm: int, pull: int) -> None:
    """A reward that came in another revision proves the bounds wrong."""
    state.outside.add(arm)
    state.retired[arm] = f"pull {pull} returned {state.pull_reward[pull - 1]!r}, outside the bounds"


def _go_on(state: State, arm: int, ended: revisions.Ended) -> None:
    """Give an arm the history that it had before; its evidence is weighed later."""
    before, source = ended.state, ended.arm
    for column in HISTORY:
        getattr(state, column)[arm] = getattr(before, column)[source]
    for column in REWARDS:
        getattr(state.board, column)[arm] = getattr(before.board, column)[source]
    for mine, theirs in ((state.retired, before.retired), (state.complaint, before.complaint)):
        if source in theirs:
            mine[arm] = theirs[source]
    if source in before.outside:
        state.outside.add(arm)
    if state.values:
        state.values[arm] = before.values[source]
        state.others[arm : arm + 1] = before.others[source : source + 1]
    _set_history(state, arm, before.history(source))
    if source in before.phases:
        state.phases[arm] = before.phases[source]
    if state.certifies:
        state.docket.last[arm], state.first_pull[arm] = before.docket.last[source], before.first_pull[source]
    if state.cases is not None and before.cases is not None:
        state.cases.move(arm, before.cases, source)
        if arm == state.base:
            state.awaits, state.table, state.deferred = before.awaits, before.table, before.deferred
            state.cases.move_baseline(before.cases)


def _set_history(state: State, arm: int, history: places.History) -> None:
    history = history._replace(most=max(history.most, state.spec.contenders))
    state.histories[arm] = history
    if state.certifies:
        state.arm_stakes[arm] = later_stakes(state.stakes, history, state.spec.confidence)


def _begin_translated(state: State, arm: int, before: State, source: int, cases: frozenset[str]) -> None:
    """Only the list of cases changed: the evidence so far counts on, and the rest of the cases get a new order."""
    history = before.history(source)
    _set_history(state, arm, history._replace(seed=state.spec.seed or 0, arm=arm, arms=len(state.spec.arms)))
    if source in before.outside:
        state.outside.add(arm)
        state.retired[arm] = before.retired[source]
    state.phases[arm] = (*before.phases.get(source, ()), revisions.revision_phase(before, source, cases))


def _fix_cases(state: State, cases: Cases, sources: list[revisions.Source]) -> None:
    """The results and failures that new histories begin with. The baseline's come first."""
    rewards: list[tuple[int, int]] = []
    new = [arm for arm, source in enumerate(sources) if source.ended is None]
    for arm in sorted(new, key=lambda arm: arm != state.base):
        known, failed = dict(sources[arm].known), sources[arm].failed - cases.lacking
        for case, pull in sources[arm].known.items():
            is_outside = state.spec.is_outside(state.pull_reward[pull - 1])
            if is_outside:
                _retire_outside(state, arm, pull)
            counts_otherwise = state.pull_reward[pull - 1] != state.spec.failure
            if is_outside or (state.pull_origin[pull - 1] & FAILED and counts_otherwise):
                del known[case]
                failed.add(case)
            else:
                rewards.append((arm, pull))
                state.pull_arm[pull - 1] = arm
        cases.fix(arm, known, failed)
        state.sheet.places[arm] -= len(cases.lacking - known.keys() - failed)
    if state.base in new:
        cases.begin_baseline()
    for arm in new:
        if arm != state.base and state.certifies:
            state.sheet.most[arm] += state.charged_before(arm)
    for arm, pull in rewards:
        if arm == state.base:
            _count_against_table(state, cases, arm, pull)
    if state.base in new:
        _open_arms(state, cases)
    for arm, pull in rewards:
        if arm != state.base and state.base >= 0:
            _count_against_table(state, cases, arm, pull)
        elif arm != state.base:
            _count_case(state, cases, arm, pull, state.spec.counted(state.pull_reward[pull - 1]))


def _count_pulls(state: State) -> None:
    """Count the pulls of the histories that go on, and the results that hold."""
    for at, arm in enumerate(state.pull_arm):
        if arm < 0:
            continue
        is_told = state.pull_state[at] in (TOLD, LATE) and at + 1 not in state.strays
        is_imported = bool(state.pull_origin[at] & IMPORTED)
        state.issued += 1
        state.told += is_told
        state.imported += is_imported
        state.own_told += is_told and not is_imported
        if state.pull_state[at] == PENDING:
            state.pending += 1
            state.board.pending[arm] += 1
        if is_told and state.pull_origin[at] & REPEATABLE:
            state.repeatable = True
    texts = (text for pull, text in state.remarks.items() if state.pull_arm[pull - 1] >= 0)
    remarks = filter(None, (event_remarks(Event(0, "told", reason=text)) for text in texts))
    costs = [remark.cost for remark in remarks if remark.cost is not None]
    state.cost = total_event_cost(costs) if costs else None


def _forget_labels(state: State) -> None:
    """Counting settled arms while the results that hold came one by one: it looks once, at the end."""
    state.docket = state.docket._replace(settled=column_of_zeros("q", len(state.docket.settled)))
    state.ranking = blank_ranking_columns(len(state.spec.arms), state.ranking.level)
    state.settled = state.settled_above = 0


def _weigh_again(state: State, arm: int) -> None:
    """Weigh all evidence of an arm anew, against the bar, the edges and the level of today.

    Where both capitals have reached the level, early or late, the mean so far decides.
    """
    if not state.certifies or arm == state.base:
        return
    docket, pull = state.docket, state.first_pull[arm]
    docket.first[arm] = pull
    docket.waiting[arm] = sum(docket.outcome[each] == evidence.TOLD for each in _chain(state, arm))
    if state.cases is not None:
        state.sheet.least[arm] = state.imported_sum(arm)
        state.sheet.most[arm] = state.imported_sum(arm) + state.charged_before(arm)
    label = OPEN
    if pull or arm in state.phases:
        label = resolve_capital_label(_weigh_history(state, arm), state.board.mean[arm], state.stakes.bar)
    if state.cases is not None:
        _settle_by_count(state, arm)
    if label != OPEN and docket.settled[arm] == OPEN:
        docket.settled[arm] = label
        _settle(state, arm)
    if state.ranking.level:
        _rank(state, arm)


def _weigh_history(state: State, arm: int) -> int:
    """Commit everything that can be committed, and return the label that the capitals have reached at any time."""
    docket, capital, stakes = state.docket, _capital(state, arm), state.stakes_of(arm)
    columns, blind = (docket, state.board, state.sheet), stakes._replace(alone=UNREACHED)
    peaks = [0.0, 0.0]

    def look() -> None:
        for side in range(2):
            peaks[side] = max(peaks[side], mean_capital(capital, side * BETS))

    for phase in state.phases.get(arm, ()):
        for _ in revisions.weigh_revision_phase(phase, state.sheet.cases, capital, blind):
            look()
    last = max((pull for pull in _chain(state, arm) if state.pull_origin[pull - 1] & IMPORTED), default=0)
    if last and state.cases is None:
        evidence.weigh_imported_evidence(*columns, arm, capital, blind, last)
        look()
    while docket.first[arm] and evidence.is_evidence_ready(docket, arm, state.board.pending[arm]):
        evidence.commit_first_evidence(*columns, arm, capital, blind)
        look()
    if state.finds:
        evidence.note_evidence_lead(state.board, arm, capital)
    return capital_label(peaks[0], peaks[1], stakes.alone)


def _chain(state: State, arm: int) -> Iterator[int]:
    """The pulls of an arm that evidence comes from, in the order of issue."""
    pull = state.first_pull[arm]
    while pull:
        yield pull
        pull = state.docket.following[pull]


_FOLDS: dict[str, Callable[[State, Event], None]] = {
    "asked": _asked,
    "repeated": _repeated,
    "told": _told,
    "dropped": _dropped,
    "retired": _retired,
    "restored": _restored,
    "extended": _extended,
    "weighed": _weighed,
    "revised": _revised,
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
    is_new = cases.ask(arm, state.last_pull, event_imported_case(event), named=named)
    if arm == state.base:  # nothing is certified about the baseline
        return False
    if state.certifies and not is_new and event.cause != "imported":
        evidence.retry_evidence(state.docket, cases.entry(arm, state.last_pull))
    return is_new


def _count_case(state: State, cases: Cases, arm: int, pull: int, counted: float) -> None:
    """A case has one reward: the first that comes, from whichever try."""
    scaled = state.spec.scale(counted)
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
        _settle_by_count(state, arm)
        _weigh(state, arm)
    _shut(state, arm)


def _settle_by_count(state: State, arm: int) -> None:
    """Settle the arm if its missing rewards no longer matter."""
    before = state.docket.settled[arm]
    if evidence.settle_evidence_by_count(state.docket, state.board, state.sheet, arm, state.ends):
        _settle(state, arm)
        if state.ranking.level:
            _rank(state, arm, counted=True)
    else:  # where bets were wrong, the label has changed
        state.settled_above += (state.docket.settled[arm] == ABOVE) - (before == ABOVE)


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
        stakes = state.stakes_of(arm) if state.arm_stakes else state.stakes
        if evidence.weigh_evidence(docket, board, state.sheet, arm, capital, stakes):
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
    for at in range(error_rate.update_error_rank(ranking, *columns, arm, capital, state.stakes_of(arm), counted)):
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
