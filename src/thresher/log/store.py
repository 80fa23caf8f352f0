"""What a store must do. It keeps events in order, and knows only which pulls they begin and end."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from ..core.events import Event
from .chain import Head


class Store(Protocol):
    """A log per study, and beside it leases and commands, which do not affect the ledger.

    ``(study, seq)`` is the primary key: an append at a number that is taken, or that would leave a gap, raises
    `Conflict` and writes nothing.
    """

    @property
    def leased(self) -> bool:
        """Whether pulls have leases: a store that outlives its agents must notice when they die."""

    def read(self, study: str, after: int = 0, limit: int | None = None) -> Sequence[Event]:
        """The events of a study with ``seq > after``, in order, at most ``limit``; none if there is no such study.

        These are the events that are there. `reader.pages` checks whether they are the ones that were written.
        """

    def head(self, study: str) -> Head | None:
        """The number and the digest of the last event that was written, as noted beside the log; None: no study."""

    def append(self, study: str, events: Sequence[Event], *, lease: float | None = None) -> None:
        """Write all of the events, or raise and write none; after `Interrupted` it is unknown which. Then call `flush`.

        The events carry their digests (see `chain`), and the last of them becomes the head.

        Pulls that the events ask for get a lease of ``lease`` seconds; pulls that they end lose theirs.
        """

    def flush(self) -> None:
        """Make what this process appended survive a power cut.

        Called after the turn, so that no other agent waits for the disk. `Interrupted`: what was appended may be gone.
        """

    def studies(self) -> list[str]:
        """The names of all studies, sorted."""

    def turn(self, study: str) -> AbstractContextManager[object]:
        """Held from reading to appending, so that writers queue. Correctness does not depend on it."""

    def renew(self, study: str, pulls: Iterable[int], seconds: float) -> None:
        """Let the leases of these pulls run out ``seconds`` from now. Pulls without a lease are ignored."""

    def expired(self, study: str) -> list[int]:
        """The pulls whose leases have run out, sorted."""

    def note(self, study: str, agent: str, command: str) -> None:
        """Record what an agent runs, for people."""

    def notes(self, study: str) -> Mapping[str, str]:
        """What each agent of a study runs, in the order in which they came."""

    def rename(self, study: str, name: str) -> None:
        """Give a study, and all that belongs to it, another name; `Conflict` if that is taken."""

    def delete(self, study: str) -> None:
        """Forget a study and all that belongs to it; a repeated call does nothing."""

    def describe(self) -> Mapping[str, str]:
        """What the store is, for people; a key that begins with ``!`` names a problem."""

    def close(self) -> None:
        """Close files and connections; the next use opens them again."""
