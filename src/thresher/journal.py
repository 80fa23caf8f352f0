"""A study's log as one process sees it: the newest state, and the one way to write.

What is written was decided on the newest state: whoever appends second folds what the other wrote and decides again.
"""

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

from . import ledger as ledgers
from .errors import Conflict, DamagedStudy, Interrupted, StoreFailed, StudyDeleted, ThresherError, UnknownStudy
from .events import Event, moment
from .ledger import Ledger
from .masking import masked
from .store import Store

Answer = TypeVar("Answer")
PAGE = 10_000  # events that are read at once: a long log need not fit into memory
LONGEST_REASON = 10_000  # characters
MOST_DOUBTS = 10  # connections lost in the same call
# what folding can raise where something is no event: it can be anything
NO_EVENT = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
_JOURNALS: "weakref.WeakSet[Journal]" = weakref.WeakSet()


class Written(NamedTuple, Generic[Answer]):
    """What a call answers, and how to find what it wrote."""

    answer: Answer
    seq: int  # of its first event
    key: str | None  # None: it wrote nothing


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
        reason = None if reason is None else plain(masked(reason))
        event = Event(
            seq, kind, pull, arm, reward, reason, cause, late, budget, None, self.key, time.time(), self.agent
        )
        self.ledger.apply(event)
        self.events.append(event)


class Journal:
    """The log of one study, with its ledger kept up to date. Safe to use from several threads, and after a fork."""

    def __init__(self, study: str, store: Store, lease: float | None = None) -> None:
        self.study, self.lease = study, lease
        self._store = store
        self._birth: str | None = None  # the key of event 1: tells this study from a later one of its name
        self._last: str | None = None  # the key of the last event that was folded
        self.created: str | None = None  # when the study was, as 2026-11-17T02:41:12Z
        self._ledger: Ledger | None = None
        self._at = 1  # the event that was last looked at
        self._begin()
        self._newest()
        _JOURNALS.add(self)

    def _begin(self) -> None:
        """What must differ between processes; a forked child begins anew."""
        self.agent = f"{os.uname().nodename}:{os.getpid()}"
        self._nonce, self._calls = os.urandom(6).hex(), 0
        self._lock = threading.RLock()

    def events(self, after: int = 0) -> Sequence[Event]:
        """The log, or what came after that number."""
        return self._store.read(self.study, after)

    def look(self, reader: Callable[[Ledger], Answer]) -> Answer:
        """What ``reader`` makes of the newest state; it must not change it."""
        with self._lock:
            return reader(self._newest())

    def commit(self, plan: Callable[[Draft], Answer], *, lease: float | None = None) -> Answer:
        """Let ``plan`` write events on the newest state, and append them. Losing a race means deciding again.

        Pulls that it asks for get the journal's lease, or the one that is given.

        Should the connection be lost between writing and hearing so, the events' key tells whether they were written.
        """
        doubtful: list[Written[Answer]] = []
        with self._lock:
            while True:
                written = self._attempt(plan, doubtful, lease or self.lease)
                if written is None:
                    continue
                try:
                    # after the turn: nobody waits for our disk but us. And if nothing was written because it is there
                    # already, as when a call is repeated, whoever wrote it may have died before this
                    self._store.flush()
                    return written.answer
                except Interrupted:
                    self._doubt(doubtful, written)

    def _attempt(
        self, plan: Callable[[Draft], Answer], doubtful: "list[Written[Answer]]", lease: float | None
    ) -> "Written[Answer] | None":
        """Decide on the newest state and append; None if somebody else appended first, or nobody knows."""
        with self._store.turn(self.study):
            ledger = self._newest()
            for written in doubtful:
                if [event.key for event in self._store.read(self.study, written.seq - 1, 1)] == [written.key]:
                    return written
            self._calls += 1
            draft = Draft(ledger, f"{self._nonce}-{self._calls}", self.agent)
            try:
                answer = plan(draft)
                if not draft.events:
                    return Written(answer, 0, None)
                self._store.append(self.study, draft.events, lease=lease)
            except Conflict:
                self._ledger = None
                return None
            except Interrupted:
                self._doubt(doubtful, Written(answer, draft.events[0].seq, draft.key))
                return None
            except BaseException:
                if draft.events:  # folded, but perhaps not written: what the log says counts
                    self._ledger = None
                raise
            self._last = draft.key
            return Written(answer, draft.events[0].seq, draft.key)

    def _doubt(self, doubtful: "list[Written[Answer]]", written: "Written[Answer]") -> None:
        """The connection was lost: it may be written, or not."""
        self._ledger = None
        doubtful.append(written)
        if len(doubtful) >= MOST_DOUBTS:
            rule = f"the connection was lost {MOST_DOUBTS} times in one call"
            raise StoreFailed("storage", rule=rule, remedy="mend the server, then ask again") from None

    def _newest(self) -> Ledger:
        """What `_read` gives; a log that cannot be folded is damaged, and named."""
        try:
            return self._read()
        except (StoreFailed, UnknownStudy):
            raise
        except (ThresherError, *NO_EVENT) as error:
            self._ledger = None
            raise damaged(self.study, f"event {self._at}: {error}") from None

    def _read(self) -> Ledger:
        """The ledger, with everything folded in that any agent has written."""
        if self._ledger is None:
            self._at, events = 1, self._pages()
            first = next(events, None)
            if self._birth is not None and (first is None or first.key != self._birth):
                raise self._replaced()
            if first is None:
                raise UnknownStudy("study", self.study, "is not in this store", "create it with create_study")
            self._birth = self._last = first.key
            self.created = moment(first.time)
            self._ledger = ledgers.fold(self._noted(first, events))
            return self._ledger
        # The last event once more: if it is another one now, the study is another one, or its server has lost in a
        # crash what nobody had been told was safe.
        news = iter(self._store.read(self.study, self._ledger.seq - 1))
        known = next(news, None)
        if known is None or known.key != self._last:
            self._ledger = None
            return self._read()
        for event in news:
            self._at = event.seq
            self._ledger.apply(event)
            self._last = event.key
        return self._ledger

    def _pages(self) -> Iterator[Event]:
        after = 0
        while page := self._store.read(self.study, after, PAGE):
            yield from page
            after = page[-1].seq

    def _noted(self, first: Event, rest: Iterator[Event]) -> Iterator[Event]:
        """The events on their way to the fold; the last one's key is kept."""
        yield first
        event = first
        for event in rest:
            self._at = event.seq
            yield event
        self._last = event.key

    def _replaced(self) -> StudyDeleted:
        self._ledger = None
        rule = "was deleted while this agent worked on it"
        return StudyDeleted("study", self.study, rule, "nothing more can be told to it")

    def _forked(self) -> None:
        if not self._lock.acquire(blocking=False):  # a thread that is not here any more was at work
            self._ledger = None
        self._begin()


def damaged(study: str, what: str) -> DamagedStudy:
    """The log of a study is broken; says where."""
    remedy = "restore it from a copy, or forget it with thresher delete; other studies are well"
    return DamagedStudy("study", study, f"is damaged, {what}", remedy)


def plain(text: str) -> str:
    r"""A reason as every store can keep it: no NUL, no half of a character, not endless.

    >>> plain("a\0b")
    'a\ufffdb'
    """
    text = text[:LONGEST_REASON].replace("\0", "\N{REPLACEMENT CHARACTER}")
    return text.encode("utf-8", "replace").decode()


def _after_fork() -> None:
    for journal in list(_JOURNALS):
        journal._forked()


os.register_at_fork(after_in_child=_after_fork)
