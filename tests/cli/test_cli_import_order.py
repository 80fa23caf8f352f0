"""The order of imported results proves nothing."""

from collections.abc import Callable

import pytest
from workdir import Workdir, a_workdir  # noqa: F401 - the fixture

import thresher as library
from thresher.cli import cli


def imported(workdir: Workdir, study: library.Study, results: list[tuple[str, float]]) -> None:
    """In this process: fifty imports."""
    file = workdir.folder / "sorted.csv"
    file.write_text("arm,reward\n" + "".join(f"{arm},{reward}\n" for arm, reward in results))
    cli.main(["import", str(file), "--study", study.name, "--storage", workdir.url], standalone_mode=False)


def added(workdir: Workdir, study: library.Study, results: list[tuple[str, float]]) -> None:
    for each in results:
        study.add(*each)


ORDERS: dict[str, Callable[[Workdir, library.Study, list[tuple[str, float]]], None]] = {
    "add_many": lambda workdir, study, results: study.add_many(results),
    "add": added,
    "import": imported,
}


@pytest.mark.parametrize("way", ORDERS)
def test_sorted_results_are_not_certified_by_their_order(workdir: Workdir, way: str) -> None:
    """The best first: seen one by one, the mean seems to be 1. It is .5, and the bar is .6."""
    for seed in range(50):
        storage = workdir.url if way == "import" else None
        study = library.create_study(f"{seed}", arms=["x"], at_least=0.6, budget=61, seed=seed, storage=storage)
        ORDERS[way](workdir, study, [("x", 1.0)] * 30 + [("x", 0.0)] * 30)
        study.ask()
        row = study.verdict()["x"]
        assert (row.seen, row.label, row.certified) == (60, "below", False)
