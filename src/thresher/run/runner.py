"""`thresher.run`: evaluate pulls, many at once, until the study is done; its progress, its speed and its limits.

The loop and the engines are imported when a run begins.
"""

from __future__ import annotations

import signal
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ..core import checks
from ..core.parameters import named_arguments
from ..core.state import State
from ..core.verdict import Verdict
from ..errors import InvalidInput
from ..study import Pull, Study, peek

if TYPE_CHECKING:
    from .engines import AnyExecutor, Engine, Evaluate, EvaluateSharing
    from .evaluators import Sharing

TICK = 0.1  # seconds between two reports


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
        workers: how many at once; by default the machine's cores, the cluster's capacity, or 16 coroutines. An executor
            does not tell its size: say it here.
        executor: ``"threads"``, ``"processes"``, a ``concurrent.futures.Executor`` or a function that makes one; a Dask
            ``Client``, ``"dask"`` (a cluster on this machine) or ``"dask://host:8786"``; ``"ray"`` or a Ray address.
        resources: what each pull needs on a Dask or Ray cluster, as ``{"GPU": 1}``; on Ray also one CPU, unless
            ``"CPU"`` says otherwise.
        in_flight: how many pulls to have pending; by default as many as there are workers, on a cluster a few more.
        timeout: seconds for one evaluation, or for both sides of a pair; a thread is then abandoned, a process
            killed, a coroutine cancelled; in executors and on Dask it keeps its worker until it returns.
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

    limits = Limits(in_flight=in_flight, timeout=timeout, seconds=seconds, give_up=give_up)
    check_study(study, "run")
    peek(study, lambda ledger: ledger.seq)  # fail before an engine is started if the study cannot be read
    engine = open_engine(evaluate, workers=workers, executor=executor, resources=resources, shared=shared)
    run_on(engine, study, limits, on_progress)
    return study.verdict()


def check_study(study: object, name: str) -> None:
    if not isinstance(study, Study):
        raise InvalidInput("study", study, "must be a Study", f"write {name}(study, evaluate), in this order")


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How far a run may go; `run` documents the fields."""

    in_flight: int | None = None
    timeout: float | None = None
    seconds: float | None = None
    give_up: float = 600.0
    # called with every pull that has ended; an error ends the run, and the pull is dropped whatever its outcome
    check: Callable[[Pull], object] = lambda pull: None

    def __post_init__(self) -> None:
        for what in ("timeout", "seconds", "give_up"):
            if getattr(self, what) is not None:
                checks.seconds(what, getattr(self, what))
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


# -- Progress and speed -----------------------------------------------------------------------------------------------


class Progress(NamedTuple):
    """What `run` passes to ``on_progress``."""

    issued: int
    told: int
    pending: int
    settled: int
    rate: float  # rewards a second, recently
    seconds_left: float | None  # None: unknown
    paused: bool = False  # everything fails, and one pull is tried from time to time


class Meter:
    """Calls ``tell`` at most ten times a second; the rate is measured over the last hundred calls."""

    def __init__(
        self,
        study: Study,
        tell: Callable[[Progress], object] | None,
        end: float | None,
        paused: Callable[[], bool] = lambda: False,
    ) -> None:
        self._study, self.tell, self._paused = study, tell, paused
        self._end = end  # when `run` stops issuing pulls
        self._told_at = 0.0
        self._recent: deque[tuple[float, int]] = deque(maxlen=100)

    def report(self, *, last: bool = False) -> None:
        if self.tell is None:
            return
        now = time.monotonic()
        if last or now - self._told_at >= TICK:
            self._told_at = now
            self.tell(peek(self._study, lambda ledger: self._read(ledger, now)))

    def _read(self, ledger: State, now: float) -> Progress:
        self._recent.append((now, ledger.told))
        then, told = self._recent[0]
        rate = (ledger.told - told) / (now - then) if now > then else 0.0
        waits = [] if self._end is None else [max(0.0, self._end - now)]
        if ledger.left is not None and rate > 0:
            waits.append(ledger.left / rate)
        left, counts = min(waits, default=None), (ledger.issued, ledger.told, ledger.pending, ledger.certified)
        return Progress(*counts, rate, left, self._paused())
