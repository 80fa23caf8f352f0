"""Engines and evaluators for the tests. The evaluators are at module level so that other processes can import them."""

import asyncio
import contextlib
import os
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from pathlib import Path
from typing import Any

import thresher
from thresher import Pull
from thresher.run.failures import WorkerLost

COROUTINES = ("asyncio", "arun")  # on a loop of their own, and on the caller's
HERE = ("threads", *COROUTINES, "thread-pool")  # in this process
SHARED = ("process-pool", "loky", "dask")  # the death of a worker costs other pulls too
OF_THEIR_OWN = ("processes", "ray")  # the death of a worker costs one pull
ENGINES = (*HERE, *SHARED, *OF_THEIR_OWN)
WORKERS = 4
POOL = 2  # processes of a pool
FOREVER = 3600.0
RESOURCES = {"GPU": 2.0, "licence": 2.0}  # of each worker of the Dask cluster that tests share
PLENTY = 4000  # pulls: fast arms must not use up the budget before a slow worker fails for the third time
RELEASE = threading.Event()  # set at the end: a hung thread of a standard pool would keep the interpreter alive


def make(*arms: str, budget: int | None = 80, **given: Any) -> thresher.Study:
    """A new study in memory."""
    settings: dict[str, Any] = {"at_least": 0.4, "confidence": None, "policy": "uniform", "seed": 0}
    return thresher.create_study("s", arms=arms or ("a", "b"), budget=budget, **settings | given)


def run(engine: str, study: thresher.Study, evaluate: Any, **given: Any) -> thresher.Verdict:
    """`thresher.run`, or `thresher.arun` in an event loop."""
    if engine == "arun":
        return asyncio.run(thresher.arun(study, evaluate, **given))
    return thresher.run(study, evaluate, **given)


def causes(study: thresher.Study) -> list[str | None]:
    """The causes of all drops."""
    return [event.cause for event in study.events() if event.kind == "dropped"]


TIMEOUT = 60.0  # of pulls, which a clock below brings to an end


class Clock:
    """The time of a run. A test moves it on, so that a run's seconds end at an event and not by chance."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead

    def end_the_run(self) -> None:
        """The run sees it when the next evaluation returns or, if it reports progress, after a tick."""
        self.ahead = FOREVER


def slowly(seconds: float) -> Callable[[Pull], float]:
    """An evaluator that takes so long."""

    def evaluate(pull: Pull) -> float:
        time.sleep(seconds)
        return 0.5

    return evaluate


@contextlib.contextmanager
def dask_cluster(*, threads: int = 2, **given: Any) -> Iterator[Any]:
    """A client of a real cluster of two processes; its scheduler repeats tasks whose worker died (Dask's default).

    Its processes are forked from one that has imported Dask. Programs that tests start have clusters as by default.
    """
    import logging

    import dask
    import storm
    from distributed import Client, LocalCluster
    from distributed.utils import get_mp_context

    settings: dict[str, Any] = {"silence_logs": logging.CRITICAL, "dashboard_address": "127.0.0.1:0"}
    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        get_mp_context().set_forkserver_preload(["distributed", "numpy", "thresher.run", *storm.PRELOADED])
        with (
            LocalCluster(threads_per_worker=threads, **{"n_workers": 2} | settings | given) as cluster,
            Client(cluster, set_as_default=False) as client,
        ):
            yield client


@contextlib.contextmanager
def ray_cluster() -> Iterator[None]:
    """A real cluster on this machine."""
    import logging

    import ray

    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    )
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
    before = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(num_cpus=3, resources={"licence": 3}, include_dashboard=False, **quiet)
    finally:
        signal.signal(signal.SIGTERM, before)  # processes that other tests fork would inherit Ray's handler
    try:
        yield
    finally:
        ray.shutdown()


def pool(engine: str) -> Executor:
    """What a user's function makes."""
    if engine == "loky":
        import loky

        return loky.ProcessPoolExecutor(POOL)  # type: ignore[no-any-return]
    return ProcessPoolExecutor(POOL)


def until(condition: Callable[[], bool], what: str, seconds: float = 90) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"never came: {what}"
        time.sleep(0.01)


class Counted:
    """Returns how many evaluations run at once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, pull: thresher.Pull) -> float:
        mine = self._folder / f"{os.getpid()}-{threading.get_ident()}"
        mine.touch()
        time.sleep(0.02)
        at_once = len(list(self._folder.iterdir()))
        mine.unlink()
        return float(at_once)


class Plain:
    """A plain evaluator: the arm's name says what to do."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder

    def __call__(self, pull: Pull) -> object:
        note(pull, self.folder)
        if hangs(pull):
            RELEASE.wait(FOREVER)
        return answer(pull, self.folder)


class Coroutine(Plain):
    """The same as a coroutine function."""

    async def __call__(self, pull: Pull) -> object:
        note(pull, self.folder)
        await asyncio.sleep(FOREVER if hangs(pull) else 0)
        return answer(pull, self.folder)


def evaluator(engine: str, folder: Path | None = None) -> Any:
    return (Coroutine if engine in COROUTINES else Plain)(folder)


class Sides(Plain):
    """Leaves a file for each side of a pair: its pull, seed, arm, worker and time."""

    def __call__(self, pull: Pull) -> object:
        return self._noted(pull)

    def _noted(self, pull: Pull) -> float:
        worker = f"{os.getpid()}.{threading.get_ident()}"
        assert self.folder
        (self.folder / f"side-{pull.id}-{pull.seed}-{pull.arm}-{worker}-{time.monotonic_ns()}").touch()
        return len(pull.arm) / 10


class CoroutineSides(Sides):
    """The same as a coroutine function."""

    async def __call__(self, pull: Pull) -> object:
        await asyncio.sleep(0.001)
        return self._noted(pull)


def hangs(pull: Pull) -> bool:
    return pull.arm == "hangs" or (pull.arm == "first-hangs" and pull.number == 1)


def note(pull: Pull, folder: Path | None) -> None:
    """Leave a file for each call, however it ends."""
    if folder:
        (folder / f"pull-{pull.id}-{pull.seed}-{uuid.uuid4().hex}").touch()


def calls(folder: Path) -> list[tuple[int, int]]:
    """The pull and seed of each call."""
    return [(int(pull), int(seed)) for pull, seed in (file.name.split("-")[1:3] for file in folder.glob("pull-*"))]


def answer(pull: Pull, folder: Path | None) -> object:
    if pull.arm == "raises":
        raise ValueError(f"arm {pull.arm} is broken")
    if pull.arm == "unreadable":
        raise Unreadable(1, 2)
    if pull.arm == "looks-like-the-engine":
        raise WorkerLost("not at all", ())
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
    return pull.seed / 2**32


class Unreadable(Exception):
    """Can be pickled but not unpickled."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} {two}")


class Slow:
    """Leaves a file for each call, and takes a tenth of a second."""

    def __init__(self, folder: Path) -> None:
        self._evaluate = evaluator("dask", folder)

    def __call__(self, pull: thresher.Pull) -> object:
        reward = self._evaluate(pull)  # which leaves the file
        time.sleep(0.1)
        return reward
