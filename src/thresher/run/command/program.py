"""A program that stays, as a process: its pipes, its standard error, and its end."""

import contextlib
import os
import select
import subprocess
import threading
from collections.abc import Sequence

from ...log.locks import renewed
from ...text.logs import evaluators
from . import guard
from .endings import ending, printable
from .lines import PROTOCOL, VARIABLE
from .process import TAIL, kill_group

CHUNK = 1 << 16
LAST_BREATH = 1.0  # seconds for a process to exit after it closed its output, and for the end of its standard error


class Program:
    """A running program. It and what it starts end with this process, if not before."""

    def __init__(self, argv: Sequence[str]) -> None:
        guard.GUARD.start()
        pipe, environment = subprocess.PIPE, {**os.environ, VARIABLE: str(PROTOCOL)}
        self._process = subprocess.Popen(
            argv, stdin=pipe, stdout=pipe, stderr=pipe, env=environment, start_new_session=True
        )
        guard.GUARD.watch(self._process.pid, gently=True)
        self._stdin, self._stdout, self._stderr = self._process.stdin, self._process.stdout, self._process.stderr
        self.input, self.output = self._stdin.fileno(), self._stdout.fileno()  # type: ignore[union-attr]
        self.exit = os.pidfd_open(self._process.pid) if hasattr(os, "pidfd_open") else -1  # readable once it has exited
        for file in (self.input, self.output):
            os.set_blocking(file, False)
        self._reaping = threading.Lock()
        self._tail = bytearray()
        self._pump = threading.Thread(target=self._show_errors, name="thresher-stderr", daemon=True)
        self._pump.start()
        _PROGRAMS.add(self)

    @property
    def errors(self) -> bytes:
        """The end of what it has printed on standard error."""
        return bytes(self._tail)

    @property
    def ended(self) -> str:
        """How it ended."""
        code = self._process.returncode or 0
        return ending(code) if code else f"{ending(code)} before it answered"

    def reap(self, *, at_once: bool) -> None:
        """End the process and what it started. Unless ``at_once``, it is about to exit and has a moment to do so."""
        with self._reaping:
            if self._process.returncode is not None:
                return
            if not at_once:
                self.exits_within(LAST_BREATH)
            kill_group(self._process.pid)  # before it is reaped: until then its number is not reused
            self._process.wait()
            guard.GUARD.forget(self._process.pid)
        self._pump.join(LAST_BREATH)

    def exits_within(self, seconds: float) -> None:
        """Wait until it has exited, but not longer than this."""
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
            if self.exit >= 0:
                os.close(self.exit)
                self.exit = -1

    def _show_errors(self) -> None:
        """Show what it prints on standard error, line by line and without terminal codes, and keep the end of it."""
        assert self._stderr
        rest = b""
        while data := os.read(self._stderr.fileno(), CHUNK):
            self._tail += data
            del self._tail[:-TAIL]
            *lines, rest = (rest + data).split(b"\n")
            if len(rest) > CHUNK:
                lines, rest = [*lines, rest], b""
            for line in lines:
                evaluators.warning(printable(line.decode("utf-8", "replace")))
        if rest:
            evaluators.warning(printable(rest.decode("utf-8", "replace")))
        self._stderr.close()

    def _forked(self) -> None:
        """In a forked child: the program is the parent's, and a copy of its input must not stay open here."""
        self._reaping = threading.Lock()
        self.close()
        self._stderr.close()  # type: ignore[union-attr]


_PROGRAMS = renewed(Program._forked)
