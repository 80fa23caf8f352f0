"""The files that COMMAND names, such as a script, its settings or a test. Their content decides what is measured.

A study records a digest of each file. If a file has changed since, the study's rewards do not describe its new content.
Files that COMMAND does not name, such as modules that a script imports, are not checked.
"""

import hashlib
import os
import re
import shlex
import stat
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

from ..core.events import IGNORED
from ..core.named_items import NO_PARAMS
from ..core.spec import Spec
from ..core.state import State
from ..errors import CannotGoOn, InvalidInput
from ..log.journal import storable_journal_reason
from ..run.command.process import CASE, PULL_FIELDS, fill_command_template, process_pull_values
from ..study import Pull
from ..text.masking import masked
from .run_checks import checked_run_placeholders

SEPARATORS = re.compile(r"""[\s=,|&;<>()"'`]+""")  # between the names in a word: --config=a.yaml, or a shell script
OUTPUTS = re.compile(r""">\s*["']?([^\s|&;<>()"'`]+)""")  # the files that a shell script writes
LONGEST = 4096  # characters: a longer word is a text, such as a prompt
MOST = 50_000  # ways to fill in a word with arms and cases: if there are more, the files that it names are not checked
LARGEST = 2**26  # bytes: a larger file is known by its size and the time of its last change
Place = tuple[str | None, str | int | None]  # an arm and a case; None: any


class Seen(NamedTuple):
    """The file of a name when it was read. Stamp and digest are None if there was no file."""

    stamp: tuple[int, ...] | None  # changes with the content
    digest: str | None
    in_script: bool  # the name is part of a shell script, which may create the file


class CodeFiles:
    """The files that COMMAND names, as they were when this read them, except those to be ignored."""

    def __init__(self, argv: Sequence[str], ignored: Sequence[str] = ()) -> None:
        self._words = argv if argv and "/" in argv[0] else argv[1:]  # without a slash, a program is looked up in PATH
        self._spec: Spec | None = None
        self._seen: dict[str, Seen] = {}
        self._names: dict[Place, list[str]] = {}  # the files that the pulls of an arm and a case use
        for word in self._words:
            if not checked_run_placeholders(word):
                self._record((None, None), fill_command_template(word, {}))
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
                self._record(place, fill_command_template(word, values))
        for path in self._ignored:
            if not self._ignore(path) and not any(path in word for word in self._words):
                raise InvalidInput("--ignore", path, "COMMAND names no such file", "write it as COMMAND does")

    def changed(self, ledger: State) -> list[str]:
        """The files that have changed since the study began. Files that the study ignores are ignored from now on.

        A study records all files before the first pull, so a file that it did not record did not exist.
        """
        if not ledger.files and ledger.issued == ledger.imported:
            return []
        for path in [path for path, digests in ledger.files.items() if IGNORED in digests]:
            self._ignore(path)
        self._seen = {name: seen for name, seen in self._seen.items() if name in ledger.files or not seen.in_script}
        return [name for name, seen in self._seen.items() if seen.digest not in ledger.files.get(name, [None])]

    def digests(self) -> dict[str, str]:
        """The digests that a study records, by file."""
        digests = {name: seen.digest for name, seen in self._seen.items() if seen.digest is not None}
        return digests | dict.fromkeys(self._ignored, IGNORED)

    def check(self, pull: Pull) -> None:
        """Raise if a file that this pull uses has changed. Only files with a new stamp are read again."""
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
                "run again to start over, or with --same-code if the change does not matter; "
                f"if COMMAND writes this file itself, add --ignore {shlex.quote(self._as_written(name))}"
            )
            raise CannotGoOn("file", name, "changed while the run lasted", remedy)
        self._seen[name] = seen._replace(stamp=stamp)

    def _record(self, place: Place, word: str) -> None:
        in_script = len(word.split()) > 1
        for name in _names_in(word):
            if name not in self._seen:
                stamp = _stamp(name)
                digest = _digest(name, stamp)
                # such a name must not be in the log
                is_secret = digest is not None and storable_journal_reason(masked(name)) != name
                if is_secret or (digest is None and in_script):
                    continue
                self._seen[name] = Seen(stamp, digest, in_script)
            self._names.setdefault(place, []).append(name)

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
    """A digest of the content; of a large or unreadable file, its size and the time of its last change."""
    if stamp is None:
        return None
    size, changed = stamp[:2]
    try:
        if size <= LARGEST:
            with Path(name).open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()[:32]
    except OSError:
        pass
    return f"{size}:{changed}"
