"""The guarantee, in a sentence with its assumptions, and hints where arms are still open."""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from ..errors import shown
from ..text.phrasing import listed_phrase, plural
from ..text.quantities import number_text, percent_text
from . import evidence, revisions
from .board import board_total_with_missing
from .error_rate import CERTAIN
from .events import LATE, TOLD
from .evidence import ABOVE, BELOW, BETS, EITHER, OPEN, commit_next_evidence, fresh_capital, mean_capital
from .intervals import interval
from .places import are_places_used_up
from .question import is_above
from .sentences import sentence_wording
from .state import State

SIDE = "an answer only says on which side of the bar the {} is"


class Words(NamedTuple):
    """The words for arms and rewards that fit the readers of a guarantee."""

    arms: str = "arms"
    rewards: str = "an arm's rewards"


USUAL = Words()


def guarantee(ledger: State, words: Words = USUAL) -> str:
    """The guarantee, in one sentence with its assumptions."""
    spec = ledger.spec
    if spec.confidence is None:
        lacking = "a confidence" if spec.limits else "bounds, which certificates need"
        return f"Nothing is certified: the study was created without {lacking}; {SIDE.format('mean')}."
    assumed = _assumed(ledger, words.rewards)
    if isinstance(spec.failure, float):
        assumed += f", a failed evaluation counting as {number_text(spec.failure, exact=True)}"
    if spec.failure == "ignore":
        assumed += ", and whether a pull is lost does not depend on its reward"
    caveats = _caveats(ledger)
    sure, risk = percent_text(spec.confidence, exact=True), percent_text(round(1 - spec.confidence, 12), exact=True)
    if ledger.cases:
        size = ledger.cases.count
        which = "this one case" if size == 1 else f"these {size:,} cases"
        what = "mean over exactly" if spec.baseline is None else "difference from the baseline on exactly"
        caveats = f" The answers are about the {what} {which}.{caveats}"
    if ledger.base in ledger.outside:
        return f"Nothing is certified: a reward of the baseline lay outside the bounds.{caveats}"
    promise = _promise(ledger, words, sure, risk)
    ends = f", whenever you stop, provided that {assumed}.{caveats}"
    if not ledger.certified:
        return f"Nothing is certified yet. Once it is: {promise[0].lower()}{promise[1:]}{ends}"
    return f"{promise}{ends}"


def _promise(ledger: State, words: Words, sure: str, risk: str) -> str:
    """How sure the certified answers are."""
    wording, count = sentence_wording(ledger.spec), ledger.certified
    low, high = (wording.estimate(edge, exact=True) for edge in wording.edges)
    too_bad, too_good = f"under {low}", f"over {high}"
    if wording.lower_is_better and wording.asks != "share":
        too_bad, too_good = too_good, too_bad
    if ledger.spec.guarantee == "rate" and wording.tolerance:
        reached = f"Of the {words.arms} certified to reach it, on average at most {risk} are {too_bad}"
        return f"{reached}; of those certified to miss it, at most {risk} are {too_good}"
    if ledger.spec.guarantee == "rate":
        reached = f"Of the {words.arms} certified to reach it, at most {risk} are wrong on average"
        return f"{reached}, and likewise of those certified to miss it"
    if wording.tolerance:
        right = f"none that reaches it is {too_bad}, and none that misses it is {too_good}"
    elif count > 1:
        right = f"{'both' if count == 2 else f'all {count:,}'} certified answers are right"
    else:
        right = "the certified answer is right" if count else "all certified answers are right"
    return f"With a probability of at least {sure}, {right}"


def _assumed(ledger: State, rewards: str) -> str:
    """The assumptions of the certificates."""
    spec = ledger.spec
    within = ""
    if spec.bounds is not None:
        low, high = spec.bounds
        between = f"between {number_text(low, exact=True)} and {number_text(high, exact=True)}"
        within = f"counted as the nearest number {between}" if spec.clip else between
    if ledger.cases:
        rest = f" and is {within}" if within else ""
        return f"a case's reward does not depend on when or how often it is tried{rest}"
    if spec.pairs:
        rest = f" and rewards are {within}" if within else ""
        return f"the pairs of an arm are independent and identically distributed{rest}"
    if not within:
        return f"{rewards} are independent and identically distributed"
    return f"{rewards} are independent, identically distributed and {within}"


def named_in_guarantee(ledger: State, arms: list[int]) -> str:
    """The first few arms by name, and how many more there are."""
    return listed_phrase([ledger.spec.arms[arm] for arm in arms], show=shown)


def _caveats(ledger: State) -> str:
    """Further facts that limit the guarantee, a sentence each."""
    sentences = []
    if ledger.repeatable:
        sentences.append(
            "Some evaluations were, or may have been, repeated: what is certified is the mean of what the evaluator"
            " finally returns."
        )
    if (again := retried_in_guarantee(ledger)) or ledger.spec.tries > 1:
        sentences.append(_of_retried(ledger, again))
    if ledger.hosted:
        sentences.append("It also assumes that the host which chose the order of the cases had shuffled them.")
    if ledger.outside:
        names = named_in_guarantee(ledger, sorted(ledger.outside))
        sentences.append(f"Not certified, because a reward lay outside the bounds: {names}.")
    sentences += _of_revisions(ledger)
    if ledger.imported:
        they, were = ("it", "was") if ledger.imported == 1 else ("they", "were")
        unknown = f"when, by what and how often {they} {were} evaluated"
        sentences.append(f"{plural(ledger.imported, 'pull')} {were} imported; this log does not record {unknown}.")
    lacking = [arm for arm in range(len(ledger.spec.arms)) if ledger.cases and ledger.cases.missing[arm]]
    if ledger.cases and lacking:
        count = sum(ledger.cases.missing[arm] for arm in lacking)
        tried = f"{plural(count, 'case')} of {named_in_guarantee(ledger, lacking)} failed for good"
        they = "it has no reward, and counts" if count == 1 else "they have no reward, and count"
        sentences.append(f"{tried}: {they} as the worst.")
    if ledger.lacking:
        them = "which counts" if ledger.lacking == 1 else "which count"
        sentences.append(
            f"The baseline has no reward for {plural(ledger.lacking, 'case')}, {them} as the worst for every arm."
        )
    if ledger.unweighed:
        sentences.append("Imported results are weighed all together when the first pull is asked for.")
    return "".join(f" {sentence}" for sentence in sentences)


def _of_revisions(ledger: State) -> list[str]:
    """What earlier revisions mean for the guarantee."""
    lineage, sentences = ledger.lineage, []
    if lineage is None:
        return []
    if lineage.promised is not None:
        sure = f"at least {percent_text(lineage.promised, exact=True)}" if lineage.promised else "no promise"
        if lineage.promised and lineage.rates:
            sure = f"on average {sure} of those to reach the bar, and of those to miss it, are right"
        sentences.append(
            f"This is revision {ledger.revision}. By itself that holds if what was changed did not depend on results;"
            f" for all answers of all {ledger.revision} revisions together, whatever it depended on: {sure}."
        )
    if again := revisions.evaluated_again_in_revisions(ledger):
        were = "result was" if again == 1 else "results were"
        lucky = "if the evaluator is not deterministic, choosing what to edit by its failures favours lucky rewards"
        sentences.append(f"{again:,} {were} evaluated again after an edit: {lucky}.")
    if changes := lineage.vouched.count(lineage.common):
        times = "a change" if changes == 1 else f"{changes} changes"
        sentences.append(
            f"After rewards were measured, there was {times} in what measures them; somebody vouched that this makes no"
            " difference."
        )
    return sentences


def _of_retried(ledger: State, count: int) -> str:
    """How many rewards came after a failed try, and whether the answers depend on them."""
    if not count:
        return "No reward came after a failed try."
    came = f"{plural(count, 'reward')} came after a failed try: answers are about what the evaluator finally returns"
    if not ledger.certified:
        return f"{came}."
    weak = guaranteed_on_retries(ledger)
    its, at = ("it", "its") if count == 1 else ("these", "their")
    if not weak:
        return f"{came}. Every certified answer stands also with {its} at {at} worst."
    would = "answer would not stand" if len(weak) == 1 else "answers would not stand"
    return f"{came}. With {its} at {at} worst, the {would} of {named_in_guarantee(ledger, weak)}."


# -- rewards after a failed try ------------------------------------------------------------------------------------
#
# A case that is tried until it succeeds is no sample, because failures may be bad outcomes. So the labels are checked
# again with each of these rewards at its worst, as if its case had failed for good. This decides nothing.


def retried_in_guarantee(ledger: State) -> int:
    """How many rewards came after a failed try."""
    return sum(ledger.pull_arm[pull - 1] >= 0 for pull in ledger.cases.retried) if ledger.cases else 0


def guaranteed_on_retries(ledger: State) -> list[int]:
    """The arms whose certified label would not be certified with these rewards at their worst."""
    certified = [arm for arm in range(len(ledger.spec.arms)) if ledger.is_certified(arm)]
    level, labels = ledger.ranking.level, ledger.docket.settled
    if not level:
        levels = {arm: ledger.stakes_of(arm).level for arm in certified}
        return [arm for arm in certified if _retried(ledger, arm) and _evidence(ledger, arm) < levels[arm]]
    weak_arms = []
    for label in set(labels) - {OPEN}:
        weights = {arm: level / ledger.stakes_of(arm).level for arm in certified}
        left = {arm: _evidence(ledger, arm) * weights[arm] for arm in certified if labels[arm] == label}
        while weak := [arm for arm, evidence in left.items() if evidence * len(left) < level]:
            weak_arms += weak
            for arm in weak:
                del left[arm]
    return sorted(weak_arms)


def _retried(ledger: State, arm: int) -> set[int]:
    """The cases of an arm whose reward, or the baseline's, came after a failed try."""
    assert ledger.cases is not None
    owners = {arm, ledger.base} - {-1}
    return {ledger.cases.pull_case[pull - 1] for pull in ledger.cases.retried if ledger.pull_arm[pull - 1] in owners}


def _evidence(ledger: State, arm: int) -> float:
    """The arm's evidence for its label with these rewards at their worst; `CERTAIN` if the label stands by itself."""
    retried, label = _retried(ledger, arm), ledger.docket.settled[arm]
    assert ledger.cases is not None
    docket, stakes, capital = ledger.docket, ledger.stakes_of(arm), fresh_capital()
    known = ledger.imported_sum(arm)
    cases, table, spec = ledger.cases.pull_case, ledger.table, ledger.spec
    fixed = [pull for pull in ledger.cases.retried if ledger.pull_arm[pull - 1] == arm and ledger.sheet.place[pull] < 0]
    lost = math.fsum(
        spec.scale(spec.counted(ledger.pull_reward[pull - 1], table.get(cases[pull - 1], 0.0))) for pull in fixed
    )
    most = known + ledger.charged_before(arm) + len(fixed) - lost
    counts: Any = [{arm: start} for start in (0, known - lost, most)]
    sums = ledger.sheet._replace(least=counts[1], most=counts[2])
    passed = docket._replace(committed=counts[0], charged={arm: 0})  # type: ignore[arg-type]  # columns of one arm
    pull = ledger.first_pull[arm]
    while pull != 0:
        is_told = docket.outcome[pull] == evidence.TOLD and ledger.cases.pull_case[pull - 1] not in retried
        low, high = (docket.reward[pull], docket.reward[pull]) if is_told else (0.0, 1.0)
        if commit_next_evidence(passed, sums, arm, capital, stakes, low, high) in (label, EITHER):
            return CERTAIN
        counts[0][arm] += 1
        pull = docket.following[pull]
    return CERTAIN if _is_counted(ledger, arm, retried) else mean_capital(capital, (label - 1) * BETS)


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
    low, high = (board_total_with_missing(total, board.residue[arm], missing, end) for end in spec.span)
    label = ledger.docket.settled[arm]
    if label == ABOVE:
        return is_above(low, ledger.cases.count, spec.low_reach)
    return label == BELOW and not is_above(high, ledger.cases.count, spec.high_reach)


# -- hints ---------------------------------------------------------------------------------------------------------

IS_OUTSIDE = "returned a reward outside the bounds"
NEW_STUDY = "a new study needs the bounds that rewards can really take"
WIDEST = 0.5  # the widest tolerance that a hint proposes, as a share of the way from the bar to the nearer bound


def guarantee_hints(ledger: State) -> tuple[str, ...]:
    """How to go on after a study that ended with open arms, a sentence each; every hint names its arms."""
    if not ledger.certifies or not ledger.done:
        return ()
    arms = range(len(ledger.spec.arms))
    over = {*ledger.retired, *ledger.outside, ledger.base}  # no pull can help them
    left = [arm for arm in arms if ledger.docket.settled[arm] == OPEN and arm not in over]
    if ledger.base in ledger.retired and (ledger.awaits or ledger.base in ledger.outside):
        name = named_in_guarantee(ledger, [ledger.base])
        return (f"The baseline {name} is retired, and no arm can be compared: find out why it fails.",)
    if ledger.base in ledger.outside:
        name = named_in_guarantee(ledger, [ledger.base])
        return (f"The baseline {name} {IS_OUTSIDE}, so no arm can be certified in this study: {NEW_STUDY}.",)
    if ledger.spec.find is not None and ledger.found >= ledger.spec.find:
        return ()
    lacking = [arm for arm in arms if _lacks_cases(ledger, arm)]
    stuck = [arm for arm in left if not ledger.cases and _is_stuck(ledger, arm)]
    slow = [arm for arm in left if arm not in stuck and not are_places_used_up(ledger.sheet, arm)]
    sentences = []
    if lacking:
        why = "without the cases that failed"
        worst = ledger.spec.worst
        counts = "=" if worst is None else f"={number_text(worst, exact=True)}"
        counts += " says what a failure counts as" if worst is None else f" counts a failure as {counts[1:]}"
        remedy = f"in a new study, failure{counts}; or repair what fails"
        sentences.append(f"{named_in_guarantee(ledger, lacking)} cannot be settled {why}: {remedy}.")
    if stuck:
        them = "it" if len(stuck) == 1 else "them"
        why = f"are lost that no number of pulls would settle {them}"
        sentences.append(f"So many pulls of {named_in_guarantee(ledger, stuck)} {why}: find out why pulls are lost.")
    if ledger.outside:
        names = named_in_guarantee(ledger, sorted(ledger.outside))
        sentences.append(f"{names} {IS_OUTSIDE}, and can never be certified in this study: {NEW_STUDY}.")
    if slow:
        is_open, them = ("is", "it") if len(slow) == 1 else ("are", "them")
        budget = f"{named_in_guarantee(ledger, slow)} {is_open} still open; a larger budget would continue with {them}"
        tolerance = _settling_tolerance(ledger, slow)
        settled = f", and a tolerance of about {tolerance} would have settled {them} (an estimate)" if tolerance else ""
        sentences.append(f"{budget}{settled}.")
    return tuple(sentences)


def _lacks_cases(ledger: State, arm: int) -> bool:
    """Whether the arm stays open for cases that failed: no others are left, or it was retired for them."""
    is_open = ledger.docket.settled[arm] == OPEN and arm not in ledger.outside and arm != ledger.base
    if ledger.cases is None or not ledger.cases.missing[arm] or not is_open:
        return False
    limit = ledger.spec.max_failures
    failed = limit is not None and ledger.streak[arm] >= limit
    return failed if arm in ledger.retired else are_places_used_up(ledger.sheet, arm)


def _settling_tolerance(ledger: State, left: list[int]) -> str | None:
    """About which tolerance would have settled these arms, from the ends of their intervals; None: one of no use."""
    spec, wording = ledger.spec, sentence_wording(ledger.spec)
    needed = 0.0
    for arm in left:
        ends = interval(ledger, arm, None)
        needed = max(needed, min(wording.bar - ends.low, ends.high - wording.bar))
    low, high = spec.span
    tolerance = next((step for step in _steps(high - low) if step >= needed), None)
    if tolerance is None or tolerance > WIDEST * min(spec.bar - low, high - spec.bar) or tolerance <= spec.tolerance:
        return None
    return wording.distance(tolerance)


def _steps(width: float) -> Iterator[float]:
    """Round tolerances, the smallest first, for rewards in a range of this width."""
    begin = 10.0 ** math.floor(math.log10(width) - 4)
    for power in range(5):
        for digit in (1, 2, 3, 5):
            yield float(f"{digit * begin * 10.0**power:.6g}")


def _is_stuck(ledger: State, arm: int) -> bool:
    """Whether the arm can never be settled if it keeps losing as large a share of its pulls.

    Lost pulls count as 0 to "above" and as 1 to "below", so with share c lost and told mean m the two capitals see
    means of (1 − c) m and c + (1 − c) m.
    """
    docket, stakes = ledger.docket, ledger.stakes_of(arm)
    charged, seen = docket.charged[arm], ledger.board.seen[arm]
    if not charged or not docket.committed[arm]:
        return False
    share = charged / (charged + docket.committed[arm])
    mean = (ledger.board.total[arm] + ledger.board.residue[arm]) / seen
    low = (1.0 - share) * ledger.spec.scale(mean)
    return low <= stakes.low_edge and share + low >= stakes.high_edge
