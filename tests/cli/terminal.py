"""A pseudo-terminal that runs a program, and what a person sees there."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence

import pyte

PATIENCE = 30.0  # seconds until a test gives up waiting; far more than anything takes


class Terminal:
    """Runs a program on a terminal of the given size. ``raw`` is everything it wrote, ``lines`` is the screen."""

    def __init__(self, argv: Sequence[str], *, columns: int, rows: int, env: Mapping[str, str]) -> None:
        self.raw = b""
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process = subprocess.Popen(
            argv, stdin=slave, stdout=slave, stderr=slave, env={"TERM": "xterm-256color", **env}, preexec_fn=self._take
        )
        os.close(slave)

    @staticmethod
    def _take() -> None:
        """Make this the controlling terminal of the new process, so that Ctrl-C works."""
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def type(self, keys: bytes) -> None:
        os.write(self._master, keys)

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.screen.display]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def wait_for(self, condition: Callable[["Terminal"], bool]) -> str:
        """Follow the program until the condition holds; return what the screen shows."""
        end = time.monotonic() + PATIENCE
        while not condition(self):
            assert time.monotonic() < end, f"never seen; the screen shows:\n{self.text}"
            assert self._read(), f"the program ended; the screen shows:\n{self.text}"
        return self.text

    def finish(self) -> int:
        """Follow the program until it exits; return its status."""
        end = time.monotonic() + PATIENCE
        while self._read():
            assert time.monotonic() < end, f"does not end; the screen shows:\n{self.text}"
        return self.process.wait(timeout=PATIENCE)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._master)

    def _read(self) -> bool:
        if not select.select([self._master], [], [], 0.2)[0]:
            return True
        try:
            data = os.read(self._master, 65536)
        except OSError:  # how Linux says that the other side was closed
            return False
        self.raw += data
        self._stream.feed(data)
        return bool(data)
