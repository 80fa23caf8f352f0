"""Evaluators for the tests of the runner, at the top of a module so that other processes can import them."""

import asyncio
import os
import threading
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import thresher
from thresher import Pull

ENGINES = ("threads", "processes", "asyncio", "thread-pool", "process-pool")
WORKERS = 4
FOREVER = 3600.0
RELEASE = (
    threading.Event()
)  # set when the tests are over: a standard pool's hung thread would keep the interpreter alive


def place(engine: str) -> dict[str, Any]:
    """What `run` must be told to use that engine."""
    executors: dict[str, type[Executor]] = {"thread-pool": ThreadPoolExecutor, "process-pool": ProcessPoolExecutor}
    if engine in executors:
        return {"executor": executors[engine](WORKERS)}  # type: ignore[call-arg]
    return {"workers": WORKERS, "executor": None if engine == "asyncio" else engine}


class Plain:
    """A plain evaluator: what to do follows from the arm's name."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder

    def __call__(self, pull: Pull) -> object:
        if pull.arm == "hangs":
            RELEASE.wait(FOREVER)
        return answer(pull, self.folder)


class Coroutine(Plain):
    """The same as a coroutine function."""

    async def __call__(self, pull: Pull) -> object:
        await asyncio.sleep(FOREVER if pull.arm == "hangs" else 0)
        return answer(pull, self.folder)


def evaluator(engine: str, folder: Path | None = None) -> Any:
    return (Coroutine if engine == "asyncio" else Plain)(folder)


def answer(pull: Pull, folder: Path | None) -> object:
    if pull.arm == "raises":
        raise ValueError(f"arm {pull.arm} is broken")
    if pull.arm == "unreadable":
        raise Unreadable(1, 2)
    if pull.arm == "dies":
        os.kill(os.getpid(), 9)
    if pull.arm == "nan":
        return float("nan")
    if pull.arm == "text":
        return "0.5"
    if pull.arm == "lock":
        return threading.Lock()
    if pull.arm == "busy" and folder:
        busy = folder / f"busy-{pull.id}"
        if not busy.exists():
            busy.touch()
            raise thresher.Busy(after=0.01)
    if folder:
        (folder / f"pull-{pull.id}").write_text(str(pull.seed))
    return pull.seed / 2**32


class Unreadable(Exception):
    """Can be pickled but not read back."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} {two}")
