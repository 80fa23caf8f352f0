"""`thresher.run`: its loop keeps workers busy, and never waits for a pending pull before it decides the next."""

from __future__ import annotations

import contextlib
import heapq
import math
import queue
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..core import checks
from ..core.events import Cause
from ..core.named_arguments import named_arguments
from ..core.state import State
from ..core.verdict import Verdict
from ..errors import AlreadyTold, Busy, CannotGoOn, InvalidInput, OutsideBounds, error_line, shown
from ..log.event_writing import Telling
from ..study import SWEEP, Pull, Study, exchange_in_study, give_up_in_study, peek_study, study_pulls_of_others
from ..text.logs import log
from ..text.phrasing import listed_phrase, plural
from . import signals
from .command.protocol import Noted, protocol_remarks
from .command.reward import TimedOut
from .engines import AnyExecutor, open_engine
from .engines.local import Engine, Evaluate, EvaluateSharing
from .evaluator_errors import (
    error_identity,
    is_refused_evaluator_error,
    is_transient_evaluator_error,
    log_first_evaluator_error,
)
from .evaluators import Sharing
from .failures import OUTSIDE, WINDOW, Failure, FailureSuspects, FailureWatch, NoWorkersFailure, WorkerLost
from .pairs import check_pair

TICK = 0.1  # seconds between two reports
LONGEST_WAIT = 1.0  # seconds: workers come and go, and a signal just before a wait is handled only after it
STOP = object()


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
    >>> verdict.reached, verdict.missed
    (['d8'], ['d4'])
    """
    limits = Limits(in_flight=in_flight, timeout=timeout, seconds=seconds, give_up=give_up)
    check_run_loop_study(study, "run")
    peek_study(study, lambda ledger: ledger.seq)  # fail before an engine is started if the study cannot be read
    engine = open_engine(evaluate, workers=workers, executor=executor, resources=resources, shared=shared)
    run_loop_on(engine, study, limits, on_progress)
    return study.verdict()


def check_run_loop_study(study: object, name: str) -> None:
    if not isinstance(study, Study):
        raise InvalidInput("study", study, "must be a Study", f"write {name}(study, evaluate), in this order")


@dataclass(frozen=True, kw_only=True)
class Limits:
    """When a run ends, and how much is pending at once; `run` documents the fields."""

    in_flight: int | None = None
    timeout: float | None = None
    seconds: float | None = None
    give_up: float = 600.0
    # called with every pull that has ended; an error ends the run, and the pull is dropped whatever its outcome
    check: Callable[[Pull], object] = lambda pull: None

    def __post_init__(self) -> None:
        for name in ("timeout", "seconds", "give_up"):
            if getattr(self, name) is not None:
                checks.checked_seconds(name, getattr(self, name))
        if self.in_flight is not None:
            checks.checked_whole("in_flight", self.in_flight, least=1)


def run_loop_on(engine: Engine, study: Study, limits: Limits, on_progress: Callable[[Progress], object] | None) -> None:
    """Do what `run` does, on an open engine, which is closed at the end."""
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


class RunLoopMeter:
    """Calls ``tell`` at most ten times a second; the rate is measured over the last hundred calls."""

    def __init__(
        self,
        study: Study,
        tell: Callable[[Progress], object] | None,
        end: float | None,
        paused: Callable[[], bool] = lambda: False,
    ) -> None:
        self._study, self.tell, self._paused = study, tell, paused
        self._end = end  # when the run stops issuing pulls
        self._told_at = 0.0
        self._recent: deque[tuple[float, int]] = deque(maxlen=100)

    def report(self, *, last: bool = False) -> None:
        if self.tell is None:
            return
        now = time.monotonic()
        if last or now - self._told_at >= TICK:
            self._told_at = now
            self.tell(peek_study(self._study, lambda ledger: self._progress(ledger, now)))

    def _progress(self, ledger: State, now: float) -> Progress:
        self._recent.append((now, ledger.told))
        then, told = self._recent[0]
        rate = max(0, ledger.told - told) / (now - then) if now > then else 0.0  # a revision may take rewards away
        waits = [] if self._end is None else [max(0.0, self._end - now)]
        if ledger.left is not None and rate > 0:
            waits.append(ledger.left / rate)
        left, counts = min(waits, default=None), (ledger.issued, ledger.told, ledger.pending, ledger.certified)
        return Progress(*counts, rate, left, self._paused())


# -- Evaluations ------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Evaluation:
    """A pull that the run is responsible for."""

    pull: Pull
    started: float | None = None
    was_busy: bool = False  # its evaluator raised `Busy` before: its outcome may have been known by then


class RunLoopEvaluations:
    """Pulls without an outcome yet. ``when_done`` is called with each finished future, from any thread."""

    def __init__(
        self,
        study: Study,
        engine: Engine,
        suspects: FailureSuspects,
        when_done: Callable[[Future[object]], object],
    ) -> None:
        self.study, self._engine, self._suspects, self._when_done = study, engine, suspects, when_done
        self.running: dict[Future[object], Evaluation] = {}
        self.overdue: dict[Future[object], Evaluation] = {}  # these timed out; a reward that still comes is late
        self._busy: list[tuple[float, int, Evaluation]] = []  # a heap: when to try again, the pull's id
        self._held: deque[Evaluation] = deque()  # tried as soon as possible: suspected arms take turns

    def __len__(self) -> int:
        return len(self.running) + len(self._busy) + len(self._held)

    def oldest(self) -> float:
        """The smallest id of these pulls; infinity if there are none."""
        waiting = (*(evaluation for _, _, evaluation in self._busy), *self._held)
        return min((evaluation.pull.id for evaluation in (*self.running.values(), *waiting)), default=math.inf)

    @property
    def next_try(self) -> float | None:
        """When the next pull whose evaluator was busy is due."""
        return self._busy[0][0] if self._busy else None

    def try_at(self, when: float, evaluation: Evaluation) -> None:
        """Try a pull again at that time, because its evaluator was busy."""
        heapq.heappush(self._busy, (when, evaluation.pull.id, Evaluation(evaluation.pull, was_busy=True)))

    def hold(self, evaluation: Evaluation) -> None:
        """Submit this with the next pulls."""
        self._held.append(evaluation)

    def begin(self, pulls: Iterable[Pull], now: float) -> None:
        """Hand pulls to the engine, for the first time."""
        self._held.extend(Evaluation(pull) for pull in pulls)
        self.submit_waiting(now)

    def submit_waiting(self, now: float) -> None:
        """Hand the engine the waiting pulls that are due."""
        while self._busy and self._busy[0][0] <= now:
            self._submit(heapq.heappop(self._busy)[2])
        for _ in range(len(self._held)):  # a pull that is held again is not tried twice
            self._submit(self._held.popleft())

    def _submit(self, evaluation: Evaluation) -> None:
        if self._suspects.arms:
            running, waiting = ([other.pull for other in group] for group in (self.running.values(), self._held))
            if self._suspects.must_wait(evaluation.pull, running, waiting):
                self.hold(evaluation)
                return
        try:
            future = self._engine.submit(evaluation.pull)
        except BaseException:
            self.hold(evaluation)  # so that it is dropped at the end
            raise
        self.running[future] = evaluation
        future.add_done_callback(self._when_done)

    def timed_out(self, timeout: float, now: float) -> Iterator[tuple[Future[object], Evaluation]]:
        """Mark the evaluations that have just timed out as overdue, and yield them."""
        for future, evaluation in list(self.running.items()):
            if evaluation.started is None:
                evaluation.started = now if self._engine.began(future) else None
            elif now - evaluation.started >= timeout and not future.done():
                self.overdue[future] = self.running.pop(future)
                yield future, evaluation

    def drop_all(self, reason: str, cause: Cause = "lost") -> None:
        self.take_back()
        while self.running:
            self.drop(self.running.popitem()[1], reason, cause)

    def take_back(self) -> None:
        """Take back the pulls that have not begun."""
        for future in self._engine.take_back(self.running) if self.running else ():
            self.drop(self.running.pop(future), "the run was stopped before it began", "cancelled")

    def cancel_waiting(self) -> None:
        """Drop the pulls that wait for their first or next try."""
        while self._busy or self._held:
            evaluation = self._busy.pop()[2] if self._busy else self._held.popleft()
            self.drop(evaluation, "the run was stopped before it was tried", "cancelled")

    def drop(self, evaluation: Evaluation, reason: str, cause: Cause) -> None:
        """Drop a pull. It counts as cancelled only if it never began, also before its evaluator was busy."""
        with contextlib.suppress(AlreadyTold):  # by another agent
            give_up_in_study(self.study, evaluation.pull, reason=reason, cause="lost" if evaluation.was_busy else cause)


# -- Rewards ----------------------------------------------------------------------------------------------------------


class RunLoopRewards:
    """Rewards that wait to be told. They are written before any drop, because failures in a row count."""

    def __init__(self, study: Study, watch: FailureWatch) -> None:
        self._study, self._watch = study, watch
        self._waiting: list[tuple[Evaluation, object]] = []
        self._outside: OutsideBounds | None = None  # the first reward outside the bounds
        self._retired: dict[str, bool] = {}  # the arms retired for such rewards: whether that was logged

    def add(self, evaluation: Evaluation, value: object) -> None:
        self._waiting.append((evaluation, value))

    def write(self, n: int = 0) -> list[Pull]:
        """Tell all of them, and ask for up to ``n`` pulls, in one write. If that fails, they wait for the next one.

        Raises `CannotGoOn` if rewards outside the bounds show that the evaluator is wrong.
        """
        if not self._waiting and not n:
            return []
        waiting = self._waiting
        exchanged = exchange_in_study(self._study, [_telling(*ended) for ended in waiting], n, is_final=True)
        self._waiting = []
        for evaluation, _ in waiting:
            if evaluation.pull.id in exchanged.outside:
                self._note_retired(evaluation.pull, exchanged.outside[evaluation.pull.id])
        if exchanged.outside:
            self._watch.check_start()
        if self._watch.start.over:
            self.warn()
        return self.write(n) if exchanged.outside else exchanged.pulls

    def warn(self) -> None:
        """Log which arms were retired for rewards outside the bounds; the first time, also what such rewards mean.

        This waits until something succeeds, because the run may end with an error that says the same.
        """
        names = [name for name, is_said in self._retired.items() if not is_said]
        if self._outside is None or not names or self._watch.start.disproved:
            return
        if len(names) == len(self._retired):
            log.warning(self._outside.of(names).text)
        else:
            who = f"arm {shown(names[0])} is" if len(names) == 1 else f"arms {listed_phrase(names, show=shown)} are"
            log.warning(f"{who} retired for a reward outside the bounds, too")
        self._retired = dict.fromkeys(self._retired, True)

    def _note_retired(self, pull: Pull, error: OutsideBounds) -> None:
        self._outside = self._outside or error
        for arm in error.arms:
            self._retired.setdefault(arm, False)
        self._watch.start.failure(Failure(pull, self._outside.of(list(self._retired)).text, kind=OUTSIDE))


def _telling(evaluation: Evaluation, value: object) -> Telling:
    note, cost = protocol_remarks(value) if isinstance(value, Noted | tuple) else (None, None)
    return Telling(evaluation.pull, value, evaluation.was_busy, note, cost)


# -- The run ----------------------------------------------------------------------------------------------------------


class Runner:
    """One run. Afterwards ``signal`` is the signal that stopped it, if one did."""

    def __init__(
        self, study: Study, engine: Engine, limits: Limits, on_progress: Callable[[Progress], object] | None
    ) -> None:
        self.study, self.limits, self._engine = study, limits, engine
        self.signal: signal.Signals | None = None
        self._end = None if limits.seconds is None else time.monotonic() + limits.seconds
        self._inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()  # finished futures, signals, STOP
        self._suspects = FailureSuspects()
        self._evaluations = RunLoopEvaluations(study, engine, self._suspects, self._inbox.put)
        self._watch = FailureWatch(study, self._evaluations.oldest, give_up=limits.give_up)
        self._rewards = RunLoopRewards(study, self._watch)
        self._logged: set[str] = set()  # errors whose traceback was logged
        self._no_workers = NoWorkersFailure(engine.sought, limits.give_up)
        self._took_back, self._said_waiting, self._signals, self._next_sweep = False, False, 0, 0.0
        self._meter = RunLoopMeter(study, on_progress, self._end, lambda: self._watch.paused)

    # -- the loop -----------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Issue pulls and record rewards until the study is done, the time is over, or a signal comes."""
        with signals.queue_signals(self._inbox):
            try:
                while self._has_work():  # what came back is written here, together with what is asked for
                    self._end_overdue()
                    self._sweep()
                    self._meter.report()
                    self._handle_items()
                if self._watch.out and not self._stopping:
                    remedy = "repair the evaluator and resume with a larger budget"
                    raise self._watch.end("the budget ended in an outage", remedy)
            finally:
                self._clean_up()
        self._meter.report(last=True)

    def _has_work(self) -> bool:
        """Hand out pulls. False if nothing is left to do: the last failures may free a case, which is tried again."""
        if self._hand_out() or self._evaluations:
            return True
        self._watch.release()
        if self._watch.out or self._stopping:
            return False
        return self._hand_out() or bool(self._evaluations) or self._waits_for_others()

    def _waits_for_others(self) -> bool:
        """Whether other agents evaluate the last cases. If they lose one, it is tried again here."""
        count = study_pulls_of_others(self.study) if self.study.store.leased else 0
        if count and not self._said_waiting:
            log.warning(f"waiting for {plural(count, 'pull')} of other agents: what they lose is tried again here")
            self._said_waiting = True
        return count > 0

    @property
    def _stopping(self) -> bool:
        return self._signals > 0 or (self._end is not None and time.monotonic() >= self._end)

    def _hand_out(self) -> bool:
        """Write the rewards that wait, and give the engine pulls.

        True if more will be handed out later although none is pending.
        """
        now = time.monotonic()
        if self._stopping:
            self._rewards.write()
            self._take_back()
            self._evaluations.cancel_waiting()
            if self._evaluations.running and self._engine.room >= 0:  # `room` raises if the engine cannot recover
                self._has_workers(now)  # this raises if there was none for too long: no running pull would come back
            return False
        self._evaluations.submit_waiting(now)
        room = self._engine.room
        if self._has_workers(now):
            room = self.limits.in_flight or room
        elif room == 0:
            self._rewards.write()
            return not self.study.done
        if self._watch.since is not None:
            self._rewards.write()
            self._evaluations.begin(self._watch.tries(now, idle=not self._evaluations), now)
            return not self.study.done
        self._evaluations.begin(self._rewards.write(max(0, room - len(self._evaluations))), now)
        return False

    def _has_workers(self, now: float) -> bool:
        """Whether the engine has a worker. Raises `CannotGoOn` if it had none for too long."""
        workers = self._engine.workers
        self._watch.window = max(WINDOW, 2 * workers)
        return (workers > 0 and self._no_workers.since is None) or self._no_workers.is_over(workers, now)

    def _handle_items(self) -> None:
        """Wait for an item of the inbox, then handle all that are there."""
        try:
            item = self._inbox.get(timeout=self._patience())
            while True:
                if isinstance(item, signal.Signals):
                    self._handle_signal(item)
                elif item is STOP:
                    self._cancel()
                else:
                    self._handle_finished(item)
                    if not self._watch.start.over:
                        self._watch.check_start()  # earlier failures may have waited for this pull
                item = self._inbox.get_nowait()
        except queue.Empty:
            pass

    def _patience(self) -> float:
        """How many seconds to wait for an item before something else is due."""
        now, waits = time.monotonic(), [LONGEST_WAIT]
        if self._evaluations.next_try is not None:
            waits.append(self._evaluations.next_try - now)
        if self.study.store.leased:
            waits.append(self._next_sweep - now)
        if self._meter.tell or self._no_workers.since is not None:
            waits.append(TICK)
        if self.limits.timeout is not None and self._evaluations.running:
            waits.append(min(0.25, self.limits.timeout / 10))
        if self._end is not None and not self._stopping:
            waits.append(self._end - now)
        if self._watch.since is not None and not self._stopping:
            waits.append(TICK if self._evaluations.running else self._watch.next_try - now)
            waits.append(self._watch.since + self.limits.give_up - now)
        return max(0.001, min(waits))

    # -- outcomes -----------------------------------------------------------------------------------------------

    def _handle_finished(self, future: Future[object]) -> None:
        evaluation = self._evaluations.running.pop(future, None)
        if evaluation is None:
            self._handle_late(future)
            return
        pull = evaluation.pull
        try:
            self.limits.check(pull)
        except CannotGoOn as error:
            # its outcome is known, and those of the others may be: that of one may have changed what measures
            self._evaluations.drop(evaluation, str(error).partition(";")[0], "broken-pool")
            self._evaluations.drop_all("the run ended before it did", "broken-pool")
            raise
        try:
            try:
                value = self._engine.result(future)
            except BaseException:
                self._rewards.write()  # these came before whatever this failure leads to
                raise
        except Busy as busy:
            self._evaluations.try_at(time.monotonic() + max(0.0, busy.after), evaluation)
        except CancelledError:
            self._evaluations.drop(evaluation, "cancelled before it began", "cancelled")
        except KeyboardInterrupt:  # raised in a worker that Ctrl-C reaches, too
            cause: Cause = "lost" if self._signals else "broken-pool"
            self._evaluations.drop(evaluation, "its worker was interrupted", cause)
        except CannotGoOn:
            self._evaluations.drop(evaluation, "its engine failed", "lost")
            raise
        except WorkerLost as error:
            cause = self._suspects.judge(error)
            kind = "its worker was lost" if cause == "failed" else None
            self._watch.failure(Failure(pull, str(error), cause, kind), time.monotonic())
        except BaseException as error:
            log_first_evaluator_error(pull.arm, error, self._logged)
            kind = None if is_transient_evaluator_error(error) else error_identity(error)
            failure = Failure(pull, error_line(error), self._cause(error), kind, error, isinstance(error, TimedOut))
            self._watch.failure(failure, time.monotonic())
        else:
            self._handle_returned(evaluation, value)

    def _check_reward(self, value: object) -> None:
        """Raise if a value is no reward, or outside the bounds, of what is asked now: another agent may revise it."""
        spec = self.study.spec
        if spec.pairs:
            check_pair(spec, value)
        else:
            spec.reward(value)

    def _handle_returned(self, evaluation: Evaluation, value: object) -> None:
        try:
            self._check_reward(value)
        except OutsideBounds:
            pass  # this is no failure: telling the reward retires the arm
        except InvalidInput as error:
            self._rewards.write()
            to_fail = "to fail, raise an exception or, in a command, exit with a non-zero status"
            reason = str(error) if error.remedy else f"{error}; {to_fail}"
            self._watch.failure(Failure(evaluation.pull, reason, kind="no valid reward"), time.monotonic())
            return
        else:
            if self._watch.last is not None or not self._watch.start.over:
                self._rewards.write()
                self._watch.success(evaluation.pull)
        if self._suspects.arms:
            self._suspects.clear(evaluation.pull.arm)
        self._rewards.add(evaluation, value)

    def _handle_late(self, future: Future[object]) -> None:
        """Tell the reward of a pull that had timed out, if it has one after all."""
        self._rewards.write()
        evaluation = self._evaluations.overdue.pop(future, None)
        if evaluation is None:
            return
        self.limits.check(evaluation.pull)
        try:
            value = self._engine.result(future)
            with contextlib.suppress(OutsideBounds):  # telling the reward retires the arm
                self._check_reward(value)
        except BaseException:
            return  # its time-out has been counted as a failure
        self._watch.start.close()
        self._watch.let_go(evaluation.pull)
        self._rewards.add(evaluation, value)

    def _cause(self, error: BaseException) -> Cause:
        """The cause of the drop after this error. A case may be tried again if its evaluation never began."""
        spec = self.study.spec
        counts_as_reward = isinstance(spec.failure, float)
        return (
            "refused"
            if spec.cases is not None and not counts_as_reward and is_refused_evaluator_error(error)
            else "failed"
        )

    def _end_overdue(self) -> None:
        if self.limits.timeout is None:
            return
        for future, evaluation in self._evaluations.timed_out(self.limits.timeout, time.monotonic()):
            try:
                self._engine.stop(future)
            finally:
                reason = f"timed out after {self.limits.timeout:g} s"
                self._watch.failure(Failure(evaluation.pull, reason, timed_out=True), time.monotonic())

    def _sweep(self) -> None:
        """Once a second, drop the pending pulls of agents that died."""
        now = time.monotonic()
        if now >= self._next_sweep:
            self._next_sweep = now + SWEEP
            self.study.sweep()

    # -- stopping -----------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """End the run as soon as possible. This may be called from any thread and more than once."""
        self._inbox.put(STOP)

    def _cancel(self) -> None:
        self._rewards.write()
        self._signals = max(2, self._signals)
        self._watch.start.close()
        self._evaluations.drop_all("the run was cancelled")

    def _handle_signal(self, number: signal.Signals) -> None:
        self._rewards.write()
        self._signals += 2 if number == signal.SIGHUP else 1  # without a terminal, nobody can press Ctrl-C again
        self.signal = self.signal or number
        self._watch.start.close()
        self._take_back()
        running = len(self._evaluations.running)
        if self._signals == 1 and running:
            pulls, them = plural(running, "pending pull"), "it" if running == 1 else "them"
            log.warning(f"stopping: waiting for {pulls}; press Ctrl-C again to abandon {them}")
        elif self._signals > 1:
            self._evaluations.drop_all("the run was stopped")

    def _take_back(self) -> None:
        if not self._took_back:  # once is enough, and this may ask a cluster
            self._took_back = True
            self._evaluations.take_back()

    def _clean_up(self) -> None:
        """Leave no pending pull and no busy worker behind."""
        finished = not self._evaluations.running and not self._evaluations.overdue and self._signals < 2
        with contextlib.ExitStack() as steps:  # all of them run, in reverse order, even if some fail
            steps.callback(self._engine.close, wait=finished)
            steps.callback(self._evaluations.drop_all, "the run ended before it did")
            steps.callback(self._evaluations.cancel_waiting)
            steps.callback(self._watch.release)
            steps.callback(self._rewards.warn)
            steps.callback(self._rewards.write)
        while not self._inbox.empty():  # a signal may have come while the engine was being closed
            item = self._inbox.get()
            if isinstance(item, signal.Signals):
                self.signal = self.signal or item
