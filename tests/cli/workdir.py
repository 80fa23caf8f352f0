"""A folder with a durable study, and commands on it. Each is a process, so they share only the store."""

import json
from pathlib import Path
from typing import Any

import pytest
from program import Result, thresher

import thresher as library
from thresher.log.store import open_store


class Workdir:
    """A folder with a store in it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.url = folder, f"sqlite:///{folder}/studies.db"

    def __call__(self, *args: str, stdin: str = "") -> Result:
        return thresher(*args, cwd=self.folder, env={"THRESHER_STORAGE": self.url}, stdin=stdin)

    def good(self, *args: str, stdin: str = "") -> str:
        result = self(*args, stdin=stdin)
        assert result.status == 0, result
        return result.out

    def json(self, *args: str) -> Any:
        data = json.loads(self.good(*args, "--format", "json"))
        assert data["format"] == 1
        return data

    def study(self, name: str = "s") -> library.Study:
        return library.open_study(name, storage=self.url)


@pytest.fixture(name="workdir")
def a_workdir(tmp_path: Path) -> Workdir:
    workdir = Workdir(tmp_path)
    study = library.create_study(
        "s", arms={"a": {"depth": 1}, "b": {"depth": 2}}, at_least=0.5, budget=40, storage=workdir.url
    )
    study.store.close()
    return workdir


def only_study(folder: Path) -> library.Study:
    """The study in a folder's thresher.db."""
    store = open_store(f"sqlite:///{folder}/thresher.db")
    (name,) = store.studies()
    return library.open_study(name, storage=store)
