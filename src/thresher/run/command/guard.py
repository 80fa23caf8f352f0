"""Kill child programs when this process dies. A small guard process notices the death and kills the programs.

The guard is not our child, because Ray kills the children of a worker before the worker.
"""

import contextlib
import os
import subprocess
import sys
import threading

from .. import forks

GRACE = 5.0  # seconds in which a process group that is watched gently may end itself

SCRIPT = f"""
import os, sys, time
if os.fork():
    os._exit(0)
grace = {{}}  # by process group: seconds in which it may end itself
for line in sys.stdin:
    group = int(line[1:])
    grace[group] = {GRACE} if line[0] == "~" else 0
    if line[0] == "-":
        del grace[group]
closed = time.monotonic()
while grace:
    for group, seconds in list(grace.items()):
        is_due = time.monotonic() - closed >= seconds
        try:
            os.killpg(group, 9 if is_due else 0)
        except OSError:  # it has ended
            is_due = True
        if is_due:
            del grace[group]
    time.sleep(0.05)
"""


class Guard:
    """Tells the guard process which process groups run. When its standard input closes, it kills those groups."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the guard process before the first program."""
        with self._lock, contextlib.suppress(OSError):  # if it cannot start, continue without a guard
            self._pipe()

    def watch(self, group: int, *, gently: bool = False) -> None:
        """Kill this process group when this process dies. With ``gently``, it has some seconds to end itself."""
        self._tell("~" if gently else "+", group)

    def forget(self, group: int) -> None:
        self._tell("-", group)

    def _tell(self, sign: str, group: int) -> None:
        with self._lock, contextlib.suppress(OSError):
            os.write(self._pipe(), f"{sign}{group}\n".encode())

    def _pipe(self) -> int:
        if self._process is None:
            with forks.TURN:
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-S", "-c", SCRIPT],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            self._process.wait()  # it exits at once, and then its fork, the guard, is no child of ours
        return self._process.stdin.fileno()  # type: ignore[union-attr]


GUARD = Guard()


def _reset_in_child() -> None:
    """A forked child has its own programs and guard, and must not keep the pipe to its parent's guard open."""
    global GUARD
    if GUARD._process is not None and GUARD._process.stdin is not None:
        os.close(GUARD._process.stdin.fileno())
    GUARD = Guard()


os.register_at_fork(after_in_child=_reset_in_child)
