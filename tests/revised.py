"""A study with three revisions: an arm is added; then an arm goes, one comes, a case is corrected, the bar is lower."""

from typing import Any

import thresher
from thresher.log.store import Storage

CASES = [f"q{number}" for number in range(30)]
RIGHT = {"terse": 10, "cot": 6, "polite": 4, "short": 9, "long": 8}  # of ten cases


def rewarded(study: thresher.Study, most: int = 10**9) -> thresher.Study:
    """The study after so many pulls."""
    while most and (pull := study.ask()):
        study.tell(pull, int(str(pull.case).strip("qx")) % 10 < RIGHT[pull.arm])
        most -= 1
    return study


def revisions(storage: Storage, *, last: int = 10**9, name: str = "ask") -> list[thresher.Verdict]:
    """The verdicts at the ends of the revisions, the last after so many pulls."""
    first: dict[str, Any] = {"at_least": 0.8, "cases": CASES, "storage": storage}
    study = thresher.create_study(name, arms=["terse", "cot"], **first)
    verdicts = [rewarded(study).verdict()]
    study = thresher.create_study(name, arms=["terse", "cot", "polite"], if_exists="revise", **first)
    study.ask()  # by an agent that ends before the revision does
    verdicts.append(rewarded(study).verdict())
    changed = {**first, "at_least": 0.5, "cases": [*CASES[:3], "x3", *CASES[4:]]}
    study = thresher.create_study(name, arms=["terse", "cot", "short"], if_exists="revise", **changed)
    return [*verdicts, rewarded(study, last).verdict()]
