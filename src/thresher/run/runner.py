"""`thresher.run`: evaluate pulls, many at once, until the study is done.

`import thresher` loads this file, so the loop and the engines are imported when a run begins.
"""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..core import checks
from ..core.arguments import named_arguments
from ..core.verdict import Verdict
from ..errors import InvalidInput
from ..study import Pull, Study, peek

if TYPE_CHECKING:
    from .engines import AnyExecutor, Engine, Evaluate, EvaluateSharing
    from .progress import Progress
    from .shared import Sharing


@named_arguments
def run(
    study: Study,
    evaluate: Evaluate | EvaluateSharing,
    *,
    workers: int | None = None,
    executor: AnyExecutor = None,
    resources: Mapping[str, float] | None = None,
    in_flight: int | None = None,
    timeout: float | None = None,
    attempts: int = 1,
    seconds: float | None = None,
    on_progress: Callable[[Progress], object] | None = None,
    give_up: float = 600.0,
    shared: Sharing | None = None,
) -> Verdict:
    """Evaluate pulls, many at once, until the study is done; then the verdict.

    The arguments:
        study: what `create_study` or `open_study` gave.
        evaluate: takes a `Pull` and returns a number or a bool, or raises; a coroutine function runs on an event loop.
            With a baseline and without cases, it is called for the arm and for the baseline, in the same worker.
        workers: how many at once; by default the machine's cores, the cluster's capacity, or 16 coroutines.
        executor: ``"threads"``, ``"processes"``, a ``concurrent.futures.Executor`` or a function that makes one; a Dask
            ``Client``, ``"dask"`` (a cluster on this machine) or ``"dask://host:8786"``; ``"ray"`` or a Ray address.
        resources: what each pull needs on a Dask or Ray cluster, as ``{"GPU": 1}``; on Ray also one CPU, unless
            ``"CPU"`` says otherwise.
        in_flight: how many pulls to have pending; by default as many as there are workers, on a cluster a few more.
        timeout: seconds for one evaluation, or for both sides of a pair; a thread is then abandoned, a process
            killed, a coroutine cancelled.
        attempts: how often a failing evaluation is tried, with the same seed; the verdict says what that means.
        seconds: issue no more pulls after this many seconds.
        on_progress: called with a `Progress`, at most ten times a second.
        give_up: seconds of an outage, in which everything fails, after which `CannotGoOn` is raised. It is raised at
            once when three arms fail with the same error before anything succeeds. Its ``__cause__`` is that error.
        shared: what evaluators share, such as a client: a context manager, for coroutines an async one, or a pair of
            functions, ``(set_up, clean_up)``. It is set up before the first pull and cleaned up after the last, and
            `evaluate` is called as ``evaluate(pull, shared)``. With ``"processes"``, a pair: each process calls both.

    After Ctrl-C or SIGTERM, no more pulls are issued, `run` waits for the running ones, and then the signal has its
    usual effect. A second signal abandons them.

    >>> import thresher
    >>> study = thresher.create_study("dice", arms=["d4", "d8"], at_least=3, bounds=(1, 8), budget=400, seed=0)
    >>> verdict = thresher.run(study, lambda pull: pull.seed % int(pull.arm[1:]) + 1, workers=4)
    >>> verdict.above, verdict.below
    (['d8'], ['d4'])
    """
    from .engines import open_engine

    limits = Limits(in_flight=in_flight, timeout=timeout, attempts=attempts, seconds=seconds, give_up=give_up)
    _check_study(study, "run")
    peek(study, lambda ledger: ledger.seq)  # fail before an engine is started if the study cannot be read
    engine = open_engine(evaluate, workers=workers, executor=executor, resources=resources, shared=shared)
    run_on(engine, study, limits, on_progress)
    return study.verdict()


@named_arguments
async def arun(
    study: Study,
    evaluate: Callable[..., Awaitable[object]],
    *,
    workers: int = 16,
    in_flight: int | None = None,
    timeout: float | None = None,
    attempts: int = 1,
    seconds: float | None = None,
    on_progress: Callable[[Progress], object] | None = None,
    give_up: float = 600.0,
    shared: Sharing | None = None,
) -> Verdict:
    """The same as `run` in the event loop that awaits it, with its clients: in a server, in a notebook.

    The arguments:
        study: what `create_study` or `open_study` gave.
        evaluate: a coroutine function that takes a `Pull` and returns a number or a bool, or raises. It runs in this
            event loop, in tasks with a copy of the caller's context variables.
        workers: how many at once.
        in_flight: as in `run`, and so are the next three.
        timeout: seconds for one evaluation, which is then cancelled.
        attempts: how often a failing evaluation is tried.
        seconds: issue no more pulls after this many seconds.
        on_progress: a plain function, called in this event loop with a `Progress`, at most ten times a second.
        give_up: seconds of an outage after which `CannotGoOn` is raised, as in `run`.
        shared: what evaluators share, as in `run`: an async context manager, a context manager or a pair of functions
            or coroutine functions.

    Decisions and writes to the store are made in a thread, so they do not block the event loop.

    When the task that awaits it is cancelled, no more pulls are issued, running evaluations are cancelled, and
    ``CancelledError`` is raised once no pull is pending: pulls that had begun are dropped as lost. An evaluation that
    does not end within 3 seconds is left behind. `arun` handles no signals: ``asyncio.run`` turns Ctrl-C into a
    cancellation.

    >>> import asyncio, thresher
    >>> async def main():
    ...     study = thresher.create_study("dice", arms=["d4", "d8"], at_least=3, bounds=(1, 8), budget=400, seed=0)
    ...     client = {"d4": 4, "d8": 8}  # in real life, an httpx.AsyncClient() of this event loop
    ...     async def roll(pull):
    ...         await asyncio.sleep(0)
    ...         return pull.seed % client[pull.arm] + 1
    ...     return await thresher.arun(study, roll, workers=64)
    >>> asyncio.run(main()).above
    ['d8']
    """
    from .awaiting import run_here

    limits = Limits(in_flight=in_flight, timeout=timeout, attempts=attempts, seconds=seconds, give_up=give_up)
    _check_study(study, "arun")
    return await run_here(study, evaluate, limits, workers=workers, on_progress=on_progress, shared=shared)


def _check_study(study: object, name: str) -> None:
    if not isinstance(study, Study):
        raise InvalidInput("study", study, "must be a Study", f"write {name}(study, evaluate), in this order")


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How far a run may go; `run` documents the fields."""

    in_flight: int | None = None
    timeout: float | None = None
    attempts: int = 1
    seconds: float | None = None
    give_up: float = 600.0
    spelled: Callable[[str], str] = str  # how the user writes the name of such an argument
    # called with every pull that has ended; an error ends the run, and the pull is dropped whatever its outcome
    check: Callable[[Pull], object] = lambda pull: None

    def __post_init__(self) -> None:
        for what in ("timeout", "seconds", "give_up"):
            if getattr(self, what) is not None:
                checks.seconds(what, getattr(self, what))
        checks.whole("attempts", self.attempts, least=1)
        if self.in_flight is not None:
            checks.whole("in_flight", self.in_flight, least=1)


def run_on(engine: Engine, study: Study, limits: Limits, on_progress: Callable[[Progress], object] | None) -> None:
    """The same as `run`, on an open engine, which is closed at the end."""
    from .loop import Runner

    try:
        try:
            engine.prepare()
        except BaseException:
            engine.close(wait=True)
            raise
        runner = Runner(study, engine, limits, on_progress)
        runner.run()
    finally:
        engine.release()
    if runner.signal == signal.SIGINT:
        raise KeyboardInterrupt
    if runner.signal is not None:
        signal.raise_signal(runner.signal)
