"""A program as an evaluator: run it once per pull; `reward` finds the reward in its output or its exit code."""

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
from dataclasses import dataclass, field

from ...errors import shown
from ...log.forks import renewed
from ...study import Pull
from . import guard
from .reward import FAILING, PASSING, CommandFailed, read_reward

TAIL = 64 * 1024  # bytes of output that count, from the end
TOO_MANY = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ETXTBSY)  # a start that may work later
PLACEHOLDER = re.compile(r"\{\{|\}\}|\{((?:case\.)?[A-Za-z_][A-Za-z0-9_-]*)\}")
PULL_FIELDS = ("arm", "seed", "number", "pull")
CASE = "case"  # a pull has it where the study has cases; its parameters are case.KEY


@dataclass(frozen=True)
class Command:
    """Calls a program with the pull's values in its arguments and environment.

    >>> study_pull = Pull(1, "7", 1, {}, 5)
    >>> Command(("echo", "the answer is {arm}"), "last-float")(study_pull)
    7.0
    """

    argv: tuple[str, ...]  # never a shell command line
    reward: str = "last-float"  # or exit-code, json:KEY, regex:RE
    timeout: float | None = None
    passing: frozenset[int] = PASSING  # exit codes that mean reward 1, with exit-code
    failing: frozenset[int] = FAILING  # those that mean reward 0; any other is a failure of the pull
    _runs: "Runs" = field(default_factory=lambda: Runs(), compare=False, repr=False)

    def __call__(self, pull: Pull) -> float:
        """The reward of one run."""
        values = pull_values(pull)
        argv = [fill(part, values) for part in self.argv]
        fields = PULL_FIELDS if pull.case is None else (*PULL_FIELDS, CASE)
        environment = {**os.environ, **{f"THRESHER_{name.upper()}": values[name] for name in fields}}
        code, out, err = self._run(argv, environment)
        return read_reward(self.reward, code, out, err, passing=self.passing, failing=self.failing)

    def __reduce__(self) -> tuple[type["Command"], tuple[object, ...]]:
        """A copy in another process has no runs."""
        return Command, (self.argv, self.reward, self.timeout, self.passing, self.failing)

    def stop(self) -> None:
        """Kill every run, and let none begin afterwards."""
        self._runs.stop()

    def _run(self, argv: Sequence[str], environment: Mapping[str, str]) -> tuple[int, bytes, bytes]:
        """The exit code and the end of each output. A run ends when the program exits, even if its pipes stay open."""
        try:
            process = self._runs.begin(argv, environment)
        except (OSError, ValueError) as error:  # ValueError: a NUL or half a surrogate pair among the parameters
            busy = isinstance(error, OSError) and error.errno in TOO_MANY
            text = f"cannot start {shown(argv[0])}: {_why(error)}"
            raise CommandFailed(text, kind=f"cannot start: {_why(error)}", transient=busy) from None
        with process.stdout, process.stderr:  # type: ignore[union-attr]
            try:
                tails = _follow(process, self.timeout, lambda: self._runs.over(process))
            except BaseException as error:
                self._runs.kill(process)
                if isinstance(error, TimeoutError):
                    text = f"timed out after {self.timeout:g} s and was killed"
                    raise CommandFailed(text, kind="timed out", transient=True) from None
                raise
        return process.returncode, *tails


class Runs:
    """The running processes. A process is reaped and forgotten in one step, so no signal meets a reused pid."""

    def __init__(self) -> None:
        self._reset()
        self._stopped = False
        _RUNS.add(self)

    def _reset(self) -> None:
        """Start empty, as in a forked child, where nothing runs and no thread is left to release the lock."""
        self._lock = threading.Lock()
        self._running: set[int] = set()  # each has its own session, and so leads a process group

    def begin(self, argv: Sequence[str], environment: Mapping[str, str]) -> "subprocess.Popen[bytes]":
        """Start a program, unless `stop` was called."""
        guard.GUARD.start()
        with self._lock:  # starts are serial anyway, and this way none slips past `stop`
            if self._stopped:
                raise OSError(errno.ECANCELED, "the run was stopped")
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
            return process

    def over(self, process: "subprocess.Popen[bytes]") -> bool:
        """Whether the program has exited. What it started may keep running, unless the program was killed."""
        with self._lock:
            if process.pid in self._running and _was_killed(process.pid):
                _kill(process.pid)  # before it is reaped: until then its number is not reused
            if process.poll() is None:
                return False
            self._running.discard(process.pid)
            guard.GUARD.forget(process.pid)
            return True

    def kill(self, process: "subprocess.Popen[bytes]") -> None:
        """Kill a run and whatever it started in its group."""
        with self._lock:
            if process.pid in self._running:
                _kill(process.pid)
        while not self.over(process):  # without the lock: one that the system cannot kill yet blocks no other run
            time.sleep(0.002)

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            for group in self._running:
                _kill(group)


_RUNS = renewed(Runs._reset)


def _kill(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # it has ended, or now belongs to another user
        os.killpg(group, signal.SIGKILL)


def _was_killed(pid: int) -> bool:
    """Whether a process that is not reaped yet was killed by SIGKILL."""
    if not hasattr(os, "waitid"):
        return False
    with contextlib.suppress(ChildProcessError):  # it was reaped elsewhere
        found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return found is not None and (found.si_code, found.si_status) == (os.CLD_KILLED, signal.SIGKILL)
    return False


def _why(error: OSError | ValueError) -> str:
    if isinstance(error, OSError):
        hint = "; does it begin with a line such as #!/bin/sh?" if error.errno == errno.ENOEXEC else ""
        return f"{error.strerror}{hint}"
    return str(error)


def _follow(process: "subprocess.Popen[bytes]", timeout: float | None, over: Callable[[], bool]) -> tuple[bytes, bytes]:
    """Read both pipes until the program exits; keep the ends."""
    end = None if timeout is None else time.monotonic() + timeout
    tails = {process.stdout: bytearray(), process.stderr: bytearray()}
    exited = os.pidfd_open(process.pid) if hasattr(os, "pidfd_open") else None
    try:
        with selectors.PollSelector() as selector:  # poll: epoll would take one more file descriptor per run
            for pipe in tails:
                os.set_blocking(pipe.fileno(), False)  # type: ignore[union-attr]
                selector.register(pipe, selectors.EVENT_READ)  # type: ignore[arg-type]
            if exited is not None:
                selector.register(exited, selectors.EVENT_READ)
            while not over():
                left = None if end is None else end - time.monotonic()
                if left is not None and left <= 0:
                    raise TimeoutError
                patience = left if exited is not None else min(0.02, left or 0.02)
                for key, _ in selector.select(patience):
                    if key.fileobj in tails and _read(key.fileobj, tails[key.fileobj]) == 0:
                        selector.unregister(key.fileobj)
    finally:
        if exited is not None:
            os.close(exited)
    for pipe, tail in tails.items():
        for _ in range(64):  # what is left in the pipe; do not wait for a daemon that keeps writing
            if not _read(pipe, tail):
                break
    return bytes(tails[process.stdout]), bytes(tails[process.stderr])


def _read(pipe: object, tail: bytearray) -> int | None:
    """Read what is available and return its size: 0 at the end, None if there is nothing yet."""
    try:
        data = os.read(pipe.fileno(), TAIL)  # type: ignore[attr-defined]
    except BlockingIOError:
        return None
    tail += data
    del tail[:-TAIL]
    return len(data)


# -- arguments ---------------------------------------------------------------------------------------------------


def pull_values(pull: Pull) -> dict[str, str]:
    """What a placeholder may name: the pull's fields, the arm's parameters, and its case with its parameters."""
    fields = {"arm": pull.arm, "seed": str(pull.seed), "number": str(pull.number), "pull": str(pull.id)}
    values = {**_texts(pull.params), **fields}
    if pull.case is None:
        return values
    of_case = {f"{CASE}.{key}": text for key, text in _texts(pull.case_params).items()}
    return {**values, **of_case, CASE: str(pull.case)}


def _texts(params: Mapping[str, object]) -> dict[str, str]:
    return {key: value if isinstance(value, str) else json.dumps(value) for key, value in params.items()}


def fill(template: str, values: Mapping[str, str]) -> str:
    """The template with its placeholders filled in, and ``{{`` and ``}}`` made single.

    A template without any ``{{`` keeps its ``}}``: it closes two braces there, as in JSON, and escapes nothing.

    >>> fill('{arm} {{arm}}', {"arm": "a"}), fill('{"model": {"seed": {seed}}}', {"seed": "5"})
    ('a {arm}', '{"model": {"seed": 5}}')
    """
    escapes = "{{" in template
    return PLACEHOLDER.sub(lambda found: values[found[1]] if found[1] else found[0][escapes:], template)
