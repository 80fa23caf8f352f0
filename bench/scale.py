"""How far one study goes: asks and tells a second by store and agents, and what pools of workers achieve.

The tables of docs/explanation/scale.md are written to build/scale.md.
"""

import functools
import queue
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
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
Measure = Callable[[int, str], dict[int, float]]  # agents and a name: for each batch, pairs a second
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
    # without certificates no arm is settled, so no agent runs out of work
    made: dict[str, Any] = {"arms": ARMS, "at_least": 0.6, "budget": 10**9, "confidence": None}
    return thresher.create_study(name, storage=storage, **made)


def rounds(study: thresher.Study, barrier: Any, results: Any) -> None:
    """An agent: one batch size after the other, each at the same time as the other agents."""
    for batch in BATCHES:
        barrier.wait()
        results.put((batch, work(study, batch)))


def agent(name: str, url: str, barrier: Any, results: Any) -> None:
    """The same in a process of its own."""
    study = thresher.open_study(name, storage=url)
    rounds(study, barrier, results)
    study.store.close()


def added(results: Any, agents: int) -> dict[int, float]:
    """For each batch, the pairs a second of all agents together."""
    totals = dict.fromkeys(BATCHES, 0.0)
    for _ in range(agents * len(BATCHES)):
        batch, rate = results.get(timeout=600)
        totals[batch] += rate
    return totals


def processes(url: str, agents: int, name: str) -> dict[int, float]:
    create(name, url).store.close()
    barrier, results = storm.CONTEXT.Barrier(agents), storm.CONTEXT.Queue()
    crowd = [storm.CONTEXT.Process(target=agent, args=(name, url, barrier, results)) for _ in range(agents)]
    for each in crowd:
        each.start()
    found = added(results, agents)
    for each in crowd:
        each.join()
    return found


def threads(agents: int, name: str) -> dict[int, float]:
    """In memory, agents are threads of one process."""
    study, barrier, results = create(name, None), threading.Barrier(agents), queue.SimpleQueue[Any]()
    for _ in range(agents):
        threading.Thread(target=rounds, args=(study, barrier, results), daemon=True).start()
    return added(results, agents)


def best_of(measures: Mapping[str, Measure]) -> dict[tuple[str, int, int], float]:
    """The best of several turns for each store, number of agents and batch; a slow minute falls on one turn of all."""
    best: dict[tuple[str, int, int], float] = {}
    for turn in range(TURNS):
        for kind, measure in measures.items():
            for agents in AGENTS:
                for batch, rate in measure(agents, f"{kind}, {agents}, {turn}").items():
                    best[kind, agents, batch] = max(rate, best.get((kind, agents, batch), 0.0))
    return best


def stores(lines: list[str]) -> Iterator[Figure]:
    """All stores; adds the table to ``lines``."""
    lines += ["## pairs of ask and tell a second", "", f"| store | asked at once | {' | '.join(map(str, AGENTS))} |"]
    lines.append(f"|---|---:|{'---:|' * len(AGENTS)}")
    server = Server()
    try:
        with tempfile.TemporaryDirectory(prefix="thresher-bench-") as folder:
            file = f"sqlite:///{folder}/scale.db"
            measures: dict[str, Measure] = {
                "memory": threads,
                "SQLite": functools.partial(processes, file),
                "SQLite, durability=normal": functools.partial(processes, f"{file}?durability=normal"),
                "PostgreSQL": functools.partial(processes, server.url),
            }
            best = best_of(measures)
    finally:
        server.close()
    for kind in measures:
        for batch in BATCHES:
            rates = [best[kind, agents, batch] for agents in AGENTS]
            lines.append(f"| {kind} | {batch} | {' | '.join(f'{rate:,.0f}' for rate in rates)} |")
            for agents, rate in zip(AGENTS, rates, strict=True):
                yield Figure(f"{kind}, {agents} agents, {batch} asked at once", rate, "pairs/s")


def figures() -> Iterator[Figure]:
    """Everything, in about five minutes."""
    lines: list[str] = []
    yield from stores(lines)
    yield from pools.figures(lines)
    file = Path("build/scale.md")
    file.parent.mkdir(exist_ok=True)
    file.write_text("\n".join([*lines, ""]))
