"""The loop that keeps workers busy: hand out, take in, and never wait for a pending pull before deciding the next."""

import concurrent.futures as futures
import contextlib
import logging
import queue
import signal
import time
from collections.abc import Callable
from concurrent.futures import Future

from . import signals
from .errors import AlreadyTold, Busy, CannotGoOn, InvalidInput, NoReward, OutsideBounds, told_of
from .events import Cause
from .executors import Engine, WorkerLost
from .outage import Desertion, Failure, Finding, Suspects, Watch
from .progress import TICK, Meter, Progress
from .study import SWEEP, Study, give_up
from .waiting import Flight, Waiting

log = logging.getLogger("thresher")
LONGEST_WAIT = 3600.0


class Runner:
    """One run. ``signal`` tells afterwards whether, and by which signal, it was stopped."""

    def __init__(
        self,
        study: Study,
        engine: Engine,
        in_flight: int | None,
        timeout: float | None,
        attempts: int,
        end: float | None,
        on_progress: Callable[[Progress], object] | None,
        give_up: float,
    ) -> None:
        self.study, self.timeout, self.attempts, self.give_up = study, timeout, attempts, give_up
        self.signal: signal.Signals | None = None
        self._engine, self._in_flight, self._end = engine, in_flight, end
        self._spec = study.spec
        self._inbox: queue.SimpleQueue[Future[object] | signal.Signals] = queue.SimpleQueue()
        self._flying: dict[Future[object], Flight] = {}
        self._overdue: dict[Future[object], Flight] = {}  # timed out; should a reward still come, it is late
        self._waiting = Waiting()
        self._watch, self._suspects = Watch(study, window=8), Suspects()
        self._desertion = Desertion(engine.sought, give_up)
        self._withdrawn = False
        self._signals = 0
        self._next_sweep = 0.0
        self._meter = Meter(study, on_progress, end)

    # -- the loop -----------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Hand out and take in until the study is done, the time is over, or a signal comes."""
        with signals.into(self._inbox):
            try:
                while self._hand_out() or self._under_way:
                    self._take_in()
                    self._end_overdue()
                    self._sweep()
                    if self._meter.tell:
                        self._meter.report()
                self._watch.release()
                if self._watch.out and not self._stopping:
                    raise self._cannot_go_on(
                        "the budget ended in an outage", "mend the evaluator and go on with a larger budget"
                    )
            finally:
                self._ground()
        self._meter.report(last=True)

    @property
    def _stopping(self) -> bool:
        return self._signals > 0 or (self._end is not None and time.monotonic() >= self._end)

    @property
    def _under_way(self) -> int:
        return len(self._flying) + len(self._waiting)

    def _hand_out(self) -> bool:
        """Fill the engine. True while there is more to come of it, even if only later."""
        now = time.monotonic()
        if self._stopping:
            if not self._withdrawn:
                self._withdrawn = True
                self._withdraw()
            self._cancel_waiting()
            if self._flying and self._engine.room >= 0:  # which raises if the engine is beyond hope
                self._is_manned(now)  # or nobody will bring them
            return False
        self._submit_waiting(now)
        room = self._engine.room
        if self._is_manned(now):
            room = self._in_flight or room
        elif room == 0:
            return not self.study.done
        free = room - self._under_way
        if self._watch.out:
            if now - (self._watch.since or now) >= self.give_up:
                raise self._cannot_go_on(
                    f"every evaluation failed for {self.give_up:g} s", "mend the evaluator and run again"
                )
            free = 1 if now >= self._watch.next_try and not self._under_way else 0
        if free > 0:
            for pull in self.study.ask_many(free):
                self._waiting.hold(Flight(pull, attempt=1))
            self._submit_waiting(now)
        return self._watch.out and not self.study.done

    def _is_manned(self, now: float) -> bool:
        """Whether the engine has a worker; one without any is waited for, but not for ever."""
        workers, desertion = self._engine.workers, self._desertion
        self._watch.window = max(8, 2 * workers)
        return (workers > 0 and desertion.since is None) or desertion.is_over(workers, now)

    def _submit_waiting(self, now: float) -> None:
        for flight in self._waiting.due(now):
            try:
                self._submit(flight)
            except BaseException:
                self._waiting.hold(flight)  # for whoever cleans up
                raise

    def _submit(self, flight: Flight) -> None:
        suspects = self._suspects.arms
        if flight.pull.arm in suspects and any(other.pull.arm in suspects for other in self._flying.values()):
            self._waiting.hold(flight)
            return
        future = self._engine.submit(flight.pull)
        self._flying[future] = flight
        future.add_done_callback(self._inbox.put)

    def _take_in(self) -> None:
        """Wait for something to happen, then deal with all that has."""
        with contextlib.suppress(queue.Empty):
            item = self._inbox.get(timeout=self._patience())
            while True:
                if isinstance(item, signal.Signals):
                    self._caught(item)
                else:
                    self._landed(item)
                item = self._inbox.get_nowait()

    def _patience(self) -> float | None:
        """How long to wait before something must be looked at again; None: until something happens."""
        now = time.monotonic()
        waits = [] if self._waiting.next_try is None else [self._waiting.next_try - now]
        if self.study.store.leased:
            waits.append(self._next_sweep - now)
        if self._meter.tell or self._desertion.since is not None:
            waits.append(TICK)
        if self._engine.elastic:
            waits.append(SWEEP)
        if self.timeout is not None and self._flying:
            waits.append(min(0.25, self.timeout / 10))
        if self._end is not None and not self._stopping:
            waits.append(self._end - now)
        if self._watch.out and not self._stopping:
            waits.append(TICK if self._flying else self._watch.next_try - now)
            waits.append((self._watch.since or now) + self.give_up - now)
        return max(0.001, min(*waits, LONGEST_WAIT)) if waits else None

    # -- results ------------------------------------------------------------------------------------------------

    def _landed(self, future: "Future[object]") -> None:
        flight = self._flying.pop(future, None)
        if flight is None:
            self._late(future)
            return
        pull = flight.pull
        try:
            value = self._engine.result(future)
        except Busy as busy:
            self._waiting.come_back(flight, time.monotonic() + max(0.0, busy.after))
        except futures.CancelledError:
            self._drop(flight, "cancelled before it began", "cancelled")
        except KeyboardInterrupt:  # a worker that takes Ctrl-C itself
            self._drop(flight, "its worker was interrupted", "lost")
        except CannotGoOn:
            self._drop(flight, "its engine failed", "lost")
            raise
        except WorkerLost as error:
            if self._suspects.judge(pull, error.together) == "failed":
                self._failed(flight, str(error))
            else:
                self._note(Failure(pull, str(error), cause="broken-pool"))
        except NoReward as error:
            self._failed(flight, str(error), nonsense=True)
        except BaseException as error:
            self._failed(flight, told_of(error))
        else:
            self._returned(flight, value)

    def _returned(self, flight: Flight, value: object) -> None:
        try:
            self._spec.reward(value)
        except OutsideBounds:
            pass  # not a failure: telling it retires the arm
        except InvalidInput as error:
            self._failed(flight, str(error), nonsense=True)
            return
        else:
            if self._watch.success():
                log.warning("an evaluation succeeded: going on")
        self._suspects.clear(flight.pull.arm)
        try:
            self._tell(flight, value)
        except OutsideBounds as error:
            log.warning(str(error))

    def _tell(self, flight: Flight, value: object) -> None:
        with contextlib.suppress(AlreadyTold):  # another agent gave the pull up, and a reward, before us
            self.study.tell(flight.pull, value, repeatable=self.attempts > 1 or flight.repeated)

    def _late(self, future: "Future[object]") -> None:
        """A pull whose time was over came to an end after all."""
        flight = self._overdue.pop(future, None)
        if flight is not None:
            with contextlib.suppress(BaseException):
                value = self._engine.result(future)
                with contextlib.suppress(OutsideBounds):  # telling it retires the arm
                    self._spec.reward(value)
                self._watch.let_go(flight.pull)
                self._tell(flight, value)

    def _failed(self, flight: Flight, reason: str, *, nonsense: bool = False) -> None:
        if flight.attempt < self.attempts and not self._stopping:
            self._waiting.hold(Flight(flight.pull, flight.attempt + 1, was_busy=flight.was_busy))
        else:
            self._note(Failure(flight.pull, reason, nonsense=nonsense))

    def _note(self, failure: Failure) -> None:
        finding = self._watch.failure(failure, time.monotonic())
        if finding is Finding.OUTAGE:
            log.warning(
                f"the last {self._watch.window} evaluations all failed, the last with: {failure.reason}; "
                "handing out stops, one pull is tried now and then; no arm is retired for it"
            )
        elif finding is Finding.NO_REWARDS:
            what = f"none of the first {self._watch.results} results is a valid reward"
            raise CannotGoOn(f"{what}, the last: {failure.reason}")

    def _end_overdue(self) -> None:
        """End evaluations whose time is over."""
        if self.timeout is None:
            return
        now = time.monotonic()
        for future, flight in list(self._flying.items()):
            if flight.started is None:
                flight.started = now if self._engine.began(future) else None
            elif now - flight.started >= self.timeout and not future.done():
                del self._flying[future]
                self._overdue[future] = flight
                try:
                    self._engine.stop(future)
                finally:
                    self._failed(flight, f"timed out after {self.timeout:g} s")

    def _sweep(self) -> None:
        """Once a second, give up what other agents that are gone have left under way."""
        now = time.monotonic()
        if now >= self._next_sweep:
            self._next_sweep = now + SWEEP
            self.study.sweep()

    # -- stopping -----------------------------------------------------------------------------------------------

    def _caught(self, number: signal.Signals) -> None:
        self._signals += 1
        self.signal = self.signal or number
        if self._signals == 1:
            self._withdrawn = True
            self._withdraw()
        if self._signals == 1 and self._flying:
            pulls = "1 pull" if len(self._flying) == 1 else f"{len(self._flying):,} pulls"
            log.warning(f"stopping: waiting for {pulls} under way; once more does not wait")
        elif self._signals > 1:
            self._abandon("the run was stopped")

    def _abandon(self, reason: str) -> None:
        """Give up what is under way."""
        self._withdraw()
        self._engine.abandon(self._flying)
        while self._flying:
            self._drop(self._flying.popitem()[1], reason, "lost")

    def _withdraw(self) -> None:
        """Take back what was handed out and has not begun; it costs nobody anything."""
        for future in self._engine.withdraw(self._flying) if self._flying else ():
            self._drop(self._flying.pop(future), "the run was stopped before it began", "cancelled")

    def _cancel_waiting(self) -> None:
        """Give up what waits for its first or its next try; nothing of it is known."""
        for flight in self._waiting.empty():
            self._drop(flight, "the run was stopped before it was tried", "cancelled")

    def _drop(self, flight: Flight, reason: str, cause: Cause) -> None:
        """Give a pull up; only one that never began, in any attempt, was cancelled."""
        with contextlib.suppress(AlreadyTold):  # by somebody else
            give_up(self.study, flight.pull, reason=reason, cause="lost" if flight.repeated else cause)

    def _ground(self) -> None:
        """Leave nothing behind: no pull that looks pending, no worker at work."""
        finished = not self._flying and not self._overdue and self._signals < 2
        with contextlib.ExitStack() as steps:  # each, whatever becomes of the others; the last first
            steps.callback(self._engine.close, wait=finished)
            steps.callback(self._abandon, "the run ended before it did")
            steps.callback(self._cancel_waiting)
            steps.callback(self._watch.release)
        self._note_late_signals()

    def _note_late_signals(self) -> None:
        """A signal that came while the engine was closed has its effect too."""
        with contextlib.suppress(queue.Empty):
            while True:
                item = self._inbox.get_nowait()
                if isinstance(item, signal.Signals):
                    self.signal = self.signal or item

    def _cannot_go_on(self, rule: str, remedy: str) -> CannotGoOn:
        return CannotGoOn(
            "run", rule=f"{rule}, the last with: {self._watch.last}", remedy=f"{remedy}; no arm was retired"
        )
