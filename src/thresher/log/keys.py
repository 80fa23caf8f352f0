"""Calls that were made before: the pulls that a caller's own key stands for, so that asking again gives the same."""

from ..core.events import Event
from ..errors import DamagedStudy
from .store import Store
from .tail import pages

MARK = "again:"  # keys that callers chose; the others were made up by a journal


def marked(key: str) -> str:
    """A caller's key as an event carries it: of one length, and printable, whatever the caller chose.

    >>> marked("job 17")
    'again:2454fc94bb29bb346c1228bb7464e0ea'
    """
    import hashlib  # here: most processes see no such key

    return MARK + hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32]


class Keys:
    """The pulls of every key, read from the log as it grows. The first question reads all of it."""

    def __init__(self, study: str, store: Store) -> None:
        self._study, self._store = study, store
        self._pulls: dict[str, list[int]] = {}
        self._last: Event | None = None  # the last event that is in

    def pulls(self, key: str, upto: int) -> list[int]:
        """The pulls that were asked for with this key, as of event ``upto``."""
        if self._last is not None and self._last.seq < upto:
            try:
                self._read(self._last)
            except DamagedStudy:  # or it lost its end in a crash: the whole log tells
                self._last = None
        if self._last is None:
            self._pulls.clear()
            self._read(None)
        return list(self._pulls.get(key, ()))

    def _read(self, last: Event | None) -> None:
        for page in pages(self._store, self._study, last):
            self._last = None  # half a page is never kept
            for event in page:
                if event.kind == "asked" and event.pull and event.key and event.key.startswith(MARK):
                    self._pulls.setdefault(event.key, []).append(event.pull)
            self._last = page[-1]
