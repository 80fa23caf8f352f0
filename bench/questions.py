"""Questions about times: on machines that drift, pairs stay right; what a slowdown and a limit cost; real programs.

The figures of real programs against a limit need a quiet machine.
"""

import statistics
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import drifting
import timing
from drifting import slower

import thresher
from thresher.run.command.process import Command

from .report import Figure

RISK, STUDIES, ARMS, PULLS = 0.05, 500, 4, 100
FOUND, REPETITIONS = 40, 200


def figures() -> Iterator[Figure]:
    yield from drift()
    yield from slowdowns()
    yield from limits()
    yield from overhead()
    yield from programs()


def drift() -> Iterator[Figure]:
    """Studies with a false "slower": 4 arms that are as fast as the baseline, 100 pulls an arm."""
    equal = slower(ARMS)
    names, budget = [arm for arm in equal if arm != "base"], ARMS * PULLS
    seeds = range(1, STUDIES + 1)
    for ratio in (1.0, 1.05):
        share = sum(drifting.says_slower(drifting.paired(s, equal, budget=budget, ratio=ratio), names) for s in seeds)
        what = f"pairs, ratio {ratio}, 26 % drift: studies with a false “slower”"
        yield Figure(what, share / STUDIES, "", RISK, at_most=True)
    for ratio in (1.0, 1.05):
        share = sum(drifting.says_slower(drifting.unpaired(s, equal, budget=budget, ratio=ratio), names) for s in seeds)
        yield Figure(f"unpaired, {ratio} × the baseline's median: the same", share / STUDIES, "", 0.5)


def slowdowns() -> Iterator[Figure]:
    """Pairs of an arm that is 10 % slower, with 3 % noise in each run, until that is certified."""
    for arms in (1, 10):
        for ratio in (1.0, 1.05):
            counts = [drifting.pairs_until_found(seed, ratio=ratio, arms=arms) for seed in range(1, REPETITIONS + 1)]
            what = f"10 % slower, ratio {ratio}, arms besides the baseline: {arms}; pairs, mean"
            yield Figure(what, sum(counts) / REPETITIONS, "pairs", FOUND, at_most=True)
            yield Figure("the same, the most", max(counts), "pairs")


def limits() -> Iterator[Figure]:
    """Pulls of an arm that never exceeds the limit, among ten, until p95 is certified."""
    study = thresher.create_study("p95", arms=[f"arm {each}" for each in range(10)], at_most=0.2, share=0.95, unit="s")
    while pull := study.ask():
        study.tell(pull, 0.1)
    verdict = study.verdict()
    assert len(verdict.reached) == 10
    most = max(row.seen for row in verdict.rows)
    yield Figure("p95 within the limit, never exceeded, 10 arms: pulls of an arm", most, "pulls", 150, at_most=True)


def overhead() -> Iterator[Figure]:
    """What a measured time has besides the program's own."""
    command, pull = Command(("sleep", "0.05"), "seconds"), thresher.Pull(1, "a", 1, {}, 7)
    times = sorted(1000 * (command(pull) - 0.05) for _ in range(200))
    yield Figure("sleep 0.05, measured: beyond 50 ms, the best tenth", times[20], "ms", 3, at_most=True)
    yield Figure("the same, median", statistics.median(times), "ms")


def programs() -> Iterator[Figure]:
    """Nine programs that take at most 10 ms and three that take 200, against 50 ms; then pairs on busy cores."""
    questions: dict[str, dict[str, object]] = {
        "p95": {"share": 0.95},
        "share 0.5": {"share": 0.5},
        "mean, bounds 0 to 0.25 s": {"bounds": (0.0, 0.25), "clip": True},
    }
    for name, question in questions.items():
        verdict = timing.against_limit(budget=6000, **question)
        right = sum(row.certified and row.reached == (row.arm in timing.FAST) for row in verdict.rows)
        yield Figure(f"12 programs against 50 ms, {name}: right and certified", right, "arms", 12)
        yield Figure("the same, pulls", verdict.issued, "pulls")
    with timing.busy_cores():
        verdicts = [timing.against_baseline("seconds") for _ in range(10)]
    right = sum(v.reached == ["faster"] and v.missed == ["slower"] and not v.open for v in verdicts)
    yield Figure("10 studies of pairs on busy cores, 4 × and ¼ of the time: right", right, "studies", 10)
    yield Figure("the same, pairs of an arm", sum(v.issued for v in verdicts) / 20, "pairs")
