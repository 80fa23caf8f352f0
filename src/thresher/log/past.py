"""The log of a study as it was at the end of one of its revisions."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import chain
from typing import Any, NoReturn

from ..core.events import Event
from ..errors import InvalidInput
from ..text.phrasing import plural
from .reader import read_log_pages, unknown_study_for_reader
from .store import Head, Store


class PastStore:
    """A store in which the log of one study ends where a revision of it did. Nothing can be written to it."""

    leased = False

    def __init__(self, store: Store, study: str, revision: int, end: Head) -> None:
        self._store, self._study, self._revision, self._end = store, study, revision, end

    def __getattr__(self, name: str) -> Any:
        """Where it is: its path or its address."""
        return getattr(self._store, name)

    def read(self, study: str, after: int = 0, limit: int | None = None) -> Sequence[Event]:
        if study != self._study:
            return self._store.read(study, after, limit)
        left = max(0, self._end.seq - after)
        return self._store.read(study, after, left if limit is None else min(limit, left))

    def head(self, study: str) -> Head | None:
        head = self._store.head(study)
        return self._end if study == self._study and head is not None else head

    def studies(self) -> list[str]:
        return self._store.studies()

    def notes(self, study: str) -> Mapping[str, str]:
        return self._store.notes(study)

    def expired(self, study: str) -> list[int]:
        return []

    def describe(self) -> Mapping[str, str]:
        return self._store.describe()

    def close(self) -> None:
        self._store.close()

    def flush(self, study: str, last: Event) -> None:
        """Nothing was written."""

    def append(self, study: str, events: Sequence[Event], *, before: bytes | None, lease: float | None = None) -> None:
        self._refuse()

    def turn(self, study: str) -> AbstractContextManager[object]:
        self._refuse()

    def renew(self, study: str, pulls: Iterable[int], seconds: float) -> None:
        self._refuse()

    def note(self, study: str, agent: str, command: str) -> None:
        self._refuse()

    def rename(self, study: str, name: str) -> None:
        self._refuse()

    def delete(self, study: str) -> None:
        self._refuse()

    def _refuse(self) -> NoReturn:
        rule = f"was opened as it was in revision {self._revision}, which can only be read"
        raise InvalidInput("study", self._study, rule, "open it without a revision")


def store_at_revision(store: Store, study: str, revision: int) -> PastStore:
    """The store with the study's log up to the end of that revision: of the present one, up to now."""
    count, last = 1, None
    for event in chain.from_iterable(read_log_pages(store, study)):
        if event.kind == "revised":
            if count == revision:
                break
            count += 1
        last = event
    if last is None:
        raise unknown_study_for_reader(study)
    if count < revision:
        rule = f"study {study!r} has {plural(count, 'revision')}"
        raise InvalidInput(
            "revision", revision, rule, f"give a number from 1 to {count}" if count > 1 else "leave it out"
        )
    return PastStore(store, study, revision, Head(last.seq, last.digest))
