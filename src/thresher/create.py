"""Creating a study, opening one, and the rule for resuming one."""

import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, NamedTuple, Unpack

from .core import checks
from .core.custom_scores import register_score
from .core.events import Event
from .core.formulas import Formula
from .core.named_arguments import named_arguments
from .core.named_items import ARMS, CASES, ItemKind, Params, items_from_text
from .core.parameters import SpecArguments
from .core.policies import Policy
from .core.spec import Spec, spec_differences
from .core.state import State
from .errors import Conflict, Interrupted, InvalidInput, StudyExists, shown
from .log.store import START, Storage, Store, chained_in_store, open_store
from .study import LEASE, Study, accept_evaluator_in_study, peek_study
from .text.files import read_text

ATTEMPTS = 3  # to flush a new study to the disk, if connections are lost
SEED_BYTES = 6  # of a seed that a study draws: no two studies have the same, and every reader of JSON can hold it


@named_arguments
def create_study(
    name: str,
    *,
    storage: Storage = None,
    if_exists: Literal["error", "join"] = "error",
    lease: float = LEASE,
    **question: Unpack[SpecArguments],
) -> Study:
    """Ask which of the ``arms`` have a mean reward of at least, or at most, a bar.

    The arguments:
        name: the study's name.
        {arguments}
        storage: ``"sqlite:///file.db"``, ``Path("file.db")``, ``"postgresql://…"``, a store, or None for memory.
        if_exists: ``"join"`` opens a study of the same name and specification.
        lease: seconds after which the pulls of a process whose heartbeat stopped count as lost.

    Arms and cases are names, ``{name: params}``, or rows: a list of dicts or a pandas DataFrame, each with its name in
    ``"name"``, ``"arm"`` (``"case"``) or ``"id"``, and parameters. Rows without names are numbered from 1; those of a
    DataFrame are named by its index. Or the `Path` of a file, as ``--arms`` reads. Cases that are only counted are
    numbered from 0.

    >>> study = create_study("prompts", arms={"terse": {"temperature": 0.2}, "cot": {}}, at_least=0.9, budget=100)
    >>> study.ask()
    Pull(id=1, arm='terse', number=1, params={'temperature': 0.2}, seed=...)

    With cases, every pull names one. The study ends when every arm is settled, at the latest when all cases are known:

    >>> questions = {"2 + 2": {"answer": 4}, "7 * 6": {"answer": 42}, "9 - 3": {"answer": 6}}
    >>> study = create_study("sums", arms=["calculator", "guess"], at_least=0.9, cases=questions, seed=1)
    >>> while pull := study.ask():
    ...     study.tell(pull, pull.arm == "calculator" or pull.case_params["answer"] == 4)
    >>> [(row.arm, row.reached, row.cases, row.exact) for row in study.verdict()]
    [('calculator', True, 3, True), ('guess', False, 1, False)]

    A limit for a share of the pulls, and a baseline, where every pull evaluates both arms and is told a pair:

    >>> study = create_study("latency", arms=["fast", "slow"], at_most=0.2, share=0.95, unit="s")
    >>> compared = {"arms": ["before", "after"], "baseline": "before", "ratio": 1.05, "lower_is_better": True}
    >>> study = create_study("slower", **compared, unit="s")
    >>> while pull := study.ask():
    ...     study.tell(pull, (0.5, 0.4))  # what pull.arm took, and what pull.baseline took
    >>> print(study.verdict().question, study.verdict().missed)
    Is the arm at most 5 % slower than before in at least half of the pairs? ['after']
    """
    for which, kind in (("arms", ARMS), ("cases", CASES)):
        if isinstance(file := question.get(which), Path):
            question[which] = read_items_to_create(file, kind)  # type: ignore[literal-required]
    return create_from_spec(name, Spec(**question), storage=storage, if_exists=if_exists, lease=lease)


def read_items_to_create(file: str | Path, kind: ItemKind, *, remedy: str = "check its name") -> dict[str, Params]:
    """The arms or cases in a file, with their parameters. The str ``"-"`` is standard input."""
    where = "standard input" if file == "-" else str(file)
    return items_from_text(read_text(file, kind.file, remedy=remedy), where, kind)


def create_from_spec(
    name: str,
    spec: Spec,
    *,
    storage: Storage = None,
    if_exists: Literal["error", "join"] = "error",
    lease: float = LEASE,
) -> Study:
    """The same as `create_study`, for callers that have a specification."""
    checks.checked_name("study", name)
    if if_exists not in ("error", "join"):
        raise InvalidInput("if_exists", if_exists, "must be 'error' or 'join'")
    store, seconds = open_store(storage), checks.checked_seconds("lease", lease)
    check_policy_to_create(spec.policy, store)
    if not _created(name, store, spec):
        if if_exists == "error":
            raise StudyExists("study", name, "already exists", "open it with open_study, or if_exists='join'")
        return _join(Study(name, store, lease=seconds), spec)
    return Study(name, store, lease=seconds)


def check_policy_to_create(policy: Policy, store: Store) -> None:
    """Raise if the store cannot keep a study with this policy."""
    if store.leased and (obstacle := policy.obstacle):
        remedy = "write it with def at the top of a module, with numbers as constants, or keep the study in memory"
        raise InvalidInput("policy", policy.formula, f"cannot be kept in a store: {obstacle}", remedy)


def _created(name: str, store: Store, spec: Spec) -> bool:
    """Whether this call created the study. If the reply is lost, the event's key shows it."""
    if spec.seed is None:  # else an arm that was mended where it failed would meet just that again
        spec = spec.seeded(int.from_bytes(os.urandom(SEED_BYTES)))
    created = Event(1, "created", spec=spec.to_json(), key=os.urandom(8).hex(), time=time.time())
    (event,) = chained_in_store([created])
    with store.turn(name):
        for attempt in range(1, ATTEMPTS + 1):
            try:
                if attempt == 1:
                    store.append(name, [event], before=START)
                store.flush(name, event)  # also after an append whose reply was lost: it may not be on the disk
                break
            except (Conflict, Interrupted) as error:
                first = store.read(name, 0, 1)
                if isinstance(error, Interrupted) and (not first or attempt == ATTEMPTS):
                    raise
                if not first or first[0].key != event.key:
                    return False
    return True


@named_arguments
def open_study(name: str, *, storage: Storage = None, lease: float = LEASE, scores: Iterable[Formula] = ()) -> Study:
    """The study of that name in that store.

    If its policy is a function of yours (see `custom`), pass it in ``scores`` to ask for pulls: a store's code is never
    imported because the store names it. Reading and telling do not need it.

    >>> open_study("nobody")
    Traceback (most recent call last):
    thresher.errors.UnknownStudy: study 'nobody': is not in this store; create it with create_study
    """
    passed = [register_score(score) for score in scores]
    study = Study(checks.checked_name("study", name), open_store(storage), lease=checks.checked_seconds("lease", lease))
    if study.spec.policy.formula in (formula for formula, _ in passed):
        study.spec.policy.scored_by()  # raises if its source has changed
    return study


class CreatedMatch(NamedTuple):
    """How an existing study compares with the specification of a caller that wants to resume it."""

    differences: list[str]  # of the specifications, in words: with any of them the study cannot be resumed
    grows: bool  # the budget asked for is larger than the study's
    budget: int | None  # of the study
    measured_by: str | None  # what measured its rewards, if that is another evaluator; "" if it is not recorded

    def all_differences(self, wanted: Spec) -> list[str]:
        """All differences, including a larger budget and another evaluator."""
        budget = [_budget_differs(self.budget, wanted)] if self.grows else []
        if self.measured_by is None:
            return [*self.differences, *budget]
        mine = shown(self.measured_by) if self.measured_by else "unknown"
        return [*self.differences, f"evaluator is {mine}, not {shown(wanted.evaluator)}", *budget]


def match_created_study(study: Study, wanted: Spec) -> CreatedMatch:
    """The rule for resuming: the same specification; the budget may grow, and another evaluator may be accepted.

    An evaluator is another one if the study has rewards and none of them came from it.
    """

    def read(ledger: State) -> CreatedMatch:
        spec, budget, known = ledger.spec, ledger.budget, ledger.evaluators
        unlike, other = spec_differences(spec, wanted), None
        grows = wanted.budget is not None and budget is not None and wanted.budget > budget
        if wanted.budget not in (budget, spec.budget) and not grows:
            unlike.append(_budget_differs(budget, wanted))
        measured = ledger.own_told + ledger.pending > 0
        if wanted.evaluator is not None and wanted.evaluator not in known and measured:
            other = known[-1] if known else ""
        return CreatedMatch(unlike, grows, budget, other)

    return peek_study(study, read)


def resume_created_study(study: Study, wanted: Spec) -> None:
    """Resume a study that `match_created_study` accepts: accept the evaluator, and extend the budget."""
    if wanted.evaluator is not None:
        accept_evaluator_in_study(study, wanted.evaluator)
    if wanted.budget is not None and match_created_study(study, wanted).grows:
        study.extend(budget=wanted.budget)


def _join(study: Study, wanted: Spec) -> Study:
    """The study, if nothing at all differs."""
    if unlike := match_created_study(study, wanted).all_differences(wanted):
        rule = f"exists with another specification: {'; '.join(unlike)}"
        raise StudyExists("study", study.name, rule, "use another name")
    resume_created_study(study, wanted)
    return study


def _budget_differs(budget: int | None, wanted: Spec) -> str:
    here, there = ("none" if number is None else number for number in (budget, wanted.budget))
    return f"budget is {here}, not {there}"
