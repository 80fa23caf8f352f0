"""Saying that this process lives: the leases of the pulls that it handed out are renewed as long as it does."""

import os
import threading
import weakref
from collections.abc import Iterable

from .store import Store

BEATS = 3  # renewals within the time of one lease: two may fail, or come late


class Keeper:
    """Renews leases from one daemon thread, which is there only while this process has pulls under way.

    The thread knows its keeper weakly: a study that nobody holds any more is forgotten, and its leases run out.
    A forked child keeps nothing of its parent's, who goes on keeping it.
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
        """These pulls are ours, under way."""
        with self._lock:
            self._pulls.update(pulls)
            if self._pulls and not self._beating:
                self._beating = True
                mind = (weakref.ref(self), self._forgotten, self.seconds / BEATS)
                threading.Thread(target=_beat, args=mind, name="thresher-leases", daemon=True).start()

    def let_go(self, pull: int) -> None:
        """The pull came to its end."""
        with self._lock:
            self._pulls.discard(pull)

    def let_go_of_all(self) -> None:
        """Renew nothing any more; the leases run out."""
        with self._lock:
            self._pulls.clear()

    @property
    def held(self) -> list[int]:
        """The pulls that are ours, as far as we know."""
        with self._lock:
            return list(self._pulls)

    def holds(self, pull: int) -> bool:
        """Whether the pull is ours, and so in good hands."""
        return pull in self._pulls

    def beat(self) -> bool:
        """Renew; says whether there will be anything to renew."""
        with self._lock:
            pulls = sorted(self._pulls)
            if not pulls:
                self._beating = False  # the thread ends; the next pull starts another
                return False
        try:
            self.store.renew(self.study, pulls, self.seconds)
        except Exception as error:  # the next beat may do better
            from ..text.logs import log  # here: a command that asks or tells hardly ever needs it

            log.warning(f"the leases of {len(pulls)} pulls could not be renewed: {error}")
        return True


_KEEPERS: "weakref.WeakSet[Keeper]" = weakref.WeakSet()


def _beat(keeper: "weakref.ref[Keeper]", forgotten: threading.Event, pause: float) -> None:
    while not forgotten.wait(pause):
        alive = keeper()
        if alive is None or not alive.beat():
            return
        del alive


def _after_fork() -> None:
    for keeper in list(_KEEPERS):
        keeper._begin()


os.register_at_fork(after_in_child=_after_fork)
