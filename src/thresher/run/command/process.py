"""A program as an evaluator, run once per pull. `reward` finds the reward in its output or its exit code."""

import contextlib
import errno
import json
import os
import re
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...core.question import Measure
from ...core.spec import Spec
from ...log.locks import locks_renewed_after_fork
from ...study import Pull
from .. import forks
from . import guard
from .reward import (
    CPU_SECONDS,
    FAILING,
    MEASURED,
    PASSING,
    SECONDS,
    TimedOut,
    read_reward,
    reward_start_failure,
    reward_timeout_failure,
)

TAIL = 64 * 1024  # bytes of output that are kept: the last ones
POLL = 0.002  # seconds between two looks at a program, where the system does not say when one exits
PLACEHOLDER = re.compile(r"\{\{|\}\}|\{((?:case\.)?[A-Za-z_][A-Za-z0-9_-]*)\}")
PULL_FIELDS = ("arm", "seed", "number", "pull")
CASE = "case"  # in a study with cases, a field too; a parameter of the case is case.KEY


@dataclass(frozen=True)
class Command:
    """Runs a program with the pull's values in its arguments and environment.

    >>> study_pull = Pull(1, "7", 1, {}, 5)
    >>> Command(("echo", "the answer is {arm}"), "last-float")(study_pull)
    7.0
    """

    argv: tuple[str, ...]  # never a shell command line
    reward: str = "last-float"  # or exit-code, json:KEY, seconds, cpu-seconds
    timeout: float | None = None
    passing: frozenset[int] = PASSING  # exit codes that mean reward 1, with exit-code
    failing: frozenset[int] = FAILING  # exit codes that mean reward 0; with any other, the pull fails
    measure: Measure | None = None  # how a time counts, if this may be known before the program ends
    _runs: "ProcessRuns" = field(default_factory=lambda: ProcessRuns(), compare=False, repr=False)

    def __call__(self, pull: Pull) -> float:
        """Run the program. Returns the reward."""
        values = process_pull_values(pull)
        argv = [fill_command_template(part, values) for part in self.argv]
        fields = PULL_FIELDS if pull.case is None else (*PULL_FIELDS, CASE)
        environment = {**os.environ, **{f"THRESHER_{name.upper()}": values[name] for name in fields}}
        try:
            run = self._run(argv, environment)
        except TimedOut as error:
            if self.measure is None or self.measure.paired:  # of a pair, the baseline's time decides
                raise
            return error.reward()
        codes = {"passing": self.passing, "failing": self.failing}
        return read_reward(self.reward, run.process.returncode, run.out, run.err, times=run.times, **codes)

    def for_study(self, spec: Spec) -> "Command":
        """The command for a study. If its question is about a limit, a run that was cut off may count.

        In a study with a baseline and cases, a run does not know its limit.
        """
        has_limit = self.reward in MEASURED and spec.share is not None and (spec.baseline is None or spec.pairs)
        return replace(self, measure=spec.measure if has_limit else None)

    def __reduce__(self) -> tuple[type["Command"], tuple[object, ...]]:
        """Pickle everything but the runs, which belong to this process."""
        return Command, (self.argv, self.reward, self.timeout, self.passing, self.failing, self.measure)

    def stop(self) -> None:
        """Kill every run, and let none begin afterwards."""
        self._runs.stop()

    def _run(self, argv: Sequence[str], environment: Mapping[str, str]) -> "ProcessRun":
        """Run the program until it exits, even if its pipes stay open."""
        try:
            run = self._runs.begin(argv, environment)
        except (OSError, ValueError) as error:  # ValueError: a NUL or half a surrogate pair among the parameters
            raise reward_start_failure(argv[0], error) from None
        with run.process.stdout, run.process.stderr:  # type: ignore[union-attr]
            try:
                run.out, run.err = _read_until_exit(
                    run.process, self.timeout, lambda noticed: self._runs.over(run, noticed)
                )
            except BaseException as error:
                self._runs.kill(run)
                if isinstance(error, TimeoutError) and self.timeout is not None:
                    raise reward_timeout_failure(run.times, self.timeout, self.reward, self.measure) from None
                raise
        return run


@dataclass
class ProcessRun:
    """One run of a program, the ends of its outputs, and the time it took."""

    process: "subprocess.Popen[bytes]"
    began: float  # just before the program was executed
    out: bytes = b""
    err: bytes = b""
    times: dict[str, float] = field(default_factory=dict)  # known when it has ended, unless other code has reaped it

    @property
    def pid(self) -> int:
        return self.process.pid

    def is_over(self, noticed: float | None) -> bool:
        """Whether the program has exited, and reap it then. Its exit was ``noticed`` at that time; None: now."""
        if self.process.returncode is None:
            try:
                pid, status, used = os.wait4(self.pid, os.WNOHANG)
            except ChildProcessError:  # other code has reaped it
                return self.process.poll() is not None
            if pid:
                seconds = (time.monotonic() if noticed is None else noticed) - self.began
                self.times = {SECONDS: seconds, CPU_SECONDS: used.ru_utime + used.ru_stime}
                self.process.returncode = os.waitstatus_to_exitcode(status)
        return self.process.returncode is not None


class ProcessRuns:
    """The running programs. A process is reaped and forgotten in one step, so no signal hits a reused pid."""

    def __init__(self) -> None:
        self._reset()
        self._stopped = False
        _RUNS.add(self)

    def _reset(self) -> None:
        """Start empty, as in a forked child, where nothing runs and no thread is left to release the lock."""
        self._lock = threading.Lock()
        self._running: set[int] = set()  # process ids, which are also the ids of their process groups

    def begin(self, argv: Sequence[str], environment: Mapping[str, str]) -> ProcessRun:
        """Start a program, unless `stop` was called."""
        guard.GUARD.start()
        with self._lock:  # with it, no start slips past `stop`
            if self._stopped:
                raise OSError(errno.ECANCELED, "the run was stopped")
            began = time.monotonic()
            with forks.TURN:
                process = subprocess.Popen(
                    argv,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    env=environment,
                    start_new_session=True,
                )
            self._running.add(process.pid)
            guard.GUARD.watch(process.pid)
            return ProcessRun(process, began)

    def over(self, run: ProcessRun, noticed: float | None = None) -> bool:
        """Whether the program has exited. Its children may keep running, unless the program was killed."""
        with self._lock:
            if run.pid in self._running and _was_killed(run.pid):
                kill_process_group(run.pid)  # before the program is reaped, because then its pid may be reused
            if not run.is_over(noticed):
                return False
            self._running.discard(run.pid)
            guard.GUARD.forget(run.pid)
            return True

    def kill(self, run: ProcessRun) -> None:
        """Kill a program and its process group."""
        with self._lock:
            if run.pid in self._running:
                kill_process_group(run.pid)
        while not self.over(run):  # without the lock, so that a program that does not die yet blocks no other run
            time.sleep(POLL)

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            for group in self._running:
                kill_process_group(group)


_RUNS = locks_renewed_after_fork(ProcessRuns._reset)


def kill_process_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # it has ended, or belongs to another user
        os.killpg(group, signal.SIGKILL)


def _was_killed(pid: int) -> bool:
    """Whether a process was killed by SIGKILL, before it is reaped."""
    if not hasattr(os, "waitid"):
        return False
    with contextlib.suppress(ChildProcessError):  # other code has reaped it
        end = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return end is not None and (end.si_code, end.si_status) == (os.CLD_KILLED, signal.SIGKILL)
    return False


def _read_until_exit(
    process: "subprocess.Popen[bytes]", timeout: float | None, over: Callable[[float | None], bool]
) -> tuple[bytes, bytes]:
    """Read both pipes until ``over`` says that the program has exited. Returns the ends of its outputs."""
    end = None if timeout is None else time.monotonic() + timeout
    tails = {process.stdout: bytearray(), process.stderr: bytearray()}
    exited = os.pidfd_open(process.pid) if hasattr(os, "pidfd_open") else None
    try:
        with selectors.PollSelector() as selector:  # unlike epoll, poll needs no file descriptor
            for pipe in tails:
                os.set_blocking(pipe.fileno(), False)  # type: ignore[union-attr]
                selector.register(pipe, selectors.EVENT_READ)  # type: ignore[arg-type]
            if exited is not None:
                selector.register(exited, selectors.EVENT_READ)
            is_over = False
            while not is_over:
                left = None if end is None else max(0.0, end - time.monotonic())
                patience = left if exited is not None else POLL if left is None else min(POLL, left)
                ready = [key.fileobj for key, _ in selector.select(patience)]
                noticed = time.monotonic()
                if exited is None or exited in ready:
                    is_over = over(noticed if exited is not None else None)
                if not is_over and end is not None and noticed >= end:
                    raise TimeoutError
                for file in ready:
                    if file in tails and _read(file, tails[file]) == 0:
                        selector.unregister(file)
    finally:
        if exited is not None:
            os.close(exited)
    for pipe, tail in tails.items():
        for _ in range(64):  # empty the pipe, but do not wait for a daemon that keeps writing
            if not _read(pipe, tail):
                break
    return bytes(tails[process.stdout]), bytes(tails[process.stderr])


def _read(pipe: object, tail: bytearray) -> int | None:
    """Read the available bytes into the tail. Returns how many: 0 at the end, None if there are none yet."""
    try:
        data = os.read(pipe.fileno(), TAIL)  # type: ignore[attr-defined]
    except BlockingIOError:
        return None
    tail += data
    del tail[:-TAIL]
    return len(data)


# -- Arguments --------------------------------------------------------------------------------------------------------


def process_pull_values(pull: Pull) -> dict[str, str]:
    """The values of placeholders: the pull's fields, the arm's parameters, its case and the case's parameters."""
    fields = {"arm": pull.arm, "seed": str(pull.seed), "number": str(pull.number), "pull": str(pull.id)}
    values = {**_texts(pull.params), **fields}
    if pull.case is None:
        return values
    of_case = {f"{CASE}.{key}": text for key, text in _texts(pull.case_params).items()}
    return {**values, **of_case, CASE: str(pull.case)}


def _texts(params: Mapping[str, object]) -> dict[str, str]:
    return {key: value if isinstance(value, str) else json.dumps(value) for key, value in params.items()}


def fill_command_template(template: str, values: Mapping[str, str]) -> str:
    """The template with its placeholders filled in, and ``{{`` and ``}}`` made single.

    A template without any ``{{`` keeps its ``}}``: it closes two braces there, as in JSON, and escapes nothing.

    >>> fill_command_template('{arm} {{arm}}', {"arm": "a"})
    'a {arm}'
    >>> fill_command_template('{"model": {"seed": {seed}}}', {"seed": "5"})
    '{"model": {"seed": 5}}'
    """
    escapes = "{{" in template
    return PLACEHOLDER.sub(lambda match: values[match[1]] if match[1] else match[0][escapes:], template)
