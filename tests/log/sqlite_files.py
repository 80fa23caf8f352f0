"""Studies in SQLite files."""

from pathlib import Path

import thresher


def make(path: Path, name: str = "s", options: str = "") -> thresher.Study:
    url = f"sqlite:///{path}{options}"
    return thresher.create_study(name, arms=["a", "b"], at_least=0.5, budget=100_000, storage=url)


def filled(path: Path, pulls: int = 200) -> Path:
    """A store that is closed, intact and not small."""
    study = make(path)
    for pull in study.ask_many(pulls):
        study.drop(pull, reason="x" * 300, cause="lost")
    study.store.close()
    return path
