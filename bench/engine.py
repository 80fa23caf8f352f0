"""Speed of the live study and of `run`, compared with Optuna's ask and tell on the same machine."""

import asyncio
import gc
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import optuna

import thresher
from thresher import Policy

from .report import Figure, fastest


def ask_and_tell(
    arms: int, pulls: int, confidence: float | None = None, policy: Policy | None = None
) -> Callable[[], float]:
    """Seconds for one ask and one tell; every arm is on the bar, so none is ever settled."""
    names = [f"arm {k}" for k in range(arms)]
    question: Any = {"at_least": 0.5, "budget": 10**9, "confidence": confidence, "policy": policy}
    study = thresher.create_study("bench", arms=names, **question)
    rng = random.Random(0)

    def turn() -> float:
        rewards = [rng.random() for _ in range(pulls)]
        before = time.perf_counter()
        for reward in rewards:
            pull = study.ask()
            assert pull
            study.tell(pull, reward)
        return (time.perf_counter() - before) / pulls

    turn()
    return turn


def tell_ranked(arms: int, pulls: int = 1000) -> Callable[[], float]:
    """Seconds for one tell where the error rate is bounded; every arm has a reward, and ranks come and go."""
    names = [f"arm {k}" for k in range(arms)]
    study = thresher.create_study(
        "bench", arms=names, at_least=0.5, budget=10**9, policy="uniform", guarantee="rate", confidence=0.05
    )
    rng = random.Random(0)
    for pull in study.ask_many(arms):
        study.tell(pull, float(rng.random() < 0.5))

    def turn() -> float:
        asked = study.ask_many(pulls)
        rewards = [float(rng.random() < 0.5) for _ in asked]
        before = time.perf_counter()
        for pull, reward in zip(asked, rewards, strict=True):
            study.tell(pull, reward)
        return (time.perf_counter() - before) / pulls

    return turn


def optuna_ask_and_tell(pulls: int) -> Callable[[], float]:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    space: dict[str, optuna.distributions.BaseDistribution] = {}
    space["arm"] = optuna.distributions.CategoricalDistribution([f"arm {k}" for k in range(100)])

    def turn() -> float:
        before = time.perf_counter()
        for _ in range(pulls):
            trial = study.ask(space)
            study.tell(trial, 0.5)
        return (time.perf_counter() - before) / pulls

    return turn


def create_million(confidence: float | None) -> float:
    names = [f"arm {k}" for k in range(1_000_000)]
    gc.collect()
    before = time.perf_counter()
    thresher.create_study("bench", arms=names, at_least=0.5, budget=10**9, confidence=confidence)
    return time.perf_counter() - before


def run_threads() -> float:
    """Seconds per pull with eight threads and an evaluator that returns at once."""
    arms, pulls = [f"arm {k}" for k in range(100)], 40_000
    study = thresher.create_study("bench", arms=arms, at_least=0.5, budget=pulls, confidence=None)
    before = time.perf_counter()
    thresher.run(study, lambda pull: 0.3, workers=8)
    return (time.perf_counter() - before) / pulls


async def _at_once(pull: thresher.Pull) -> float:
    return 0.3


def run_coroutines(*, here: bool) -> Callable[[], float]:
    """Seconds per pull with 64 coroutines that return at once: in the caller's event loop, or in one of our own."""

    def turn() -> float:
        arms, pulls = [f"arm {k}" for k in range(100)], 20_000
        study = thresher.create_study("bench", arms=arms, at_least=0.5, budget=pulls, confidence=None)
        before = time.perf_counter()
        if here:
            asyncio.run(thresher.arun(study, _at_once, workers=64))
        else:
            thresher.run(study, _at_once, workers=64)
        return (time.perf_counter() - before) / pulls

    return turn


def program(*words: str) -> Callable[[], float]:
    def turn() -> float:
        before = time.perf_counter()
        subprocess.run([sys.executable, *words], check=True, capture_output=True)
        return time.perf_counter() - before

    return turn


def figures() -> Iterator[Figure]:
    small, theirs = fastest(ask_and_tell(100, 10_000), optuna_ask_and_tell(1_000))
    yield Figure("ask + tell at K = 100, confidence None", 1e6 * small, "µs")
    yield Figure("Optuna's ask + tell, in memory, one categorical of 100", 1e6 * theirs, "µs")
    yield Figure("ask + tell: Optuna's time / ours", theirs / small, "times", 8)
    million, hundred = fastest(ask_and_tell(1_000_000, 10_000), ask_and_tell(100, 10_000))
    yield Figure("ask + tell at K = 1,000,000 / at K = 100", million / hundred, "times", 3, at_most=True)
    for confidence in (None, 0.95):
        took = min(create_million(confidence) for _ in range(2))
        yield Figure(f"creating a study of 1,000,000 arms, confidence {confidence}", took, "s", 10, at_most=True)
    sure, unsure = fastest(ask_and_tell(100, 10_000, 0.95), ask_and_tell(100, 10_000))
    yield Figure("ask + tell at K = 100 with certificates / without", sure / unsure, "times", 2.5, at_most=True)
    many, thousand = fastest(tell_ranked(100_000), tell_ranked(1000), turns=10)
    what = "tell with guarantee rate at K = 100,000 / at K = 1,000"
    yield Figure(what, many / thousand, "times", 1.5, at_most=True)
    yield Figure("run, 8 threads, an evaluator that returns at once", 1 / min(fastest(run_threads)), "pulls/s", 20_000)
    here, apart = fastest(run_coroutines(here=True), run_coroutines(here=False))
    yield Figure("arun, 64 coroutines that return at once", 1 / here, "pulls/s")
    yield Figure("run with the same coroutine function", 1 / apart, "pulls/s")
    yield Figure("arun: its time / run's", here / apart, "times", 1.2, at_most=True)
    version, bare = fastest(program("-m", "thresher", "--version"), program("-c", "pass"))
    yield Figure("thresher --version", 1000 * version, "ms", 150, at_most=True)
    yield Figure("of which Python's own start", 1000 * bare, "ms")
    (imported,) = fastest(program("-c", "import thresher"))
    yield Figure("import thresher, beyond Python's own start", 1000 * (imported - bare), "ms", 100, at_most=True)
