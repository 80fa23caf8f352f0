"""Which event may follow which. Nothing here changes any state."""

from ..errors import AlreadyTold, InvalidInput
from . import checks, spec
from .board import SHUT
from .cases import Cases
from .events import (
    CAUSES,
    DROPPED,
    LATE,
    OUTSIDE,
    PENDING,
    REPEATABLE,
    TOLD,
    Event,
    event_baseline_reward,
    event_remarks,
)
from .state import State


def check_event_validity(study: State, event: Event) -> None:
    """Raise, and change nothing, unless the event may follow those before it."""
    check_validity_of_order(study, event)
    RULES[event.kind](study, event)


def check_validity_of_order(study: State, event: Event) -> None:
    """Raise unless an event of this kind may come next, whatever else it says."""
    if event.seq != study.seq + 1:
        raise InvalidInput("event", event.seq, f"must have the number {study.seq + 1}")
    if study.due is not None and (event.kind, event.arm, event.cause) != ("retired", study.due, "failures"):
        raise InvalidInput("event", event.kind, f"the retirement of arm {study.due} must come first")
    if (
        study.cases
        and study.pending
        and study.issued == study.imported
        and (event.kind not in ("told", "repeated") or event.pull != study.last_pull)
    ):
        raise InvalidInput("event", event.kind, "the reward of the imported case must come first")
    if event.kind not in RULES:
        raise InvalidInput("event", event.kind, "is not a kind that this version knows", "update thresher")


def _asked(study: State, event: Event) -> None:
    if event.pull != study.last_pull + 1:
        raise InvalidInput("pull", event.pull, f"the next pull is {study.last_pull + 1}")
    arm, cause = event.arm, event.cause
    if arm is None or not 0 <= arm < len(study.asked):
        arm = _arm_of(study, event)
    if cause != "imported" and study.unweighed:
        raise InvalidInput("event", event.kind, "the imported results must be weighed first")
    if cause is not None:
        _check_cause(study, event, arm)
    if study.budget is not None and study.issued >= study.budget:
        raise InvalidInput("budget", study.budget, "is issued", "extend the study")
    if study.board.shut[arm] == SHUT and cause != "imported":
        raise InvalidInput("arm", study.spec.arms[arm], "takes no further pulls")


def _check_cause(study: State, event: Event, arm: int) -> None:
    """A pull that the study did not choose by itself was imported, or chosen by the caller."""
    if event.cause == "imported":
        if study.spec.pairs:
            raise InvalidInput("arm", study.spec.arms[arm], "is compared in pairs, which cannot be imported")
        if study.issued > study.imported or study.weighed:
            raise InvalidInput("arm", study.spec.arms[arm], "rewards can be imported only before the first ask")
        if study.cases:
            _check_case(study, arm, event.reason)
    elif event.cause == "chosen":
        if event.reason is not None:
            _check_named(study, arm, event.reason)
    else:
        raise InvalidInput("cause", event.cause, "must be imported, chosen or absent")


def _check_case(study: State, arm: int, text: str | None) -> None:
    """An imported pull names its case, by number, and no case of an arm is imported twice."""
    assert study.cases
    case = _case(study.cases, text)
    if case in study.cases.imported.get(arm, ()):
        name = study.spec.case_name(case)
        raise InvalidInput("case", name, f"was imported before for arm {study.spec.arms[arm]!r}", "give it once")


def _check_named(study: State, arm: int, text: str) -> None:
    """A host's case must be one that its arm may still try. Under "rate", hosts name none: see `certifying.md`."""
    if not study.cases or study.spec.guarantee == "rate" or study.base >= 0:
        raise InvalidInput("case", text, "a host chooses cases only in a study with cases, a bar and guarantee 'all'")
    case = _case(study.cases, text)
    if str(case) != text:
        raise InvalidInput("case", text, f"is written as {case}")
    if not study.cases.is_free(arm, case):
        rule = f"is known, pending or given up for arm {study.spec.arms[arm]!r}"
        raise InvalidInput("case", study.spec.case_name(case), rule)


def _case(cases: Cases, text: str | None) -> int:
    if text is None or not text.isdecimal() or not int(text) < cases.count:
        raise InvalidInput("case", text, f"must be a number from 0 to {cases.count - 1}")
    return int(text)


def _told(study: State, event: Event) -> None:
    spec, pull, reward = study.spec, event.pull, event.reward
    state = study.pull_state[pull - 1] if type(pull) is int and 0 < pull <= study.last_pull else study.state_of(pull)
    bounds = spec.bounds
    if study.pull_arm[pull - 1] < 0:  # type: ignore[operator]  # checked by state_of
        _check_ended(event, state)
        return
    if type(reward) is not float or bounds is None or not bounds[0] <= reward <= bounds[1]:
        spec.reward(reward)  # raises if it is no reward
    if spec.pairs:
        spec.reward(event_baseline_reward(event))
        if event.cause == "failed":
            raise InvalidInput("cause", event.cause, "a failed pull of a pair has no reward")
    elif event.reason is not None:
        remarks = event_remarks(event)
        if remarks is None or remarks.baseline is not None:
            raise InvalidInput("reason", event.reason, "of a reward must be its note and cost")
    if state in (TOLD, LATE, OUTSIDE):
        before = study.pull_reward[pull - 1]  # type: ignore[operator]  # checked by state_of
        raise AlreadyTold(f"pull {pull}, reward", reward, f"it was told {before!r} before", "a pull has one reward")
    if bool(event.late) != (state == DROPPED):
        raise InvalidInput("late", event.late, "marks rewards of dropped pulls, and only those")


def _check_ended(event: Event, state: int) -> None:
    """The reward of a pull whose history has ended: any number, once."""
    checks.checked_number("reward", event.reward)
    if state != DROPPED:
        raise AlreadyTold(f"pull {event.pull}, reward", event.reward, "it was told before", "a pull has one reward")
    if not event.late or event_remarks(event) is None:
        raise InvalidInput("event", event.kind, "of a history that has ended is late, with a note and a cost at most")


def _repeated(study: State, event: Event) -> None:
    study.state_of(event.pull)
    at: int = event.pull - 1  # type: ignore[operator]  # checked by state_of
    if study.pull_origin[at] & REPEATABLE:
        raise InvalidInput("pull", event.pull, "is known to be repeated")
    if event.arm != study.arm_of(at + 1) or event[4:9] != (None,) * 5:
        raise InvalidInput("event", event.kind, "has a pull and its arm, and nothing else")


def _dropped(study: State, event: Event) -> None:
    if study.state_of(event.pull) != PENDING:
        raise AlreadyTold("pull", event.pull, "is no longer pending")
    if event.cause not in CAUSES:
        raise InvalidInput("cause", event.cause, f"must be one of {', '.join(CAUSES)}")


def _retired(study: State, event: Event) -> None:
    arm = _arm_of(study, event)
    if event.cause == "failures" and arm != study.due:
        raise InvalidInput("arm", study.spec.arms[arm], "has not failed often enough to be retired by rule")
    if event.cause == "bounds":
        _check_outside(study, event, arm)
    elif arm in study.retired:
        raise InvalidInput("arm", study.spec.arms[arm], "is retired already")
    elif arm == study.base and event.cause != "failures":
        raise InvalidInput("arm", study.spec.arms[arm], "is the baseline, which every other arm needs")


def _check_outside(study: State, event: Event, arm: int) -> None:
    """Only a reward outside the bounds retires an arm this way; the pull may have been told another reward before."""
    study.state_of(event.pull)
    if study.pull_arm[event.pull - 1] != arm and not (study.spec.pairs and arm == study.base):  # type: ignore[operator]  # checked by state_of
        raise InvalidInput("arm", study.spec.arms[arm], f"pull {event.pull} is of another arm")
    reward = checks.checked_number("reward", event.reward)
    if study.spec.bounds is None or not study.spec.is_outside(reward):
        raise InvalidInput("reward", reward, "lies within the bounds")


def _weighed(study: State, event: Event) -> None:
    if not study.unweighed:
        raise InvalidInput("event", event.kind, "there are no imported results to weigh")
    if study.pending:  # rewards that come back after the weighing would not count
        raise InvalidInput("event", event.kind, "an imported pull is still pending")


def _revised(study: State, event: Event) -> None:
    if event.cause not in (None, "fresh", "vouched"):
        raise InvalidInput("cause", event.cause, "must be fresh, vouched or absent")
    if study.unweighed:
        raise InvalidInput("event", event.kind, "the imported results must be weighed first")
    revised = spec.spec_from_json(event.spec)
    earlier = study.lineage.pasts if study.lineage else ()
    if revised.seed in {study.spec.seed, *(past.spec.seed for past in earlier)}:
        raise InvalidInput("seed", revised.seed, "an earlier revision has the same", "draw a new one")


def _restored(study: State, event: Event) -> None:
    if _arm_of(study, event) not in study.retired:
        raise InvalidInput("arm", study.spec.arms[_arm_of(study, event)], "is not retired")


def _extended(study: State, event: Event) -> None:
    budget = event.budget
    if study.budget is None:
        rule = "this study has no budget: it runs until every arm is settled"
        raise InvalidInput("budget", budget, rule, "continue it as it is")
    if isinstance(budget, int) and budget <= study.budget:
        raise InvalidInput("budget", budget, f"must be larger than the current {study.budget}", "give the new total")
    spec.check_spec_budget(budget, len(study.spec.arms), study.spec.policy)


def _arm_of(study: State, event: Event) -> int:
    arm = event.arm
    if arm is None or not 0 <= arm < len(study.spec.arms):
        raise InvalidInput("arm", arm, f"must be a number from 0 to {len(study.spec.arms) - 1}")
    return arm


RULES = {
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
