"""A study of each kind of question, finished or nearly so: bars, limits, baselines in pairs and on cases, a ratio."""

import random
from collections.abc import Callable
from typing import Any

import thresher
from thresher.core.pulls import Pull
from thresher.log.store import Storage

TIMES = {"sqlite3 in memory": 0.021, "ripgrep": 0.034, "grep -r": 0.047, "ack": 0.071, "a Python script": 0.142}
PAIRS = {"current": 0.55, "few-shot": 0.8, "terse": 0.52, "polite": 0.36}
SCORES = {"current": 0.5, "chain-of-thought": 0.82, "few-shot": 0.62, "terse": 0.51, "polite": 0.3}
CASES = [f"nda-{number:03}" for number in range(120)]
LATENCY = {"arms": list(TIMES), "at_most": 0.05, "unit": "s"}
QUESTIONS: dict[str, dict[str, Any]] = {
    "mean at least": {"arms": list(PAIRS), "at_least": 0.6, "budget": 600},
    "mean at most": {**LATENCY, "bounds": (0, 0.5), "budget": 500},
    "share": {**LATENCY, "share": 0.95, "budget": 900},
    "score in points": {"arms": ["easy", "hard"], "at_least": 40, "share": 0.75, "unit": "points", "budget": 90},
    "pairs": {"arms": list(PAIRS), "baseline": "current", "margin": 0.05, "budget": 900},
    "slower by": {"arms": list(TIMES), "baseline": "grep -r", "margin": -0.01, "lower_is_better": True, "unit": "s",
                  "bounds": (0, 0.5), "budget": 400},
    "ratio": {"arms": list(TIMES), "baseline": "grep -r", "ratio": 1.05, "lower_is_better": True, "unit": "s",
              "budget": 300},
    "cases": {"arms": list(SCORES), "baseline": "current", "margin": 0.1, "cases": CASES},
}  # fmt: skip


def make(storage: Storage, *names: str) -> None:
    """Create these studies, or all of them, and run them. The last pulls stay pending."""
    for name in names or QUESTIONS:
        study = thresher.create_study(name, storage=storage, seed=7, **QUESTIONS[name])
        evaluate = evaluator(random.Random(name))
        while len(pulls := study.ask_many(20)) == 20:
            for pull in pulls:
                study.tell(pull, evaluate(pull))
        for pull in pulls[:-1]:
            study.tell(pull, evaluate(pull))


def evaluator(draw: random.Random) -> Callable[[Pull], Any]:
    """The reward of a pull: a time, a pass or fail, points, or a pair of them."""

    def one(pull: Pull) -> float:
        if pull.arm in TIMES:
            return min(0.5, TIMES[pull.arm] * draw.lognormvariate(0, 0.08))
        if pull.arm in ("easy", "hard"):
            return draw.gauss(60 if pull.arm == "easy" else 35, 8)
        if pull.case is None:
            return float(draw.random() < PAIRS[pull.arm])
        return float(random.Random(f"{pull.arm} {pull.case}").random() < SCORES[pull.arm])

    def evaluate(pull: Pull) -> Any:
        rewards = {evaluation.arm: one(evaluation) for evaluation in pull.both()}
        return rewards[pull.arm] if pull.baseline is None else (rewards[pull.arm], rewards[pull.baseline])

    return evaluate
