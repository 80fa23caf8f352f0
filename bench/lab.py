"""Speed of the laboratory, compared with a straightforward C++ program for the same job, compiled and run here."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from thresher.lab import Setup, simulate

from .report import Figure, fastest

PULLS = 20_000
MANY = 100_000
PLAN = (
    "--at-least=0.9",
    "--arms=100",
    "--family=bernoulli",
    "--means=0.7:0.99",
    "--workers=16",
    "--seconds-per-pull=3",
)


def ours(policy: str, arms: int, budget: int, repetitions: int, threads: int = 1) -> Callable[[], float]:
    """Seconds per pull, inside the compiled loops only."""
    setup = Setup(policy=policy, arms=arms, budget=budget, checkpoints=(budget,))
    simulate(setup, repetitions=1, threads=1)  # compiles
    return lambda: 1.0 / simulate(setup, repetitions=repetitions, threads=threads).pulls_per_second


def straight(program: Path) -> Callable[[], float]:
    """Seconds per pull of the C++ program, which plays EVT with 100 arms and PULLS pulls."""

    def turn() -> float:
        done = subprocess.run([str(program)], check=True, capture_output=True, text=True)
        return 1e-9 * float(done.stdout.split()[0])

    return turn


def cold_command(*words: str) -> float:
    """Seconds of CPU time that a command and its child processes take when nothing compiled is cached."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "XDG_CACHE_HOME": folder}
        before = os.times()
        command = [sys.executable, "-m", "thresher", *words]
        subprocess.run(command, env=environment, check=True, capture_output=True, cwd=folder)
        after = os.times()
        return after.children_user + after.children_system - before.children_user - before.children_system


def figures() -> Iterator[Figure]:
    evt, apt = ours("evt", 100, PULLS, 100), ours("apt", 100, PULLS, 100)
    compiler = shutil.which("g++")
    if compiler:
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder, "straight")
            source = Path(__file__).with_name("straight.cpp")
            subprocess.run([compiler, "-O3", "-march=native", "-o", str(program), str(source)], check=True)
            mine, theirs, quick = fastest(evt, straight(program), apt, turns=9)
        yield Figure("lab: EVT at K = 100, straightforward C++", 1e9 * theirs, "ns a pull")
        yield Figure("lab: EVT at K = 100, our time / that of C++", mine / theirs, "times", 1.15, at_most=True)
    else:
        print("no g++ here: the comparison with C++ is left out", file=sys.stderr)
        mine, quick = fastest(evt, apt)
    yield Figure("lab: EVT at K = 100", 1e9 * mine, "ns a pull")
    yield Figure("lab: APT's speed / EVT's", mine / quick, "times", 1.5)
    [large] = fastest(ours("evt", MANY, 20 * MANY, 1), turns=3)
    yield Figure("lab: EVT at K = 100,000 / at K = 100", large / mine, "times", 6, at_most=True)
    single, double = fastest(ours("evt", 100, PULLS, 400), ours("evt", 100, PULLS, 400, threads=2))
    yield Figure("lab: two threads' throughput / one's", single / double, "times", 1.7)
    spent = cold_command("plan", *PLAN)
    yield Figure("thresher plan at K = 100, from a cold start: CPU time", spent, "s", 13, at_most=True)
