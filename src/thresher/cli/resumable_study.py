"""The study of ``thresher run``: created once, resumed by the same command."""

import hashlib
import json
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..core.checks import MAX_NAME
from ..core.spec import Spec
from ..core.state import State
from ..create import check_policy, compare, create, open_study, resume
from ..errors import Conflict, StudyExists, UnknownStudy
from ..log.journal import plain
from ..log.store import Store
from ..run.command.persistent import PersistentEvaluator
from ..run.command.process import Command
from ..run.command.reward import codes_text
from ..study import Study, peek, record_files
from ..text.masking import masked_words
from ..text.phrasing import listed, plural
from . import say
from .code_files import CodeFiles
from .import_export import BaselineResults
from .options import address_of, is_kept


def evaluator_of(command: Command | PersistentEvaluator, *, failure: object, here: bool = False) -> str:
    """What measures the rewards, as text without secrets: the command, and the options that change what it measures.

    ``here``: the command means something else in another folder.

    >>> evaluator_of(Command(("./eval.sh", "{arm}")), failure="worst")
    "./eval.sh '{arm}'"
    """
    options = []
    if isinstance(command, PersistentEvaluator):
        options.append("--stay")
    elif command.reward != "last-float":
        options.append(f"--reward {command.reward}")
    if isinstance(command, Command) and command.reward == "exit-code":
        options += [f"--pass {codes_text(command.passing)}", f"--fail {codes_text(command.failing)}"]
    if isinstance(failure, float):  # then how long a run may take decides what it gives
        options.append(f"--timeout {command.timeout}s")
    if here:
        options.append(f"in {Path.cwd()}")
    text = shlex.join(masked_words(list(command.argv)))
    return plain(f"{text} ({' '.join(options)})" if options else text)


class Kept:
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
        results: BaselineResults | None = None,
    ) -> None:
        self.store, self.spec, self.files, self._results = store, spec, files, results
        self.fresh, self.same_code, self.is_measured = fresh, same_code, is_measured
        self.name = name or f"run-{fingerprint(self.spec)}"
        self.pulls = 0  # that the study had made when it was resumed
        check_policy(spec.policy, store)

    def begin(self) -> Study:
        """The study: a new one, or the one that is there; a larger budget extends it."""
        found = self._found()
        if found is not None and (why := self._why_over(found)) is not None:
            self._set_aside(found, why)
        try:
            study = create(self.name, self.spec, storage=self.store)
        except StudyExists:
            study = open_study(self.name, storage=self.store)
            self._resume(study)
        record_files(study, self._digests)
        if self._results is not None:
            self._results.bring(study)
        if is_kept(study):
            self.store.note(study.name, study.agent, self.spec.evaluator or "")
        return study

    def _found(self) -> Study | None:
        try:
            return open_study(self.name, storage=self.store)
        except UnknownStudy:
            return None

    def _why_over(self, study: Study) -> str | None:
        """Why a new study takes its place, empty for --fresh; None: this one is resumed. Raises if neither can be."""
        why = "" if self.fresh else self._why_outdated(study)
        if why is None:
            return None
        study.sweep()
        pending = peek(study, lambda ledger: ledger.pending)
        if pending:
            has = f"{why}, and it has" if why else "has"
            rule = f"{has} {plural(pending, 'pull')} pending: another agent may be working on it"
            remedy = "stop it, wait a minute if it was killed, or name another --study"
            raise StudyExists("study", self.name, rule, remedy)
        return why

    def _why_outdated(self, study: Study) -> str | None:
        """Why the study's rewards are no answer any more; None: they are. Raises if it asks or measures otherwise."""
        found = compare(study, self.spec)
        if found.differences:
            rule = f"is in {address_of(self.store)} with another specification: {'; '.join(found.differences)}"
            larger = "" if found.budget is None else "; a larger --budget is fine"
            remedy = f"name another --study, or ask as before{larger}"
            raise StudyExists("study", self.name, rule, remedy)
        if found.measured_by is not None and not self.same_code:
            before = found.measured_by or "something that is not recorded"
            rule = f"its rewards were measured by {before}, not by {self.spec.evaluator}"
            remedy = "name another --study, start over with --fresh, or say --same-code if it measures the same"
            raise StudyExists("study", self.name, rule, remedy)
        if change := peek(study, self._change):
            return change
        if self.is_measured and not found.grows and peek(study, lambda ledger: ledger.done and not ledger.waits):
            return "times are measured again by every new run"
        if self._results is not None:
            self._results.check(study)
        return None

    def _change(self, ledger: State) -> str | None:
        """Which files of COMMAND have changed since the study's rewards were measured, in words."""
        names = self.files.changed(ledger)
        if not names or self.same_code:
            return None
        told = ledger.own_told
        since = "the study began" if not told else "this reward" if told == 1 else f"these {told:,} rewards"
        return f"{listed(names)} {'has' if len(names) == 1 else 'have'} changed since {since}"

    def _digests(self, ledger: State) -> Mapping[str, str]:
        """The files to record. Raises if another agent has begun with others."""
        if change := self._change(ledger):
            remedy = "use the same files, or say --same-code if the change does not matter"
            raise StudyExists("study", self.name, change, remedy)
        return self.files.digests()

    def _resume(self, study: Study) -> None:
        self._why_outdated(study)
        resume(study, self.spec)
        verdict, where = study.verdict(), f"study {study.name!r} in {address_of(self.store)}"
        self.pulls = pulls_made(study)
        if verdict.done and not peek(study, lambda ledger: ledger.waits):
            more = "a larger --budget extends it, " if verdict.open and verdict.budget is not None else ""
            say(f"nothing is run: {where} is finished; {more}--fresh starts over")
        elif verdict.issued:
            say(f"{where} resumes after {plural(verdict.issued, 'pull')}")

    def _set_aside(self, study: Study, why: str) -> None:
        """Keep the study that has the name under another one."""
        for name in _names_aside(self.name, study.created):
            try:
                with self.store.turn(self.name):
                    self.store.rename(self.name, name)
            except Conflict:
                continue
            say(f"{why}{': ' if why else ''}starting over; the study so far is kept as {name!r}")
            return


def _names_aside(name: str, created: str | None) -> Iterator[str]:
    """New names for the study that --fresh sets aside, the best first."""
    first = f"{name[: MAX_NAME - 40]}-{created or 'old'}"
    yield first
    for number in range(2, 1000):
        yield f"{first}-{number}"


def pulls_made(study: Study) -> int:
    """How many pulls of the study were not imported."""
    return peek(study, lambda ledger: ledger.issued - ledger.imported)


def fingerprint(spec: Spec) -> str:
    """A few letters made from a specification, whatever its budget; the same on every machine."""
    data = spec.to_json()
    for name in ("budget", "settling_constant"):  # the latter follows from the rest, by a logarithm
        del data[name]
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:8]
