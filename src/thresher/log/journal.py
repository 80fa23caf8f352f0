"""A study's log as one process sees it: the newest state, and the only way to write.

Every decision is made on the newest state: an agent that loses a race folds the other's events and decides again.
"""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from itertools import chain
from typing import Any, TypeVar, TypeVarTuple

from ..core import ledger as ledgers
from ..core import validity
from ..core.events import NO_EVENT, Event, EventCause, Kind, event_time_text
from ..core.spec import Spec
from ..core.state import State
from ..errors import (
    CannotGoOn,
    Conflict,
    DamagedStudy,
    Interrupted,
    StoreFailed,
    StudyDeleted,
    ThresherError,
    UnknownStudy,
)
from ..text.masking import masked
from .locks import locks_renewed_after_fork
from .reader import damaged_log, read_event_at, read_has_event, read_log_pages, unknown_study_for_reader
from .store import Store, store_chain_digest

Answer = TypeVar("Answer")
Arguments = TypeVarTuple("Arguments")
_tuple = tuple.__new__  # what Event(…) does, in a third of the time
Written = tuple[Answer, Event | None]  # what a call returns, and the last event that it wrote
LONGEST_TEXT = 10_000  # characters of a reason, and of a note
MOST_DOUBTS = 10  # connections lost in the same call
MOST_DEFEATS = 10  # races lost in a row with nothing new in the log
_ACTING: ContextVar[str | None] = ContextVar("acting", default=None)


@contextlib.contextmanager
def acting_in_journal(agent: str | None) -> Iterator[None]:
    """Inside the block, events that this thread writes carry that agent's name; None changes nothing."""
    before = _ACTING.set(agent)
    try:
        yield
    finally:
        _ACTING.reset(before)


class JournalDraft:
    """The events of one call, folded into the ledger as they are written; appended together or not at all."""

    ledger: State
    events: list[Event]
    key: str  # of the call, and so of its events
    agent: str
    lease: float | None  # seconds, of the pulls that it asks for

    def write(
        self,
        kind: Kind,
        *,
        pull: int | None = None,
        arm: int | None = None,
        reward: float | None = None,
        reason: str | None = None,
        cause: EventCause | None = None,
        late: bool | None = None,
        budget: int | None = None,
        spec: dict[str, Any] | None = None,
    ) -> None:
        """Fold in one more event. An invalid event changes nothing."""
        last = self.ledger.last
        if reason is not None and (kind != "told" or cause == "failed"):  # else it is the baseline's reward
            reason = storable_journal_reason(masked(reason))
        now, seq = time.time(), last.seq + 1
        fields = (seq, kind, pull, arm, reward, reason, cause, late, budget, spec, self.key, now, self.agent)
        try:
            event = _tuple(Event, (*fields, store_chain_digest(last.digest, (*fields, None))))  # type: ignore[arg-type]  # it has one
        except ValueError:  # such as a number that is too large: the validity check has a better message
            validity.check_event_validity(self.ledger, Event._make((*fields, None)))
            raise
        ledgers.apply_to_ledger(self.ledger, event)
        self.events.append(event)


class Journal:
    """The log of one study, with its ledger kept up to date. Safe to use from several threads, and after a fork."""

    def __init__(self, study: str, store: Store, lease: float | None = None) -> None:
        self.study, self.lease = study, lease
        # called with the events of each append, and the event before them
        self.on_write: Callable[[Event, Sequence[Event]], object] | None = None
        self._store = store
        self._birth: str | None = None  # the key of event 1: distinguishes this study from a later one of the same name
        self._acknowledged: Event | None = None  # the last event that this process wrote and that the store has flushed
        self.created: str | None = None  # when the study was created, as 2026-11-17T02:41:12Z
        self._ledger: State | None = None  # None also while it is being changed: half a change is never kept
        self._begin()
        self._basis = self._newest().last  # the event after which the last decision was made
        _JOURNALS.add(self)

    def _begin(self) -> None:
        """Set what must differ between processes; a forked child calls this again."""
        self.agent = storable_journal_reason(f"{os.uname().nodename}:{os.getpid()}")
        self._nonce, self._calls = os.urandom(6).hex(), 0
        self._lock = threading.RLock()
        self._deciding = False  # while a plan runs, which may call a user's score
        self.told = 0  # rewards that this process wrote, without those that it imported

    @property
    def spec(self) -> Spec:
        """The specification as it was when the log was last read."""
        ledger = self._ledger
        return self.peek(lambda newest: newest.spec) if ledger is None else ledger.spec

    def pages(self, after: int = 0) -> Iterator[Sequence[Event]]:
        """The log, or what came after that number, a page at a time."""
        last = read_event_at(self._store, self.study, after)
        if last is None and after:  # it is not there yet
            last = self.peek(lambda ledger: ledger.last)
            if last.seq > after:  # now it is
                last = read_event_at(self._store, self.study, after)
        for page in read_log_pages(self._store, self.study, last):
            if page[-1].seq > after:
                yield page if page[0].seq > after else [event for event in page if event.seq > after]

    def peek(self, reader: Callable[[State], Answer]) -> Answer:
        """What ``reader`` returns for the newest state, which it must not change."""
        with self._lock:
            return reader(self._newest())

    def commit(self, plan: Callable[[JournalDraft, *Arguments], Answer], *args: *Arguments) -> Answer:
        """Let ``plan(draft, …)`` write events on the newest state, and append them.

        Losing a race means deciding again. If the connection is lost before the reply comes, the key of the events
        shows whether they were written.
        """
        doubtful: list[Written[Answer]] = []  # attempts whose reply never came
        defeats = 0  # races lost in a row with nothing new in the log
        with self._lock:
            if self._deciding:  # its events would make the decision stale, again and again
                remedy = "a score may only read its arguments"
                raise CannotGoOn("study", self.study, "cannot be changed by its own score", remedy)
            while True:
                written: Written[Answer] | None = None
                try:
                    with self._store.turn(self.study):
                        ledger = self._newest()
                        written = self._found_again(doubtful) if doubtful else None
                        if written is None:
                            self._calls += 1
                            draft = JournalDraft()
                            draft.ledger, draft.events, draft.lease = ledger, [], self.lease
                            draft.key, draft.agent = f"{self._nonce}-{self._calls}", _ACTING.get() or self.agent
                            self._ledger, self._basis = None, ledger.last
                            told, revision = ledger.own_told, ledger.revision
                            try:
                                self._deciding = True
                                answer = plan(draft, *args)
                            except ThresherError:
                                if ledger.last is self._basis:  # else it holds an event that is not written
                                    self._ledger = ledger
                                raise
                            finally:
                                self._deciding = False
                            written = answer, None
                            if draft.events:
                                written = answer, draft.events[-1]
                                before, lease = self._basis.digest, draft.lease
                                self._store.append(self.study, draft.events, before=before, lease=lease)
                                self.told += ledger.own_told - told if ledger.revision == revision else 0
                                if self.on_write is not None:
                                    self.on_write(self._basis, draft.events)
                            self._ledger = ledger
                    # After the turn, so that no other agent waits for our disk. Flush even if nothing was written
                    # because a repeated call found its events: their writer may have died before it flushed.
                    self._store.flush(self.study, ledger.last)
                    self._acknowledged = written[1] or self._acknowledged
                    return written[0]
                except Conflict:
                    # the winner of the race must have written since the last decision
                    defeats = 0 if self._newest().last.digest != self._basis.digest else defeats + 1
                    if defeats == MOST_DEFEATS:  # deciding again would never end
                        rule = "the store says that it is written already, but it cannot be read"
                        raise damaged_log(self.study, f"event {self._basis.seq + 1}: {rule}") from None
                except Interrupted:
                    if written is None:
                        raise
                    self._doubt(doubtful, written)

    def _found_again(self, doubtful: "list[Written[Answer]]") -> "Written[Answer] | None":
        """The attempt whose events are in the log after all."""
        for written in doubtful:
            last = written[1]  # None: it wrote nothing, so decide again
            if last is not None and read_has_event(self._store, self.study, last):
                return written
        return None

    def _doubt(self, doubtful: "list[Written[Answer]]", written: "Written[Answer]") -> None:
        """The connection was lost: the events may or may not be written."""
        self._ledger = None
        doubtful.append(written)
        if len(doubtful) >= MOST_DOUBTS:
            rule = f"the connection was lost {MOST_DOUBTS} times in one call"
            raise StoreFailed("storage", rule=rule, remedy="repair the server, then try again") from None

    def _newest(self) -> State:
        """The ledger, with everything folded in that any agent has written."""
        ledger = self._ledger
        if ledger is None:
            return self._read()
        try:
            head = self._store.head(self.study)
            if head is not None and head.digest == ledger.last.digest:  # as `read_log_pages` would find, but faster
                return ledger
            for page in read_log_pages(self._store, self.study, ledger.last):
                self._ledger = None
                for event in page:
                    ledgers.apply_to_ledger(ledger, event)
                self._ledger = ledger
            return ledger
        except (ThresherError, *NO_EVENT) as error:
            if isinstance(error, StoreFailed) and not isinstance(error, DamagedStudy):
                raise
        # Another study has its name now, or its server lost unacknowledged events in a crash, or it is damaged. Reading
        # the whole log shows which.
        return self._read()

    def _read(self) -> State:
        """The ledger from the whole log; a log that cannot be folded is damaged, and the error names it."""
        self._ledger = ledger = None
        try:
            events = chain.from_iterable(read_log_pages(self._store, self.study))
            first = next(events, None)
            if first is None or (self._birth is not None and first.key != self._birth):
                raise unknown_study_for_reader(self.study)
            mine = self._acknowledged
            if mine is not None and not read_has_event(self._store, self.study, mine):
                rule = f"was set back while this agent worked on it: event {mine.seq}, which was acknowledged, is gone"
                raise StudyDeleted("study", self.study, rule, "open it again to go on with what is there")
            ledger = ledgers.ledger_after_created(first)
            for event in events:
                ledgers.apply_to_ledger(ledger, event)
        except StudyDeleted:
            raise
        except UnknownStudy:
            if self._birth is None:
                raise
            rule = "was deleted while this agent worked on it"
            raise StudyDeleted("study", self.study, rule, "nothing more can be told to it") from None
        except StoreFailed:
            raise
        except (ThresherError, *NO_EVENT) as error:
            raise damaged_log(self.study, f"event {ledger.seq + 1 if ledger else 1}: {error}") from None
        self._birth, self.created, self._ledger = first.key, event_time_text(first.time), ledger
        return ledger

    def _forked(self) -> None:
        if not self._lock.acquire(blocking=False):  # a thread of the parent was using it
            self._ledger = None
        self._begin()


_JOURNALS = locks_renewed_after_fork(Journal._forked)


def storable_journal_reason(text: str) -> str:
    """A reason or a note as it is kept: cut off after `LONGEST_TEXT` characters, and `storable_in_journal`."""
    return storable_in_journal(text[:LONGEST_TEXT])


def storable_in_journal(text: str) -> str:
    r"""Text as every store can keep it: no NUL, no lone surrogate.

    >>> storable_in_journal("a\0b")
    'a\ufffdb'
    """
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()
