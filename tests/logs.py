"""Write raw events to a store, without a study."""

from collections.abc import Iterable

from thresher.core.events import Event
from thresher.log.store import START, Store, store_chain_digest


def append(store: Store, study: str, events: Iterable[Event], *, lease: float | None = None) -> list[Event]:
    """Append events, chained to those in the store; returns them as they were written."""
    head, written = store.head(study), []
    digest = before = START if head is None or head.digest is None else head.digest
    for event in events:
        digest = store_chain_digest(digest, event)
        written.append(event._replace(digest=digest))
    store.append(study, written, before=before, lease=lease)
    return written
