"""How much more workers help, simulated with the laboratory's worker pool: the numbers in docs/explanation/scale.md."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from thresher import lab
from thresher.core import state
from thresher.core.evidence import OPEN, commit_to_capital, fresh_capital

from .report import Figure

SMALL, LARGE = 100, 10_000  # arms
POOLS = {SMALL: (1, 8, 32, 128, 512, 2048, LARGE), LARGE: (1, 128, 1000, LARGE)}
REPETITIONS = {SMALL: 50, LARGE: 1}  # many arms average among themselves
EARLY = 300  # pulls per arm at which policies are compared
MOST = {SMALL: 6000, LARGE: 3000}  # pulls per arm, more than any setup here needs
TARGET = 0.95  # the share of arms on the right side that anytime EVT is timed to


@dataclass(frozen=True)
class Pool:
    """What a pool of workers achieves; the unit of time is an average pull."""

    policy: str
    arms: int
    workers: int
    settled: float | None  # share of arms, after EARLY pulls per arm
    right: float  # likewise
    pulls: float  # per arm, until all are settled, or until TARGET of them are right
    seconds: float
    slowest: float  # of the repetitions
    ratio: float  # the largest pending / seen of an arm


def setup(arms: int, workers: int, **more: object) -> lab.Setup:
    """Prompts that pass 70 to 99 % of the time against a bar of 90 %; a pull takes one unit of time, lognormal."""
    shared = {
        "family": "bernoulli",
        "at_least": 0.9,
        "means": (0.7, 0.99),
        "delay": f"workers:{workers}:lognormal:0.5",
    }
    return lab.Setup(arms=arms, **{**shared, **more})  # type: ignore[arg-type]


def settling(policy: str, arms: int, workers: int, *, confidence: float = 0.95, repetitions: int = 0) -> Pool:
    """With certificates, until every arm is settled."""
    points, promise = (EARLY * arms, MOST[arms] * arms), {"confidence": confidence, "tolerance": 0.05}
    asked = setup(arms, workers, policy=policy, budget=MOST[arms] * arms, checkpoints=points, **promise)
    result = lab.simulate(asked, repetitions=repetitions or REPETITIONS[arms], per_arm=False)
    found, ended = result.certificates, result.measures.ended
    assert found is not None
    assert found.finished == 1.0, "the budget is too small to settle all arms"
    ratio = float(result.measures.ratio.mean())
    shares, pulls = (float(found.share[0]), float(result.accuracy[0])), found.used[0] / arms
    return Pool(policy, arms, workers, *shares, pulls, float(ended.mean()), float(ended.max()), ratio)


def labelling(arms: int, workers: int) -> Pool:
    """Without certificates: anytime EVT until TARGET of the arms are on the right side."""
    points = tuple(range(2 * arms, 2 * EARLY * arms + 1, 2 * arms))
    result = lab.simulate(
        setup(arms, workers, policy="anytime-evt", budget=points[-1], checkpoints=points),
        repetitions=4 * REPETITIONS[arms],  # the curve is flat where it crosses TARGET
        per_arm=False,
    )
    first, clock = int(np.argmax(result.accuracy >= TARGET)), result.measures.clock
    assert result.accuracy[first] >= TARGET, "the budget is too small"
    ratio, times = float(result.measures.ratio.mean()), (float(clock[:, first].mean()), float(clock[:, first].max()))
    right = float(result.accuracy[points.index(EARLY * arms)])
    return Pool("anytime-evt", arms, workers, None, right, points[first] / arms, *times, ratio)


def series(policy: str, arms: int) -> list[Pool]:
    """A pool of each size."""
    if policy == "anytime-evt":
        return [labelling(arms, workers) for workers in POOLS[arms]]
    return [settling(policy, arms, workers) for workers in POOLS[arms]]


def table(pools: list[Pool]) -> list[str]:
    """The lines of a Markdown table; speed-ups are against the first."""
    certain = pools[0].settled is not None
    until = "until all are settled" if certain else f"until {TARGET:.0%} are right"
    heads = [
        "workers",
        *(["settled"] if certain else []),
        "right",
        f"pulls an arm {until}",
        "time",
        "speed-up",
        "of ideal",
    ]
    lines = [f"| {' | '.join([*heads, 'pending ratio'])} |", f"|{'---:|' * (len(heads) + 1)}"]
    for pool in pools:
        gain = pools[0].seconds / pool.seconds
        cells = [f"{pool.workers:,}", *([f"{pool.settled:.0%}"] if pool.settled is not None else [])]
        cells += [f"{pool.right:.1%}", f"{pool.pulls:,.0f}", f"{pool.seconds:,.0f}", f"{gain:,.0f}"]
        lines.append(f"| {' | '.join([*cells, f'{gain / pool.workers:.0%}', f'{pool.ratio:.0f}'])} |")
    return lines


def several(studies: int) -> Pool:
    """The large problem as this many studies that share its workers and its risk; all of them must finish."""
    each, workers = LARGE // studies, LARGE // studies
    return settling("balanced", each, workers, confidence=1 - 0.05 / studies, repetitions=studies)


def cases(chance: float, together: int, *, studies: int = 60) -> float:
    """How many cases an arm of 100 needs to be settled against 0.9, when a pull is the mean of this many."""
    stakes, total = state.state_stakes_for((0.9, 0.9, 0.9), SMALL, 0.95), 0
    for seed in range(studies):
        draw, capital = random.Random(seed), fresh_capital()
        settled = OPEN
        while settled == OPEN:
            mean = sum(draw.random() < chance for _ in range(together)) / together
            settled = commit_to_capital(capital, stakes, mean, mean)
            total += together
    return total / studies


def figures(lines: list[str]) -> Iterator[Figure]:
    """All measurements; adds the tables to ``lines``."""
    for arms in POOLS:
        for policy in ("balanced", "uniform", "anytime-evt"):
            pools = series(policy, arms)
            lines += ["", f"## {policy}, {arms:,} arms", "", *table(pools)]
            for pool in pools[1:]:
                name = f"pool: {policy}, {arms:,} arms, {pool.workers:,} workers"
                yield Figure(f"{name}: speed-up", pools[0].seconds / pool.seconds, "times")
    split = several(100)
    lines += ["", f"100 studies of 100 arms and 100 workers: {split.pulls:,.0f} pulls an arm, "]
    lines[-1] += f"{split.seconds:,.0f} on average, {split.slowest:,.0f} until the last ends"
    yield Figure("pool: balanced, 100 studies of 100 arms and workers: the slowest", split.slowest, "pulls' time")
    for chance in (0.94, 0.85):
        more = cases(chance, 10) / cases(chance, 1)
        lines += ["", f"an arm at {chance} needs {more:.1f} times the cases when a pull is the mean of ten"]
        yield Figure(f"an arm at {chance} against 0.9: cases, ten a pull / one a pull", more, "times")
