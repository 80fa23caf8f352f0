"""Kill child programs when this process dies: a small process notices, and ends what it left.

It is nobody's child, for some who end a process (Ray, its workers) end its children first.
"""

import contextlib
import os
import subprocess
import sys
import threading

SCRIPT = """
import os, sys
if os.fork():
    os._exit(0)
groups = set()
for line in sys.stdin:
    (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
for group in groups:
    try:
        os.killpg(group, 9)
    except OSError:
        pass
"""


class Guard:
    """Told of process groups as they come and go; kills what is left of them when its standard input ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Be there before anything is begun."""
        with self._lock, contextlib.suppress(OSError):  # without a guard we go on, unguarded
            self._pipe()

    def watch(self, group: int) -> None:
        """Let this process group not outlive us."""
        self._tell("+", group)

    def forget(self, group: int) -> None:
        """It has ended by itself."""
        self._tell("-", group)

    def _tell(self, sign: str, group: int) -> None:
        with self._lock, contextlib.suppress(OSError):
            os.write(self._pipe(), f"{sign}{group}\n".encode())

    def _pipe(self) -> int:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", SCRIPT],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            self._process.wait()  # it leaves a process behind that is nobody's child
        return self._process.stdin.fileno()  # type: ignore[union-attr]


GUARD = Guard()


def _begin_anew() -> None:
    """A forked child has its own programs; and the parent's guard must see the parent alone go."""
    global GUARD
    if GUARD._process is not None and GUARD._process.stdin is not None:
        os.close(GUARD._process.stdin.fileno())
    GUARD = Guard()


os.register_at_fork(after_in_child=_begin_anew)
