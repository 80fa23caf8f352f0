"""`sift` with a storage: the same call resumes, and what changed is evaluated again."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from inspecting import model, task

from thresher.adapters.inspect import inspect_number, sift

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("inspect_ai") is None, reason="inspect_ai is not installed"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # inspect_ai's own
]


@pytest.fixture
def arguments(tmp_path: Path) -> dict[str, Any]:
    inspecting = {"display": "none", "log_dir": str(tmp_path / "logs"), "max_samples": 4, "log_realtime": False}
    return {**inspecting, "at_least": 0.6, "storage": f"sqlite:///{tmp_path / 'evals.db'}"}


@pytest.mark.parametrize("change", ["model", "solver", "temperature", "value"])
def test_a_task_is_evaluated_again_if_something_changed_that_its_scores_depend_on(
    arguments: dict[str, Any], change: str
) -> None:
    from inspect_ai.model import get_model
    from inspect_ai.solver import chain, generate, system_message

    before: list[int] = []
    first = sift(task("terse", 1.0, before), **arguments)
    assert first["terse"].certified
    calls: list[int] = []
    other, more = task("terse", 0.0, calls), dict[str, Any]()
    if change == "model":
        known = model(0.0, calls)
        other.model = get_model("mockllm/another", memoize=False, **known.model_args)
    elif change == "solver":
        other.solver = chain(system_message("Be brief."), generate())
    else:
        more = {"temperature": 0.5} if change == "temperature" else {"value": inspect_number}
    changed = sift(other, **arguments, **more)
    assert changed.revision == 2
    assert (changed["terse"].standing, len(calls) > 0) == ("misses", True)
    made = len(calls)
    again = sift(task("terse", 1.0, calls), **{**arguments, "max_samples": 1})
    assert (again["terse"].standing, len(calls)) == ("reaches", made), "what was measured before holds again"


def test_only_a_new_task_and_a_corrected_sample_are_evaluated(arguments: dict[str, Any]) -> None:
    terse: list[int] = []
    polite: list[int] = []
    sift([task("terse", 1.0, terse)], **arguments)
    made = len(terse)
    verdict = sift([task("terse", 1.0, terse), task("polite", 1.0, polite)], **arguments)
    assert (verdict.reached, len(polite) > 0) == (["terse", "polite"], True)
    assert len(terse) < 2 * made
    made = len(terse) + len(polite)
    corrected = [task("terse", 1.0, terse), task("polite", 1.0, polite)]
    for each in corrected:
        each.dataset[3].target = "no"
    verdict = sift(corrected, **arguments)
    assert verdict.study == "inspect"
    assert len(terse) + len(polite) < 2 * made
