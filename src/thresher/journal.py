"""A study's log as one process sees it: the newest state, and the one way to write.

What is written was decided on the newest state: whoever appends second folds what the other wrote and decides again.
"""

import os
import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from . import ledger as ledgers
from .errors import Conflict, UnknownStudy
from .events import Event
from .ledger import Ledger
from .store import Store

Answer = TypeVar("Answer")


class Draft:
    """The events of one call, folded into the ledger as they are written; appended together or not at all."""

    def __init__(self, ledger: Ledger, key: str, agent: str) -> None:
        self.ledger, self.key, self.agent = ledger, key, agent
        self.events: list[Event] = []

    def write(
        self,
        kind: str,
        *,
        pull: int | None = None,
        arm: int | None = None,
        reward: float | None = None,
        reason: str | None = None,
        cause: str | None = None,
        late: bool | None = None,
        budget: int | None = None,
    ) -> None:
        """Fold one more event in."""
        seq = self.ledger.seq + 1
        event = Event(
            seq, kind, pull, arm, reward, reason, cause, late, budget, None, self.key, time.time(), self.agent
        )
        self.ledger.apply(event)
        self.events.append(event)


class Journal:
    """The log of one study, with its ledger kept up to date. Safe to use from several threads."""

    def __init__(self, study: str, store: Store) -> None:
        self.study = study
        self.agent = f"{socket.gethostname()}:{os.getpid()}"
        self._store = store
        self._lock = threading.RLock()
        self._calls = 0
        self._nonce = os.urandom(6).hex()
        self._ledger: Ledger | None = None
        self._read()

    def events(self, after: int = 0) -> Sequence[Event]:
        """The log, or what came after that number."""
        return self._store.read(self.study, after)

    def look(self, reader: Callable[[Ledger], Answer]) -> Answer:
        """What ``reader`` makes of the newest state; it must not change it."""
        with self._lock:
            return reader(self._read())

    def commit(self, plan: Callable[[Draft], Answer]) -> Answer:
        """Let ``plan`` write events on the newest state, and append them. Losing a race means deciding again."""
        with self._lock:
            while True:
                with self._store.turn(self.study):
                    self._calls += 1
                    draft = Draft(self._read(), f"{self._nonce}-{self._calls}", self.agent)
                    try:
                        answer = plan(draft)
                        if draft.events:
                            self._store.append(self.study, draft.events)
                        return answer
                    except Conflict:
                        self._ledger = None
                    except BaseException:
                        if draft.events:  # folded, but perhaps not written: what the log says counts
                            self._ledger = None
                        raise

    def _read(self) -> Ledger:
        """The ledger, with everything folded in that any agent has written."""
        if self._ledger is None:
            events = self._store.read(self.study)
            if not events:
                raise UnknownStudy("study", self.study, "is not in this store", "create it with create_study")
            self._ledger = ledgers.fold(events)
        else:
            for event in self._store.read(self.study, self._ledger.seq):
                self._ledger.apply(event)
        return self._ledger
