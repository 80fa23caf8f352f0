"""The files on which results depend: those that COMMAND names, such as a script or a prompt, and those of --depends.

A specification has a digest of each: of files of all results, of those of an arm, and of those of a case. A result
holds as long as they are unchanged. Files that nobody names, such as modules that a script imports, are not among them.
"""

import os
import re
import shlex
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from ..core.named_items import NO_PARAMS
from ..core.revisions import revision_depends
from ..core.spec import Spec
from ..depends import VERSION, file_digests
from ..errors import CannotGoOn, InvalidInput
from ..log.journal import storable_journal_reason
from ..run.command.process import CASE, PULL_FIELDS, fill_command_template, process_pull_values
from ..study import Pull, Study
from ..text.masking import masked
from .run_checks import checked_run_placeholders

SEPARATORS = re.compile(r"""[\s=,|&;<>()"'`]+""")  # between the names in a word: --config=a.yaml, or a shell script
OUTPUTS = re.compile(r""">\s*["']?([^\s|&;<>()"'`]+)""")  # the files that a shell script writes
LONGEST = 4096  # characters: a longer word is a text, such as a prompt
MOST = 50_000  # ways to fill in a word with arms and cases: if there are more, the files that it names are not checked
Place = tuple[str | None, str | int | None]  # an arm and a case; None: any
ANY: Place = (None, None)


class Seen(NamedTuple):
    """The file of a name when it was read. Stamp and digest are None if there was no file."""

    stamp: tuple[int, ...] | None  # changes with the content
    digest: str | None
    in_script: bool  # the name is part of a shell script, which may create the file


class CodeFiles:
    """The files that COMMAND names and those of ``paths``, as they were when this read them, but no ignored ones."""

    def __init__(self, argv: Sequence[str], ignored: Sequence[str] = (), paths: Sequence[str] = ()) -> None:
        self._words = argv if argv and "/" in argv[0] else argv[1:]  # without a slash, a program is looked up in PATH
        self._spec: Spec | None = None
        self._seen: dict[str, Seen] = {}
        self._names: dict[Place, dict[str, None]] = {}  # the files that the pulls of an arm and a case use
        self._study: Study | None = None  # see `watch`
        self.version: str | None = None  # that COMMAND names in its greeting
        for word in self._words:
            fixed = [name for name in _names_in(word) if not checked_run_placeholders(name)]
            self._read(ANY, [fill_command_template(name, {}) for name in fixed], in_script=len(word.split()) > 1)
        self._paths = paths
        for path in paths:
            if not checked_run_placeholders(path):
                self._read_path(ANY, fill_command_template(path, {}))
        self._ignored = ignored
        for path in ignored:
            self._ignore(path)

    @property
    def are_here(self) -> bool:
        """Whether COMMAND names a file relative to this folder, so that it means another file in another folder."""
        return any(seen.digest and not Path(name).is_absolute() for name, seen in self._seen.items())

    def fill_in(self, spec: Spec) -> None:
        """Read the files whose names depend on the arm or on the case."""
        self._spec = spec
        for word in self._words:
            for place, values in _fillings(word, spec) if checked_run_placeholders(word) else ():
                filled = fill_command_template(word, values)
                self._read(place, _names_in(filled), in_script=len(filled.split()) > 1)
        for path in filter(checked_run_placeholders, self._paths):
            fillings = list(_fillings(path, spec))
            if not fillings:
                rule = f"must have {{arm}}, {{case}} or their parameters, for at most {MOST:,} names in all"
                raise InvalidInput("--depends", path, rule, "name files or folders as COMMAND does")
            for place, values in fillings:
                self._read_path(place, fill_command_template(path, values))
        for path in self._ignored:
            if not self._ignore(path) and not any(path in word for word in self._words):
                raise InvalidInput("--ignore", path, "COMMAND names no such file", "write it as COMMAND does")

    def depends(self, before: Spec | None = None) -> dict[str, Any]:
        """The digests for a specification: of the files of all results, and those of arms and of cases by name.

        A shell script may have written files since the revision ``before``; those that are new in it are left out.
        """
        known = {name for names in _groups(before) for name in names}
        files: dict[str, str] = {} if self.version is None else {VERSION: self._content(VERSION) or ""}
        arms: dict[str, dict[str, str]] = {}
        cases: dict[str, dict[str, str]] = {}
        for (arm, case), names in sorted(self._names.items(), key=lambda item: item[0] != ANY):
            group = files if (arm, case) == ANY else {}
            for name in names:
                seen = self._seen.get(name)
                digest = self._content(name) if seen is not None else None
                if seen is None or digest is None or (name in files and group is not files):
                    continue
                was_there = before is not None and (arm is None or arm in before.arms)
                if not (was_there and seen.in_script and name not in known):
                    group[name] = digest
            if group and group is not files:
                (cases if arm is None else arms).setdefault(str(case) if arm is None else arm, {}).update(group)
        return {"files": files, "arms": arms, "cases": cases}

    def differing(self, spec: Spec, pull: Pull) -> list[str]:
        """The files on which a pull depends, of which a specification has other content than there is here."""
        recorded = revision_depends(spec)
        groups = [recorded.files, *(recorded.arms.get(arm, {}) for arm in filter(None, (pull.arm, pull.baseline)))]
        groups.append(recorded.cases.get(str(pull.case), {}))
        return [name for group in groups for name, digest in group.items() if self._content(name) != digest]

    def watch(self, study: Study, agreed: Spec | None, check: Callable[[Study, Pull], None]) -> None:
        """From now on, call this for every pull to be checked if the study has another specification than agreed."""
        self._study, self._agreed, self._check_revision = study, agreed, check

    def check(self, pull: Pull) -> None:
        """Raise if a file that this pull uses has changed. Only files with a new stamp are read again."""
        if self._study is not None and self._study.spec is not self._agreed:
            self._check_revision(self._study, pull)
        for place in product({None, pull.arm, pull.baseline}, {None, pull.case}):
            for name in self._names.get(place, ()):
                if name in self._seen:
                    self._compare(name, self._seen[name])

    def _compare(self, name: str, seen: Seen) -> None:
        stamp = _stamp(name)
        if stamp == seen.stamp:
            return
        if _digest(name, stamp) != seen.digest:
            remedy = (
                "run again: results that depend on it are then evaluated again, unless you say --same-code; "
                f"if COMMAND writes this file itself, add --ignore {shlex.quote(self._as_written(name))}"
            )
            raise CannotGoOn("file", name, "changed while the run lasted", remedy)
        self._seen[name] = seen._replace(stamp=stamp)

    def _content(self, name: str) -> str | None:
        """The digest of a file, as it was when this read it, and what the greeting names."""
        digest = self._seen[name].digest if name in self._seen else _digest(name, _stamp(name))
        return f"{digest or ''}{self.version}" if name == VERSION and self.version is not None else digest

    def _read(self, place: Place, names: Sequence[str], *, in_script: bool = False) -> None:
        for name in names:
            if name not in self._seen:
                stamp = _stamp(name)
                digest = _digest(name, stamp)
                # such a name must not be in the log
                is_secret = digest is not None and storable_journal_reason(masked(name)) != name
                if is_secret or (digest is None and in_script):
                    continue
                self._seen[name] = Seen(stamp, digest, in_script)
            self._names.setdefault(place, {})[name] = None

    def _read_path(self, place: Place, path: str) -> None:
        """Read a file, or all files below a folder."""
        names = list(file_digests(path, "--depends"))
        for name in names:
            if storable_journal_reason(masked(name)) != name:
                raise InvalidInput("--depends", masked(name), "its name seems to have a secret in it", "rename it")
        self._read(place, names)

    def _ignore(self, path: str) -> bool:
        """Ignore a file, or those of all arms or cases. Returns whether there are any."""
        fillings = _fillings(path, self._spec) if self._spec and checked_run_placeholders(path) else ()
        names = [path, *(fill_command_template(path, values) for _, values in fillings)]
        return bool([name for name in names if self._seen.pop(name, None)])

    def _as_written(self, name: str) -> str:
        """The name as COMMAND has it, with the placeholders of arm and case."""
        for part in [part for word in self._words for part in _names_in(word) if checked_run_placeholders(part)]:
            if self._spec and any(
                fill_command_template(part, values) == name for _, values in _fillings(part, self._spec)
            ):
                return part
        return name


def _groups(spec: Spec | None) -> Iterator[Mapping[str, str]]:
    """The digests of a specification."""
    if spec is not None:
        files, arms, cases = revision_depends(spec)
        yield from (files, *arms.values(), *cases.values())


def _fillings(word: str, spec: Spec) -> Iterator[tuple[Place, Mapping[str, str]]]:
    """The arms and cases on which a word depends, and the values that they fill in.

    It yields nothing if the word is different for every pull, or if there are too many.
    """
    used = checked_run_placeholders(word)
    of_case = {name for name in used if spec.cases is not None and name.split(".")[0] == CASE}
    arms: Sequence[int | None] = range(len(spec.arms)) if used - of_case else [None]
    cases: Sequence[int | None] = range(spec.case_count) if of_case else [None]
    if used & {*PULL_FIELDS[1:]} or len(arms) * len(cases) > MOST:
        return
    for arm in arms:
        name, params = ("", None) if arm is None else (spec.arms[arm], spec.params and spec.params[arm])
        for number in cases:
            case = None if number is None else spec.case_name(number)
            case_params = None if number is None else spec.case_params and spec.case_params[number]
            values = process_pull_values(Pull(0, name, 0, params or NO_PARAMS, 0, case, case_params or NO_PARAMS))
            if used <= values.keys():
                yield (name or None, case), values


def _names_in(word: str) -> list[str]:
    """The parts of a command's word that may be names of files.

    >>> _names_in("--config=a.yaml"), _names_in("./ask.sh x > log"), _names_in("tests/test_a.py::test_b")
    (['--config=a.yaml', '--config', 'a.yaml'], ['./ask.sh x > log', './ask.sh', 'x'], ['tests/test_a.py'])
    """
    if len(word) > LONGEST:
        return []
    outputs = OUTPUTS.findall(word)
    names = (part.partition("::")[0] for part in (word, *SEPARATORS.split(word)) if part not in outputs)
    return list(dict.fromkeys(filter(None, names)))


def _stamp(name: str) -> tuple[int, ...] | None:
    """Numbers that change with the content of a file, whoever changes it; None if there is no such file."""
    try:
        info = os.stat(name)  # noqa: PTH116 - called for every pull: twice as fast as with a Path
    except (OSError, ValueError):
        return None
    stamp = (info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino, info.st_dev)
    return stamp if stat.S_ISREG(info.st_mode) else None


def _digest(name: str, stamp: tuple[int, ...] | None) -> str | None:
    """A digest of the content; of an unreadable file, its size and the time of its last change."""
    if stamp is None:
        return None
    try:
        return file_digests(name)[name]
    except InvalidInput:
        return f"{stamp[0]}:{stamp[1]}"
