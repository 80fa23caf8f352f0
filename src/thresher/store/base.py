"""What a store must do. It keeps lines in order and knows nothing of what they mean."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from ..events import Event


class Store(Protocol):
    """A log per study, and leases beside it that no fold ever sees.

    ``(study, seq)`` is the primary key: an append at a number that is taken raises `Conflict` and writes nothing.
    """

    def read(self, study: str, after: int = 0) -> Sequence[Event]:
        """The events of a study with ``seq > after``, in order; none if there is no such study."""

    def append(self, study: str, events: Sequence[Event]) -> None:
        """Write all of the events, or raise and write none."""

    def studies(self) -> list[str]:
        """The names of all studies, sorted."""

    def turn(self, study: str) -> AbstractContextManager[object]:
        """Held from reading to appending, so that writers queue. Correctness never rests on it."""

    def renew(self, study: str, pulls: Iterable[int], seconds: float) -> None:
        """The process that asked for these pulls lives; look again after so many seconds."""

    def expired(self, study: str) -> list[int]:
        """The pulls whose leases have run out."""
