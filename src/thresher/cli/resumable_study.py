"""The study of ``thresher run``: created once, resumed by the same command."""

import hashlib
import json
import shlex
from collections.abc import Mapping
from pathlib import Path

from ..core.checks import MAX_NAME
from ..core.spec import Spec
from ..core.state import State
from ..create import check_policy_to_create, create_from_spec, match_created_study, open_study, resume_created_study
from ..errors import Conflict, StudyExists, UnknownStudy
from ..log.journal import storable_journal_reason
from ..log.store import Store
from ..run.command.persistent import PersistentEvaluator
from ..run.command.process import Command
from ..run.command.reward import codes_text
from ..study import Study, peek_study, record_files_in_study
from ..text.masking import masked_words
from ..text.phrasing import listed_phrase, plural
from ..text.quantities import PERCENT
from .code_files import CodeFiles
from .import_export import ImportedBaseline
from .options import address_in_storage_option, is_kept_by_storage_option
from .output import say


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


class ResumableStudy:
    """The study that a command line asks for. Making this checks everything and writes nothing; `begin` writes."""

    def __init__(
        self,
        name: str | None,
        store: Store,
        spec: Spec,
        files: CodeFiles,
        *,
        fresh: bool = False,
        same_code: bool = False,
        is_measured: bool = False,
        results: ImportedBaseline | None = None,
    ) -> None:
        self.store, self.spec, self.files, self._results = store, spec, files, results
        self.fresh, self.same_code, self.is_measured = fresh, same_code, is_measured
        self.name = name or f"run-{resumable_fingerprint(self.spec)}"
        self.pulls = 0  # that earlier runs made
        check_policy_to_create(spec.policy, store)

    def begin(self) -> Study:
        """The study: a new one, or the stored one, extended if the budget is larger."""
        try:
            stored = open_study(self.name, storage=self.store)
        except UnknownStudy:
            pass
        else:
            self._make_room(stored)
        try:
            study = create_from_spec(self.name, self.spec, storage=self.store)
        except StudyExists:
            study = open_study(self.name, storage=self.store)
            self._resume(study)
        record_files_in_study(study, self._digests)
        if self._results is not None:
            self._results.bring(study)
        if is_kept_by_storage_option(study):
            self.store.note(study.name, study.agent, self.spec.evaluator or "")
        return study

    def _make_room(self, study: Study) -> None:
        """Set the stored study aside if this run has to start over. Raises if it can neither start over nor resume."""
        reason = "" if self.fresh else self._why_outdated(study)
        if reason is None:
            return
        study.sweep()
        pending = peek_study(study, lambda ledger: ledger.pending)
        if pending:
            has = f"{reason}, and it has" if reason else "has"
            rule = f"{has} {plural(pending, 'pull')} pending: another agent may be working on it"
            remedy = "stop it, wait a minute if it was killed, or name another --study"
            raise StudyExists("study", self.name, rule, remedy)
        self._set_aside(study, reason)

    def _why_outdated(self, study: Study) -> str | None:
        """Why the study's rewards no longer answer the question; None if they do.

        Raises if the study has another question, or if something else measured its rewards.
        """
        comparison = match_created_study(study, self.spec)
        if comparison.differences:
            place, differences = address_in_storage_option(self.store), "; ".join(comparison.differences)
            rule = f"is in {place} with another specification: {differences}"
            larger = "" if comparison.budget is None else "; a larger --budget is fine"
            remedy = f"name another --study, or ask as before{larger}"
            raise StudyExists("study", self.name, rule, remedy)
        if comparison.measured_by is not None and not self.same_code:
            before = comparison.measured_by or "something that is not recorded"
            rule = f"its rewards were measured by {before}, not by {self.spec.evaluator}"
            remedy = "name another --study, start over with --fresh, or say --same-code if it measures the same"
            raise StudyExists("study", self.name, rule, remedy)
        if change := peek_study(study, self._change):
            return change
        if (
            self.is_measured
            and not comparison.grows
            and peek_study(study, lambda ledger: ledger.done and not ledger.waits)
        ):
            return "times are measured again by every new run"
        if self._results is not None:
            self._results.check(study)
        return None

    def _change(self, ledger: State) -> str | None:
        """A sentence about the files of COMMAND that have changed since the study's rewards were measured."""
        names = self.files.changed(ledger)
        if not names or self.same_code:
            return None
        told = ledger.own_told
        since = "the study began" if not told else "this reward" if told == 1 else f"these {told:,} rewards"
        return f"{listed_phrase(names)} {'has' if len(names) == 1 else 'have'} changed since {since}"

    def _digests(self, ledger: State) -> Mapping[str, str]:
        """The files to record. Raises if another agent has begun with others."""
        if change := self._change(ledger):
            remedy = "use the same files, or say --same-code if the change does not matter"
            raise StudyExists("study", self.name, change, remedy)
        return self.files.digests()

    def _resume(self, study: Study) -> None:
        self._why_outdated(study)
        resume_created_study(study, self.spec)
        verdict, where = study.verdict(), f"study {study.name!r} in {address_in_storage_option(self.store)}"
        self.pulls = resumable_pulls(study)
        if verdict.done and not peek_study(study, lambda ledger: ledger.waits):
            grows = verdict.budget is not None and (verdict.open or verdict.confidence is None)
            larger = "a larger --budget extends it, " if grows else ""
            say(f"nothing is run: {where} is finished; {larger}--fresh starts over")
        elif verdict.issued:
            say(f"{where} resumes after {plural(verdict.issued, 'pull')}")

    def _set_aside(self, study: Study, reason: str) -> None:
        """Rename the stored study, so that a new one can have its name."""
        aside = f"{self.name[: MAX_NAME - 40]}-{study.created or 'old'}"
        for name in (aside, *(f"{aside}-{number}" for number in range(2, 1000))):
            try:
                with self.store.turn(self.name):
                    self.store.rename(self.name, name)
            except Conflict:  # the name is taken
                continue
            say(f"{reason}{': ' if reason else ''}starting over; the study so far is kept as {name!r}")
            return


def resumable_pulls(study: Study) -> int:
    """How many pulls of the study were not imported."""
    return peek_study(study, lambda ledger: ledger.issued - ledger.imported)


def resumable_fingerprint(spec: Spec) -> str:
    """Eight characters made from a specification without its budget. They are the same on every machine."""
    data = spec.to_json()
    for name in ("budget", "settling_constant"):  # the latter is a logarithm of other fields, which machines round
        del data[name]
    if spec.unit == PERCENT:  # 90% and 0.9 ask the same
        del data["unit"]
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:8]
