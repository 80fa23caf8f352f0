"""An evaluator whose outcome decides what it does with it: the certificate is not fooled."""

import random
from pathlib import Path

import pytest
import stayer
from chances import most
from engines import make

import thresher

PULLS, BAR = 90, 0.51


@pytest.mark.parametrize(("per_process", "studies"), [(1, 5), (3, 1)])
def test_bad_outcomes_that_are_hidden_in_any_way_do_not_lift_an_arm_above_the_bar(
    per_process: int, studies: int, tmp_path: Path
) -> None:
    """The means are 0.5. Of the bad outcomes, 5 of 7 kinds never become a reward: what is told has a mean near 0.78.

    Who counted only what is told would certify a wrong label in almost every study.
    """
    wrong, told = 0, list[float]()
    for seed in range(studies):
        folder = tmp_path / str(seed)
        folder.mkdir()
        evaluate = stayer.evaluator(str(folder), per_process=per_process, timeout=0.2)
        question = {"at_least": BAR, "confidence": 0.95, "seed": seed, "max_failures": None}
        study = make("adversary", "adversary too", budget=PULLS, **question)
        verdict = thresher.run(study, evaluate, workers=4)
        evaluate.stop()
        assert (verdict.issued, verdict.pending) == (PULLS, 0)
        wrong += any(row.certified and row.reached for row in verdict)
        causes = {event.cause for event in study.events() if event.kind == "dropped"}
        assert causes <= {"failed", "broken-pool", "outage"}  # none was cancelled, which would not be charged
        for row in study.pulls():
            assert row.state in ("told", "dropped")  # no late answer is taken
            if row.reward is not None:
                assert row.reward == float(random.Random(row.seed).random() < 0.5)  # no second answer is taken
                told.append(row.reward)
    assert wrong <= most(studies, 0.05)
    assert sum(told) / len(told) > BAR + 0.1
