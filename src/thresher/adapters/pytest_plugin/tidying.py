"""Removes the temporary folders of runs: thousands take space, and pytest looks at all of them to make a new one."""

import os
import shutil
from collections import deque
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

MOST = 256  # folders that wait to be removed
FOLDER = pytest.StashKey[Path]()
KEPT = pytest.StashKey[bool]()  # whether a folder of this test was kept
WAITING = pytest.StashKey[deque[Path]]()


class Noting:
    """The hook that notes the folder of the fixture ``tmp_path``."""

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
    ) -> Generator[None, Any, Any]:
        value = yield
        if fixturedef.argname == "tmp_path" and isinstance(value, Path):
            request.node.stash[FOLDER] = value
        return value


def tidy(item: pytest.Item, *, failed: bool) -> None:
    """Remove the folders of runs that ended some time ago, except that of the first run of a test that failed."""
    folder = item.stash.get(FOLDER, None)
    if folder is None:
        return
    del item.stash[FOLDER]
    if failed and not item.stash.get(KEPT, False):
        item.stash[KEPT] = True
        return
    waiting = item.config.stash.setdefault(WAITING, deque[Path]())
    waiting.append(folder)
    if len(waiting) > MOST:
        _remove(waiting.popleft())


def _remove(folder: Path) -> None:
    try:
        here = Path(os.getcwd())  # noqa: PTH109 - a test may have removed it
    except OSError:
        return
    if not here.is_relative_to(folder):  # a test may have changed to it
        shutil.rmtree(folder, ignore_errors=True)
