"""Pulls until every arm is settled, on the three benchmarks of Kano et al. (2019).

`python -m bench.kano FOLDER` writes the data, the table and the picture of docs/paper.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from thresher.core import policies
from thresher.core.policies import Policy
from thresher.errors import InvalidInput
from thresher.lab import Setup, compiler, csv_text, progress_bar, simulate
from thresher.lab.pictures import BLUE, ORANGE, picture
from thresher.lab.result import number_in_result, standard_error_of_result
from thresher.lab.simulator import checked_simulation, run_simulator_aside, simulated_blank_arms

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
        at_least=bar,
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
                "pulls_se": number_in_result(standard_error_of_result(used)[0]),
                "wrong": float(wrong.mean()),
                "wrong_se": number_in_result(standard_error_of_result(wrong)[0]),
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
        raise InvalidInput("setup", setup.spec.measure, "the references ask whether a mean is at least a bar")
    if name not in RIVALS:
        raise InvalidInput("reference", name, "is not known", f"choose one of {', '.join(RIVALS)}")
    repetitions, seed, _ = checked_simulation(repetitions, seed)
    run = compiler.compiled_other_loop(rivals.run_rivals)
    used, still, wrong = (np.zeros((repetitions, 1), np.int64) for _ in range(3))
    columns = (np.zeros(setup.arms, np.int64), np.zeros(setup.arms), np.zeros(setup.arms, np.int64))
    rule, risk, arms = RIVALS[name], 1 - setup.confidence, simulated_blank_arms(setup)
    columns_played, state = (used, still, wrong), np.zeros(4, np.uint64)
    run_simulator_aside(
        lambda: run(seed, 0, repetitions, rule, risk, setup.budget, arms, *columns, *columns_played, state)
    )
    return used, still, wrong


def table(rows: list[dict[str, Any]]) -> str:
    repetitions = rows[0]["repetitions"]
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
        for row in rows:
            if row["benchmark"] == number:
                error = "" if row["pulls_se"] is None else f" ± {row['pulls_se']:,.0f}"
                wrong = f"{round(row['wrong'] * repetitions):,} of {repetitions:,}"
                less = "" if row["settled"] == 1.0 else f" (all settled in {row['settled']:.1%})"
                text.append(f"| {row['algorithm']} | {row['pulls']:,.0f}{error}{less} | {wrong} |")
    return "\n".join(text) + "\n"


def draw(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Pulls until every arm is settled, a panel for each benchmark."""
    names = [*OURS, *RIVALS]
    colours = [BLUE] * len(OURS) + [ORANGE] * len(RIVALS)
    with picture(path, 1, 3, (10.5, 3.3), sharey=True) as (figure, axes):
        for axis, number in zip(axes[0], BENCHMARKS, strict=True):
            mine = {row["algorithm"]: row for row in rows if row["benchmark"] == number}
            pulls = [mine[name]["pulls"] for name in names]
            errors = [mine[name]["pulls_se"] or 0.0 for name in names]
            axis.barh(names, pulls, xerr=errors, color=colours, height=0.7, error_kw={"ecolor": "#333333"})
            for index, value in enumerate(pulls):
                beside = {"textcoords": "offset points", "xytext": (6, 0), "va": "center", "fontsize": 8.5}
                axis.annotate(f"{value:,.0f}", (value, index), **beside)
            title = f"Benchmark {number}: {len(BENCHMARKS[number][0])} arms, bar {BENCHMARKS[number][1]:g}"
            axis.set(title=title, xlim=(0, 1.22 * max(pulls)), xlabel="pulls")
            axis.locator_params(axis="x", nbins=4)
            axis.xaxis.set_major_formatter("{x:,.0f}")
            axis.grid(visible=False, axis="y")
        axes[0, 0].invert_yaxis()
        figure.suptitle(
            "Pulls until every arm is settled, confidence 0.95; blue: thresher's rule, orange: the literature's",
            fontsize=10.5,
        )


def write(folder: Path, repetitions: int = 1000, seed: int = 0) -> None:
    """The data, the table and the picture."""
    measured = []
    with progress_bar("certificates", ROWS) as progress:
        for row in rows(repetitions, seed):
            measured.append(row)
            if progress is not None:
                progress(1)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "certificates.csv").write_text(csv_text(measured), encoding="utf-8")
    (folder / "certificates.md").write_text(table(measured), encoding="utf-8")
    draw(measured, folder / "certificates")


if __name__ == "__main__":
    write(Path(*sys.argv[1:2] or ["build/paper"]))
