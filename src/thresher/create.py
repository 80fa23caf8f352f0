"""Creating a study, opening one, and making the next revision of one."""

import contextlib
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, Unpack, get_args

from .core import checks
from .core.board import Formula
from .core.custom_scores import register_score
from .core.events import Event
from .core.named_arguments import named_arguments
from .core.named_items import ARMS, CASES, ItemKind, Params, items_from_text
from .core.parameters import SpecArguments
from .core.policies import Policy
from .core.revisions import Changes, Taking, revision_changes
from .core.spec import Spec, spec_differences
from .core.state import State
from .depends import Dependency, stored_depends
from .errors import Conflict, Interrupted, InvalidInput, StudyExists, UnknownStudy, shown
from .log.event_writing import SEED_BYTES
from .log.past import store_at_revision
from .log.store import START, Storage, Store, chained_in_store, open_store
from .study import LEASE, Study, keep_to_depends, peek_study, revise_study
from .text.files import read_text
from .text.phrasing import either_phrase

IfExists = Literal["error", "join", "revise", "fresh"]
ATTEMPTS = 3  # to flush a new study to the disk, if connections are lost


@named_arguments
def create_study(
    name: str,
    *,
    storage: Storage = None,
    if_exists: IfExists = "error",
    depends: Dependency | Iterable[Dependency] = (),
    version: str | None = None,
    lease: float = LEASE,
    **question: Unpack[SpecArguments],
) -> Study:
    """Ask which of the ``arms`` have a mean reward of at least, or at most, a bar.

    The arguments:
        name: the study's name.
        {arguments}
        storage: ``"sqlite:///file.db"``, ``Path("file.db")``, ``"postgresql://…"``, a store, or None for memory.
        if_exists: ``"join"`` opens a study of the same name and specification. ``"revise"`` makes its next revision
            if anything differs: results that still hold are taken over. ``"fresh"`` is one that takes nothing over.
        depends: what results depend on: files, folders, functions and modules. ``{arm}`` or ``{case}`` in a path makes
            it one of that arm's or that case's results. A function stands for the file that defines it.
        version: a text that stands for the code: results hold as long as it is the same.
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

    Ask again with an arm more, and only that is evaluated. When the code has changed, say so with ``depends`` or
    ``version``: the results of the old code do not hold for the new.

    >>> from thresher.log.store import MemoryStore
    >>> asked = {"at_least": 0.5, "cases": 10, "storage": MemoryStore(), "if_exists": "revise"}
    >>> def pulls_until_done(**changed):
    ...     study, pulls = create_study("guesses", **asked, **changed), 0
    ...     while pull := study.ask():
    ...         study.tell(pull, pull.arm != "never")
    ...         pulls += 1
    ...     return study.revision, pulls
    >>> pulls_until_done(arms=["always", "never"], version="1")
    (1, 11)
    >>> pulls_until_done(arms=["always", "never", "often"], version="1")
    (2, 5)
    >>> pulls_until_done(arms=["always", "never", "often"], version="2")
    (3, 16)
    """
    for which, kind in (("arms", ARMS), ("cases", CASES)):
        if isinstance(file := question.get(which), Path):
            question[which] = read_items_to_create(file, kind)  # type: ignore[literal-required]
    spec = Spec(**question)
    spec = spec.with_depends(stored_depends(spec, depends, version))
    study = create_from_spec(name, spec, storage=storage, if_exists=if_exists, lease=lease)
    keep_to_depends(study, spec)
    return study


def read_items_to_create(file: str | Path, kind: ItemKind, *, remedy: str = "check its name") -> dict[str, Params]:
    """The arms or cases in a file, with their parameters. The str ``"-"`` is standard input."""
    where = "standard input" if file == "-" else str(file)
    return items_from_text(read_text(file, kind.file, remedy=remedy), where, kind)


def create_from_spec(
    name: str,
    spec: Spec,
    *,
    storage: Storage = None,
    if_exists: IfExists = "error",
    lease: float = LEASE,
) -> Study:
    """The same as `create_study`, for callers that have a specification."""
    checks.checked_name("study", name)
    if if_exists not in get_args(IfExists):
        raise InvalidInput("if_exists", if_exists, f"must be {either_phrase([*map(repr, get_args(IfExists))])}")
    store, seconds = open_store(storage), checks.checked_seconds("lease", lease)
    check_policy_to_create(spec.policy, store)
    if not _created(name, store, spec):
        if if_exists == "error":
            raise StudyExists("study", name, "already exists", "open it with open_study, or say if_exists='revise'")
        study = Study(name, store, lease=seconds)
        return (
            _join(study, spec)
            if if_exists == "join"
            else _revise(study, spec, "fresh" if if_exists == "fresh" else None)
        )
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
def open_study(
    name: str,
    *,
    storage: Storage = None,
    lease: float = LEASE,
    scores: Iterable[Formula] = (),
    revision: int | None = None,
) -> Study:
    """The study of that name in that store; with ``revision``, as it was at the end of that one, only to be read.

    If its policy is a function of yours (see `custom`), pass it in ``scores`` to ask for pulls: a store's code is never
    imported because the store names it. Reading and telling do not need it.

    >>> open_study("nobody")
    Traceback (most recent call last):
    thresher.errors.UnknownStudy: study 'nobody': is not in this store; create it with create_study
    """
    passed = [register_score(score) for score in scores]
    store, seconds = open_store(storage), checks.checked_seconds("lease", lease)
    checks.checked_name("study", name)
    if revision is not None:
        store = store_at_revision(store, name, checks.checked_whole("revision", revision, least=1))
    study = Study(name, store, lease=seconds)
    if study.spec.policy.formula in (formula for formula, _ in passed):
        study.spec.policy.scored_by()  # raises if its source has changed
    return study


def check_joinable(study: Study, wanted: Spec) -> list[str]:
    """How the study differs from what is asked for, in words."""

    def read(ledger: State) -> list[str]:
        changed = revision_changes(ledger, wanted)
        unlike = spec_differences(ledger.spec, wanted)
        if wanted.evaluator is not None and changed.evaluator:
            before = "unknown" if ledger.spec.evaluator is None else shown(ledger.spec.evaluator)
            unlike.append(f"evaluator is {before}, not {shown(wanted.evaluator)}")
        if wanted.depends is not None:
            unlike += [f"{name} has changed" for name in (*changed.common, *changed.files)]
        if wanted.budget not in (ledger.budget, ledger.spec.budget):
            here, there = ("none" if number is None else number for number in (ledger.budget, wanted.budget))
            unlike.append(f"budget is {here}, not {there}")
        return unlike

    return peek_study(study, read)


def grows_budget(ledger: State, wanted: Spec) -> bool:
    """Whether a larger budget is asked for than the study has."""
    return wanted.budget is not None and ledger.budget is not None and wanted.budget > ledger.budget


def extend_for(study: Study, wanted: Spec) -> None:
    """Give the study the budget that is asked for, if that is larger."""
    if wanted.budget is not None and peek_study(study, lambda ledger: grows_budget(ledger, wanted)):
        study.extend(budget=wanted.budget)


def _join(study: Study, wanted: Spec) -> Study:
    """The study, if nothing at all differs."""
    if unlike := check_joinable(study, wanted):
        rule = f"exists with another specification: {'; '.join(unlike)}"
        raise StudyExists("study", study.name, rule, "use another name, or if_exists='revise'")
    return study


def _revise(study: Study, wanted: Spec, taking: Taking) -> Study:
    """The study with its next revision, if anything differs or nothing is to be taken over."""
    revise_study(study, wanted, taking=taking)
    extend_for(study, wanted)
    return study


def take_up_study(name: str, spec: Spec, *, storage: Storage) -> tuple[Study, Changes | None]:
    """The study of that name with its next revision and what changed, or a new study: for adapters.

    While another process works on it with another specification, this is a study of its own, numbered. Of several, it
    is the one of which most results hold.
    """
    store = open_store(storage)
    while True:
        known = list[Study]()
        with contextlib.suppress(UnknownStudy):
            while True:
                known.append(open_study(_numbered(name, len(known) + 1), storage=store))
        held = {study: peek_study(study, lambda ledger: _held(ledger, spec)) for study in known}
        for study in sorted(known, key=lambda study: -held[study]):
            study.sweep()
            with contextlib.suppress(StudyExists):
                changes = revise_study(study, spec, check=lambda ledger: _check_idle(ledger, spec))
                extend_for(study, spec)
                return study, changes
        with contextlib.suppress(StudyExists):  # another process was faster
            return create_from_spec(_numbered(name, len(known) + 1), spec, storage=store), None


def _held(ledger: State, wanted: Spec) -> int:
    """How many results would hold."""
    changes = revision_changes(ledger, wanted)
    return changes.held + changes.again


def _check_idle(ledger: State, wanted: Spec) -> None:
    """Raise if the study would be revised while another process works on it."""
    if ledger.pending and revision_changes(ledger, wanted).any:
        raise StudyExists("study", rule="another process works on it")


def _numbered(name: str, number: int) -> str:
    return name if number == 1 else f"{name} {number}"
