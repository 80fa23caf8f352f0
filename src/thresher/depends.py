"""What results depend on besides the question: files, folders and source code, known by the digests of their content.

A specification stores them as `revisions.Depends` has them. A result holds as long as they are unchanged.
"""

import functools
import hashlib
import os
import stat
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from .core.spec import Spec
from .errors import InvalidInput
from .text.masking import masked

Dependency = str | Path | ModuleType | Callable[..., object]
LONGEST_VERSION = 200  # characters
VERSION = "version"  # the name under which a user's text stands for code
ARM, CASE = "{arm}", "{case}"  # in a path
OWN_VERSION = "say version='…', and change it when the code changes"  # a remedy

LARGEST = 2**26  # bytes: a larger file is known by its size and the time of its last change
CACHE = "__pycache__"  # a folder that says nothing about what the folder above it does


def file_digests(path: str | Path, label: str = "depends") -> dict[str, str]:
    """A digest of the file's content or, of a folder, of each file below it, by name. An error begins with the label.

    >>> file_digests("nowhere.txt")
    Traceback (most recent call last):
    thresher.errors.InvalidInput: depends 'nowhere.txt': cannot be read (No such file or directory); check its name
    """
    try:
        info = Path(path).stat()
        if stat.S_ISDIR(info.st_mode):
            return {str(file): _digest(file, file.stat()) for file in _files_below(Path(path))}
        if stat.S_ISREG(info.st_mode):
            return {str(path): _digest(Path(path), info)}
    except OSError as error:
        raise InvalidInput(label, str(path), f"cannot be read ({error.strerror})", "check its name") from None
    raise InvalidInput(label, str(path), "is neither a file nor a folder", "name a file or a folder")


def _files_below(folder: Path) -> list[Path]:
    """The regular files below a folder but hidden ones, through links too. Raises if a folder cannot be read."""

    def refuse(error: OSError) -> None:
        raise error

    files, visited = list[Path](), set[tuple[int, int]]()
    for where, folders, names in os.walk(folder, onerror=refuse, followlinks=True):
        info = Path(where).stat()
        is_new = (info.st_dev, info.st_ino) not in visited
        folders[:] = sorted(name for name in folders if is_new and name[0] != "." and name != CACHE)
        visited.add((info.st_dev, info.st_ino))
        files += [file for name in sorted(names) if name[0] != "." and (file := Path(where, name)).is_file()]
    return files


def _digest(file: Path, info: os.stat_result) -> str:
    if info.st_size > LARGEST:
        return f"{info.st_size}:{info.st_mtime_ns}"
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()[:32]


def stored_depends(spec: Spec, depends: Dependency | Iterable[Dependency], version: str | None) -> dict[str, Any]:
    """What a specification stores: the digests of what all results, those of an arm and those of a case depend on."""
    common, arms, cases = dict[str, str](), dict[str, dict[str, str]](), dict[str, dict[str, str]]()
    is_one = isinstance(depends, str | Path | ModuleType) or callable(depends)
    dependencies: Iterable[Any] = [depends] if is_one else depends  # type: ignore[assignment]
    for dependency in dependencies:
        if not isinstance(dependency, str | Path):
            _merge(common, source_digest(dependency))
            continue
        path = str(dependency)
        if ARM in path and CASE in path:
            rule = "depends on the arm and the case, and a result's files are those of one or the other"
            raise InvalidInput("depends", path, rule, f"name the folder above {CASE}")
        if ARM in path:
            for arm in spec.arms:
                _merge(arms.setdefault(arm, {}), file_digests(path.replace(ARM, arm)))
        elif CASE in path:
            for case in map(str, map(spec.case_name, range(spec.case_count))):
                _merge(cases.setdefault(case, {}), file_digests(path.replace(CASE, case)))
        else:
            _merge(common, file_digests(path))
    if version is not None:
        _merge(common, {VERSION: checked_version(version)})
    return {"files": common, "arms": arms, "cases": cases}


def checked_version(value: object) -> str:
    """A text that stands for code."""
    if not isinstance(value, str) or not value.strip() or not value.isprintable() or len(value) > LONGEST_VERSION:
        raise InvalidInput("version", value, f"must be a printable text of 1 to {LONGEST_VERSION} characters")
    if masked(value) != value:
        raise InvalidInput("version", masked(value), "looks like a secret, and a log must not have any")
    return value


def source_digest(source: ModuleType | Callable[..., object]) -> dict[str, str]:
    """The digest of the file that defines a module, or the module of a function, under a name that machines share.

    >>> list(source_digest(file_digests))
    ['thresher/depends.py']
    """
    while isinstance(source, functools.partial):
        source = source.func
    if isinstance(source, ModuleType):
        module: ModuleType | None = source
    elif callable(source):
        defined = source if hasattr(source, "__qualname__") else type(source)
        module = sys.modules.get(defined.__module__)
    else:
        raise InvalidInput("depends", source, "must be a path, a function or a module")
    file = getattr(module, "__file__", None)
    if module is None or file is None or not Path(file).suffix.startswith(".py"):
        raise InvalidInput("depends", source, "has no file with its source", OWN_VERSION)
    parts = 1 if module.__name__ == "__main__" else module.__name__.count(".") + 1 + hasattr(module, "__path__")
    (digest,) = file_digests(file).values()
    return {"/".join(Path(file).parts[-parts:]): digest}


def _merge(files: dict[str, str], more: Mapping[str, str]) -> None:
    """Add digests. Two files of the same name, such as two modules, count together."""
    for name, digest in more.items():
        if not name.isprintable() or masked(name) != name:
            rule = "is a file whose name cannot be kept in a log"
            raise InvalidInput("depends", masked(name), rule, "rename it, or name other files")
        files[name] = digest if files.get(name, digest) == digest else f"{files[name]} {digest}"
