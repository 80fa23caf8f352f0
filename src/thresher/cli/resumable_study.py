"""The study of ``thresher run``: found again by the same program and file of cases, and made anew where it changed."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import count, pairwise
from pathlib import Path, PurePath
from typing import Literal, NamedTuple

from ..core.checks import MAX_NAME
from ..core.forecast import forecast_arm_left, forecast_left
from ..core.revisions import Changes, Taking, revision_changes, revision_spec_of_pull
from ..core.sentences import changes_sentence
from ..core.spec import Spec
from ..core.state import State
from ..create import check_policy_to_create, create_from_spec, extend_for, grows_budget
from ..errors import CannotGoOn, StudyExists, UnknownStudy, shown
from ..log.journal import storable_journal_reason
from ..log.store import Store
from ..run.command.persistent import PersistentEvaluator
from ..run.command.process import Command
from ..run.command.reward import codes_text
from ..study import Pull, Study, peek_study, revise_study
from ..text.masking import masked, masked_words
from ..text.phrasing import listed_phrase, plural
from ..text.quantities import duration_text
from .code_files import CodeFiles
from .import_export import ImportedBaseline
from .options import address_in_storage_option, is_kept_by_storage_option
from .output import say

LAUNCHERS = re.compile(  # programs that run a script, which is then the program that matters
    r"(python|pypy|node|deno|bun|ruby|perl|php|Rscript|julia|lua|java|sh|bash|zsh|dash|ksh|fish|uv|poetry|env|time|nice)[0-9.]*"
)
SCRIPT = re.compile(r"\.(py|js|mjs|cjs|ts|rb|pl|php|R|jl|lua|jar|sh|bash|exe)$")
INLINE = ("-c", "-e")  # what follows is a text and no file
ATTEMPTS = 20  # to begin, where other agents are faster each time
RECENT = 400  # events that show the pace so far
PAUSE = 20.0  # a gap that is longer than this many usual ones is a pause between two runs


def resumable_evaluator(command: Command | PersistentEvaluator, *, failure: object, here: bool = False) -> str:
    """The command and the options that change what it measures, as text without secrets.

    ``here`` adds this folder, for commands that mean something else in another one.

    >>> resumable_evaluator(Command(("./eval.sh", "{arm}")), failure="worst")
    "./eval.sh '{arm}'"
    """
    options = []
    if isinstance(command, PersistentEvaluator):
        options.append("--stay")
    elif command.reward != "last-float":
        options.append(f"--reward {command.reward}")
    if isinstance(command, Command) and command.reward == "exit-code":
        options += [f"--pass {codes_text(command.passing)}", f"--fail {codes_text(command.failing)}"]
    if isinstance(failure, float):  # a run that takes too long then counts as this number
        options.append(f"--timeout {command.timeout}s")
    if here:
        options.append(f"in {Path.cwd()}")
    text = shlex.join(masked_words(list(command.argv)))
    return storable_journal_reason(f"{text} ({' '.join(options)})" if options else text)


# -- which study it is ------------------------------------------------------------------------------------------------


def program_of_command(argv: Sequence[str]) -> str:
    """The program that a command is about: the script of an interpreter, or its first word.

    >>> program_of_command(["python3.12", "-u", "ask.py", "{arm}"]), program_of_command(["python", "-m", "evals.ask"])
    ('ask.py', 'evals.ask')
    >>> program_of_command(["./eval.sh", "{arm}"]), program_of_command(["sh", "-c", "echo {arm}"])
    ('./eval.sh', 'sh')
    """
    if LAUNCHERS.fullmatch(PurePath(argv[0]).name):
        for word, following in zip(argv[1:], [*argv[2:], ""], strict=True):
            if word in INLINE:
                break
            if word == "-m" and following:
                return following
            if not word.startswith("-") and (SCRIPT.search(word) or _is_file(word)):
                return word
    return argv[0]


def name_of_program(program: str) -> str:
    """The name of a program's studies.

    >>> name_of_program("ask.py"), name_of_program("/opt/bin/evaluate.mjs"), name_of_program("evals.ask")
    ('ask', 'evaluate', 'evals.ask')
    """
    name = SCRIPT.sub("", PurePath(program).name)
    name = "".join(letter for letter in name if letter.isprintable() and letter not in "{}").strip()
    return name[: MAX_NAME - 10] if name and masked(program) == program else "run"


def identity_of_run(argv: Sequence[str], cases: object) -> str:
    """The program and the file of cases, by which a study is found again."""
    program = program_of_command(argv)
    here = str(Path(program).resolve()) if _is_file(program) else program
    of_cases = f" on {Path(cases).resolve()}" if isinstance(cases, str) and _is_file(cases) else ""
    return storable_journal_reason(masked(f"{here}{of_cases}"))


def _is_file(word: str) -> bool:
    try:
        return Path(word).is_file()
    except (OSError, ValueError):  # a text that is no name
        return False


class Step(NamedTuple):
    """What to do with a stored study."""

    kind: Literal["resume", "revise", "other"]  # other: agents are working on it, so this must be another study
    taking: Taking = None
    reason: str = ""  # why nothing is taken over


class Overtaken(Exception):
    """Another agent was faster: decide again."""


class ResumableStudy:
    """The study that a command line asks for. Making this checks everything and writes nothing; `begin` writes."""

    def __init__(
        self,
        name: str | None,
        store: Store,
        spec: Spec,
        files: CodeFiles,
        *,
        program: str,
        identity: str,
        fresh: bool = False,
        same_code: bool = False,
        is_measured: bool = False,
        results: ImportedBaseline | None = None,
    ) -> None:
        self.store, self.spec, self.files, self._results = store, spec, files, results
        self.fresh, self.same_code, self.is_measured = fresh, same_code, is_measured
        self._name, self._stem, self._identity = name, name_of_program(program), identity
        self._known: Spec | None = None  # a revision's, with which this run can go on
        self._beside_others = list[str]()  # studies of other questions, on which agents are working
        self.pulls = 0  # that earlier runs made
        check_policy_to_create(spec.policy, store)

    def begin(self) -> Study:
        """The study: a new one, the stored one, or the stored one with its next revision."""
        for _ in range(ATTEMPTS):
            try:
                study = self._found() or self._created()
            except Overtaken:
                continue
            if self._beside_others:
                others, first = listed_phrase(self._beside_others), self._beside_others[0]
                running = f"{others}, where another agent is working, or was killed within a minute"
                say(f"{study.name} takes nothing over from {running}; --study {first} makes this its next revision")
            if self._results is not None:
                self._results.bring(study)
            if is_kept_by_storage_option(study):
                self.store.note(study.name, study.agent, self.spec.evaluator or "")
            agreed = peek_study(study, lambda state: None if self._changes(state).any else state.spec)
            self.files.watch(study, agreed, self.check_revision)
            return study
        rule = f"other agents changed it {ATTEMPTS} times while this one began"
        raise StudyExists("study", self._name or self._stem, rule, "try again when they have finished")

    def check_revision(self, study: Study, pull: Pull) -> None:
        """Another agent revised the study: raise if the pull was not evaluated as its revision says."""
        spec = peek_study(study, lambda state: revision_spec_of_pull(state, pull.id))
        if spec is not self._known:
            self._check_revision(study, spec)
            self.files.fill_in(spec)
            self._known = spec
        if names := self.files.differing(spec, pull):
            rule = f"another agent revised study {shown(study.name)} with other content of it"
            raise CannotGoOn("file", names[0], rule, "run again with the same files")

    def _check_revision(self, study: Study, spec: Spec) -> None:
        """Raise if this run evaluates something else than a revision asks about."""
        mine, other = (
            (each.evaluator, each.pairs and each.baseline, self.is_measured and each.measure)
            for each in (self.spec, spec)
        )
        if mine != other:
            rule = f"another agent revised it, for the command {spec.evaluator}"
            raise CannotGoOn("study", study.name, rule, "run again to join it, or name another --study")

    # -- finding it ---------------------------------------------------------------------------------------------

    def _found(self) -> Study | None:
        """The stored study that this run goes on with, if there is one."""
        studies = self._candidates()
        self._beside_others = []
        for study in studies:
            study.sweep()
        changed = [peek_study(study, lambda state: self._changes(state).any) for study in studies]
        for study in sorted(studies, key=lambda study: changed[studies.index(study)]):  # those without changes first
            step = peek_study(study, lambda state, study=study: self._step(state, study.name))  # type: ignore[misc]
            if step.kind == "resume":
                self._resume(study)
                return study
            if step.kind == "revise":
                self._revise(study, step)
                return study
            self._beside_others.append(study.name)
        return None

    def _candidates(self) -> list[Study]:
        """The study of that name, or those of this program and file of cases."""
        if self._name is not None:
            return self._opened([self._name])
        numbered = re.compile(re.escape(self._stem) + r"(?:-([0-9]+))?")
        names = {name: match for name in self.store.studies() if (match := numbered.fullmatch(name))}
        names = {name: match for name, match in names.items() if self._identity_of(name) == self._identity}
        return self._opened(sorted(names, key=lambda name: int(names[name][1] or 1)))

    def _identity_of(self, name: str) -> object:
        """The identity of a stored study: all its revisions have the same."""
        first = self.store.read(name, 0, 1)
        return (first[0].spec or {}).get("identity") if first else None

    def _opened(self, names: Sequence[str]) -> list[Study]:
        studies = []
        for name in names:
            try:
                studies.append(Study(name, self.store))
            except UnknownStudy:
                continue
        return studies

    def _created(self) -> Study:
        """A new study, under the given name or the first free one."""
        taken = set(self.store.studies()) if self._name is None else set()
        name = self._name or next(name for name in self._numbered() if name not in taken)
        spec = self.spec.with_depends(self.files.depends(), None if self._name else self._identity)
        try:
            return create_from_spec(name, spec, storage=self.store)
        except StudyExists:
            raise Overtaken from None

    def _numbered(self) -> Iterator[str]:
        yield self._stem
        yield from (f"{self._stem}-{number}" for number in count(2))

    # -- what to do with it -------------------------------------------------------------------------------------

    def _spec_for(self, state: State) -> Spec:
        """What this run asks, as the next revision of a study."""
        return self.spec.with_depends(self.files.depends(state.spec), state.spec.identity)

    def _changes(self, state: State) -> Changes:
        return revision_changes(state, self._spec_for(state))

    def _step(self, state: State, name: str) -> Step:
        """What to do with a stored study. Raises if this run can neither join it nor leave it to its agents."""
        changes, reason = self._changes(state), ""
        is_over = state.done and not state.waits and not grows_budget(state, self.spec)
        if self.fresh:
            reason = "--fresh takes nothing over"
        elif self.is_measured and (is_over or changes.any):
            reason = "times are measured again by every new run"
        if not changes.any and not reason:
            self._check_budget(state, name)
            return Step("resume")
        if state.pending:
            return self._beside(state, name, changes, reason)
        is_of_code = bool(changes.common or changes.evaluator)
        is_unmeasured = state.spec.evaluator is None and not state.own_told  # created by hand, or with imported results
        if reason:
            return Step("revise", "fresh", reason)
        return Step("revise", "vouched" if is_of_code and (self.same_code or is_unmeasured) else None)

    def _beside(self, state: State, name: str, changes: Changes, reason: str) -> Step:
        """The same, while other agents are working on it."""
        pending = f"has {plural(state.pending, 'pull')} pending: another agent may be working on it"
        stop = "stop it, wait a minute if it was killed, or name another --study"
        if names := (*changes.common, *changes.files):
            verb = "differs" if len(names) == 1 else "differ"
            rule = f"{listed_phrase(names)} {verb} from what its results depend on, and it {pending}"
            raise StudyExists("study", name, rule, f"use the same content, or {stop}")
        if self._name is None and changes.any:
            return Step("other")
        if reason:
            raise StudyExists("study", name, f"{pending}, and {reason}", stop)
        if changes.evaluator:
            other = (
                f"the command {state.spec.evaluator}" if state.spec.evaluator else "something else than this command"
            )
            raise StudyExists("study", name, f"{pending}, with {other}", stop)
        return Step("revise")

    def _check_budget(self, state: State, name: str) -> None:
        """Raise if the budget is smaller than that of the study."""
        if self.spec.budget in (state.budget, state.spec.budget) or grows_budget(state, self.spec):
            return
        before, wanted = ("none" if budget is None else f"{budget:,}" for budget in (state.budget, self.spec.budget))
        larger = "" if state.budget is None else "; a larger --budget is fine"
        rule = f"is in {address_in_storage_option(self.store)} with another budget: it is {before}, not {wanted}"
        raise StudyExists("study", name, rule, f"name another --study, or ask as before{larger}")

    # -- doing it -----------------------------------------------------------------------------------------------

    def _resume(self, study: Study) -> None:
        if self._results is not None:
            self._results.check(study)
        extend_for(study, self.spec)
        self.pulls = resumable_pulls(study)
        verdict = study.verdict()
        if verdict.done and not peek_study(study, lambda ledger: ledger.waits):
            grows = verdict.budget is not None and (verdict.open or verdict.confidence is None)
            larger = "a larger --budget extends it, " if grows else ""
            say(f"{study.name}: nothing changed and it is finished, so nothing is run; {larger}--fresh starts over")
        elif verdict.issued:
            say(f"{study.name}: nothing changed, it resumes after {plural(verdict.issued, 'pull')}")

    def _revise(self, study: Study, step: Step) -> None:
        """Make the next revision, and say what changed."""

        def check(state: State) -> None:
            if self._step(state, study.name) != step:
                raise Overtaken

        before, spec = study.spec, peek_study(study, self._spec_for)
        pace, taken = resumable_pace(study), peek_study(study, resumable_taken)
        changes = revise_study(study, spec, taking=step.taking, check=check)
        if changes is None:
            raise Overtaken
        self.pulls = resumable_pulls(study)
        say(f"{study.name}, revision {study.revision}: {self._revised(study, changes, step, pace, taken)}")
        moved = 0 if changes.again else renumbered_cases(before, spec)
        if moved:
            say(
                f"{plural(moved, 'case')} only moved, and rows without a name are numbered: their results hold if a "
                "column `case` has the old numbers"
            )

    def _revised(self, study: Study, changes: Changes, step: Step, pace: float | None, taken: dict[str, int]) -> str:
        """What changed, what holds and how much is left, in one line."""
        if step.taking == "fresh":
            parts = [changes_sentence(changes._replace(results=0))] if changes.any else []
            parts.append(step.reason)
        else:
            parts = [changes_sentence(changes)]
        if step.taking == "vouched" and self.same_code and (changes.held or changes.again):
            parts[0] += " by --same-code"
        left = peek_study(study, lambda state: resumable_left(state, taken))
        if left == 0:
            parts.append("nothing is left to run")
        elif left is not None:
            seconds = "" if pace is None else f", {duration_text(left * pace, rounded=True)}"
            parts.append(f"about {plural(left, 'pull')}{seconds}")
        return " · ".join(parts)


# -- how much is left -------------------------------------------------------------------------------------------------


def resumable_taken(state: State) -> dict[str, int]:
    """How many rewards each settled arm took, by its name."""
    settled = (arm for arm in range(len(state.spec.arms)) if arm != state.base and forecast_arm_left(state, arm) == 0)
    return {state.spec.arms[arm]: state.board.seen[arm] for arm in settled}


def resumable_left(state: State, before: Mapping[str, int]) -> int | None:
    """About how many pulls a revision takes. One without rewards takes as many as before, or as a settled arm."""
    if not state.certifies or state.done or state.spec.find is not None or state.awaits:
        return forecast_left(state)
    arms = [arm for arm in range(len(state.spec.arms)) if arm != state.base]
    left = [forecast_arm_left(state, arm) for arm in arms]
    taken = [state.board.seen[arm] for arm, pulls in zip(arms, left, strict=True) if pulls == 0] or [*before.values()]
    if not taken and None in left:
        return None
    usual = round(sum(taken) / len(taken)) if taken else 0
    names = [state.spec.arms[arm] for arm in arms]
    total = sum(before.get(name, usual) if pulls is None else pulls for name, pulls in zip(names, left, strict=True))
    return total if state.budget is None else min(total, state.budget - state.issued)


def renumbered_cases(before: Spec, after: Spec) -> int:
    """How many rows of a file of cases have another number than they had, where rows have no names."""
    rows, earlier = _numbered_rows(after), _numbered_rows(before)
    known = {row for name, row in earlier.items() if rows.get(name) != row}
    return sum(row in known for name, row in rows.items() if earlier.get(name) != row)


def _numbered_rows(spec: Spec) -> dict[str, str]:
    if not isinstance(spec.cases, tuple) or not spec.case_params:
        return {}
    if spec.cases != tuple(map(str, range(1, len(spec.cases) + 1))):
        return {}
    return {name: repr(sorted(row.items())) for name, row in zip(spec.cases, spec.case_params, strict=True)}


def resumable_pace(study: Study) -> float | None:
    """Seconds from one reward to the next in recent runs; None if there were too few."""
    after = max(0, peek_study(study, lambda state: state.seq) - RECENT)
    times = [event.time for event in study.events(after) if event.kind == "told" and event.time is not None]
    gaps = sorted(later - before for before, later in pairwise(times))
    if len(gaps) < 10:
        return None
    usual = max(gaps[len(gaps) // 2], 1e-3)
    gaps = [gap for gap in gaps if gap <= PAUSE * usual]
    return sum(gaps) / len(gaps)


def resumable_pulls(study: Study) -> int:
    """How many pulls of the study were not imported."""
    return peek_study(study, lambda ledger: ledger.issued - ledger.imported)
