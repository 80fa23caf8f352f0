"""Durable studies: speed as ratios against Optuna's storages in the same run, and the storms at full size."""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import storm
from logs import append
from postgres import Server

import thresher
from thresher.core.events import Event
from thresher.log.store import open_store

from .report import Figure, fastest

PROCESSES, PULLS, OPTUNA_TRIALS, TURNS = 8, 500, 25, 3
ARMS = [f"arm {number}" for number in range(100)]


# -- ask and tell by eight processes --------------------------------------------------------------------------------


def ours(url: str, name: str, count: int, barrier: Any, results: Any) -> None:
    """Ask and tell again and again; report the longest wait of a single call."""
    study = thresher.open_study(name, storage=url)
    barrier.wait()
    longest = 0.0
    for _ in range(count):
        began = time.perf_counter()
        pull = study.ask()
        asked = time.perf_counter()
        study.tell(pull or 0, 0.5)
        longest = max(longest, asked - began, time.perf_counter() - asked)
    results.put(longest)
    study.store.close()


def optunas(url: str, name: str, count: int, barrier: Any, results: Any) -> None:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.load_study(study_name=name, storage=url, sampler=optuna.samplers.RandomSampler())
    space: dict[str, Any] = {"arm": optuna.distributions.CategoricalDistribution(ARMS)}
    barrier.wait()
    longest = 0.0
    for _ in range(count):
        began = time.perf_counter()
        trial = study.ask(space)
        asked = time.perf_counter()
        study.tell(trial, 0.5)
        longest = max(longest, asked - began, time.perf_counter() - asked)
    results.put(longest)


def together(work: Callable[..., None], url: str, name: str, count: int) -> tuple[float, float]:
    """Pairs of ask and tell a second over all processes, and the longest wait."""
    barrier, results = storm.CONTEXT.Barrier(PROCESSES + 1), storm.CONTEXT.Queue()
    processes = [
        storm.CONTEXT.Process(target=work, args=(url, name, count, barrier, results)) for _ in range(PROCESSES)
    ]
    for process in processes:
        process.start()
    barrier.wait()
    began = time.perf_counter()
    waits = [results.get(timeout=600) for _ in processes]
    took = time.perf_counter() - began
    for process in processes:
        process.join()
        assert process.exitcode == 0
    return PROCESSES * count / took, max(waits)


def our_turn(url: str, name: str) -> tuple[float, float, bool]:
    """Pairs a second, the longest wait, and whether the counts are exact."""
    budget = PROCESSES * PULLS
    # without certificates, as Optuna is: with them the study would end when its arms are settled
    made = thresher.create_study(name, arms=ARMS, at_least=0.6, budget=budget, storage=url, confidence=None)
    made.store.close()
    rate, wait = together(ours, url, name, PULLS)
    found = thresher.open_study(name, storage=url)
    verdict = found.verdict()
    found.store.close()
    return rate, wait, (verdict.issued, verdict.told, verdict.pending) == (budget, budget, 0)


def against_optuna(kind: str, url: str, optuna_url: str, bar: float) -> Iterator[Figure]:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    optuna.create_study(study_name="s", storage=optuna_url)
    mine, theirs, exact = [], [], True
    for turn in range(TURNS):  # the sides take turns, so that noise falls on both; the best of each counts
        rate, wait, fine = our_turn(url, f"s{turn}")
        exact = exact and fine
        mine.append((rate, wait))
        theirs.append(together(optunas, optuna_url, "s", OPTUNA_TRIALS))
    (rate, wait), (their_rate, their_wait) = max(mine), max(theirs)
    what = f"{kind}, {PROCESSES} processes × {PULLS} ask + tell"
    yield Figure(f"{what}: times Optuna's", rate / their_rate, "×", bar)
    yield Figure(f"{what}: longest wait", wait, "s", 1.0, at_most=True)
    yield Figure(f"{what}: exact counts", float(exact), "", 1.0)
    yield Figure(f"{what}", rate, "pairs/s")
    yield Figure(f"{kind}, Optuna, {PROCESSES} × {OPTUNA_TRIALS}", their_rate, "pairs/s")
    yield Figure(f"{kind}, Optuna, longest wait", their_wait, "s")


# -- long logs -------------------------------------------------------------------------------------------------------


def fill(store: Any, name: str, pulls: int) -> None:
    """Write a log of this many pulls directly; the fold does not check why an arm was chosen."""
    thresher.create_study(name, arms=ARMS, at_least=0.5, budget=10 * pulls, storage=store)  # on the bar: none settles
    rng, events, seq = random.Random(3), [], 1
    for pull in range(1, pulls + 1):
        arm, key, agent = pull % len(ARMS), f"{rng.getrandbits(48):012x}-{pull}", "machine:12345"
        events.append(Event(seq + 1, "asked", pull, arm, key=key, time=1.8e9 + pull, agent=agent))
        events.append(
            Event(seq + 2, "told", pull, arm, 0.4 + pull // len(ARMS) % 2 / 5, key=key, time=1.8e9 + pull, agent=agent)
        )
        seq += 2
        if len(events) >= 20_000 or pull == pulls:
            append(store, name, events)
            events = []


def cost(study: thresher.Study, rounds: int = 500) -> float:
    """Seconds of one ask and its tell."""
    began = time.perf_counter()
    for _ in range(rounds):
        study.tell(study.ask() or 0, 0.5)
    return (time.perf_counter() - began) / rounds


def long_logs(folder: Path, large: int = 1_000_000) -> Iterator[Figure]:
    store = open_store(f"sqlite:///{folder}/long.db")
    fill(store, "small", 1000)
    fill(store, "events", large // 2)
    fill(store, "pulls", large)
    began = time.perf_counter()
    thresher.open_study("events", storage=store)
    opening = time.perf_counter() - began
    small, big = (thresher.open_study(name, storage=store) for name in ("small", "pulls"))
    at_large, at_small = fastest(lambda: cost(big, 200), lambda: cost(small, 200), turns=9)
    store.close()
    yield Figure(f"opening a log of {large:,} events", opening, "s", 10.0, at_most=True)
    yield Figure(f"ask + tell at {large:,} pulls against 1,000", at_large / at_small, "×", 1.3, at_most=True)


def command_line(folder: Path) -> Iterator[Figure]:
    store = open_store(f"sqlite:///{folder}/cli.db")
    fill(store, "s", 4990)
    store.close()
    # with compiled bytecode, as for an installed program, whatever the environment says
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"THRESHER_STORAGE": f"sqlite:///{folder}/cli.db", "PYTHONPYCACHEPREFIX": f"{folder}/bytecode"}
    asking, telling = [], []
    for _ in range(16):
        began = time.perf_counter()
        out = subprocess.check_output([sys.executable, "-m", "thresher", "ask", "s", "--format=json"], env=environment)
        asked = time.perf_counter()
        pull = str(json.loads(out)["pull"])
        subprocess.check_call([sys.executable, "-m", "thresher", "tell", "s", pull, "0.5"], env=environment)
        asking.append(asked - began)
        telling.append(time.perf_counter() - asked)
    rounds = len(asking)
    yield Figure(f"thresher ask, 10,000 events, best of {rounds}", min(asking) * 1e3, "ms", 200, at_most=True)
    yield Figure(f"thresher tell, 10,000 events, best of {rounds}", min(telling) * 1e3, "ms", 200, at_most=True)


# -- storms ----------------------------------------------------------------------------------------------------------


def kills(folder: Path, count: int = 200) -> Iterator[Figure]:
    url, budget = f"sqlite:///{folder}/storm.db", 30 * count
    storm.create(url, budget)
    weather = storm.Storm(url, folder)
    try:
        weather.kill(count, random.Random(2))
        weather.finish(120)
    finally:
        weather.end()
    found = storm.check(url, weather.acknowledged())  # raises if anything that was acknowledged is missing
    yield Figure(
        f"kill -9 over {storm.AGENTS} agents, {found['acknowledged']:,} rewards acknowledged, all kept",
        count,
        "kills",
        200,
    )


def stops(folder: Path, count: int = 10) -> Iterator[Figure]:
    server, budget = Server(), 600 * count
    weather = storm.Storm(server.url, folder)
    try:
        storm.create(server.url, budget)
        weather.fill()
        for _ in range(count):
            weather.wait_for_rewards(100)
            server.stop_at_once()
            server.start()
        weather.finish(120)
        found = storm.check(server.url, weather.acknowledged())
        yield Figure(
            f"stops of PostgreSQL, {found['acknowledged']:,} rewards acknowledged, all kept", count, "stops", 10
        )
    finally:
        weather.end()
        server.close()


def starts(server: Server, folder: Path, times: int = 20) -> Iterator[Figure]:
    """How often 32 processes that start together on a store that does not exist yet all join."""
    import psycopg

    whole = {"sqlite": 0, "postgres": 0}
    for number in range(times):
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA start{number}")
        urls = {
            "sqlite": f"sqlite:///{folder}/start{number}.db",
            "postgres": f"{server.url}&options=-csearch_path%3Dstart{number}",
        }
        for kind, url in urls.items():
            whole[kind] += set(storm.start_together(url, 32)) == set(range(1, 33))
    for kind, count in whole.items():
        yield Figure(f"32 processes start together on a new store and all join, {kind}", count, f"of {times}", times)


def figures() -> Iterator[Figure]:
    """Everything, in a few minutes."""
    server = Server()
    try:
        with tempfile.TemporaryDirectory(prefix="thresher-bench-") as name:
            folder = Path(name)
            for part in ("kills", "stops"):
                (folder / part).mkdir()
            yield from against_optuna("SQLite", f"sqlite:///{folder}/a.db", f"sqlite:///{folder}/optuna.db", 20)
            theirs = server.url.replace("postgresql://", "postgresql+psycopg://")
            yield from against_optuna("PostgreSQL", server.url, theirs, 8)
            yield from long_logs(folder)
            yield from command_line(folder)
            yield from kills(folder / "kills")
            yield from stops(folder / "stops")
            yield from starts(server, folder)
    finally:
        server.close()
