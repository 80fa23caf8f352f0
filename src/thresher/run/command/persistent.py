"""A program as an evaluator that stays: it is started once per worker, and answers one pull after the other.

It is called like any evaluator, on every engine. Its processes belong to the process that calls it: a copy of the
evaluator that was sent to a worker finds them by its settings.

Any number of threads may share one process. Of the threads that wait for an answer, one reads for all. When it has its
own answer, another continues, so no extra thread is needed for reading.
"""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ...core import named_items
from ...core.named_items import ARMS
from ...core.spec import Spec
from ...depends import checked_version
from ...errors import CannotGoOn, InvalidInput, shown
from ...log.locks import locks_renewed_after_fork
from ...study import Pull
from ...text.logs import evaluators, log
from ...text.masking import masked_printable
from ...text.phrasing import listed_phrase
from .. import forks
from ..failures import EvaluatorLost, EvaluatorRefused
from . import guard
from .process import TAIL, kill_process_group
from .program_end import last_lines_at_program_end, last_words_at_program_end, program_end_in_words
from .protocol import (
    LONGEST,
    PROTOCOL,
    VARIABLE,
    Answer,
    Greeting,
    NotAnAnswer,
    protocol_pull_line,
    protocol_reward,
    quoted_protocol_line,
    read_protocol_line,
)
from .reward import CommandFailed, TimedOut, reward_start_failure

PATIENCE = 60.0  # seconds in which an evaluator must name the arms, if nobody else does
NAME_THEM = 'name them with --arms FILE or --arm NAME, or let it print {"arms": [...]} first'
FIRST_WORD = 10.0  # seconds in which a program that cannot start usually ends; until then, it gets a single pull
LEFT = 32  # chunks that are read after the exit, at most: a child of the program may print without end
SILENT = 20.0  # seconds without a first line, after which a warning says what the reason may be
LOOK = 0.01  # seconds between two looks at the pending pulls
CHUNK = 1 << 16
LAST_BREATH = 1.0  # seconds for a process to exit after it closed its output, and for the end of its standard error

_HINTED = set[tuple[str, ...]]()  # commands for which the warning was given: one for all their processes


@dataclass(frozen=True)
class PersistentEvaluator:
    r"""Gives pulls to processes that stay. Each thread keeps its process, so one process runs both sides of a pair.

    >>> evaluate = PersistentEvaluator(("sed", "-u", r's/.*"pull":\([0-9]*\).*/{"pull": \1, "reward": 0.5}/'))
    >>> evaluate(Pull(1, "a", 1, {}, 5)), evaluate(Pull(2, "b", 1, {}, 6))
    (0.5, 0.5)
    >>> evaluate.stop()
    """

    argv: tuple[str, ...]  # never a shell command line
    timeout: float | None = None  # seconds from the moment when a pull is written
    per_process: int = 1  # threads that share a process, and so the most pulls that are pending in it
    arms: frozenset[str] | None = None  # the study's arms; a process that names others is refused
    version: str | None = None  # ... and so is one that names another version
    baseline: str | None = None  # set if pulls are pairs: the baseline's side has the pull's id with a minus sign

    def __call__(self, pull: Pull) -> float:
        """Let a process evaluate the pull. Returns its reward."""
        return _pool(self).evaluate(pull, -pull.id if pull.arm == self.baseline else pull.id)

    def for_study(self, spec: Spec, version: str | None = None) -> PersistentEvaluator:
        """The evaluator for a study, with the processes that run already."""
        baseline = spec.baseline if spec.pairs else None
        evaluator = replace(self, arms=frozenset(spec.arms), version=version, baseline=baseline)
        with _LOCK:
            if self in _POOLS:
                pool = _POOLS[evaluator] = _POOLS.pop(self)
                pool.settings = evaluator
        return evaluator

    def arms_named(self) -> tuple[Sequence[object], str | None]:
        """Start a process, let it name the arms and its version, and keep it for pulls."""
        greetings: list[Greeting] = []
        try:
            process = _start(self.argv, lambda greeting: greetings.append(_check_protocol(greeting)))
            try:
                process.wait_for_greeting(PATIENCE)
                arms, version = _arms_in(greetings), _version_in(greetings[0])
            except BaseException:
                process.end(0.0)
                raise
        except TimedOut:
            rule = f"there are none, and COMMAND printed nothing within {PATIENCE:g} s"
            raise InvalidInput("arms", rule=rule, remedy=NAME_THEM) from None
        except CommandFailed as error:
            remedy = "correct it, or name the arms with --arms FILE or --arm NAME"
            raise CannotGoOn("arms", rule=f"there are none, and {error}", remedy=remedy) from None
        _pool(self).adopt(process)
        return arms, version

    def rest(self) -> None:
        """End the processes here that have nothing to do, because a run is over."""
        self._end(kill=False)

    def stop(self) -> None:
        """End all processes that belong to this process."""
        self._end(kill=True)

    def _end(self, *, kill: bool) -> None:
        with _LOCK:
            pool = _POOLS.pop(self, None)
        if pool is not None:
            pool.end(kill=kill)


class PersistentPool:
    """The processes that run one command for this process, each with the threads that use it."""

    def __init__(self, settings: PersistentEvaluator) -> None:
        self.settings = settings
        self._slots: list[PersistentSlot] = []
        self._is_over = False  # then the busy processes end when they become idle
        self.is_stopped = False  # then no process is started
        self._reset()
        _ALL.add(self)

    def _reset(self) -> None:
        """Start empty. A forked child does this too, because the processes are the parent's."""
        self._lock = threading.Lock()
        self._mine = threading.local()
        self._slots.clear()

    def evaluate(self, pull: Pull, key: int) -> float:
        slot: PersistentSlot | None = getattr(self._mine, "slot", None)
        if slot is None:
            slot = self._mine.slot = self._slot()
        try:
            return slot.evaluate(pull, key)
        finally:
            if self._is_over:
                self.end(kill=False)

    def adopt(self, process: PersistentProcess) -> None:
        """Keep a process that runs already."""
        with self._lock:
            self._slots.append(PersistentSlot(self, process))

    def _slot(self) -> PersistentSlot:
        """A process that this thread may use: one that has room, or a new one."""
        with self._lock:
            for slot in self._slots:
                slot.threads = [thread for thread in slot.threads if thread.is_alive()]
            with_room = [slot for slot in self._slots if len(slot.threads) < self.settings.per_process]
            if not with_room:
                self._slots += (with_room := [PersistentSlot(self)])
            with_room[0].threads.append(threading.current_thread())
            return with_room[0]

    def end(self, *, kill: bool) -> None:
        """End the idle processes: close their inputs, wait a little, kill them.

        With ``kill``, kill the others too, and start no more for the pulls that are being evaluated.
        """
        self._is_over = True
        self.is_stopped = self.is_stopped or kill
        with self._lock:
            slots = list(self._slots)
        processes = [process for process in (slot.process for slot in slots) if process is not None]
        idle = [process for process in processes if process.hang_up()]
        for process in processes if kill else idle:
            process.end(guard.GRACE if process in idle else 0.0)


class PersistentSlot:
    """A process and the threads that use it."""

    def __init__(self, pool: PersistentPool, process: PersistentProcess | None = None) -> None:
        self.threads: list[threading.Thread] = []
        self._pool, self._process = pool, process
        self._lock = threading.Lock()

    @property
    def process(self) -> PersistentProcess | None:
        """Its process. One that is being started is waited for."""
        with self._lock:
            return self._process

    def evaluate(self, pull: Pull, key: int) -> float:
        """The reward of a pull. A process that is gone before the pull has begun is replaced."""
        while True:
            process, settings = self._running(), self._pool.settings
            with contextlib.suppress(Gone):
                return process.evaluate(pull, key, settings.timeout)
            with self._lock:
                if self._process is process:
                    self._process = None

    def _running(self) -> PersistentProcess:
        with self._lock:
            if self._process is None or self._process.gone:
                if self._pool.is_stopped:
                    raise CommandFailed("the evaluator was stopped", kind="the evaluator was stopped")
                settings = self._pool.settings
                self._process = _start(settings.argv, lambda greeting: _check_greeting(greeting, settings))
            return self._process


_LOCK = threading.Lock()
_POOLS: dict[PersistentEvaluator, PersistentPool] = {}
_ALL = locks_renewed_after_fork(PersistentPool._reset)


def _reset_in_child() -> None:
    """A thread of the parent may have held the lock."""
    global _LOCK
    _LOCK = threading.Lock()


os.register_at_fork(after_in_child=_reset_in_child)


def _pool(settings: PersistentEvaluator) -> PersistentPool:
    pool = _POOLS.get(settings)
    if pool is None:
        with _LOCK:
            pool = _POOLS.setdefault(settings, PersistentPool(settings))
    return pool


def _start(argv: Sequence[str], on_greeting: Callable[[Greeting], None]) -> PersistentProcess:
    try:
        return PersistentProcess(argv, on_greeting)
    except (OSError, ValueError) as error:  # ValueError: a NUL in an argument
        raise reward_start_failure(argv[0], error) from None


def _check_protocol(greeting: Greeting) -> Greeting:
    """Return the greeting. Raises if it is of another version of the protocol."""
    if greeting.protocol != PROTOCOL or isinstance(greeting.protocol, bool):
        rule = f"COMMAND speaks another version, and this thresher speaks {PROTOCOL}"
        raise EvaluatorRefused("protocol", greeting.protocol, rule, "update one of the two")
    return greeting


def _arms_in(greetings: Sequence[Greeting]) -> list[object]:
    """The arms that a process names in its greeting, if it has greeted."""
    arms = greetings[0].arms if greetings else None
    if arms is None:
        raise InvalidInput("arms", rule="there are none, and COMMAND names none", remedy=NAME_THEM)
    if not isinstance(arms, list):
        raise InvalidInput("arms", arms, "COMMAND must name them in a list", 'print {"arms": ["a", "b"]}')
    return arms


def _version_in(greeting: Greeting) -> str | None:
    """The version in a greeting."""
    try:
        return None if greeting.version is None else checked_version(greeting.version)
    except InvalidInput as error:
        raise EvaluatorRefused("version", error.value, error.rule, 'print {"version": "2"}, for example') from None


def _check_greeting(greeting: Greeting, settings: PersistentEvaluator) -> None:
    """Raise if a process speaks another protocol, or names another version, or other arms than those of the study."""
    arms = _check_protocol(greeting).arms
    if settings.arms is None:
        return
    version = _version_in(greeting)
    if version != settings.version:
        if settings.version is None:
            rule = "COMMAND names its version only after the study has begun"
            remedy = "leave --arms and --arm out, so that COMMAND names its arms and its version first"
            raise EvaluatorRefused("version", version, rule, remedy)
        rule = f"COMMAND was version {shown(settings.version)} when this run began"
        raise EvaluatorRefused("version", version, rule, "run again with the same version everywhere")
    if arms is None:
        return
    listing = arms if isinstance(arms, list) else [arms]
    try:
        names = {*named_items.items_from_list(listing, "COMMAND's greeting", ARMS)}
    except InvalidInput as error:
        raise EvaluatorRefused("arms", rule=str(error)) from None
    if names != settings.arms:
        differing = sorted(names ^ settings.arms)
        rule = f"COMMAND names other arms than the study has: they differ in {listed_phrase(differing, show=shown)}"
        raise EvaluatorRefused("arms", len(names), rule, "leave --arms and --arm out, or name the same")


# -- One process ------------------------------------------------------------------------------------------------------


class Gone(Exception):
    """The process is gone, and no byte of the pull was written to it, so the pull has not begun."""


class PersistentWaiter:
    """A pull that is pending in a process, and the thread that waits for its answer."""

    __slots__ = ("asleep", "end", "outcome", "pull", "timeout")

    def __init__(self, pull: Pull, timeout: float | None) -> None:
        self.pull, self.timeout = pull, timeout
        self.end: float | None = None  # when the pull times out
        self.asleep = threading.Lock()  # held until the thread is woken
        self.asleep.acquire()
        self.outcome: Answer | BaseException | None = None

    def begin(self) -> None:
        """The pull becomes pending. Its time runs from now on, not while it waits for the process's first line."""
        if self.timeout is not None:
            self.end = time.monotonic() + self.timeout

    def wake(self) -> None:
        with contextlib.suppress(RuntimeError):  # the thread is awake
            self.asleep.release()

    def result(self) -> float:
        assert self.outcome is not None
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return protocol_reward(self.outcome)


class PersistentProcess:
    """A process that answers pulls. ``on_greeting`` is called with its greeting, and may raise."""

    def __init__(self, argv: Sequence[str], on_greeting: Callable[[Greeting], None]) -> None:
        self._on_greeting = on_greeting
        self._lock = threading.Lock()
        self._may_enter = threading.Condition(self._lock)
        self._writing = threading.Lock()
        self._pending: dict[int, PersistentWaiter] = {}  # by id, the oldest first
        self._users = 0  # threads in `evaluate`
        self._led = False  # whether a thread reads for all
        self._last = 0  # the largest id that was written
        self._buffer = b""
        self._warned = False
        self._fault: CommandFailed | None = None  # an error of the process while it was idle
        self._argv = tuple(argv)
        self._hint_at: float | None = time.monotonic() + SILENT
        self._open_at = time.monotonic() + FIRST_WORD  # until then, or until its first line, it gets one pull
        self.spoke = False  # whether it has printed a line
        self.answered = False  # whether it has answered a pull: then it is replaced if it dies while it is idle
        self.gone = False
        self._program = PersistentProgram(argv)
        self._poll = select.poll()
        self._poll.register(self._program.output, select.POLLIN)
        if self._program.exit >= 0:  # a child of the program may keep its output open
            self._poll.register(self._program.exit, select.POLLIN)

    # -- evaluating ---------------------------------------------------------------------------------------------

    def evaluate(self, pull: Pull, key: int, timeout: float | None) -> float:
        """Evaluate a pull, which has the id ``key`` here. Raises `Gone` if the pull has not begun."""
        line, waiter = protocol_pull_line(pull, key), PersistentWaiter(pull, timeout)
        with self._lock:
            while self._pending and not (self.spoke or self.gone) and (left := self._open_at - time.monotonic()) > 0:
                self._may_enter.wait(left)
            while key in self._pending:  # another study's pull has the same id
                self._may_enter.wait(LOOK)
            leads = not self._led
            if not (leads and self.answered):
                self._register(key, waiter)  # this may raise, so it comes first
            self._users += 1
            self._led = True
        try:
            if leads and self.answered:
                self._listen(0)  # it may have died while it was idle
                with self._lock:
                    self._register(key, waiter)
            if not self._write(line, waiter) and self.answered:
                with self._lock:
                    self._pending.pop(key, None)
                leads = leads or waiter.asleep.acquire(blocking=False)
                raise Gone
            if not leads:
                waiter.asleep.acquire()
            leads = leads or waiter.outcome is None
            while waiter.outcome is None:
                self._listen(self._patience())
            return waiter.result()
        finally:
            if leads:
                self._hand_over()
            self._leave()

    def _register(self, key: int, waiter: PersistentWaiter) -> None:
        """Make a pull pending. The lock is held."""
        if self.gone:
            fault, self._fault = self._fault, None
            raise fault or Gone
        waiter.begin()
        self._pending[key] = waiter
        self._last = max(self._last, abs(key))

    def _hand_over(self) -> None:
        """Let another thread read, if one waits."""
        with self._lock:
            following = next(iter(self._pending.values()), None)
            self._led = following is not None
        if following is not None:
            following.wake()

    def _leave(self) -> None:
        with self._lock:
            self._users -= 1
            last = self.gone and not self._users
        if last:
            self._program.close()

    def _write(self, line: bytes, waiter: PersistentWaiter) -> bool:
        """Write a line. False if not even its first byte could be written."""
        with self._writing:
            sent = 0
            while sent < len(line):
                try:
                    sent += os.write(self._program.input, line[sent:])
                except BlockingIOError:
                    room = select.poll()
                    room.register(self._program.input, select.POLLOUT)
                    left = None if waiter.end is None else waiter.end - time.monotonic()
                    if not room.poll(None if left is None else max(0.0, 1000 * left)):
                        self._time_out()
                        return True
                except OSError:
                    return sent > 0
        return True

    # -- reading ------------------------------------------------------------------------------------------------

    def _patience(self) -> float | None:
        """Seconds until the oldest pull is due, or a hint."""
        with self._lock:
            oldest = next(iter(self._pending.values()), None)
        due = [] if oldest is None or oldest.end is None else [oldest.end]
        if not self.spoke and self._hint_at is not None:
            due.append(self._hint_at)
        return min(due) - time.monotonic() if due else None

    def _listen(self, seconds: float | None) -> None:
        """Wait for output, and deliver the answers."""
        ready = dict(self._poll.poll(None if seconds is None else max(0, int(1000 * seconds) + (seconds > 0))))
        left = LEFT if self._program.exit in ready else 1
        while ready and left and self._read():
            left -= 1
        if ready and (left or self._program.exit in ready):
            self._died()
        elif seconds is not None and seconds <= 0:  # this also comes true if it prints without end
            self._hint()
            self._time_out()

    def _hint(self) -> None:
        """Warn about a program that has printed nothing: by default, its pulls take an hour to time out."""
        if self.spoke or self._hint_at is None or time.monotonic() < self._hint_at:
            return
        self._hint_at = None
        if self._argv not in _HINTED:
            _HINTED.add(self._argv)
            advice = "it must read line by line, flush after each line and, without --arms, first name its arms"
            log.warning(f"the evaluator has printed nothing in {SILENT:g} s; unless it is still busy: {advice}")

    def _read(self) -> bool:
        """Read and handle the available output. False if there is none."""
        try:
            data = os.read(self._program.output, CHUNK)
        except BlockingIOError:
            return False
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            if line.strip() and not self.gone:
                self._handle_line(line)
        if len(self._buffer) > LONGEST:
            self._lose(f"printed a line of more than {LONGEST:,} bytes", "printed a line that is too long")
        return bool(data)

    def _handle_line(self, line: bytes) -> None:
        try:
            message = read_protocol_line(line)
            if isinstance(message, Greeting):
                self._handle_greeting(message, line)
                return
        except NotAnAnswer as error:
            self._lose(str(error), str(error).partition(": ")[0])
            return
        if not self.spoke:
            self._open()
        with self._lock:
            waiter = self._pending.pop(message.pull, None)
        if waiter is not None:
            self.answered = True
            waiter.outcome = message
            waiter.wake()
        elif abs(message.pull) > self._last:
            fault = "answered a pull that it was not given"
            self._lose(f"{fault}: {quoted_protocol_line(line)}", fault)
        elif not self._warned:
            self._warned = True
            words = "answered a pull that was not pending, which is ignored: the first answer counts"
            log.warning(f"the evaluator {words}: {quoted_protocol_line(line)}")

    def _handle_greeting(self, greeting: Greeting, line: bytes) -> None:
        if self.spoke:
            raise NotAnAnswer(f"printed a greeting after its first line: {quoted_protocol_line(line)}")
        try:
            self._on_greeting(greeting)
        except BaseException as error:
            self._lose(str(error), "", error)
        else:
            self._open()

    def _open(self) -> None:
        with self._lock:
            self.spoke = True
            self._may_enter.notify_all()

    def wait_for_greeting(self, seconds: float) -> None:
        """Wait until it has greeted, before any thread uses it. Raises an error if it does not."""
        waiter = PersistentWaiter(Pull(0, "", 0, {}, 0), seconds)
        with self._lock:
            self._register(0, waiter)
        try:
            while waiter.outcome is None and not self.spoke:
                self._listen(self._patience())
            if waiter.outcome is not None:
                waiter.result()
        finally:
            with self._lock:
                self._pending.pop(0, None)

    # -- the end ------------------------------------------------------------------------------------------------

    def _time_out(self) -> None:
        """Kill the process because a pull takes too long.

        All pulls that were written at about the same time are overdue together, whichever hangs. So a pull has timed
        out only if it was pending alone. Otherwise all of them are lost, and nobody knows which of them is to blame.
        """
        now = time.monotonic()
        with self._lock:
            overdue = [waiter for waiter in self._pending.values() if waiter.end is not None and waiter.end <= now]
            if not overdue:
                return
            lost = self._clear()
        self._program.reap(at_once=True)
        timed_out = TimedOut(overdue[0].timeout or 0.0)
        _end_all(lost, timed_out, f"its evaluator {timed_out}")

    def _clear(self) -> list[PersistentWaiter]:
        """Let no thread use it any more. The lock is held. Returns the waiters whose pulls have no outcome."""
        self.gone = True
        self._may_enter.notify_all()
        lost = list(self._pending.values())
        self._pending.clear()
        return lost

    def _died(self) -> None:
        self._program.reap(at_once=False)
        how = self._program.ended
        self._lose(f"{how}{last_words_at_program_end(self._program.errors)}", how, fault=False)

    def _lose(self, text: str, kind: str, error: BaseException | None = None, *, fault: bool = True) -> None:
        """The process is gone or useless, and its pulls are lost. If it has only one, that pull is to blame."""
        with self._lock:
            lost = self._clear()
        self._program.reap(at_once=True)
        output = last_lines_at_program_end(self._program.errors)
        failed = CommandFailed(f"the evaluator {text}", kind=f"the evaluator {kind}", output=output)
        if fault and not lost:
            self._fault = failed
        _end_all(lost, error or failed, f"the evaluator {text}" if error is None else None)

    def hang_up(self) -> bool:
        """Close its input if it is idle, so that it ends itself. It gets no further pull."""
        with self._lock:
            if self._users:
                return False
            self._clear()
        self._program.hang_up()
        return True

    def end(self, seconds: float) -> None:
        """Kill it, unless it ends itself in that time."""
        self._program.exits_within(seconds)
        self._lose("was stopped", "was stopped")
        if not self._users:
            self._program.close()


def _end_all(lost: Sequence[PersistentWaiter], error: BaseException, reason: str | None) -> None:
    """Let lost pulls end with this error. If there are several and a ``reason``, they are lost together instead."""
    together = [waiter.pull for waiter in lost]
    for waiter in lost:
        waiter.outcome = error if len(lost) == 1 or reason is None else EvaluatorLost(reason, together)
        waiter.wake()


# -- The program ------------------------------------------------------------------------------------------------------


class PersistentProgram:
    """A running program. It and its children end when this process ends, if not before."""

    def __init__(self, argv: Sequence[str]) -> None:
        guard.GUARD.start()
        pipe, environment = subprocess.PIPE, {**os.environ, VARIABLE: str(PROTOCOL)}
        self._reaping = threading.Lock()
        with forks.TURN:
            # bufsize=0: a buffer has a lock. In a child forked during its close, nobody would ever release the lock.
            self._process = subprocess.Popen(
                argv, stdin=pipe, stdout=pipe, stderr=pipe, env=environment, start_new_session=True, bufsize=0
            )
            self._stdin, self._stdout, self._stderr = self._process.stdin, self._process.stdout, self._process.stderr
            self.input, self.output = self._stdin.fileno(), self._stdout.fileno()  # type: ignore[union-attr]
            # readable once it has exited
            self.exit = os.pidfd_open(self._process.pid) if hasattr(os, "pidfd_open") else -1
            _PROGRAMS.add(self)
        guard.GUARD.watch(self._process.pid, gently=True)
        for file in (self.input, self.output):
            os.set_blocking(file, False)
        self._tail = bytearray()
        self._pump = threading.Thread(target=self._show_errors, name="thresher-stderr", daemon=True)
        self._pump.start()

    @property
    def errors(self) -> bytes:
        """The end of its standard error."""
        return bytes(self._tail)

    @property
    def ended(self) -> str:
        """How it ended, in words."""
        code = self._process.returncode or 0
        return program_end_in_words(code) if code else f"{program_end_in_words(code)} before it answered"

    def reap(self, *, at_once: bool) -> None:
        """End the process and its children. Unless ``at_once``, it has a moment to exit by itself."""
        with self._reaping:
            if self._process.returncode is not None:
                return
            if not at_once:
                self.exits_within(LAST_BREATH)
            kill_process_group(self._process.pid)  # before it is reaped, because then its pid may be reused
            self._process.wait()
            guard.GUARD.forget(self._process.pid)
        self._pump.join(LAST_BREATH)

    def exits_within(self, seconds: float) -> None:
        """Wait until it has exited, or until the time is over."""
        if self._process.returncode is not None:
            return
        if self.exit >= 0:
            leaving = select.poll()
            leaving.register(self.exit, select.POLLIN)
            leaving.poll(1000 * seconds)
        else:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(seconds)

    def hang_up(self) -> None:
        """Close its input."""
        self._stdin.close()  # type: ignore[union-attr]

    def close(self) -> None:
        """Close the files of a program that has been reaped."""
        with self._reaping:
            self._stdin.close()  # type: ignore[union-attr]
            self._stdout.close()  # type: ignore[union-attr]
            exit_, self.exit = self.exit, -1  # first: a child that is forked now must not close another file
            if exit_ >= 0:
                os.close(exit_)

    def _show_errors(self) -> None:
        """Log its standard error line by line and without terminal codes, and keep the end of it."""
        assert self._stderr
        rest = b""
        while data := os.read(self._stderr.fileno(), CHUNK):
            self._tail += data
            del self._tail[:-TAIL]
            *lines, rest = (rest + data).split(b"\n")
            if len(rest) > CHUNK:
                lines, rest = [*lines, rest], b""
            for line in lines:
                evaluators.warning(masked_printable(line.decode("utf-8", "replace")))
        if rest:
            evaluators.warning(masked_printable(rest.decode("utf-8", "replace")))
        self._stderr.close()

    def _forked(self) -> None:
        """A forked child closes its copies of the pipes, because the program is the parent's."""
        self._reaping = threading.Lock()
        self.close()
        self._stderr.close()  # type: ignore[union-attr]


_PROGRAMS = locks_renewed_after_fork(PersistentProgram._forked)
