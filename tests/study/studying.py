"""A small study in memory, and its end."""

import random
from typing import Any

import thresher


def make(**given: Any) -> thresher.Study:
    settings: dict[str, Any] = {"arms": ["a", "b", "c"], "at_least": 0.5, "budget": 60}
    return thresher.create_study("s", **settings | given)


def finish(study: thresher.Study, seed: int = 0) -> thresher.Verdict:
    rng = random.Random(seed)
    while pull := study.ask():
        study.tell(pull, rng.random())
    return study.verdict()
