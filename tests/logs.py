"""Write raw events to a store, without a study."""

from collections.abc import Iterable

from thresher.core.events import Event
from thresher.log.chain import START, chained
from thresher.log.store import Store


def append(store: Store, study: str, events: Iterable[Event], *, lease: float | None = None) -> list[Event]:
    """Append events, chained to those in the store; returns them as they were written."""
    head = store.head(study)
    written = chained(events, START if head is None or head.digest is None else head.digest)
    store.append(study, written, lease=lease)
    return written
