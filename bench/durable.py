"""Durable studies: speed as ratios against Optuna's storages in the same run, and the storms in their full size."""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import storm
from postgres import Server

import thresher
from thresher.events import Event
from thresher.store import open_store

PROCESSES, PULLS, OPTUNA_TRIALS = 8, 500, 25
ARMS = [f"arm {number}" for number in range(100)]
Worker = Callable[[str, int], float]


# -- ask and tell by eight processes --------------------------------------------------------------------------------


def ours(url: str, count: int, gate: Any, results: Any) -> None:
    """Ask and tell so many times; report the longest wait of a single call."""
    study = thresher.open_study("s", storage=url)
    gate.wait()
    longest = 0.0
    for _ in range(count):
        began = time.perf_counter()
        pull = study.ask()
        asked = time.perf_counter()
        study.tell(pull or 0, 0.5)
        longest = max(longest, asked - began, time.perf_counter() - asked)
    results.put(longest)
    study.store.close()


def optunas(url: str, count: int, gate: Any, results: Any) -> None:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.load_study(study_name="s", storage=url, sampler=optuna.samplers.RandomSampler())
    space = {"arm": optuna.distributions.CategoricalDistribution(ARMS)}
    gate.wait()
    longest = 0.0
    for _ in range(count):
        began = time.perf_counter()
        trial = study.ask(space)
        asked = time.perf_counter()
        study.tell(trial, 0.5)
        longest = max(longest, asked - began, time.perf_counter() - asked)
    results.put(longest)


def together(work: Callable[..., None], url: str, count: int) -> tuple[float, float]:
    """Pairs of ask and tell a second over all processes, and the longest wait."""
    gate, results = storm.CONTEXT.Barrier(PROCESSES + 1), storm.CONTEXT.Queue()
    processes = [storm.CONTEXT.Process(target=work, args=(url, count, gate, results)) for _ in range(PROCESSES)]
    for process in processes:
        process.start()
    gate.wait()
    began = time.perf_counter()
    waits = [results.get(timeout=600) for _ in processes]
    took = time.perf_counter() - began
    for process in processes:
        process.join()
        assert process.exitcode == 0
    return PROCESSES * count / took, max(waits)


def against_optuna(url: str, optuna_url: str) -> dict[str, float]:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    budget = PROCESSES * PULLS
    thresher.create_study("s", arms=ARMS, threshold=0.6, budget=budget, storage=url).store.close()
    rate, wait = together(ours, url, PULLS)
    verdict = thresher.open_study("s", storage=url).verdict()
    assert (verdict.issued, verdict.told, verdict.pending) == (budget, budget, 0)
    optuna.create_study(study_name="s", storage=optuna_url)
    their_rate, their_wait = together(optunas, optuna_url, OPTUNA_TRIALS)
    return {
        "pairs_a_second": round(rate),
        "longest_wait_s": round(wait, 3),
        "optuna_pairs_a_second": round(their_rate, 1),
        "optuna_longest_wait_s": round(their_wait, 3),
        "times_optuna": round(rate / their_rate, 1),
    }


# -- long logs -------------------------------------------------------------------------------------------------------


def fill(store: Any, name: str, pulls: int) -> None:
    """A log of so many pulls, as if they had been made; the fold does not ask why an arm was chosen."""
    study = thresher.create_study(name, arms=ARMS, threshold=0.6, budget=10 * pulls, storage=store)
    rng, events, seq = random.Random(1), [], 1
    for pull in range(1, pulls + 1):
        arm, head = pull % len(ARMS), {"key": f"{rng.getrandbits(48):012x}-{pull}", "agent": "machine:12345"}
        events.append(Event(seq + 1, "asked", pull, arm, time=1.8e9 + pull, **head))
        events.append(Event(seq + 2, "told", pull, arm, rng.random(), time=1.8e9 + pull, **head))
        seq += 2
        if len(events) >= 20_000 or pull == pulls:
            store.append(name, events)
            events = []
    del study


def cost(study: thresher.Study, rounds: int = 500) -> float:
    """Seconds of one ask and its tell."""
    began = time.perf_counter()
    for _ in range(rounds):
        study.tell(study.ask() or 0, 0.5)
    return (time.perf_counter() - began) / rounds


def long_logs(folder: Path, large: int = 1_000_000) -> dict[str, float]:
    store = open_store(f"sqlite:///{folder}/long.db")
    fill(store, "small", 1000)
    fill(store, "events", large // 2)
    fill(store, "pulls", large)
    began = time.perf_counter()
    thresher.open_study("events", storage=store)
    opening = time.perf_counter() - began
    small, big = (thresher.open_study(name, storage=store) for name in ("small", "pulls"))
    ratios = sorted(cost(big) / cost(small) for _ in range(5))
    store.close()
    return {"open_1e6_events_s": round(opening, 2), "ask_tell_1e6_to_1e3_pulls": round(ratios[2], 2)}


def command_line(folder: Path) -> dict[str, float]:
    store = open_store(f"sqlite:///{folder}/cli.db")
    fill(store, "s", 4990)
    store.close()
    environment = {**os.environ, "THRESHER_STORAGE": f"sqlite:///{folder}/cli.db"}
    asking, telling = [], []
    for _ in range(15):
        began = time.perf_counter()
        out = subprocess.check_output(
            [sys.executable, "-m", "thresher.cli", "ask", "s", "--format=json"], env=environment
        )
        asked = time.perf_counter()
        pull = str(json.loads(out)["pull"])
        subprocess.check_call([sys.executable, "-m", "thresher.cli", "tell", "s", pull, "0.5"], env=environment)
        asking.append(asked - began)
        telling.append(time.perf_counter() - asked)
    middle = len(asking) // 2
    return {"ask_ms": round(sorted(asking)[middle] * 1e3), "tell_ms": round(sorted(telling)[middle] * 1e3)}


# -- storms ----------------------------------------------------------------------------------------------------------


def kills(folder: Path, count: int = 200) -> dict[str, int]:
    url, budget = f"sqlite:///{folder}/storm.db", 30 * count
    storm.create(url, budget)
    weather = storm.Storm(url, folder)
    try:
        weather.kill(count, random.Random(2))
        weather.finish(120)
    finally:
        weather.end()
    return {"kills": count, **storm.check(url, weather.acknowledged(), budget)}


def stops(folder: Path, count: int = 10) -> dict[str, int]:
    server, budget = Server(), 600 * count
    weather = storm.Storm(server.url, folder)
    try:
        storm.create(server.url, budget)
        weather.fill()
        for _ in range(count):
            told = len(weather.acknowledged())
            storm.until(lambda told=told: len(weather.acknowledged()) > told + 100, 60)
            server.stop_at_once()
            server.start()
        weather.finish(120)
        return {"stops": count, **storm.check(server.url, weather.acknowledged(), budget)}
    finally:
        weather.end()
        server.close()


def starts(server: Server, folder: Path, times: int = 20) -> dict[str, int]:
    """How often 32 processes that start together on nothing all join."""
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
    return {"of": times, **whole}


def main() -> dict[str, Any]:
    """Everything, in a few minutes; prints a line each as it comes."""
    found: dict[str, Any] = {}

    def measure(name: str, job: Callable[[], Any]) -> None:
        began = time.perf_counter()
        found[name] = job()
        print(f"durable {name}: {found[name]} ({time.perf_counter() - began:.0f} s)", flush=True)

    server = Server()
    try:
        with tempfile.TemporaryDirectory(prefix="thresher-bench-") as name:
            folder = Path(name)
            measure("sqlite", lambda: against_optuna(f"sqlite:///{folder}/a.db", f"sqlite:///{folder}/optuna.db"))
            theirs = server.url.replace("postgresql://", "postgresql+psycopg://")
            measure("postgres", lambda: against_optuna(server.url, theirs))
            measure("starts", lambda: starts(server, folder))
            measure("long_logs", lambda: long_logs(folder))
            measure("command_line", lambda: command_line(folder))
            (folder / "kills").mkdir()
            measure("kills", lambda: kills(folder / "kills"))
            (folder / "stops").mkdir()
            measure("stops", lambda: stops(folder / "stops"))
    finally:
        server.close()
    return found


if __name__ == "__main__":
    main()
