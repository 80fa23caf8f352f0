"""What a store must do. It keeps lines in order, and knows nothing of them but which pulls they begin and end."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from ..core.events import Event
from .chain import Head


class Store(Protocol):
    """A log per study, and leases and commands beside it that no fold ever sees.

    ``(study, seq)`` is the primary key: an append at a number that is taken, or that would leave a gap, raises
    `Conflict` and writes nothing.
    """

    @property
    def leased(self) -> bool:
        """Whether pulls have leases: a store that outlives its agents must notice when they are gone."""

    def read(self, study: str, after: int = 0, limit: int | None = None) -> Sequence[Event]:
        """The events of a study with ``seq > after``, in order, at most so many; none if there is no such study.

        They are what is there. Whether they are what was written is for `tail.pages` to find out.
        """

    def head(self, study: str) -> Head | None:
        """The number and the digest of the last event that was written, as noted beside the log; None: no such study.

        Without a digest in a store of version 0.1, which notes nothing: the last event that is there.
        """

    def append(self, study: str, events: Sequence[Event], *, lease: float | None = None) -> None:
        """Write all of the events, or raise and write none; `Interrupted` alone leaves open which. Then `flush`.

        The events carry their digests (see `chain`), and the last of them becomes the head. A store of version 0.1 is
        upgraded first: it is read as it is, but written only in the form of this version.

        Pulls that the events ask for get a lease of so many seconds, for those that they end it is over.
        """

    def flush(self) -> None:
        """See to it that what this process appended survives a power cut.

        Called after the turn, so that nobody else waits for the disk. `Interrupted`: what was appended may be gone.
        """

    def studies(self) -> list[str]:
        """The names of all studies, sorted."""

    def turn(self, study: str) -> AbstractContextManager[object]:
        """Held from reading to appending, so that writers queue. Correctness never rests on it."""

    def renew(self, study: str, pulls: Iterable[int], seconds: float) -> None:
        """The process that asked for these pulls lives; look again after so many seconds. Pulls without a lease: no."""

    def expired(self, study: str) -> list[int]:
        """The pulls whose leases have run out, sorted."""

    def note(self, study: str, agent: str, command: str) -> None:
        """Keep what an agent runs beside its name, for people."""

    def notes(self, study: str) -> Mapping[str, str]:
        """What each agent of a study runs, in the order in which they came."""

    def rename(self, study: str, name: str) -> None:
        """Give a study, and all that belongs to it, another name; `Conflict` if that is taken."""

    def delete(self, study: str) -> None:
        """Forget a study and all that belongs to it; again is accepted silently."""

    def describe(self) -> Mapping[str, str]:
        """What the store is, for people; a key that begins with ``!`` is something wrong."""

    def close(self) -> None:
        """Let go of files and connections; the next use opens them again."""
