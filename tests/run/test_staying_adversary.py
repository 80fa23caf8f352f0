"""An evaluator whose outcome decides what it does with it: the certificate is not fooled."""

from pathlib import Path

import pytest
import stayer
from chances import most
from engines import make

import thresher

RUNS, PULLS, BAR = 6, 150, 0.6


@pytest.mark.parametrize("per_process", [1, 3])
def test_bad_outcomes_that_are_hidden_in_any_way_do_not_lift_an_arm_above_the_bar(
    per_process: int, tmp_path: Path
) -> None:
    """The mean is 0.5. Of the bad outcomes, 5 of 7 kinds never become a reward: what is told has a mean near 0.78."""
    wrong, told = 0, list[float]()
    for seed in range(RUNS):
        folder = tmp_path / str(seed)
        folder.mkdir()
        evaluate = stayer.evaluator(str(folder), per_process=per_process, timeout=0.2)
        question = {"threshold": BAR, "confidence": 0.95, "seed": seed, "max_failures": None}
        study = make("adversary", "b", budget=PULLS, **question)
        verdict = thresher.run(study, evaluate, workers=4)
        evaluate.stop()
        assert (verdict.issued, verdict.pending) == (PULLS, 0)
        wrong += verdict["adversary"].certified and verdict["adversary"].label == "above"
        told += [row.reward for row in study.pulls() if row.arm == "adversary" and row.reward is not None]
        hidden = [event.cause for event in study.events() if event.kind == "dropped"]
        assert set(hidden) <= {"failed", "broken-pool"}  # none was cancelled, which would not be charged
    assert wrong <= most(RUNS, 0.05)
    assert sum(told) / len(told) > BAR + 0.1  # who counted only these would be wrong
