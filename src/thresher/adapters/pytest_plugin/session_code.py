"""The code of a session: the files on which the outcomes of its tests depend.

A test's outcomes depend on its own file and the ``conftest.py`` files above it. All other Python files below the root
directory count as code that every test uses, loaded or not, because a test may import them while it runs. So does a
test's file that another file mentions by name: that may import it.
"""

import fnmatch
import hashlib
import os
import platform
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import pytest

from ...depends import file_digests
from .session_options import Options

CONFTEST = "conftest.py"
PACKAGES = "site-packages"  # known by their versions
WORD = re.compile(r"\w+")
SETTINGS = ("filterwarnings", "pythonpath", "usefixtures", "xfail_strict")  # of pytest, which may change outcomes


def session_code(session: pytest.Session, options: Options) -> dict[str, Any]:
    """The digests of the files of all tests, and by node id those of each test: as `revisions.Depends` has them.

    They are empty without a storage, which nobody resumes.
    """
    if options.storage is None:
        return {}
    config, own = session.config, {item.path for item in session.items}
    found = {*_python_files(config), *_loaded_files(config.rootpath), *own}
    files = {file for file in found if file.is_file() and os.access(file, os.R_OK)}
    names = {file: _name(file, config.rootpath) for file in files}
    words = {file: set(WORD.findall(file.read_text(errors="replace"))) for file in files if file.suffix == ".py"}
    mentioned = _mentioned(words)
    patterns = config.getini("python_files")
    special = {file for file in files if file.name == CONFTEST or _is_test_file(file, patterns)} - mentioned
    digests = {file: file_digests(file)[str(file)] for file in files}
    common = {names[file]: digests[file] for file in files - special}
    installed = sorted(f"{package.metadata['Name']} {package.version}" for package in distributions())
    common |= {
        "Python": f"{sys.version} {platform.platform()}",
        "the installed packages": _text_digest(installed),
        "pytest's settings": _text_digest(f"{name}={config.getini(name)}" for name in SETTINGS),
        "--thresher-isolation": options.isolation,
    }
    used = {path: {names[file]: digests[file] for file in special if _is_used(file, path)} for path in own}
    return {"files": common, "arms": {item.nodeid: used[item.path] for item in session.items}}


def _is_test_file(file: Path, patterns: Iterable[str]) -> bool:
    """Whether nothing but its own tests uses the file, unless a file mentions it."""
    return file.suffix != ".py" or any(fnmatch.fnmatch(file.name, pattern) for pattern in patterns)


def _is_used(file: Path, path: Path) -> bool:
    """Whether tests in a file use one of the special files."""
    return file == path or (file.name == CONFTEST and path.is_relative_to(file.parent))


def _mentioned(words: Mapping[Path, set[str]]) -> set[Path]:
    """The files whose names occur in the text of other files."""
    counts: dict[str, int] = {}
    for found in words.values():
        for word in found:
            counts[word] = counts.get(word, 0) + 1
    return {file for file, found in words.items() if counts.get(file.stem, 0) > (file.stem in found)}


def _python_files(config: pytest.Config) -> Iterator[Path]:
    """The Python files below the root directory, but for the folders in which pytest looks for no tests."""
    patterns = config.getini("norecursedirs")
    for where, folders, names in os.walk(config.rootpath):
        kept = [
            folder
            for folder in folders
            if not any(fnmatch.fnmatch(folder, pattern) for pattern in (*patterns, "__pycache__", PACKAGES))
            and not Path(where, folder, "pyvenv.cfg").exists()
        ]
        folders[:] = kept
        yield from (Path(where, name) for name in names if name.endswith(".py"))


def _loaded_files(root: Path) -> Iterator[Path]:
    """The files of loaded modules below the root directory, and of all loaded ``conftest.py``."""
    for module in list(sys.modules.values()):
        name = getattr(module, "__file__", None)
        if isinstance(name, str) and PACKAGES not in name:
            file = Path(name)
            if file.is_relative_to(root) or file.name == CONFTEST:
                yield file


def _name(file: Path, root: Path) -> str:
    """The name of a file that is the same on every machine."""
    return (file.relative_to(root) if file.is_relative_to(root) else file).as_posix()


def _text_digest(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
