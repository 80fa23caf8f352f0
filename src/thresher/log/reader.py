"""Reading a log in pages. All events are read here, and checked to be the ones that were written.

Every event's digest must follow from the one before it, and the last event must be the one that the store has recorded
as the log's head. This finds events that were changed, lost or added, and a missing end.
"""

from collections.abc import Iterator, Sequence
from itertools import chain, islice

from ..core.events import NO_EVENT, Event
from ..errors import DamagedStudy, UnknownStudy
from .store import START, Head, Store, store_chain_digest

PAGE = 4000  # events that are read at once: a long log need not fit into memory


def read_log_pages(
    store: Store, study: str, last: Event | None = None, *, size: int = PAGE
) -> Iterator[Sequence[Event]]:
    """What follows event ``last``, or the whole log: a page at a time, to the end. Nothing if there is no such study.

    Intact events before any damage come first. With ``last``, `DamagedStudy` can also mean that another study has the
    name now, or that its server lost unacknowledged events in a crash: reading the whole log shows which.
    """
    first = None  # event 1, if this reading began with it
    known = Head(0, START) if last is None else Head(last.seq, last.digest)
    while (head := store.head(study)) != known:  # before the page: that may then hold more, but never less
        page = list(store.read(study, known.seq, size))
        if not page and head is None and known.seq == 0:
            return
        first = page[0] if page and not known.seq else first
        good, wrong = _follow(page, known) if page else (0, _missing(known.seq, head))
        if good:
            last = page[good - 1]
            known = Head(last.seq, last.digest)
            yield page[:good]
        if wrong:
            raise _damage(store, study, first, wrong)


def _follow(page: list[Event], known: Head) -> tuple[int, str | None]:
    """How many events follow from each other and from what is known, and what is wrong with the next one."""
    seq, digest = known
    assert digest is not None
    for at, event in enumerate(page):
        seq += 1
        if event.seq != seq:
            return at, f"event {seq}: is missing"
        try:
            digest = store_chain_digest(digest, event)
        except NO_EVENT as error:
            return at, f"event {seq}: is not an event ({error})"
        if event.digest != digest:
            return at, f"event {seq}: does not match its digest, so it is not as it was written"
    return len(page), None


def _missing(seq: int, head: Head | None) -> str:
    """What is wrong if a log ends at event ``seq`` but its head says otherwise."""
    if head is None:
        return f"event {seq}: the log's head is missing"
    if head.seq > seq:
        return f"event {seq + 1}: is missing, as is all up to event {head.seq}, the log's head"
    return f"event {seq}: is not the log's head, which is event {head.seq}"


def read_has_event(store: Store, study: str, event: Event) -> bool:
    """Whether the log has exactly this event."""
    events = store.read(study, event.seq - 1, 1)
    return bool(events) and events[0] == event


def _damage(store: Store, study: str, first: Event | None, where: str) -> DamagedStudy | UnknownStudy:
    """Damage, unless the study was deleted or replaced while it was read."""
    events = store.read(study, 0, 1)
    if (not events and store.head(study) is None) or (events and first is not None and events[0].key != first.key):
        return UnknownStudy("study", study, "was deleted while it was read", "list those that are there")
    return damaged_log(study, where)


def unknown_study_for_reader(
    study: str, where: str = "this store", remedy: str = "create it with create_study"
) -> UnknownStudy:
    """The error for a study that a store does not have."""
    return UnknownStudy("study", study, f"is not in {where}", remedy)


def damaged_log(study: str, where: str) -> DamagedStudy:
    """The error for a damaged log; ``where`` names the event and what is wrong with it."""
    remedy = "restore it from a copy, or delete it with thresher delete; other studies are not affected"
    return DamagedStudy("study", study, f"is damaged, {where}", remedy)


def unreadable_log(study: object, where: object) -> DamagedStudy:
    """The error for a log that the database itself cannot read; ``where`` is the file or the database."""
    remedy = "restore it from a copy; other studies may be intact"
    return DamagedStudy("study", study, f"cannot be read: {where} is damaged, at least in parts", remedy)


def read_event_at(store: Store, study: str, seq: int) -> Event | None:
    """The event with that number, to continue from; None if there is none, as before the first."""
    events = store.read(study, seq - 1, 1) if seq else ()
    return events[0] if events else None


def read_log_section(store: Store, study: str, after: int, limit: int) -> Sequence[Event]:
    """At most ``limit`` events after a number, all intact; fewer only at the end of the log, none after it."""
    last = read_event_at(store, study, after)
    if last is None and after:
        head = store.head(study)
        if (head is not None and head.seq >= after) or store.read(study, after, 1):
            raise _damage(store, study, None, f"event {after}: is missing")
        return []
    return list(islice(chain.from_iterable(read_log_pages(store, study, last, size=min(limit, PAGE))), limit))
