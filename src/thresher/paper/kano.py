"""Pulls until every arm is settled, on the three benchmarks of Kano et al. (2019): `thresher paper certificates`."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..core import policies
from ..core.policies import Policy
from ..errors import InvalidInput
from ..lab import compiler
from ..lab.parallel import aside
from ..lab.settled import known, standard_error
from ..lab.setup import Setup
from ..lab.simulator import blank_arms, checked, simulate
from . import rivals

CONFIDENCE = 0.95
BUDGET = 300_000  # none of them needs this many
BENCHMARKS = {
    1: ((0.1, 0.1, 0.1, 0.35, 0.45, 0.55, 0.65, 0.9, 0.9, 0.9), 0.5),
    2: ((0.1, 0.2, 0.3, 0.4, 0.5, 0.6), 0.35),
    3: ((0.55,) * 3 + (0.45,) * 7, 0.5),
}
OURS: dict[str, Policy] = {
    "balanced": policies.balanced(),
    "anytime EVT": policies.anytime_evt(),
    "uniform, skips settled": policies.uniform(),
}
RIVALS = {"HDoC": rivals.HDOC, "LUCB-G": rivals.LUCB_G, "APT-G": rivals.APT_G}
ROWS = len(BENCHMARKS) * (len(OURS) + len(RIVALS))


def benchmark(number: int, policy: Policy | str | None = None) -> Setup:
    """One of the three; Bernoulli arms.

    >>> benchmark(2).arms
    6
    """
    means, bar = BENCHMARKS[number]
    return Setup(
        policy=policy,
        family="bernoulli",
        arms=len(means),
        means=list(means),
        threshold=bar,
        budget=BUDGET,
        checkpoints=(BUDGET,),
        confidence=CONFIDENCE,
    )


def rows(repetitions: int, seed: int) -> Iterator[dict[str, Any]]:
    """A row for each benchmark and algorithm: pulls until all arms are settled, and how often a label was wrong."""
    for number in BENCHMARKS:
        for name in (*OURS, *RIVALS):
            if name in OURS:
                measures = simulate(benchmark(number, OURS[name]), repetitions=repetitions, seed=seed).measures
                finished = measures.settled[:, -1] == len(BENCHMARKS[number][0])
                used, wrong = measures.used, measures.mislabelled > 0
            else:
                used, left, mistaken = play_rival(name, benchmark(number), repetitions=repetitions, seed=seed)
                finished, wrong = left[:, 0] == 0, mistaken > 0
            yield {
                "benchmark": number,
                "algorithm": name,
                "repetitions": repetitions,
                "settled": float(finished.mean()),
                "pulls": float(used.mean()),
                "pulls_se": known(standard_error(used)[0]),
                "wrong": float(wrong.mean()),
                "wrong_se": known(standard_error(wrong)[0]),
            }


def play_rival(name: str, setup: Setup, *, repetitions: int, seed: int = 0) -> tuple[Any, Any, Any]:
    """Pulls used, arms that are still open and arms with a wrong label, a row for each repetition.

    >>> used, still, wrong = play_rival("HDoC", benchmark(2).but(means=[0.0] * 3 + [1.0] * 3), repetitions=2)
    >>> used.tolist(), still.tolist(), wrong.tolist()
    ([[219], [219]], [[0], [0]], [[0], [0]])
    """
    if setup.bounds != (0.0, 1.0) or setup.confidence is None:
        raise InvalidInput("bounds", setup.bounds, "the references are for rewards in [0, 1] and a confidence")
    if setup.counts:
        raise InvalidInput("setup", setup.asked.measure, "the references ask whether a mean is at least a bar")
    if name not in RIVALS:
        raise InvalidInput("reference", name, "is not known", f"choose one of {', '.join(RIVALS)}")
    repetitions, seed, _ = checked(repetitions, seed)
    run = compiler.other_loop(rivals.run_rivals)
    used, still, wrong = (np.zeros((repetitions, 1), np.int64) for _ in range(3))
    columns = (np.zeros(setup.arms, np.int64), np.zeros(setup.arms), np.zeros(setup.arms, np.int64))
    rule, risk, arms = RIVALS[name], 1 - setup.confidence, blank_arms(setup)
    found, state = (used, still, wrong), np.zeros(4, np.uint64)
    aside(lambda: run(seed, 0, repetitions, rule, risk, setup.budget, arms, *columns, *found, state))
    return used, still, wrong


def table(found: list[dict[str, Any]]) -> str:
    repetitions = found[0]["repetitions"]
    text = [
        "# Pulls until every arm is settled",
        "",
        f"Kano et al.'s benchmarks of Bernoulli arms at confidence {CONFIDENCE:g}, {repetitions:,} repetitions; ± is "
        "one standard error. Wrong: repetitions with a wrong settled label, of which the confidence allows "
        f"{1 - CONFIDENCE:.0%}. HDoC, LUCB-G and APT-G let an arm leave when its mean ± √(ln(4KT²/risk) / 2T) clears "
        "the bar; the others settle arms by thresher's rule, and differ in which arm is pulled.",
    ]
    for number, (means, bar) in BENCHMARKS.items():
        listed = ", ".join(f"{mean:g}" for mean in means)
        text += ["", f"## Benchmark {number}: means {listed}; bar {bar:g}", ""]
        text += ["| algorithm | pulls | wrong |", "|---|---:|---:|"]
        for row in found:
            if row["benchmark"] == number:
                error = "" if row["pulls_se"] is None else f" ± {row['pulls_se']:,.0f}"
                wrong = f"{round(row['wrong'] * repetitions):,} of {repetitions:,}"
                less = "" if row["settled"] == 1.0 else f" (all settled in {row['settled']:.1%})"
                text.append(f"| {row['algorithm']} | {row['pulls']:,.0f}{error}{less} | {wrong} |")
    return "\n".join(text) + "\n"
