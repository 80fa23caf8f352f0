"""Keys of repeated calls: the pulls that a caller's key stands for, so that asking again returns the same ones."""

from collections.abc import Sequence

from ..core.events import Event
from ..errors import DamagedStudy
from .reader import read_log_pages
from .store import Store

MARK = "again:"  # keys that callers chose; the others were made up by a journal


def call_key_digest(key: str) -> str:
    """A caller's key as an event carries it: of fixed length and printable, whatever the caller chose.

    >>> call_key_digest("job 17")
    'again:2454fc94bb29bb346c1228bb7464e0ea'
    """
    import hashlib  # here: most processes see no such key

    return MARK + hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32]


class CallKeys:
    """The pulls of every key, read from the log as it grows. The first call reads all of it."""

    def __init__(self, study: str, store: Store) -> None:
        self._study, self._store = study, store
        self._pulls: dict[str, list[int]] = {}
        self._last: Event | None = None  # the last event that was taken in

    def pulls(self, key: str, end: Event) -> list[int]:
        """The pulls that were asked for with this key, in the log whose last event is ``end``."""
        if self._last is not None and self._last.digest != end.digest:
            try:
                self._read(self._last)
            except DamagedStudy:  # or it lost its end in a crash: reading the whole log shows which
                self._last = None
        if self._last is None:
            self._pulls.clear()
            self._read(None)
        return list(self._pulls.get(key, ()))

    def follow(self, before: Event, events: Sequence[Event]) -> None:
        """Take in what this process wrote after event ``before``, so that it need not be read."""
        if self._last is not None and self._last.digest == before.digest:
            self._add(events)

    def _read(self, last: Event | None) -> None:
        for page in read_log_pages(self._store, self._study, last):
            self._add(page)

    def _add(self, page: Sequence[Event]) -> None:
        self._last = None  # half a page is never kept
        for event in page:
            if event.kind == "asked" and event.pull and event.key and event.key.startswith(MARK):
                self._pulls.setdefault(event.key, []).append(event.pull)
        self._last = page[-1]
