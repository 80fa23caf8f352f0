"""inspect_ai, with a model that needs no network: calls saved on six tasks, and 200 gated evals without a hang."""

import asyncio
import contextlib
import faulthandler
import logging
import random
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "adapters"))

from inspecting import Act, knows, task

import thresher
from thresher.adapters.inspect import asift, sift

from .report import Figure

RATES, SAMPLES, BAR = (0.99, 0.97, 0.94, 0.75, 0.65, 0.4), 150, 0.85
EVALS, AT_ONCE, FEW, HANGS = 200, 50, 8, 900.0  # seconds until all tracebacks are shown and the process ends


def figures() -> Iterator[Figure]:
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)  # inspect_ai warns of each sample's error
    with tempfile.TemporaryDirectory() as folder:
        yield from saved(folder)
        yield from many(folder)


def saved(folder: str) -> Iterator[Figure]:
    """Calls of the model, with ten samples of a task at once."""
    calls: list[int] = []
    tasks = [task(f"{rate:g}", rate, calls, count=SAMPLES) for rate in RATES]
    began = time.perf_counter()
    verdict = sift(tasks, at_least=BAR, seed=1, display="none", log_dir=folder, max_samples=10, log_realtime=False)
    seconds = time.perf_counter() - began
    full = len(RATES) * SAMPLES
    right = sum(row.certified and row.reached == (_mean(float(row.arm)) >= BAR) for row in verdict)
    yield Figure(f"six tasks of {SAMPLES} samples: calls, of {full}", len(calls), "calls", 0.75 * full, at_most=True)
    yield Figure("the same: answers that are certified and right", right, "of 6", len(RATES))
    yield Figure("the same: time for a call", 1000 * seconds / len(calls), "ms")


def _mean(rate: float) -> float:
    return sum(knows(at, rate) for at in range(SAMPLES)) / SAMPLES


def many(folder: str) -> Iterator[Figure]:
    """Evals one after another, each with errors, a limit, a cancellation, or nothing of the kind."""
    faulthandler.dump_traceback_later(HANGS, exit=True)
    began, left, unsound = time.perf_counter(), 0, 0
    for number in range(EVALS):
        study = asyncio.run(_one(number, folder))
        left += len(study.pending())
        unsound += not thresher.verify(study.events()).sound
        study.close()
        Path(folder, f"{number}.db").unlink()
    seconds = time.perf_counter() - began
    calls: list[int] = []
    draws, tasks = random.Random(0), []
    for number in range(AT_ONCE):
        act = _acts(("plain", "errors")[number % 2], draws, calls, asyncio.Event())
        tasks.append(task(str(number), 0.95, calls, count=FEW, act=act))
    options: dict[str, Any] = {"display": "none", "log_dir": folder, "max_samples": 4, "log_realtime": False}
    at_once = sift(tasks, at_least=0.5, confidence=0.5, budget=300, fail_on_error=False, **options)
    faulthandler.cancel_dump_traceback_later()
    left += at_once.pending
    yield Figure(
        f"{AT_ONCE} tasks at once, with a budget of 300: samples asked for",
        at_once.issued,
        "samples",
        300,
        at_most=True,
    )
    yield Figure(f"{EVALS} gated evals: time for one", seconds / EVALS, "s")
    yield Figure("the same: pulls left pending", left, "pulls", 0, at_most=True)
    yield Figure("the same: logs that do not verify", unsound, "logs", 0, at_most=True)


async def _one(number: int, folder: str) -> thresher.Study:
    """An eval of two tasks, whose study is kept."""
    draws, calls, storage = random.Random(number), list[int](), f"sqlite:///{folder}/{number}.db"
    kind = ("plain", "errors", "retries", "fatal", "limit", "cancelled")[number % 6]
    enough = asyncio.Event()
    tasks = [task(name, 0.9, calls, count=FEW, act=_acts(kind, draws, calls, enough)) for name in "ab"]
    options: dict[str, Any] = {"log_dir": folder, "max_samples": draws.randint(1, 6), "log_realtime": False}
    more: dict[str, dict[str, Any]] = {
        "errors": {"fail_on_error": False},
        "retries": {"fail_on_error": False, "retry_on_error": 1},
        "limit": {"limit": 3},
    }
    options |= more.get(kind, {})
    running = asyncio.create_task(asift(tasks, at_least=0.5, confidence=0.8, storage=storage, **options))
    if kind == "cancelled":
        await enough.wait()
        running.cancel()
    with contextlib.suppress(asyncio.CancelledError, thresher.CannotGoOn):
        await running
    return thresher.open_study("inspect", storage=storage)


def _acts(kind: str, draws: random.Random, calls: list[int], enough: asyncio.Event) -> Act:
    def act(number: int) -> None:
        if len(calls) == 3:
            enough.set()
        if kind in ("errors", "retries", "fatal") and draws.random() < 0.3:
            raise RuntimeError("out of order")

    return act
