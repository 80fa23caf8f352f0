"""Revisions: what a study takes over when its arms, cases, files or question change.

A result holds as long as nothing changes that it depends on: what measures all rewards, the parameters and files of its
arm, and those of its case. The bar, the tolerance, the confidence, the budget, the policy and the other arms are not
among these. An arm's *history*, all its pulls in the order of issue, goes on if nothing changed at all that it depends
on, which with cases includes the list of cases and the baseline. Otherwise a new history begins without any evidence:
with cases, its results that still hold are known before its order of cases is drawn; without, it takes nothing over.

Reusing results invites selection. docs/explanation/revisions.md says which rules prevent it and what is promised.
"""

import hashlib
import json
import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, MutableSequence
from copy import copy
from typing import Any, Literal, NamedTuple

from .events import LATE, OUTSIDE, TOLD
from .evidence import BETS, Stakes, bet_capital
from .evidence import TOLD as TOLD_EVIDENCE
from .spec import Spec, question_differences
from .state import State

Taking = Literal["fresh", "vouched"] | None  # what a revision takes over, where that is not the usual


class Depends(NamedTuple):
    """The files on which results depend, each with a digest of its content."""

    files: Mapping[str, str]  # of all results: the code that measures them
    arms: Mapping[str, Mapping[str, str]]  # of an arm's, by its name
    cases: Mapping[str, Mapping[str, str]]  # of a case's, by its name


def revision_depends(spec: Spec) -> Depends:
    """The files on which a specification's results depend."""
    data = spec.depends or {}
    return Depends(*(data.get(name, {}) for name in Depends._fields))


def revision_common_key(spec: Spec) -> str:
    """What all results depend on."""
    return json.dumps([spec.evaluator, dict(revision_depends(spec).files)], sort_keys=True)


def revision_arm_keys(spec: Spec) -> list[str]:
    """What the results of each arm depend on besides; of pairs, that includes the baseline."""
    files = revision_depends(spec).arms
    keys = [_key(name, spec.params and spec.params[arm], files.get(name)) for arm, name in enumerate(spec.arms)]
    return [f"{key} {keys[spec.base]}" for key in keys] if spec.pairs else keys


def revision_case_keys(spec: Spec) -> list[str]:
    """What the results of each case depend on besides."""
    files, names = revision_depends(spec).cases, map(spec.case_name, range(spec.case_count))
    return [
        _key(name, spec.case_params and spec.case_params[case], files.get(str(name))) for case, name in enumerate(names)
    ]


def _key(name: object, params: Any, files: Mapping[str, str] | None) -> str:
    if not params and not files:
        return json.dumps(name)
    return json.dumps([name, dict(params or {}), dict(files or {})], sort_keys=True)


def revision_counting_key(spec: Spec) -> str:
    """What a reward counts as: evidence about one count is none about another."""
    limit = spec.stated_bar if spec.share is not None else None
    fields = (spec.bounds, spec.clip, spec.share, spec.ratio, spec.lower_is_better, limit, spec.failure)
    return json.dumps([*fields, spec.baseline, spec.pairs, spec.confidence is not None])


# -- what led to a revision ------------------------------------------------------------------------------------------


class Past(NamedTuple):
    """An earlier revision: what it asked, and of which arm and case each of its pulls was."""

    spec: Spec
    first: int  # how many pulls had been issued before it
    common: int  # revisions with the same number have the same common dependencies, or somebody vouched for that
    arms: "array[int]"  # of each of its pulls
    cases: "array[int]"  # ... or empty
    failed: Mapping[int, set[int]]  # by arm: cases that had failed for good
    told: int  # rewards at its end
    held: int  # results that it took over from the revision before it
    again: int  # ... and from earlier ones
    last: int  # the number of its last event


class Ended(NamedTuple):
    """A history that does not go on at present; it does if what it depends on comes back."""

    state: State  # as it was at the end
    arm: int  # its arm there
    pulls: "frozenset[int]"


class Phase(NamedTuple):
    """Evidence of an arm about an earlier list of cases, in the order of its places."""

    cases: frozenset[str]  # the list, by what results depend on
    lows: "array[float]"  # the rewards that the capital for above sees
    highs: "array[float]"  # ... and the one for below
    places: int  # how many cases had no reward before
    least: float  # the sum of the others
    most: float
    low_shift: float  # what the sum over the old list has beyond that over today's, at most
    high_shift: float  # ... and at least


class RevisionLineage:
    """What led to a study's present revision."""

    def __init__(self, spec: Spec) -> None:
        self.pasts: list[Past] = []
        self.first = 0  # how many pulls had been issued before the present revision
        self.common = 0  # its number of what all results depend on
        self.commons = {revision_common_key(spec): 0}  # the numbers, since the last revision that took nothing over
        self.taking: Taking = None
        self.held = 0  # results that the present revision took over from the one before it
        self.again = 0  # ... and from earlier ones
        self.vouched: list[int] = []  # of each change that somebody vouched for: the number of what results depend on
        self.ended: dict[str, Ended] = {}
        self.begun = [spec.contenders]  # of each revision: histories that began, or met another list of cases
        self.arms = [spec.contenders]  # ... and how many arms were asked about
        self.moved = False  # whether the bar of a history was moved
        self.confidence = spec.confidence  # the lowest that was asked for
        self.rates = spec.guarantee == "rate"  # whether only the error rate was bounded in any revision
        self.edited: set[tuple[int, int]] | None = None  # a cache of `evaluated_again_in_revisions`

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, RevisionLineage) and self.begun == other.begun and self.ended.keys() == other.ended.keys()
        )

    __hash__ = None  # type: ignore[assignment]  # it changes

    @property
    def risk(self) -> float | None:
        """At most with this probability, any answer of any revision is wrong; None: nothing is certified.

        Where the error rate is bounded: at most this share of the answers to reach the bar, on average, and of those to
        miss it. Each revision has lists of its own, so the shares add up.
        """
        if self.confidence is None:
            return None
        shares = sum(begun / arms for begun, arms in zip(self.begun, self.arms, strict=True))
        times = len(self.begun) if self.rates else 2.0 if self.moved else 1.0
        return (1.0 - self.confidence) * shares * times

    @property
    def promised(self) -> float | None:
        """At least with this probability, all answers of all revisions are right; None: nothing is certified."""
        return None if self.risk is None else max(0.0, math.floor(1e4 * (1.0 - self.risk)) / 1e4)

    def number_of(self, spec: Spec, taking: Taking) -> int:
        """The number of what all results of a specification depend on, and keep it."""
        key, largest = revision_common_key(spec), max(self.commons.values(), default=0)
        if taking == "fresh":
            self.commons = {key: max(largest, self.common) + 1}
        elif taking == "vouched":
            self.commons[key] = self.common
        return self.commons.setdefault(key, max(largest, self.common) + 1)


def revision_spec_of_pull(state: State, pull: int) -> Spec:
    """What was asked when a pull was issued."""
    pasts = state.lineage.pasts if state.lineage is not None and pull <= state.lineage.first else []
    return next((past.spec for past in reversed(pasts) if pull > past.first), state.spec)


class Source(NamedTuple):
    """Where an arm of a new revision comes from."""

    ended: Ended | None  # its history goes on; None: a new one begins
    known: Mapping[int, int]  # with cases: those whose results hold, and the pull of each, in their order
    failed: set[int]  # cases that failed for good and still count as failed
    translated: int | None  # the arm before, if only the list of cases changed: its evidence counts on
    values: Mapping[str, float]  # ... and the rewards of its cases, by what they depend on


def revision_history_keys(spec: Spec, common: int) -> list[str]:
    """What each arm's history depends on. With cases, that is also their list and the baseline."""
    keys = revision_arm_keys(spec)
    rest: list[object] = [common, revision_counting_key(spec)]
    if spec.cases is not None:
        rest += [revision_case_keys(spec), keys[spec.base] if spec.base >= 0 else None]
    digest = hashlib.sha256(json.dumps(rest).encode()).hexdigest()
    return [f"{digest} {key}" for key in keys]


def revision_sources(state: State, spec: Spec, taking: Taking) -> list[Source]:
    """Where the arms of a revision come from. This changes nothing but the lineage's numbers."""
    lineage = state.lineage
    here = dict(zip(revision_history_keys(state.spec, lineage.common), range(len(state.spec.arms)), strict=True))
    common = lineage.number_of(spec, taking)
    results, failures = _results(state, common) if spec.cases is not None else ({}, {})
    cases, arms = revision_case_keys(spec) if results or failures else [], revision_arm_keys(spec)
    index = {name: case for case, name in enumerate(cases)}
    goes_on = common == lineage.common and revision_counting_key(state.spec) == revision_counting_key(spec)
    translates = goes_on and spec.confidence is not None and spec.base < 0 and spec.cases and state.spec.cases
    before = {name: arm for arm, name in enumerate(revision_arm_keys(state.spec))} if translates else {}
    sources = []
    for key, arm in zip(revision_history_keys(spec, common), arms, strict=True):
        mine = results.get(arm, {})
        known = dict(sorted((index[name], pull) for name, pull in mine.items() if name in index))
        failed = {index[name] for name in failures.get(arm, ()) if name in index} - known.keys()
        ended = lineage.ended.get(key)
        if key in here:
            ended = Ended(state, here[key], frozenset())
        elif ended is not None and not _has_all(ended, known, failed):
            ended = None
        translated = before.get(arm) if ended is None else None
        if translated is not None and 2 * len(known) < state.board.seen[translated]:
            translated = None  # evidence about other cases would be a burden
        has_phases = translated is not None or (ended is not None and ended.arm in ended.state.phases)
        values = {case: state.pull_reward[pull - 1] for case, pull in mine.items()} if has_phases else {}
        sources.append(Source(ended, known, failed, translated, values))
    return sources


def _has_all(ended: Ended, known: Mapping[int, int], failed: set[int]) -> bool:
    """Whether a history that ended has all that is known of its cases today, and no other history more."""
    cases = ended.state.cases
    return ended.pulls.issuperset(known.values()) and (cases is None or failed <= cases.given_up(ended.arm))


def _results(state: State, common: int) -> tuple[dict[str, dict[str, int]], dict[str, set[str]]]:
    """By what it depends on: the first result of each arm and case, and the cases of an arm that failed for good."""
    results: dict[str, dict[str, int]] = {}
    failures: dict[str, set[str]] = {}
    for past in [*state.lineage.pasts, present_revision(state)]:
        if past.common != common or past.spec.cases is None:
            continue
        arms, cases = revision_arm_keys(past.spec), revision_case_keys(past.spec)
        for arm, failed in past.failed.items():
            failures.setdefault(arms[arm], set()).update(cases[case] for case in failed)
        for pull, (arm, case) in enumerate(zip(past.arms, past.cases, strict=True), past.first + 1):
            if has_result_in_revision(state, pull) or state.pull_state[pull - 1] == OUTSIDE:
                results.setdefault(arms[arm], {}).setdefault(cases[case], pull)
    return results, failures


def has_result_in_revision(state: State, pull: int) -> bool:
    """Whether a pull has a reward that its revision counted."""
    is_told = state.pull_state[pull - 1] in (TOLD, LATE) and pull not in state.strays
    return is_told and not (state.cases and pull in state.cases.spare)


def pulls_with_result_in_revision(state: State) -> Iterator[int]:
    """The pulls of the present histories that have a result."""
    return (
        pull for pull, arm in enumerate(state.pull_arm, start=1) if arm >= 0 and has_result_in_revision(state, pull)
    )


# -- translation: evidence about another list of cases -----------------------------------------------------------------


def revision_phase(state: State, arm: int, cases: frozenset[str]) -> Phase:
    """The evidence of an arm about the present list of cases.

    Every case that was ever handed out counts, one without a reward as the worst: its reward may have been kept back.
    """
    docket, lows, highs = state.docket, array("d"), array("d")
    pull = state.first_pull[arm]
    while pull:
        is_told = docket.outcome[pull] == TOLD_EVIDENCE
        lows.append(docket.reward[pull] if is_told else 0.0)
        highs.append(docket.reward[pull] if is_told else 1.0)
        pull = docket.following[pull]
    known = state.imported_sum(arm)
    return Phase(cases, lows, highs, state.sheet.places[arm], known, known + state.charged_before(arm), 0.0, 0.0)


def translated_revision_phase(phase: Phase, spec: Spec, now: frozenset[str], values: Mapping[str, float]) -> Phase:
    """The same evidence against a bar for today's cases.

    The sum over the old list is today's without the new cases and with those that are gone; a case without a reward
    counts as whatever is worse for the claim.
    """
    low = high = 0.0
    for cases, sign in ((phase.cases - now, 1.0), (now - phase.cases, -1.0)):
        for case in sorted(cases):
            value = values.get(case)
            if value is None or spec.is_outside(value):
                low, high = low + (sign > 0), high - (sign < 0)
            else:
                scaled = spec.scale(spec.counted(value))
                low, high = low + sign * scaled, high + sign * scaled
    return phase._replace(low_shift=low, high_shift=high)


def weigh_revision_phase(phase: Phase, cases: int, capital: MutableSequence[float], stakes: Stakes) -> Iterator[int]:
    """Bet the evidence of a phase against today's bar, a case at a time; yields what is settled then.

    The bets are those for the edges that today's mean for the old list. For other edges they would be chosen with the
    list: only with these, every edge and every list has the same one process above it.
    """
    left, least, most = phase.places, phase.least, phase.most
    low_total = cases * stakes.low_edge + phase.low_shift
    high_total = cases * stakes.high_edge + phase.high_shift
    count = len(phase.cases)
    edges = (stakes.low_edge, low_total / count), (1.0 - stakes.high_edge, 1.0 - high_total / count)
    bets = list(stakes.bets)
    for side, (now, then) in enumerate(edges):
        if then > 0.0:  # otherwise the claim is disproved, or no reward can tell
            bets[side * BETS : (side + 1) * BETS] = [bet * now / then for bet in bets[side * BETS : (side + 1) * BETS]]
    stakes = stakes._replace(bets=tuple(bets))
    for low, high in zip(phase.lows, phase.highs, strict=True):
        bars = (low_total - least) / left, (high_total - most) / left
        yield bet_capital(capital, stakes, low, high, *bars)
        left, least, most = left - 1, least + low, most + high


def present_revision(state: State) -> Past:
    """The present revision, as a past one."""
    lineage, cases, first = state.lineage, state.cases, state.lineage.first
    failed = {arm: given_up for arm in range(len(state.spec.arms)) if cases and (given_up := cases.given_up(arm))}
    places = cases.pull_case[first:] if cases else array("q")
    arms, told = state.pull_arm[first:], len(list(pulls_with_result_in_revision(state)))
    return Past(state.spec, first, lineage.common, arms, places, failed, told, lineage.held, lineage.again, state.seq)


def end_histories_for_revision(state: State, new: State, sources: list[Source], taking: Taking) -> None:
    """Note in the lineage what ends with a revision, and what begins."""
    lineage, spec = state.lineage, new.spec
    going = {source.ended.arm for source in sources if source.ended and source.ended.state is state}
    keys = revision_history_keys(state.spec, lineage.common)
    ends = {arm: set[int]() for arm in range(len(state.spec.arms)) if arm not in going}
    for pull, arm in enumerate(state.pull_arm, start=1):
        if arm in ends:
            ends[arm].add(pull)
    for arm, pulls in ends.items():
        waits = state.awaits and arm != state.base  # for rewards of the baseline that will open its cases
        if not waits and any(has_result_in_revision(state, pull) for pull in pulls):
            lineage.ended[keys[arm]] = Ended(state, arm, frozenset(pulls))
    lineage.pasts.append(present_revision(state))
    lineage.first, lineage.taking, lineage.edited = state.last_pull, taking, None
    lineage.common = lineage.number_of(spec, None)
    if taking == "vouched":
        lineage.vouched.append(lineage.common)
    for source in sources:
        if source.ended is not None and source.ended.state is not state:
            lineage.ended = {key: ended for key, ended in lineage.ended.items() if ended is not source.ended}
    contenders = [source for arm, source in enumerate(sources) if arm != new.base]
    lineage.begun.append(sum(source.ended is None for source in contenders))
    lineage.arms.append(spec.contenders)
    going_on = (source.ended for source in contenders if source.ended is not None)
    lineage.moved = lineage.moved or any(ended.state.spec.bar != spec.bar for ended in going_on)
    lineage.rates = lineage.rates or spec.guarantee == "rate"
    if spec.confidence is not None:
        lineage.confidence = min(spec.confidence, lineage.confidence or 1.0)


# -- what changed, for people ------------------------------------------------------------------------------------------


class Changes(NamedTuple):
    """How two specifications differ; names are those of arms, cases and files."""

    arms_new: tuple[str, ...] = ()
    arms_gone: tuple[str, ...] = ()
    arms_changed: tuple[str, ...] = ()  # by their parameters
    cases_new: tuple[str, ...] = ()
    cases_gone: tuple[str, ...] = ()
    cases_changed: tuple[str, ...] = ()
    files: tuple[str, ...] = ()  # of single arms or cases, whose content changed
    common: tuple[str, ...] = ()  # files on which all results depend
    evaluator: bool = False  # the command, or another text that identifies what measures the rewards
    question: tuple[str, ...] = ()  # other differences, in words
    results: int = 0  # that there were
    held: int = 0  # ... and how many of them still hold
    again: int = 0  # results of earlier revisions that did not hold, and do now
    files_new: tuple[str, ...] = ()  # of `files` and `common`: those on which nothing depended before
    files_gone: tuple[str, ...] = ()  # ... and those on which nothing depends now

    @property
    def any(self) -> bool:
        """Whether anything changed."""
        return any(self[:10])


def in_order_of_revision(before: Spec, spec: Spec) -> Spec:
    """The specification with its cases in the order of an earlier one, and new cases last: the order means nothing."""
    if not isinstance(before.cases, tuple) or not isinstance(spec.cases, tuple):
        return spec
    index = before.case_index
    order = sorted(range(spec.case_count), key=lambda case: index.get(spec.cases[case], len(index)))  # type: ignore[index]
    return spec.with_cases(order)


def spec_changes(before: Spec, after: Spec) -> Changes:
    """How two specifications differ."""
    mine, other = revision_depends(before), revision_depends(after)
    arms = _named_changes(_entries(before.arms, before.params), _entries(after.arms, after.params))
    names = [tuple(map(str, map(spec.case_name, range(spec.case_count)))) for spec in (before, after)]
    cases = _named_changes(_entries(names[0], before.case_params), _entries(names[1], after.case_params))
    kept = {*before.arms} & {*after.arms}, {*names[0]} & {*names[1]}
    files: dict[str, None] = {}
    for group, other_group, names_kept in zip(mine[1:], other[1:], kept, strict=True):
        for name in group.keys() | other_group.keys():
            if name in names_kept:
                files |= dict.fromkeys(_changed_files(group.get(name, {}), other_group.get(name, {})))
    common = _changed_files(mine.files, other.files)
    named, still = _file_names(before), _file_names(after)
    differing = {*files, *common}
    new, gone = (tuple(sorted(differing & names)) for names in (still - named, named - still))
    is_other = before.evaluator != after.evaluator
    question = tuple(question_differences(after, before))  # what it is now, not what it was
    changes = Changes(*arms, *cases, tuple(sorted(files)), common, is_other, question)
    return changes._replace(files_new=new, files_gone=gone)


def _file_names(spec: Spec) -> set[str]:
    files, *groups = revision_depends(spec)
    return {*files, *(name for group in groups for digests in group.values() for name in digests)}


def _entries(names: Iterable[str], params: Any) -> dict[str, Any]:
    return {name: dict(params[at]) if params else {} for at, name in enumerate(names)}


def _named_changes(
    mine: Mapping[str, Any], other: Mapping[str, Any]
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """The names that are new, those that are gone, and those with other parameters."""
    new = tuple(name for name in other if name not in mine)
    gone = tuple(name for name in mine if name not in other)
    return new, gone, tuple(name for name in other if name in mine and mine[name] != other[name])


def _changed_files(mine: Mapping[str, str], other: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(sorted(name for name in mine.keys() | other.keys() if mine.get(name) != other.get(name)))


def revision_changes(state: State, spec: Spec, taking: Taking = None) -> Changes:
    """How a specification differs from the study's, and how many of its results hold."""
    trial = copy(state)
    trial.lineage = copy(state.lineage or RevisionLineage(state.spec))
    trial.lineage.commons = dict(trial.lineage.commons)
    sources = revision_sources(trial, spec, taking)
    going = {source.ended.arm for source in sources if source.ended and source.ended.state is trial}
    results = set(pulls_with_result_in_revision(state))
    taken = {pull for pull in results if state.pull_arm[pull - 1] in going}
    for source in sources:
        if source.ended is None:
            taken.update(source.known.values())
        elif source.ended.state is not trial:
            taken.update(pull for pull in source.ended.pulls if has_result_in_revision(state, pull))
    held = len(taken & results)
    return spec_changes(state.spec, spec)._replace(results=len(results), held=held, again=len(taken) - held)


# -- looking back ------------------------------------------------------------------------------------------------------


def revision_at(state: State, seq: int) -> tuple[int, Spec]:
    """The revision in which an event was written, and what it asks. `revised` is the first event of its revision."""
    pasts = state.lineage.pasts if state.lineage else ()
    for revision, past in enumerate(pasts, start=1):
        if seq <= past.last:
            return revision, past.spec
    return state.revision, state.spec


def changes_in_revision(state: State, revision: int) -> Changes:
    """What a revision changed, of a study that has had it; revision 1 changed nothing."""
    if revision == 1:
        return Changes()
    pasts = [*state.lineage.pasts, present_revision(state)]
    before, after = pasts[revision - 2 : revision]
    return spec_changes(before.spec, after.spec)._replace(results=before.told, held=after.held, again=after.again)


def evaluated_again_in_revisions(state: State) -> int:
    """With cases: results of arms and cases that had an earlier result, which no longer holds."""
    if state.lineage is None or state.cases is None:
        return 0
    lineage = state.lineage
    if lineage.edited is None:
        lineage.edited = _edited(state)
    if not lineage.edited:
        return 0
    pulls = zip(state.pull_arm, state.cases.pull_case, state.pull_state, strict=True)
    results = ((arm, case) for arm, case, told in pulls if arm >= 0 and told in (TOLD, LATE))
    return len(lineage.edited.intersection(results))


def _edited(state: State) -> set[tuple[int, int]]:
    """The arms and cases of the present revision that had a result which no longer holds."""
    spec, edited = state.spec, set[tuple[int, int]]()
    cases = {str(spec.case_name(case)): case for case in range(spec.case_count)}
    for past in state.lineage.pasts:
        arms = [spec.index.get(name) for name in past.spec.arms]
        names = [cases.get(str(past.spec.case_name(case))) for case in range(past.spec.case_count)]
        for pull, (arm, case) in enumerate(zip(past.arms, past.cases, strict=False), start=past.first + 1):
            if state.pull_arm[pull - 1] < 0 and has_result_in_revision(state, pull):
                edited.add((arms[arm], names[case]))
    return {pair for pair in edited if None not in pair}
