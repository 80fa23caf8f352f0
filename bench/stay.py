"""Persistent evaluators: pulls a second with two workers, for an evaluator that returns at once.

For comparison, the same with a process for each pull, by thresher and by xargs.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import thresher
from thresher.run.command.persistent import PersistentEvaluator
from thresher.run.command.process import Command

from .report import Figure, fastest

WORKERS, PER_PROCESS, ARMS = 2, 8, 10
BAR = 5000  # pulls a second
PULLS, DURABLE, STARTED = 20_000, 4_000, 200  # with processes that stay, in memory and in a file; a process for each
STAYS = "import thresher\nthresher.evaluator(lambda pull: pull.seed % 3 / 3)"
ONCE = "import os\nprint(int(os.environ['THRESHER_SEED']) % 3 / 3)"


def with_run(evaluate: Any, pulls: int, per_process: int = 1, storage: str | None = None) -> float:
    """Seconds per pull after the first fifth, when all processes have started."""
    arms = [f"arm {k}" for k in range(ARMS)]
    with thresher.create_study(
        "bench", arms=arms, at_least=0.5, budget=pulls, confidence=None, storage=storage
    ) as study:
        thresher.run(study, evaluate, workers=WORKERS * per_process)
        told = [event.time or 0.0 for event in study.events() if event.kind == "told"]
    return (told[-1] - told[pulls // 5]) / (len(told) - pulls // 5)


def staying(per_process: int, pulls: int = PULLS, storage: str | None = None) -> float:
    evaluate = PersistentEvaluator((sys.executable, "-c", STAYS), 60.0, per_process)
    try:
        return with_run(evaluate, pulls, per_process, storage)
    finally:
        evaluate.stop()


def in_a_file(per_process: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        return staying(per_process, DURABLE, f"sqlite:///{folder}/bench.db")


def with_the_command() -> float:
    """The same from the shell, from the start to the end of the program."""
    options = ["--at-least=0.5", f"--budget={PULLS}", "--confidence=off", "--storage=memory", "--quiet", "--format=csv"]
    arms = [word for k in range(ARMS) for word in ("--arm", f"arm {k}")]
    command = ["--stay", f"--workers={WORKERS}", f"--per-process={PER_PROCESS}", "--", sys.executable, "-c", STAYS]
    start = time.perf_counter()
    argv = [sys.executable, "-m", "thresher", "run", *options, *arms, *command]
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - start) / PULLS


def one_process_per_pull() -> float:
    return with_run(Command((sys.executable, "-c", ONCE), "last-float"), STARTED)


def with_xargs() -> float:
    """A process for each line of input, two at once."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "once.py"
        script.write_text("import sys\nprint(int(sys.argv[1]) % 3 / 3)\n")
        seeds = "\n".join(map(str, range(STARTED)))
        start = time.perf_counter()
        argv = ["xargs", "-P", str(WORKERS), "-n", "1", sys.executable, str(script)]
        subprocess.run(argv, input=seeds, text=True, check=True, stdout=subprocess.DEVNULL)
        return (time.perf_counter() - start) / STARTED


def figures() -> Iterator[Figure]:
    what = f"an evaluator that stays, {WORKERS} workers"
    several, one = fastest(lambda: staying(PER_PROCESS), lambda: staying(1))
    yield Figure(f"{what}, {PER_PROCESS} pending in each: in memory", 1 / several, "pulls/s", BAR)
    yield Figure(f"{what}, 1 pending in each: in memory", 1 / one, "pulls/s")
    (command,) = fastest(with_the_command, turns=3)
    yield Figure("thresher run --stay, from its start to its end: in memory", 1 / command, "pulls/s")
    durable, durably = fastest(lambda: in_a_file(PER_PROCESS), lambda: in_a_file(1), turns=3)
    yield Figure(f"{what}, {PER_PROCESS} pending in each: SQLite, default durability", 1 / durable, "pulls/s")
    yield Figure(f"{what}, 1 pending in each: SQLite, default durability", 1 / durably, "pulls/s")
    started, xargs = fastest(one_process_per_pull, with_xargs, turns=3)
    yield Figure(f"a process for each pull, {WORKERS} workers: thresher run", 1 / started, "pulls/s")
    yield Figure(f"a process for each pull: xargs -P {WORKERS}", 1 / xargs, "pulls/s")
    yield Figure("an evaluator that stays / a process for each pull", started / several, "times")
    yield Figure("an evaluator that stays / xargs", xargs / several, "times")
