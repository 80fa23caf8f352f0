"""Forks and starts of programs take turns.

A child that is forked while the pipes of another process are being made inherits copies of them. As long as it lives,
nobody notices the end of that process, and a thread that is starting a program waits for the child's end.
"""

import os
import threading

TURN = threading.RLock()  # held to start a process, until the copies of its pipes are closed; every fork waits for it


def _acquire() -> None:
    TURN.acquire()


def _release() -> None:
    TURN.release()


def _reset_in_child() -> None:
    """The parent may have held it more than once."""
    global TURN
    TURN = threading.RLock()


os.register_at_fork(before=_acquire, after_in_parent=_release, after_in_child=_reset_in_child)
