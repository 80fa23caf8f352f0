"""The store of a single process: lists. It has no leases: the log dies with the process that asks."""

import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager

from ..core.events import Event
from ..errors import InvalidInput
from .chain import Head
from .event_rows import beaten, taken


class MemoryStore:
    """Logs in this process's memory; may be handed to several studies as ``storage=``.

    >>> store = MemoryStore()
    >>> from thresher.log.chain import chained
    >>> store.append("s", chained([Event(1, "created")]))
    >>> store.read("s"), store.read("s", after=1), store.studies()
    ([Event(seq=1, kind='created', ...)], [], ['s'])
    """

    leased = False

    def __init__(self) -> None:
        self.logs: dict[str, list[Event]] = {}
        self._notes: dict[str, dict[str, str]] = {}
        self._lock = threading.RLock()

    def read(self, study: str, after: int = 0, limit: int | None = None) -> Sequence[Event]:
        return self.logs.get(study, [])[after : None if limit is None else after + limit]

    def head(self, study: str) -> Head | None:
        log = self.logs.get(study)
        return Head(log[-1].seq, log[-1].digest) if log else None

    def append(self, study: str, events: Sequence[Event], *, lease: float | None = None) -> None:
        with self._lock:
            log = self.logs.get(study, [])
            if events[0].seq != len(log) + 1:
                raise beaten(events[0].seq)
            if events[0].digest is None:
                raise InvalidInput("event", events[0].seq, "has no digest", "chain.chained gives it one")
            log.extend(events)
            self.logs[study] = log

    def flush(self) -> None:
        """Memory survives nothing."""

    def studies(self) -> list[str]:
        return sorted(self.logs)

    def turn(self, study: str) -> AbstractContextManager[object]:
        """One lock for all studies of the process."""
        return self._lock

    def renew(self, study: str, pulls: Iterable[int], seconds: float) -> None:
        """Nothing to renew: a process cannot outlive its own memory."""

    def expired(self, study: str) -> list[int]:
        return []

    def note(self, study: str, agent: str, command: str) -> None:
        self._notes.setdefault(study, {})[agent] = command

    def notes(self, study: str) -> Mapping[str, str]:
        return self._notes.get(study, {})

    def rename(self, study: str, name: str) -> None:
        with self._lock:
            if name in self.logs:
                raise taken(name)
            if study in self.logs:
                self.logs[name] = self.logs.pop(study)
                self._notes[name] = self._notes.pop(study, {})

    def delete(self, study: str) -> None:
        with self._lock:
            self.logs.pop(study, None)
            self._notes.pop(study, None)

    def describe(self) -> Mapping[str, str]:
        return {"store": "memory of this process", "durability": "none: nothing is kept"}

    def close(self) -> None:
        """Nothing is open."""
