"""`sift` with a storage: the same call resumes, and another one is refused."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from inspecting import task

import thresher
from thresher.adapters.inspect import sift

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("inspect_ai") is None, reason="inspect_ai is not installed"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # inspect_ai's own
]


def test_a_study_is_not_resumed_with_something_else_to_measure(tmp_path: Path) -> None:
    from inspect_ai.model import get_model
    from inspect_ai.solver import chain, generate, system_message

    arguments: dict[str, Any] = {
        "display": "none",
        "log_dir": str(tmp_path / "logs"),
        "max_samples": 4,
        "log_realtime": False,
    }
    arguments |= {"at_least": 0.6, "storage": f"sqlite:///{tmp_path / 'evals.db'}"}
    calls: list[int] = []
    assert sift(task("terse", 1.0, calls), **arguments)["terse"].certified
    for change in ("model", "solver", "dataset", "temperature", "value"):
        other, more = task("terse", 0.0, calls), dict[str, Any]()
        if change == "model":
            other.model = get_model("mockllm/another")
        elif change == "solver":
            other.solver = chain(system_message("Be brief."), generate())
        elif change == "dataset":
            other.dataset[3].target = "no"
        else:
            more = {"temperature": 0.5} if change == "temperature" else {"value": float}
        with pytest.raises(thresher.StudyExists, match="evaluator is 'inspect_ai with mockllm/model: "):
            sift(other, **arguments, **more)
    made = len(calls)
    assert sift(task("terse", 1.0, calls), **{**arguments, "max_samples": 1})["terse"].certified
    assert len(calls) == made
