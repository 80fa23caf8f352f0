"""Leases: this process renews those of the pulls that it handed out, as long as it lives."""

import threading
import weakref
from collections.abc import Iterable

from ..text.phrasing import plural
from .locks import locks_renewed_after_fork
from .store import Store

BEATS = 3  # renewals in the time of one lease: two may fail, or come late


class LeaseKeeper:
    """Renews leases from one daemon thread, which exists only while this process has pending pulls.

    The thread holds its keeper by a weak reference: when a study is garbage-collected, its leases run out.
    A forked child renews none of its parent's pulls; the parent does.
    """

    def __init__(self, store: Store, study: str, seconds: float) -> None:
        self.store, self.study, self.seconds = store, study, seconds
        self._forgotten = threading.Event()
        weakref.finalize(self, self._forgotten.set).atexit = False
        self._begin()
        _KEEPERS.add(self)

    def _begin(self) -> None:
        self._pulls: set[int] = set()
        self._lock = threading.Lock()
        self._beating = False  # whether there is a thread

    def hold(self, pulls: Iterable[int]) -> None:
        """Renew these pulls from now on."""
        with self._lock:
            self._pulls.update(pulls)
            if self._pulls and not self._beating:
                self._beating = True
                beat = (weakref.ref(self), self._forgotten, self.seconds / BEATS)
                threading.Thread(target=_beat, args=beat, name="thresher-leases", daemon=True).start()

    def let_go(self, pull: int) -> None:
        with self._lock:
            self._pulls.discard(pull)

    def let_go_of_all(self) -> None:
        """Stop renewing all pulls; their leases run out."""
        with self._lock:
            self._pulls.clear()

    @property
    def held(self) -> list[int]:
        with self._lock:
            return list(self._pulls)

    def holds(self, pull: int) -> bool:
        return pull in self._pulls

    def beat(self) -> bool:
        """Renew. Returns whether anything is left to renew."""
        with self._lock:
            pulls = sorted(self._pulls)
            if not pulls:
                self._beating = False  # the thread ends; the next pull starts another
                return False
        try:
            self.store.renew(self.study, pulls, self.seconds)
        except Exception as error:  # the next renewal may succeed
            from ..text.logs import log  # here: a command that asks or tells rarely needs it

            log.warning(f"the leases of {plural(len(pulls), 'pull')} could not be renewed: {error}")
        return True


_KEEPERS = locks_renewed_after_fork(LeaseKeeper._begin)


def _beat(keeper: "weakref.ref[LeaseKeeper]", forgotten: threading.Event, pause: float) -> None:
    while not forgotten.wait(pause):
        alive = keeper()
        if alive is None or not alive.beat():
            return
        del alive
