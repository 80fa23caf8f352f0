"""How far one study goes: asks and tells a second by store and agents, and what pools of workers come to.

The tables of docs/explanation/scale.md are written to build/scale.md.
"""

import functools
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import storm
from postgres import Server

import thresher

from . import pools
from .report import Figure

AGENTS, BATCHES = (1, 2, 4, 8, 16), (1, 16)
SECONDS, TURNS = 1.0, 3
ARMS = [f"arm {number}" for number in range(100)]


def work(study: thresher.Study, batch: int) -> float:
    """Ask, a batch at a time, and tell, for a while; pairs a second."""
    began, pairs = time.perf_counter(), 0
    while time.perf_counter() < began + SECONDS:
        for pull in study.ask_many(batch):
            study.tell(pull, 0.5)
            pairs += 1
    return pairs / (time.perf_counter() - began)


def create(name: str, storage: str | None) -> thresher.Study:
    # without certificates: no arm is settled, so no agent runs out of work
    made: dict[str, Any] = {"arms": ARMS, "threshold": 0.6, "budget": 10**9, "confidence": None}
    return thresher.create_study(name, storage=storage, **made)


def agent(name: str, url: str, batch: int, gate: Any, results: Any) -> None:
    """A process that works on a study as soon as all are there."""
    study = thresher.open_study(name, storage=url)
    gate.wait()
    results.put(work(study, batch))
    study.store.close()


def processes(url: str, agents: int, batch: int, name: str) -> float:
    """Pairs a second of so many processes together."""
    create(name, url).store.close()
    gate, results = storm.CONTEXT.Barrier(agents), storm.CONTEXT.Queue()
    crowd = [storm.CONTEXT.Process(target=agent, args=(name, url, batch, gate, results)) for _ in range(agents)]
    for each in crowd:
        each.start()
    total = sum(results.get(timeout=600) for _ in crowd)
    for each in crowd:
        each.join()
    return float(total)


def threads(agents: int, batch: int, name: str) -> float:
    """The same in memory, where agents are threads of one process."""
    study, gate, found = create(name, None), threading.Barrier(agents), []

    def job() -> None:
        gate.wait()
        found.append(work(study, batch))

    crowd = [threading.Thread(target=job) for _ in range(agents)]
    for each in crowd:
        each.start()
    for each in crowd:
        each.join()
    return sum(found)


def rates(kind: str, pairs: Callable[..., float]) -> Iterator[tuple[int, int, float]]:
    """Agents, batch and the best rate of several turns; all are measured in each turn, so that noise falls on all."""
    best: dict[tuple[int, int], float] = {}
    for turn in range(TURNS):
        for count in AGENTS:
            for batch in BATCHES:
                rate = pairs(count, batch, f"{kind} {count} {batch} {turn}")
                best[count, batch] = max(best.get((count, batch), 0.0), rate)
    for (count, batch), rate in best.items():
        yield count, batch, rate


def stores(lines: list[str]) -> Iterator[Figure]:
    """Every store; the table is added to ``lines``."""
    lines += ["## pairs of ask and tell a second", "", f"| store | batch | {' | '.join(map(str, AGENTS))} |"]
    lines.append(f"|---|---:|{'---:|' * len(AGENTS)}")
    server = Server()
    try:
        with tempfile.TemporaryDirectory(prefix="thresher-bench-") as folder:
            file = f"sqlite:///{folder}/scale.db"
            places: dict[str, Callable[..., float]] = {
                "memory": threads,
                "SQLite": functools.partial(processes, file),
                "SQLite, durability=normal": functools.partial(processes, f"{file}?durability=normal"),
                "PostgreSQL": functools.partial(processes, server.url),
            }
            for kind, pairs in places.items():
                found = {(count, batch): rate for count, batch, rate in rates(kind, pairs)}
                for batch in BATCHES:
                    cells = [f"{found[count, batch]:,.0f}" for count in AGENTS]
                    lines.append(f"| {kind} | {batch} | {' | '.join(cells)} |")
                for (count, batch), rate in found.items():
                    yield Figure(f"{kind}, {count} agents, {batch} asked at once", rate, "pairs/s")
    finally:
        server.close()


def figures() -> Iterator[Figure]:
    """Everything, in about six minutes."""
    lines: list[str] = []
    yield from stores(lines)
    yield from pools.figures(lines)
    file = Path("build/scale.md")
    file.parent.mkdir(exist_ok=True)
    file.write_text("\n".join([*lines, ""]))
