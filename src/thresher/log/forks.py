"""What a fork must not copy as it is: locks that a thread of the parent held, connections, running programs."""

import os
import weakref
from collections.abc import Callable
from typing import TypeVar

Thing = TypeVar("Thing")
_PARENTS: list[object] = []


def renewed(renew: Callable[[Thing], object]) -> "weakref.WeakSet[Thing]":
    """A set of objects, empty at first: a forked child calls ``renew`` with each object that is still in use."""
    things: weakref.WeakSet[Thing] = weakref.WeakSet()

    def in_child() -> None:
        for thing in list(things):
            renew(thing)

    os.register_at_fork(after_in_child=in_child)
    return things


def leave_to_parent(connection: object) -> None:
    """In a forked child: never close this connection, not even as garbage; that would end the parent's session."""
    _PARENTS.append(connection)
