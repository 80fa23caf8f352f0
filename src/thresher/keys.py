"""Calls that were made before: the pulls that a caller's own key stands for, so that asking again gives the same."""

from .store import Store

MARK = "again:"  # keys that callers chose; the others were made up by a journal
PAGE = 10_000  # events that are read at once


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
        self._read = 0  # the last event that is in

    def pulls(self, key: str, upto: int) -> list[int]:
        """The pulls that were asked for with this key, as of event ``upto``."""
        while self._read < upto:
            events = self._store.read(self._study, self._read, PAGE)
            if not events:
                break
            for event in events:
                if event.kind == "asked" and event.pull and event.key and event.key.startswith(MARK):
                    self._pulls.setdefault(event.key, []).append(event.pull)
            self._read = events[-1].seq
        return list(self._pulls.get(key, ()))
