"""Which arm is pulled while other arms still wait for their first rewards: several rules, in a pool of workers.

The table of docs/design/deciding.md; all tables are written to build/warmup.md.
"""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from thresher.core import columns
from thresher.core.evidence import CHARGED
from thresher.lab import Setup, compiled_scores, compiler
from thresher.lab.delays import blank_delay_slots
from thresher.lab.repetition import blank_repetition_proof, repetition_zeros
from thresher.lab.result import standard_error_of_result
from thresher.lab.simulator import run_simulator_aside, run_simulator_threads, simulated_blank_arms, simulated_rules
from thresher.text.machine import available_cores

from . import warmup_loop as loop
from .report import Figure

RULES = {
    loop.TODAY: "today",
    loop.OBSERVED: "the warm-up is observed first, while free workers wait (Step 1)",
    loop.FIRST: "an arm without a reward comes first while it has fewer pulls issued than the best scored arm",
    loop.CAPPED: "the same, for up to 4 pulls",
    loop.LEAST: "the same, fewer than the least issued scored arm",
    loop.LONGER: "an arm without a reward comes first for up to 4 pulls",
}
TIMES = {
    loop.EQUAL: "equal",
    loop.SPREAD: "arms from 1 to 100",
    loop.SLOW: "one arm 30 times slower",
    loop.HANGS: "one arm hangs",
}
POOLS = (  # arms, workers, pulls per arm
    *((8, 4, 30), (8, 16, 10), (8, 16, 30), (8, 16, 100), (8, 100, 20), (8, 100, 50)),
    *((100, 16, 10), (100, 16, 30), (100, 100, 4), (100, 100, 10), (100, 100, 30)),
)
CERTIFIED = ((8, 16, 100), (8, 100, 100), (100, 16, 100), (100, 100, 100))
REPETITIONS = {8: 10_000, 100: 1000}
Rows = np.ndarray[tuple[int, int], np.dtype[np.float64]]


def play(policy: str, way: int, times: int, pool: tuple[int, int, int], repetitions: int, *, certifies: bool) -> Rows:
    """A row for each repetition. Every rule meets the same rewards and service times, pull by pull."""
    count, workers, pulls = pool
    setup = Setup(
        policy=policy,
        family="bernoulli",
        arms=count,
        means=(0.7, 0.99),
        at_least=0.9,
        budget=count * pulls,
        confidence=0.95 if certifies else None,
        common=True,
    )
    run, numbered = (
        compiler.compiled_other_loop(loop.run_pool),
        tuple(map(compiled_scores.numbered_score, simulated_rules(setup))),
    )
    rows = np.zeros((repetitions, 5))

    def work(chunk: tuple[int, int]) -> None:
        board = columns.blank_board_columns(count, repetition_zeros)
        boards = board, columns.second_board_columns(board, repetition_zeros)
        proof = blank_repetition_proof(
            count if certifies else 0, setup.budget if certifies else 0, setup.stakes, CHARGED
        )
        drawn: tuple[Any, ...] = (np.zeros(count), np.zeros(4, np.uint64), np.zeros(4, np.uint64))
        fixed = (boards, numbered, simulated_blank_arms(setup), proof, blank_delay_slots(workers), *drawn, rows)
        run(1, *chunk, way, times, setup.budget, certifies, *fixed)

    run_simulator_aside(lambda: work((0, 0)))  # compiles
    edges = np.linspace(0, repetitions, 9, dtype=int).tolist()
    run_simulator_threads(work, list(pairwise(edges)), available_cores())
    return rows


def with_error(values: Any) -> tuple[float, float]:
    return float(values.mean()), float(standard_error_of_result(values[:, None])[0])


def compared(policy: str, times: int, pool: tuple[int, int, int], *, certifies: bool) -> Iterator[dict[str, Any]]:
    """What each rule measures, and its difference from today's in the same repetitions."""
    judged = pool[0] - (times == loop.HANGS)
    repetitions = REPETITIONS[pool[0]] // (5 if certifies else 1)
    today = None
    for way in RULES:
        if way == loop.OBSERVED and times == loop.HANGS:
            continue  # it never goes on
        rows = play(policy, way, times, pool, repetitions, certifies=certifies)
        today = rows if today is None else today
        yield {
            "rule": RULES[way],
            "way": way,
            "wrong": with_error(rows[:, loop.WRONG] / judged),
            "change": with_error((rows - today)[:, loop.WRONG] / judged),
            "any": with_error(rows[:, loop.WRONG] > 0),
            "settled": with_error(rows[:, loop.SETTLED] / judged),
            "time": float(rows[:, loop.CLOCK].mean()),
            "issued": float(rows[:, loop.ISSUED].mean()),
            "hung": float(rows[:, loop.HUNG].mean()),
        }


def line(row: dict[str, Any], times: int, pool: tuple[int, int, int], *, certifies: bool) -> str:
    """A row of a table."""
    shares = [f"{row[name][0]:.4f} ± {row[name][1]:.4f}" for name in ("wrong", "any", "settled")[: 2 + certifies]]
    change = f"{row['change'][0]:+.4f} ± {row['change'][1]:.4f}"
    cells = [TIMES[times], *map(str, pool), row["rule"], shares[0], change, *shares[1:]]
    return f"| {' | '.join(cells)} | {row['time']:.0f} | {row['issued']:.0f} | {row['hung']:.1f} |"


def geometric_mean(ratios: list[float]) -> float:
    return float(np.exp(np.mean(np.log(ratios))))


def tables(policy: str, lines: list[str]) -> Iterator[Figure]:
    """All measurements of a policy; adds its table to ``lines``."""
    certifies = policy == "balanced"
    heads = ["times", "arms", "workers", "pulls per arm", "rule", "arms wrong", "against today", "any arm wrong"]
    heads += [*(["settled"] if certifies else []), "time", "pulls issued", "pulls that hang"]
    lines += [f"## {policy}", "", f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for times in TIMES:
        ratios: dict[int, list[float]] = {way: [] for way in RULES}
        hung = dict.fromkeys(RULES, 0.0)
        for pool in CERTIFIED if certifies else POOLS:
            today, *others = compared(policy, times, pool, certifies=certifies)
            for row in (today, *others):
                lines.append(line(row, times, pool, certifies=certifies))
                ratios[row["way"]].append(row["wrong"][0] / today["wrong"][0])
                hung[row["way"]] = max(hung[row["way"]], row["hung"] / pool[1])
        for way in RULES:
            if ratios[way]:
                name = f"{policy}, {TIMES[times]}, rule {way}: "
                yield Figure(f"{name}arms wrong / by today's rule", geometric_mean(ratios[way]), "times")
                if times == loop.HANGS:
                    yield Figure(f"{name}workers lost to it, at worst", hung[way], "")
    lines.append("")


def figures() -> Iterator[Figure]:
    """Everything, in about three minutes of CPU time."""
    lines: list[str] = []
    for policy in ("ap-evt", "anytime-evt", "balanced"):
        yield from tables(policy, lines)
    file = Path("build/warmup.md")
    file.parent.mkdir(exist_ok=True)
    file.write_text("\n".join(lines))
