"""The study of ``thresher run``: created once, resumed by the same command."""

import contextlib
import hashlib
import json
import shlex
from collections.abc import Iterator
from pathlib import Path

from ..core.checks import MAX_NAME
from ..core.spec import Spec
from ..create import check_policy, compare, create, open_study, resume
from ..errors import Conflict, StudyExists, UnknownStudy
from ..log.journal import plain
from ..log.store import Store
from ..run.command.process import Command
from ..run.command.readings import codes_text
from ..run.command.staying import Staying
from ..study import Study, peek
from ..text.masking import masked_words
from ..text.plural import plural
from . import say
from .baselines import BaselineResults
from .options import address_of, is_kept


def _is_here(word: str) -> bool:
    """Whether a word of a command names a file of this folder: in another folder the same words mean another file."""
    with contextlib.suppress(OSError, ValueError):
        return bool(word) and not Path(word).is_absolute() and Path(word).is_file()
    return False


def evaluator_of(command: Command | Staying, *, attempts: int, failure: object, elsewhere: bool = False) -> str:
    """What measures the rewards, as text without secrets: the command, and the options that change what it measures.

    >>> evaluator_of(Command(("./eval.sh", "{arm}")), attempts=1, failure="worst")
    "./eval.sh '{arm}'"
    """
    options = []
    if isinstance(command, Staying):
        options.append("--stay")
    elif command.reward != "last-float":
        options.append(f"--reward {command.reward}")
    if isinstance(command, Command) and command.reward == "exit-code":
        options += [f"--pass {codes_text(command.passing)}", f"--fail {codes_text(command.failing)}"]
    if attempts > 1:
        options.append(f"--attempts {attempts}")
    if isinstance(failure, float):  # then how long a run may take decides what it gives
        options.append(f"--timeout {command.timeout}s")
    if not elsewhere and any(_is_here(word) for word in command.argv):
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
        *,
        fresh: bool = False,
        accepts: bool = False,
        results: BaselineResults | None = None,
    ) -> None:
        self.store, self.spec, self.fresh, self.accepts, self._results = store, spec, fresh, accepts, results
        self.name = name or f"run-{fingerprint(self.spec)}"
        self.pulls = 0  # that the study had made when it was resumed
        found = self._found()
        if found is not None:
            self._check(found)
        check_policy(spec.policy, store, is_new=fresh or found is None)

    def begin(self) -> Study:
        """The study: a new one, or the one that is there; a larger budget extends it."""
        if self.fresh:
            self._set_aside()
        try:
            study = create(self.name, self.spec, storage=self.store)
        except StudyExists:
            study = open_study(self.name, storage=self.store)
            self._resume(study)
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

    def _check(self, study: Study) -> None:
        """Raise unless the study can be resumed, or set aside."""
        if self.fresh:
            study.sweep()
            pending = peek(study, lambda ledger: ledger.pending)
            if pending:
                rule = f"has {plural(pending, 'pull')} pending: another agent may be working on it"
                remedy = "stop it, wait a minute if it was killed, or name another --study"
                raise StudyExists("study", self.name, rule, remedy)
            return
        found = compare(study, self.spec)
        if found.differences:
            rule = f"is in {address_of(self.store)} with another specification: {'; '.join(found.differences)}"
            larger = "" if found.budget is None else "; a larger --budget is fine"
            remedy = f"name another --study, or ask as before{larger}"
            raise StudyExists("study", self.name, rule, remedy)
        if found.measured_by is not None and not self.accepts:
            before = found.measured_by or "something that is not recorded"
            rule = f"its rewards were measured by {before}, not by {self.spec.evaluator}"
            remedy = (
                "name another --study, start over with --fresh, or say --accept-new-command if it measures the same"
            )
            raise StudyExists("study", self.name, rule, remedy)
        if self._results is not None:
            self._results.check(study)

    def _resume(self, study: Study) -> None:
        self._check(study)
        resume(study, self.spec)
        verdict, where = study.verdict(), f"study {study.name!r} in {address_of(self.store)}"
        self.pulls = pulls_made(study)
        if verdict.done and not peek(study, lambda ledger: ledger.waits):
            more = "a larger --budget extends it, " if verdict.open and verdict.budget is not None else ""
            say(f"nothing is run: {where} is finished; {more}--fresh starts over")
        elif verdict.issued:
            say(f"{where} resumes after {plural(verdict.issued, 'pull')}")

    def _set_aside(self) -> None:
        """Keep the study that has the name under another one."""
        found = self._found()
        if found is None:
            return
        self._check(found)
        for name in _names_aside(self.name, found.created):
            try:
                with self.store.turn(self.name):
                    self.store.rename(self.name, name)
            except Conflict:
                continue
            say(f"starting over; the study so far is kept as {name!r}")
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
