"""How fast the laboratory is, as ratios measured in one run: `python bench/lab.py [--json FILE] [--quick]`.

A straightforward C++ program of the same job is compiled and run beside it; the sides take turns, and the fastest of
several turns counts, since other work on the machine can only slow a side down.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from thresher.lab import Setup, simulate

TURNS = 5
PULLS = 20_000
MANY = 100_000


def fastest(*sides: Callable[[], float], turns: int = TURNS) -> list[float]:
    """The least seconds a pull of each side; they take turns."""
    best = [float("inf")] * len(sides)
    for _ in range(turns):
        best = [min(before, side()) for before, side in zip(best, sides, strict=True)]
    return best


def ours(policy: str, arms: int, budget: int, repetitions: int, threads: int = 1) -> Callable[[], float]:
    setup = Setup(policy=policy, arms=arms, budget=budget, checkpoints=(budget,))
    simulate(setup, repetitions=1, threads=1)  # compiles
    return lambda: 1.0 / simulate(setup, repetitions=repetitions, threads=threads).pulls_per_second


def straight(program: Path, policy: str, arms: int, budget: int, repetitions: int) -> Callable[[], float]:
    command = [str(program), policy, str(arms), str(budget), str(repetitions)]
    return lambda: float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[0])


def cold_command(*words: str) -> float:
    """The seconds that a command takes with an empty cache of machine code."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "XDG_CACHE_HOME": folder}
        program = "import sys; from thresher.cli import lab; getattr(lab, sys.argv[1])(sys.argv[2:])"
        filled = [word.replace("{folder}", folder) for word in words]
        before = time.perf_counter()
        subprocess.run([sys.executable, "-c", program, *filled], env=environment, check=True, capture_output=True)
        return time.perf_counter() - before


def main(words: Sequence[str] | None = None) -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--json", type=Path, help="write the figures to this file too")
    options.add_argument("--quick", action="store_true", help="without the commands from a cold start")
    given = options.parse_args(words)
    rows: list[tuple[str, float, str, float, bool]] = []  # what, measured, unit, bar, whether at most

    evt, apt = ours("evt", 100, PULLS, 100), ours("apt", 100, PULLS, 100)
    compiler = shutil.which("g++")
    if compiler:
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder, "straight")
            source = Path(__file__).with_name("straight.cpp")
            subprocess.run([compiler, "-O3", "-march=native", "-o", str(program), str(source)], check=True)
            mine, theirs, quick = fastest(evt, straight(program, "evt", 100, PULLS, 100), apt)
        rows.append(("EVT, K = 100, time a pull over straightforward C++", mine / theirs, "×", 1.2, True))
    else:
        print("no g++ here: the comparison with C++ is left out", file=sys.stderr)
        theirs = float("nan")
        mine, quick = fastest(evt, apt)
    rows.append(("APT, K = 100, speed over EVT", mine / quick, "×", 1.5, False))
    [large] = fastest(ours("evt", MANY, 20 * MANY, 1), turns=3)
    rows.append((f"EVT, K = {MANY:,}, time a pull over K = 100", large / mine, "×", 6.0, True))
    one, two = fastest(ours("evt", 100, PULLS, 400), ours("evt", 100, PULLS, 400, threads=2))
    rows.append(("EVT, throughput of two threads over one", one / two, "×", 1.7, False))
    if not given.quick:
        seconds = cold_command("paper", "all", "--out", "{folder}/paper", "--repetitions", "100")
        rows.append(("thresher paper all, 100 repetitions, compilation included", seconds, " s", 60.0, True))
        words = (
            "--threshold",
            "0.9",
            "--arms",
            "100",
            "--means",
            "0.7:0.99",
            "--workers",
            "16",
            "--seconds-per-pull",
            "3",
        )
        rows.append(("thresher plan, K = 100, compilation included", cold_command("plan", *words), " s", 10.0, True))

    print(f"{'':60} {'measured':>10} {'bar':>10}")
    for what, measured, unit, bar, at_most in rows:
        met = measured <= bar if at_most else measured >= bar
        print(f"{what:60} {measured:9.2f}{unit} {'≤' if at_most else '≥'} {bar:g}{unit}{'' if met else '  MISSED'}")
    print(f"nanoseconds a pull, K = 100: EVT {mine * 1e9:.1f}, APT {quick * 1e9:.1f}, C++ EVT {theirs * 1e9:.1f}")
    if given.json:
        nanoseconds = {"evt": mine * 1e9, "apt": quick * 1e9, "cpp_evt": None if theirs != theirs else theirs * 1e9}
        figures = [
            {"what": what, "measured": measured, "unit": unit.strip(), "bar": bar, "at_most": at_most}
            for what, measured, unit, bar, at_most in rows
        ]
        given.json.write_text(json.dumps({"format": 1, "ratios": figures, "nanoseconds": nanoseconds}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
